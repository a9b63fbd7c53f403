"""Which strategy an interval join gets at planning, and why; distances and conditions. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.exchange.arrow_scan import ArrowScanExec
from sqlext_planner.exchange.wire import Size
from sqlext_planner.expressions.aggregates import weighted
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.interval_join.choice import broadcast_pays, may_leave
from sqlext_planner.interval_join.execution import IntervalJoinExec
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.periods.predicates import Amount
from sqlext_planner.periods.types import shifted
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.strategies import contains_extension, plan_physical

from sqlext.analyzer.queries import analyze
from sqlext.syntax.parser import parse
from tests.planner.plans import written

COLUMNS = (("k", "bigint"), ("ts", "bigint"), ("te", "bigint"), ("v", "int"))
INEQUALITIES = "a.ts < b.te AND b.ts < a.te"
PERIODS = "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"
MILLION = (1_000_000, 32_000_000)
LARGE = (30_000_000, 840_000_000)


class Sizes:
    """A catalog of Parquet tables with (rows, bytes)."""

    def __init__(self, estimates: dict[str, int] | None = None, **sizes: tuple[int, int] | None) -> None:
        self._sizes = sizes
        self._estimates = estimates or {}

    def table(self, name: str) -> TableInfo | None:
        if name not in self._sizes:
            return None
        rows, size = self._sizes[name] or (None, None)
        return TableInfo(name, COLUMNS, "parquet", (f"/{name}.parquet",), rows, size)

    def table_bytes(self, name: str) -> int | None:
        return self._estimates.get(name)

    def key_statistics(self, name: str, columns: Sequence[str]) -> None:
        return None

    def tables(self) -> tuple[str, ...]:
        return tuple(self._sizes)

    def query_columns(self, sql: str) -> None:
        return None

    def current_database(self) -> str | None:
        return None

    def has_function(self, name: str) -> bool:
        return True


def plan(sql: str, sizes: Sizes, **settings: str) -> PhysicalPlan:
    config = Config.from_mapping({f"sqlext.intervalJoin.{key}": value for key, value in settings.items()})
    return plan_physical(RuleExecutor(BATCHES).optimize(analyze(parse(sql), sizes)).final, config, sizes)


def join(on: str, kind: str = "JOIN", hint: str = "") -> str:
    return f"SELECT {hint} a.v FROM a {kind} b ON {on}"


def node(physical: PhysicalPlan) -> IntervalJoinExec:
    (found,) = physical.collect(IntervalJoinExec)
    return found


def test_small_inequalities_are_sparks_and_the_text_passes() -> None:
    physical = plan(join(INEQUALITIES), Sizes(a=(1_000, 32_000), b=(2_000, 64_000)))
    assert contains_extension(physical) == []
    (why,) = [item.why for item in physical.walk() if item.why]
    assert why == "1000 x 2000 rows make 2000000 pairs, fewer than 20000000: Spark compares them"


def test_estimates_of_the_catalog_leave_small_inequalities_to_spark_too() -> None:
    small = Sizes({"a": 40_000, "b": 80_000}, a=None, b=None)
    assert contains_extension(plan(join(INEQUALITIES), small)) == []
    assert node(plan(join(INEQUALITIES), Sizes({"a": 40_000_000, "b": 80_000}, a=None, b=None))).strategy == "auto"
    assert node(plan(join(PERIODS), small)).strategy == "auto"


def test_small_predicates_and_hinted_joins_sweep() -> None:
    sizes = Sizes(a=(1_000, 32_000), b=(2_000, 64_000))
    assert node(plan(join(PERIODS), sizes)).strategy == "auto"
    assert node(plan(join(INEQUALITIES, hint="/*+ SWEEP */"), sizes)).strategy == "auto"
    assert contains_extension(plan(join(INEQUALITIES, hint="/*+ NO_SWEEP */"), Sizes(a=MILLION, b=MILLION))) == []
    assert contains_extension(plan(join(PERIODS, hint="/*+ NO_SWEEP */"), Sizes(a=MILLION, b=MILLION))) == []


def test_large_sides_are_exchanged_and_read_in_the_task() -> None:
    found = node(plan(join(INEQUALITIES), Sizes(a=LARGE, b=LARGE)))
    assert found.strategy == "exchange"
    assert found.why == "one exchange for sides of at most 600000000 and 480000000 bytes"  # of columns that are read
    assert isinstance(found.inputs[0], ArrowScanExec)
    assert isinstance(found.inputs[1], ArrowScanExec)


def test_a_small_side_is_broadcast_where_its_rows_need_not_see_all_matches() -> None:
    sizes = Sizes(a=LARGE, b=(50_000, 1_400_000))
    assert "800000 bytes is sent to every task" in node(plan(join(PERIODS), sizes)).why
    assert "800000 bytes is sent to every task" in node(plan(join(PERIODS, "LEFT JOIN"), sizes)).why
    assert node(plan(join(PERIODS, "RIGHT JOIN"), sizes)).strategy == "exchange"
    assert node(plan(join(PERIODS, "FULL JOIN"), sizes, strategy="broadcast")).strategy == "exchange"


def test_the_more_cores_the_smaller_a_side_has_to_be_to_be_broadcast() -> None:
    half = 64 << 20
    fitting = {
        cores: [mib for mib in (4, 16, 64, 512) if broadcast_pays(mib << 20, Size(half), cores)] for cores in (2, 8, 64)
    }
    assert fitting == {2: [4, 16, 64, 512], 8: [4, 16], 64: [4, 16]}
    assert broadcast_pays(64 << 20, None, 64)
    assert broadcast_pays(64 << 20, Size(10 << 30), 8)


def test_unknown_sizes_are_decided_when_it_runs() -> None:
    found = node(plan(join(INEQUALITIES), Sizes(a=MILLION, b=None)))
    assert (found.strategy, may_leave(found.node)) == ("auto", True)
    assert found.why.startswith("by size when it runs: Spark for fewer than 20000000 pairs, broadcast of a side")
    assert not may_leave(node(plan(join(PERIODS), Sizes(a=MILLION, b=None))).node)


def test_the_setting_decides() -> None:
    sizes = Sizes(a=MILLION, b=MILLION)
    assert node(plan(join(PERIODS), sizes, strategy="broadcast")).strategy == "broadcast"
    assert contains_extension(plan(join(PERIODS), sizes, strategy="spark")) == []
    assert node(plan(join(INEQUALITIES), Sizes(a=(10, 9), b=(10, 9)), strategy="exchange")).strategy == "exchange"


def test_the_plan_shows_its_passes() -> None:
    details = node(plan(join(PERIODS), Sizes(a=MILLION, b=MILLION))).details()
    assert details["pass 1"].startswith("left windows over r")
    assert details["pass 2"].startswith("right windows over l")


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("t - INTERVAL 5 MINUTES", "timestamp", (-1, Amount(300_000_000, True))),
        ("t+interval '90' second", "timestamp_ntz", (1, Amount(90_000_000, True))),
        ("INTERVAL 3 DAYS + t", "timestamp_ntz", (1, Amount(3 * 86_400_000_000, True))),
        ("t + INTERVAL 1 DAY", "date", (1, Amount(86_400_000_000, True))),
        ("t - 2", "date", (-1, Amount(2, False))),
        ("t - INTERVAL '2 hours'", "timestamp", (-1, Amount(7_200_000_000, True))),
        # A day of a time zone can have 23 hours; hours make a TIMESTAMP of a DATE; numbers overflow in Spark's way.
        ("t + INTERVAL 1 DAY", "timestamp", None),
        ("t + INTERVAL 5 HOURS", "date", None),
        ("t + 2", "bigint", None),
        ("t + 2D", "double", None),
        ("t + INTERVAL 1 MONTH", "date", None),
        ("t - INTERVAL -5 MINUTES", "timestamp", None),
        ("5 - t", "date", None),
        ("t * 2", "date", None),
    ],
)
def test_distances(text: str, dtype: str, expected: tuple[int, Amount] | None) -> None:
    column, other = Column("a", "t"), Column("b", "t")
    expression = written(text, {"a": {"t": dtype}})
    base, sign, amount = shifted(expression, other, {column: dtype}, {other: dtype})
    assert (None if amount is None else (sign, amount)) == expected
    assert base == (column if amount is not None else expression)
    assert shifted(expression, other, {column: dtype}, {other: "string"})[2] is None


@pytest.mark.parametrize(
    ("call", "dtype", "expected"),
    [
        ("count(*)", "int", "coalesce(sum(n), 0L)"),
        ("COUNT( 1 )", "int", "coalesce(sum(n), 0L)"),
        ("count(#)", "string", "coalesce(sum(CASE WHEN v IS NOT NULL THEN n END), 0L)"),
        ("sum(#)", "int", "sum(CAST(v AS BIGINT) * n)"),
        ("sum(#)", "bigint", "CAST(sum(CAST(v AS DECIMAL(19,0)) * CAST(n AS DECIMAL(18,0))) AS BIGINT)"),
        ("sum(#)", "decimal(19,3)", "CAST(sum(v * CAST(n AS DECIMAL(18,0))) AS DECIMAL(29,3))"),
        ("sum(DISTINCT #)", "int", "sum(DISTINCT v)"),
        ("max(#)", "string", "max(v)"),
        ("avg(#) + 1", "float", "(sum(CAST(v AS DOUBLE) * n) / sum(CASE WHEN v IS NOT NULL THEN n END)) + 1"),
        ("sum(#)", "decimal(20,3)", None),
        ("avg(#)", "decimal(10,2)", None),
        ("sum(#)", None, None),
        ("sum(1)", "int", "sum(CAST(1 AS BIGINT) * n)"),
        (
            "count(*) FILTER (WHERE # > 3)",
            "int",
            "coalesce(sum(CASE WHEN (CASE WHEN (v > 3) THEN 1 END) IS NOT NULL THEN n END), 0L)",
        ),
        ("round(sum(# * 2), 2)", "int", "round(sum(CAST((v * 2) AS BIGINT) * n), 2)"),
        ("count(*) + #", "int", "coalesce(sum(n), 0L) + v"),
        ("first(#)", "int", None),
        ("count(*) + stddev(#)", "int", None),
        ("sum(# || 1)", "string", None),
    ],
)
def test_aggregates_by_weight(call: str, dtype: str | None, expected: str | None) -> None:
    column, weight = Column("", "v"), Column("", "n")
    given = written(call.replace("#", "v"), {"a": {"v": dtype or "void"}})
    expression = given.substitute({Column("a", "v"): column})
    found = weighted(expression, {column: dtype}, weight)
    assert (None if found is None else str(found)) == expected
