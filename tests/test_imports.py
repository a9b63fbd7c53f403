"""What each layer may need, checked in interpreters of their own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
from sqlext_operators.window.functions import FUNCTIONS

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "sqlext", ROOT / "planner" / "sqlext_planner", ROOT / "operators" / "sqlext_operators")
OPERATOR_MODULES = sorted(
    ".".join(path.relative_to(ROOT / "operators").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "operators").rglob("*.py")
)


def loaded_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after `code`."""
    path = [str(ROOT), str(ROOT / "planner"), str(ROOT / "operators")]
    program = f"import sys; sys.path[:0] = {path!r}\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_operators_need_neither_spark_nor_sqlglot() -> None:
    block = "sys.modules['pyspark'] = sys.modules['sqlglot'] = None\n"
    imports = "\n".join(f"import {module}" for module in OPERATOR_MODULES)
    loaded = loaded_after(block + imports)
    assert "sqlext_operators" in loaded
    assert not {"sqlext", "sqlext_planner"} & loaded


def test_importing_the_package_is_cheap() -> None:
    loaded = loaded_after("import sqlext")
    assert not {"pyspark", "py4j", "numba", "pyarrow", "sqlglot", "typer"} & loaded


def test_the_command_line_loads_no_spark() -> None:
    loaded = loaded_after("import sqlext.cli.app, sqlext.cli.plan")
    assert not {"pyspark", "py4j", "numba", "duckdb", "matplotlib"} & loaded


def test_plans_are_made_without_spark(tmp_path: Path) -> None:
    """PySpark is an extra: a statement over declared tables is parsed and planned without it."""
    schema, statement = (
        tmp_path / "schema.sql",
        "SELECT sum(v) OVER w AS s FROM a WINDOW w AS (PARTITION BY k ORDER BY t)",
    )
    schema.write_text("CREATE TABLE a (k STRING, t BIGINT, v DOUBLE);")
    block = "sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
    words = ["plan", "--schema", str(schema), "-e", statement]
    loaded = loaded_after(f"{block}from sqlext.cli import _run\nassert _run({words!r}) == 0")
    assert "sqlext_planner.strategies" in loaded


def test_no_plan_loads_kernels() -> None:
    """Every operator over tables, and over streams; numba alone takes seconds."""
    columns = {"k": "int", "ts": "timestamp", "te": "timestamp", "v": "double"}
    statements = [
        "SELECT sum(v) OVER w AS s FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING "
        "AND CURRENT ROW)",
        "SELECT a.k, c.v FROM a LAST JOIN c ORDER BY c.ts ON a.k = c.k AND c.ts <= a.ts",
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)",
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k JOIN d ON b.k = d.k",
        "SELECT * FROM NORMALIZE(c PARTITION BY k PERIOD (ts, te))",
    ]
    for streams in ((), ("a", "b", "d")):
        catalog = f"DictCatalog({dict.fromkeys('abcd', columns)!r}, streams={streams!r})"
        plan = f"plans = [stage(sql, {catalog}, Config()).physical for sql in {statements!r}]\n"
        imports = (
            "from sqlext_planner.config import Config\nfrom sqlext.catalog.dictionary import DictCatalog\n"
            "from sqlext.run.pipeline import stage\n"
        )
        kinds = ["WindowUnion", "LastJoin", "IntervalJoin", "UMJoin", "PeriodAlgebra"]
        if streams:
            kinds = ["WindowStream", "LastJoin", "IntervalStream", "UMJoinStream", "PeriodAlgebra"]
        check = (
            "found = [{type(node).__name__ for node in plan.walk()} for plan in plans]\n"
            f"assert all(kind + 'Exec' in names for kind, names in zip({kinds!r}, found, strict=True)), found"
        )
        loaded = loaded_after(imports + plan + check)
        assert not {"numba", "pyspark", "py4j"} & loaded


