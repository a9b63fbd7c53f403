"""The wheel: three packages under their own names, and the entry points."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from sqlext_planner.spark.workers import LEAST_PYARROW

import sqlext

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that hatchling builds from the sources."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    source = tmp_path_factory.mktemp("source")
    for name in ("sqlext", "planner", "operators", "tpch_queries", "tpcds_queries", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "docs").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "docs/cluster.md", "docs/errors.md"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(source / "dist")]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=300)
    (built,) = (source / "dist").glob("*.whl")
    return zipfile.ZipFile(built)


def test_wheel_holds_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    roots = {name.split("/")[0] for name in wheel.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {
        "sqlext",
        "sqlext_planner",
        "sqlext_operators",
    }


@pytest.mark.parametrize("package", ["sqlext", "sqlext_planner", "sqlext_operators"])
def test_wheel_holds_every_module(wheel: zipfile.ZipFile, package: str) -> None:
    folder = next(path for path in (ROOT, ROOT / "planner", ROOT / "operators") if (path / package).is_dir())
    modules = {path.relative_to(folder) for path in (folder / package).rglob("*.py*") if path.suffix in (".py", ".pyi")}
    assert modules <= {Path(name) for name in wheel.namelist()}
    assert f"{package}/py.typed" in wheel.namelist()


def test_nothing_in_the_wheel_imports_a_test(wheel: zipfile.ZipFile) -> None:
    for name in (name for name in wheel.namelist() if name.endswith(".py")):
        for node in ast.walk(ast.parse(wheel.read(name))):
            assert not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "tests", name


def test_wheel_holds_no_texts_of_tests(wheel: zipfile.ZipFile) -> None:
    kinds = {Path(name).suffix for name in wheel.namelist() if ".dist-info/" not in name}
    assert kinds == {".py", ".pyi", ".sql", ".txt", ".md", ".typed", ".json", ".css", ".ipynb"} & kinds
    assert {f"sqlext_planner/plan_format/{name}.css" for name in ("plan", "page")} <= set(wheel.namelist())
    assert "sqlext_planner/docs/cluster.md" in wheel.namelist()  # errors name it
    assert "sqlext_planner/docs/errors.md" in wheel.namelist()  # `sqlext errors` prints its entries


def test_readme_has_no_relative_links_on_an_index_page(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    text = wheel.read(name).decode()
    home = PROJECT["urls"]["Homepage"]
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [link.removeprefix(f"{home}/blob/main/") for link in links if link.startswith(home)]
    assert [path for path in ours if not (ROOT / path).exists()] == []
    assert f"Project-URL: Homepage, {home}\n" in text


@pytest.mark.parametrize(("name", "size"), [("tpch", 22), ("tpcds", 99)])
def test_wheel_holds_the_queries(wheel: zipfile.ZipFile, name: str, size: int) -> None:
    files = {Path(file).name for file in wheel.namelist() if file.startswith(f"sqlext/tpc/queries/{name}/")}
    assert {"schema.sql", *(f"q{number:02}.sql" for number in range(1, size + 1))} <= files


def test_wheel_holds_the_notebooks(wheel: zipfile.ZipFile) -> None:
    held = {Path(name).name for name in wheel.namelist() if name.startswith("sqlext/notebooks/")}
    assert held == {path.name for path in (ROOT / "examples").glob("*.ipynb")} != set()


def test_wheel_names_the_command_and_the_dialect(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    text = wheel.read(name).decode()
    assert "sqlext = sqlext.cli:main" in text
    assert "sqlext = sqlext.syntax.dialect:SqlExt" in text


def test_version_has_one_source(wheel: zipfile.ZipFile) -> None:
    assert "version" in PROJECT["dynamic"]
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    assert f"\nVersion: {sqlext.__version__}\n" in wheel.read(name).decode()


def test_lock_pins_every_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {line.split("==")[0].lower() for line in lock.splitlines() if "==" in line}
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(item for extra in extras for item in extra)]:
        name = requirement.split("[")[0].split("=")[0].split("<")[0].split(">")[0].strip().lower()
        assert name in pinned, f"{requirement} is not in requirements.lock; run `make lock`"


def test_lower_bounds() -> None:
    """Every dependency has one, which `make test-lowest` installs; the workers' own check has the same one."""
    ranges = {found.name: found.specifier for found in map(Requirement, PROJECT["dependencies"])}
    lowest = {name: [one.version for one in bounds if one.operator == ">="] for name, bounds in ranges.items()}
    assert [name for name, found in lowest.items() if len(found) != 1] == []
    assert Version(lowest["pyarrow"][0]).major == LEAST_PYARROW
    assert "pyspark" not in ranges
    lock = dict(line.split(" ;")[0].split("==") for line in (ROOT / "requirements.lock").read_text().splitlines()[2:])
    assert [name for name, bounds in ranges.items() if lock[name] not in bounds] == []
