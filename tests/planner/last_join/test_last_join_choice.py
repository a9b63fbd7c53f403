"""Which strategy a right side of a LAST JOIN gets at planning, and why; the types in which keys compare. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.exchange.arrow_scan import ArrowScanExec
from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, SparkExpr, conjunction
from sqlext_planner.expressions.types import common_type
from sqlext_planner.last_join.execution import LastJoinExec
from sqlext_planner.last_join.nodes import LastJoin, LastMatch, ResidualTerms
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.strategies import plan_physical


class Sizes:
    """A catalog of Parquet tables with these sizes."""

    def __init__(self, sizes: dict[str, int | None]) -> None:
        self._sizes = sizes

    def table(self, name: str) -> TableInfo | None:
        size = self._sizes[name]
        return TableInfo(name, (("k", "int"), ("ts", "bigint")), "parquet", (f"/{name}.parquet",), 10, size)

    def tables(self) -> tuple[str, ...]:
        return tuple(self._sizes)

    def query_columns(self, sql: str) -> None:
        return None

    def current_database(self) -> str | None:
        return None

    def has_function(self, name: str) -> bool:
        return False

    def key_statistics(self, name: str, columns: Sequence[str]) -> None:
        return None


def column(name: str) -> Column:
    return Column(*name.split("."))


def match_of(right: str, *residual: Expression) -> LastMatch:
    keys = (column("a.k"),), (column(f"{right}.k"),)
    return LastMatch(*keys, (False,), conjunction(residual), (column(f"{right}.ts"),), (False,))


def plan(sizes: dict[str, int | None], *matches: LastMatch, **settings: str) -> LastJoinExec:
    scans = {
        name: Scan(name, name, (Field(column(f"{name}.k"), "int"), Field(column(f"{name}.ts"), "bigint")))
        for name in ("a", *sizes)
    }
    node = LastJoin(scans["a"], tuple(scans[name] for name in sizes), matches)
    config = Config.from_mapping({f"sqlext.lastJoin.{key}": value for key, value in settings.items()})
    physical = plan_physical(node, config, Sizes({"a": 1 << 40, **sizes}))
    assert isinstance(physical, LastJoinExec)
    return physical


EARLIER = Compare("<=", column("b.ts"), column("a.ts"))
NEAR = SparkExpr(("abs(", column("a.ts"), " - ", column("b.ts"), ") < 3"))
SMALL, LARGE = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("sizes", "residuals", "strategy", "strategies", "why"),
    [
        ({"b": SMALL}, [()], "auto", ("reduce",), "right rows of at most 1048576 bytes are broadcast"),
        ({"b": LARGE}, [()], "auto", ("exchange",), "exchange: one for the left side and one right side"),
        ({"b": None}, [()], "auto", ("auto",), "when it runs, right sides of at most 10485760 bytes"),
        ({"b": SMALL}, [(EARLIER,)], "auto", ("exchange",), "exchange: one"),
        ({"b": SMALL}, [(NEAR,)], "auto", ("pairs",), "only Spark can evaluate abs(a.ts - b.ts) < 3"),
        ({"b": SMALL, "c": SMALL}, [(EARLIER,), ()], "auto", ("exchange", "exchange"), "one for 3 inputs"),
        ({"b": SMALL, "c": LARGE}, [(), ()], "auto", ("exchange", "exchange"), "one for 3 inputs"),
        ({"b": None, "c": SMALL}, [(NEAR,), ()], "auto", ("pairs", "reduce"), "reduce: the winner depends on the key"),
        ({"c": LARGE, "b": SMALL}, [(), (EARLIER,)], "reduce", ("reduce", "exchange"), "reduce: "),
        ({"b": SMALL}, [()], "exchange", ("exchange",), "exchange: one"),
        ({"b": SMALL}, [(EARLIER,)], "pairs", ("pairs",), "as the setting says"),
    ],
)
def test_forms(
    sizes: dict[str, int | None],
    residuals: list[tuple[Expression, ...]],
    strategy: str,
    strategies: tuple[str, ...],
    why: str,
) -> None:
    matches = [match_of(name, *terms) for name, terms in zip(sizes, residuals, strict=True)]
    node = plan(sizes, *matches, strategy=strategy)
    assert node.strategies == strategies
    assert why in node.why
    first = next(iter(sizes))
    assert node.label().startswith(f"LastJoinExec: [{strategies[0]}] ORDER BY {first}.ts ON a.k = {first}.k")
    marked = [isinstance(child, ArrowScanExec) for child in node.inputs]
    assert marked[1:] == [strategy in ("exchange", "auto") for strategy in strategies]
    assert marked[0] == any(marked[1:])


def test_the_limit_of_small_right_sides_is_a_setting() -> None:
    assert plan({"b": SMALL}, match_of("b"), broadcastBytes="1k").strategies == ("exchange",)


def test_terms_of_a_residual() -> None:
    left, right = {column("a.x"), column("a.y")}, {column("b.x")}
    over_left = SparkExpr((column("a.x"), " > ", column("a.y")))
    over_right = SparkExpr((column("b.x"), " IN (1, 2)"))
    random = SparkExpr((column("a.x"), " > rand()"), deterministic=False)
    never = Literal("FALSE")
    turned = Compare("<", SparkExpr((column("b.x"), " + 1")), column("a.x"))
    match = LastMatch((), (), (), conjunction([over_left, over_right, NEAR, random, never, turned]))
    terms = ResidualTerms.of(match, left, right)
    assert terms.left_only == (over_left, never)
    assert terms.right_only == (over_right,)
    assert terms.mixed == (NEAR, random)
    assert terms.comparisons == (Compare(">", turned.right, turned.left),)
    assert not terms.is_empty
    assert ResidualTerms.of(LastMatch((), (), (), over_right), left, right).is_empty


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("int", "bigint", "bigint"),
        ("tinyint", "tinyint", "tinyint"),
        ("float", "double", "double"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("decimal(38,0)", "decimal(38,1)", None),
        ("bigint", "double", None),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz", None),
        ("string", "int", None),
        ("void", "string", "string"),
        ("void", "void", None),
        ("array<int>", "array<int>", None),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE", None),
        ("interval year", "interval year to month", None),
        ("interval day to second", "interval day to second", "interval day to second"),
    ],
)
def test_common_types(left: str, right: str, common: str | None) -> None:
    assert common_type(left, right) == common
    assert common_type(right, left) == common
