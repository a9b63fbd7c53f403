"""The amounts of a frame's bounds: literals, times as strings, arguments; exact to the microsecond."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError
from sqlext_planner.window.nodes import Bound, WindowUnion, ticks_of

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.parameters import bind_arguments
from sqlext.run.pipeline import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlext import Session

pytestmark = pytest.mark.tidied

TYPES = {"ts": "timestamp", "i": "bigint", "d": "date"}
CATALOG = DictCatalog({"t": {"k": "int", "v": "double", **TYPES}})
TIMEDELTA = datetime.timedelta


def _start(bound: str, order: str = "ts", **args: Any) -> int | None:
    """The start of the frame BETWEEN bound PRECEDING AND CURRENT ROW, in the operator's units."""
    window = f"PARTITION BY k ORDER BY {order} ROWS_RANGE BETWEEN {bound} PRECEDING AND CURRENT ROW"
    bound_text = bind_arguments(f"SELECT sum(v) OVER ({window}) AS s FROM t", args).sql
    plan = stage(bound_text, CATALOG, Config()).analyzed
    assert plan is not None
    (node,) = plan.collect(WindowUnion)
    start = node.windows[0].frame.resolve(TYPES[order]).start
    return None if start is None else -start


@pytest.mark.parametrize(
    ("bound", "microseconds"),
    [
        ("INTERVAL '0 00:00:01' DAY TO SECOND", 1_000_000),
        ("INTERVAL '1 02:03:04.000005' DAY TO SECOND", 93_784_000_005),
        ("INTERVAL '01:30' HOUR TO MINUTE", 5_400_000_000),
        ("INTERVAL '1.5' SECOND", 1_500_000),
        ("INTERVAL 0.0005 SECONDS", 500),
        ("INTERVAL 250 MICROSECONDS", 250),
        ("INTERVAL 1 HOUR 30 MINUTES", 5_400_000_000),
        ("INTERVAL '1 day 2 hours'", 93_600_000_000),
        ("INTERVAL 2 WEEKS", 1_209_600_000_000),
        ("'15s'", 15_000_000),
        ("'250 microseconds'", 250),
        ("'INTERVAL 5 MINUTES'", 300_000_000),
        ("10L", 10_000),
        ("(10)", 10_000),
    ],
)
def test_literals_are_exact(bound: str, microseconds: int) -> None:
    assert _start(bound) == microseconds


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        (TIMEDELTA(seconds=15), 15_000_000),
        (TIMEDELTA(days=3, microseconds=7), 259_200_000_007),
        ("15s", 15_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        (10, 10_000),
        (2**40, 2**40 * 1000),
    ],
)
def test_arguments_are_taken(value: Any, microseconds: int) -> None:
    assert _start(":far", far=value) == microseconds


def test_other_orders_count_in_their_units() -> None:
    assert _start("INTERVAL '0.002' SECOND", "i") == 2
    assert _start("'3s'", "i") == 3000
    assert _start("INTERVAL '48:00:00' HOUR TO SECOND", "d") == 2


@pytest.mark.parametrize(
    ("bound", "order", "message", "help"),
    [
        ("INTERVAL 1 MONTH", "ts", "a frame bound cannot be in months, which differ in length", "30 DAYS"),
        ("INTERVAL '1-2' YEAR TO MONTH", "ts", "cannot be in years", "30 DAYS"),
        ("'1 month'", "ts", "cannot be in months", "30 DAYS"),
        ("INTERVAL '0.0000001' SECOND", "ts", "finer than a microsecond", "whole microseconds"),
        (f"INTERVAL '1.{'0' * 40}1' SECOND", "ts", "finer than a microsecond", "whole microseconds"),
        ("INTERVAL '-1' SECOND", "ts", "cannot be negative", "PRECEDING or FOLLOWING"),
        ("(-3)", "ts", "cannot be negative", "PRECEDING or FOLLOWING"),
        ("1.5", "ts", "a whole number or a time, not 1.5", "INTERVAL"),
        ("'soon'", "ts", "must be a literal", "INTERVAL"),
        ("INTERVAL v SECOND", "ts", "must be a literal", "INTERVAL"),
        ("INTERVAL 1500 MICROSECONDS", "i", "in which times are milliseconds", "without a unit"),
        ("INTERVAL 36 HOURS", "d", "whole days", "7d"),
        ("INTERVAL 1e99 SECONDS", "ts", "must be a literal", "INTERVAL"),
        ("INTERVAL 99999999999999 DAYS", "ts", "too large", "UNBOUNDED"),
    ],
)
def test_what_is_no_amount_is_refused(bound: str, order: str, message: str, help: str) -> None:
    with pytest.raises(AnalysisError, match=re.escape(message)) as caught:
        _start(bound, order)
    error = caught.value
    assert error.condition == "window-frame"
    assert help in (error.help or "")
    assert error.span is not None
    assert error.sql is not None
    assert error.sql[error.span.start : error.span.end] == f"{bound} PRECEDING"


def test_a_type_that_is_known_late_rounds_nothing() -> None:
    fine = Bound("preceding", 250, "us")
    assert fine.offset(ticks_of("timestamp"), is_start=True) == -250
    with pytest.raises(AnalysisError, match="250 MICROSECONDS is no whole number"):
        fine.offset(ticks_of("bigint"), is_start=True)
    with pytest.raises(AnalysisError, match="36h is no whole number"):
        Bound("preceding", 36, "h").offset(ticks_of("date"), is_start=True)


def test_rows_a_microsecond_apart(spark: SparkSession, session: Session) -> None:
    """Also: the frame that takes all rows of equal time, later ones too, as RANGE ... AND CURRENT ROW does."""
    spark.sql(
        "SELECT id, 1 AS k, timestamp_micros(t) AS ts "
        "FROM VALUES (1, 0), (2, 249), (3, 250), (4, 500), (5, 500) AS v(id, t)"
    ).createOrReplaceTempView("fine_times")
    frames = {
        "near": "ROWS_RANGE BETWEEN INTERVAL 250 MICROSECONDS PRECEDING AND CURRENT ROW",
        "ties": "ROWS_RANGE BETWEEN :near PRECEDING AND INTERVAL 1 MICROSECOND OPEN FOLLOWING",
        "zero": "ROWS_RANGE BETWEEN 0 PRECEDING AND 0 FOLLOWING",
    }
    items = ", ".join(f"count(*) OVER (PARTITION BY k ORDER BY ts {frame}) AS {name}" for name, frame in frames.items())
    text = f"SELECT id, {items} FROM fine_times"
    rows = session.sql(text, args={"near": TIMEDELTA(microseconds=250)}).collect()
    found = {row["id"]: tuple(row)[1:] for row in rows}
    assert {number: found[number][:2] for number in (1, 2, 3)} == {1: (1, 1), 2: (2, 2), 3: (3, 3)}
    assert sorted(found[number] for number in (4, 5)) == [(2, 3, 1), (3, 3, 2)]