def test_what_spark_has_is_known_without_loading_it(tmp_path: Path) -> None:
    """Grouping sets and times in folders' names depend on Spark's version, which is read from its file."""
    for name in ("10%3A00%3A00", "11%3A30%3A00"):
        (tmp_path / "t" / f"at={name}").mkdir(parents=True)
        (tmp_path / "t" / f"at={name}" / "rows.csv").write_text("k,v\n1,2\n")
    plan = (
        "from sqlext_planner.config import Config\nfrom sqlext.catalog.files import FileCatalog\n"
        f"from sqlext.run.pipeline import stage\nplans = FileCatalog({str(tmp_path)!r})\n"
        "sql = 'SELECT sum(s) OVER w AS x FROM (SELECT k, max(at) AS at, sum(v) AS s FROM t GROUP BY ROLLUP(k)) '\n"
        "sql += 'WINDOW w AS (PARTITION BY k ORDER BY s ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)'\n"
        "assert stage(sql, plans, Config()).physical is not None\n"
    )
    assert not {"pyspark", "py4j"} & loaded_after(plan)
    both = "from sqlext_planner.spark.versions import may_have, spark_version\n"
    same = "assert may_have('times') == (spark_version() >= (4, 1))\n"
    loaded_after(f"{both}{same}assert may_have('grouping sets') == (spark_version() >= (4, 0))")


@pytest.mark.parametrize(
    "first_use",
    [
        "sqlext.sql('SELECT 1')",
        "sqlext.Session().table('t').df()",
        "from sqlext.embedded import find_java; find_java()",
        "from sqlext.embedded import start_spark; start_spark()",
    ],
)
def test_the_first_use_says_that_spark_is_missing(first_use: str) -> None:
    block = "sys.modules['pyspark'] = sys.modules['py4j'] = None\nimport sqlext\n"
    says = "assert str(error).startswith('ConfigurationError: PySpark is not installed\\nhelp: pip install '), error"
    loaded_after(
        f"{block}try:\n    {first_use}\n    raise AssertionError\nexcept sqlext.SqlExtError as error:\n    {says}"
    )


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """What is in each module of ours, by its name."""
    found = {}
    for source in SOURCES:
        for path in source.rglob("*.py"):
            name = ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def test_no_module_takes_a_common_name(trees: dict[str, ast.Module]) -> None:
    offenders = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            offenders += [f"{name}: {m}" for m in modules if m.split(".")[0] in ("planner", "operators")]
    assert not offenders


def test_a_users_own_folders_do_not_shadow_ours(tmp_path: Path) -> None:
    for name in ("planner", "operators"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the user\\'s own package was imported')\n")
    loaded = loaded_after(f"sys.path.insert(0, {str(tmp_path)!r})\nimport sqlext.run.pipeline, sqlext.session")
    assert not {"planner", "operators"} & loaded


def imports_between_modules(modules: dict[str, ast.Module]) -> nx.DiGraph[str]:
    """Which module of ours imports which, inside functions too; not what only type checkers read."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, tree in modules.items():
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                continue
            stack.extend(ast.iter_child_nodes(node))
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                whole = [f"{node.module}.{item.name}" for item in node.names]
                found = [one if one in modules else node.module for one in whole]
                graph.add_edges_from((name, one) for one in found if one in modules and one != name)
                parts = node.module.split(".")
                packages = (".".join(parts[:end]) for end in range(1, len(parts)))  # their __init__ is imported too
                graph.add_edges_from((name, one) for one in packages if not f"{name}.".startswith(f"{one}."))
    return graph


def test_no_modules_import_each_other(trees: dict[str, ast.Module]) -> None:
    graph = imports_between_modules(trees)
    assert graph.number_of_edges() > 1_000
    assert [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1] == []


def test_every_module_is_reached(trees: dict[str, ast.Module]) -> None:
    """From the command line, a Session, a notebook, sqlglot's dialects, what workers load by name, and the examples of
    the manual."""
    graph = imports_between_modules(trees)
    for name in trees:
        parts = name.split(".")
        graph.add_edges_from((name, ".".join(parts[:end])) for end in range(1, len(parts)))
    evaluators = {f"sqlext_operators.window.evaluators.{row.evaluation.module}" for row in FUNCTIONS.values()}
    shown = {
        module
        for page in sorted((ROOT / "docs").glob("*.md"))
        for module in re.findall(r"^ *from (sqlext[\w.]*) import", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    roots = {
        "sqlext",
        "sqlext.__main__",
        "sqlext.cli.app",
        "sqlext.functions",
        "sqlext.notebook",
        "sqlext.syntax.dialect",
    }
    reached = set().union(*({root} | nx.descendants(graph, root) for root in roots | evaluators | shown))
    assert set(trees) - reached == set()
