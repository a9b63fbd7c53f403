"""The text that builders write, what they refuse, Columns and DataFrames in them, and the functions made of tables."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext import Session
from sqlext import functions as fx
from sqlext.builders.queries import Query
from tests.builders.test_twins import Planner
from tests.test_docs import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent.parent

table = Planner().table


def rows_range(start: Any, end: Any = 0) -> str:
    text = table("t").window("w", fx.window("k", "ts").rows_range(start, end)).to_sql()
    return text.partition("ROWS_RANGE BETWEEN ")[2].removesuffix(")")


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (("1h",), "1h PRECEDING AND CURRENT ROW"),
        ((None, None), "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
        ((-5, 5), "5 PRECEDING AND 5 FOLLOWING"),
        ((2, 3), "2 FOLLOWING AND 3 FOLLOWING"),
        ((timedelta(minutes=90), "10s preceding"), "90m PRECEDING AND 10s preceding"),
        ((timedelta(milliseconds=1500), "current row"), "1500ms PRECEDING AND current row"),
        ((timedelta(microseconds=15), 0), "INTERVAL 15 MICROSECONDS PRECEDING AND CURRENT ROW"),
        (("1h open preceding", 0), "1h open preceding AND CURRENT ROW"),
    ],
)
def test_bounds(bounds: tuple[Any, ...], text: str) -> None:
    assert rows_range(*bounds) == text


def test_a_condition_keeps_its_meaning_beside_others() -> None:
    either = table("t").where("a = 1 OR b = 2", fx.expr("c") > 3, "d = 4 -- four")
    assert either.select("a").to_sql() == "SELECT a FROM t WHERE (a = 1 OR b = 2) AND c > 3 AND d = 4 -- four\n"
    assert ((fx.expr("a + b") * 2) & ~fx.expr("c OR d")).parts
    written = table("t").where((fx.expr("a + b") * 2 > 4) & ~fx.expr("c OR d")).to_sql()
    assert written == "SELECT * FROM t WHERE (((a + b) * 2) > 4) AND (NOT (c OR d))"


def test_what_comes_after_a_select_reads_its_result() -> None:
    query = table("t").alias("x").select("a", n="b").where("n > 1").order_by("n").limit(3).where("a > 2")
    assert query.to_sql() == (
        "SELECT * FROM (SELECT * FROM (SELECT a, b AS n FROM t AS x) AS x WHERE n > 1 ORDER BY n LIMIT 3) AS x "
        "WHERE a > 2"
    )


def test_a_filter_stays_below_a_join_that_keeps_the_right_side() -> None:
    query = table("a").where("a.x > 1").join("b", on="k", how="right_outer")
    assert query.to_sql() == "SELECT * FROM (SELECT * FROM a WHERE a.x > 1) AS a RIGHT JOIN b ON a.k = b.k"


def test_functions_do_what_methods_do() -> None:
    a, b = table("a"), table("b")
    given: dict[str, Any] = {
        "partition_by": "k",
        "order_by": "ts",
        "rows_range": ("1h", 0),
        "exclude_current_row": True,
    }
    given |= {"maxsize": 3, "exclude_current_time": True, "instance_not_in_window": True, "name": "v"}
    given |= {"by_name": True}
    assert fx.window_union(a, "b", **given).to_sql() == a.window_union(b, **given).to_sql()
    assert fx.last_join("a", b, on="k").to_sql() == a.last_join("b", on=["k"]).to_sql()
    assert fx.last_join("a", b, on="k", order_by=None).to_sql() == fx.last_join("a", b, on="k").to_sql()
    matched = a.asof_join("b", ["a.t >= b.t"], ["k"], "left")
    assert fx.asof_join("a", b, "a.t >= b.t", "k", "left").to_sql() == matched.to_sql()
    assert fx.interval_join(a, "b", on="k", how="anti").to_sql() == a.interval_join(b, on="k", how="anti").to_sql()
    merged = a.multiway_join(b, "c", on=["a.k = b.k", "b.k = c.k"], merge=True)
    assert fx.multiway_join("a", b, "c", on=["a.k = b.k", "b.k = c.k"], merge=True).to_sql() == merged.to_sql()
    periods: dict[str, Any] = {"partition_by": ["k", "l"], "period": ("s", "e")}
    for method in ("normalize", "gaps", "concurrent"):
        assert getattr(fx, method)("a", **periods).to_sql() == getattr(a, method)(**periods).to_sql()
    periods |= {"other_period": "p", "other_partition_by": ("m", "n")}
    assert fx.difference("a", b, **periods).to_sql() == a.difference("b", **periods).to_sql()


def test_by_name_is_for_all_sources_of_a_window() -> None:
    w = fx.window("k", "ts").union("a").union("b", by_name=True).union("c").rows(-1)
    written = table("t").select(fx.count().over(w)).to_sql()
    assert "(UNION a, b, c BY NAME PARTITION BY k ORDER BY ts ROWS " in written
    alone = table("t").window_union(partition_by="k", order_by="ts", rows=(-1, 0), by_name=True)
    assert "BY NAME" not in alone.select(fx.count()).to_sql()


def test_operations_over_periods_are_inputs() -> None:
    shifts = table("shifts").where("emp > 1").normalize(period=fx.period("ts", "te", open=True))
    assert shifts.to_sql() == ("SELECT * FROM NORMALIZE((SELECT * FROM shifts WHERE emp > 1) PERIOD (ts, te OPEN))")
    either = fx.period_union(("a", "b"), "q")
    gaps = table("t").alias("x").gaps(partition_by=["x.k", fx.expr("year(a)").alias("y")], period=either)
    read = table("u").last_join(gaps.alias("g"), on="k", order_by="g.start").to_sql()
    assert read == (
        "SELECT * FROM u LAST JOIN GAPS(t AS x PARTITION BY x.k, year(a) AS y "
        "PERIOD(period_union(PERIOD(a, b), q))) AS g ORDER BY g.start ON u.k = g.k"
    )
    over = table("shifts").window_union(
        table("shifts").concurrent(partition_by=["site", "emp"], period=("ts", "te")),
        *("shifts", table("shifts").distinct().limit(3).distinct()),
        by_name=True,
        partition_by="emp",
        order_by="ts",
        rows=(-1, 0),
    )
    assert over.select(fx.max("concurrent")).plan().optimized is not None
    assert "UNION (SELECT * FROM CONCURRENT(shifts " in over.to_sql()
    assert "(SELECT DISTINCT * FROM (SELECT DISTINCT * FROM shifts LIMIT 3) AS shifts)" in over.to_sql()


def test_what_functions_of_periods_give_is_a_period() -> None:
    shared = fx.period_intersect(fx.period_union(("a.ts", "a.te"), ("b.ts", "b.te")), ("b.ts", "b.te"))
    where = table("shifts").alias("a").interval_join(table("shifts").alias("b"), on=fx.meets(shared, ("b.ts", "a.te")))
    assert where.where(fx.period_length(shared) > 1).plan().optimized is not None


def test_inputs_are_called_by_the_last_part_of_their_names() -> None:
    query = table("shop.`a.b`").last_join(table("`c d`"), on="k")
    assert query.to_sql() == "SELECT * FROM shop.`a.b` LAST JOIN `c d` ON `a.b`.k = `c d`.k"
    nameless = table("a").select("k").last_join(table("b").select("k"), on="k")
    assert nameless.to_sql() == (
        "SELECT * FROM (SELECT k FROM a) AS _t1 LAST JOIN (SELECT k FROM b) AS _t2 ON _t1.k = _t2.k"
    )


def test_windows_of_one_name_get_numbers() -> None:
    first, second = fx.window("k", "ts").rows(-1), fx.window("k", "ts").rows(-2)
    total = (fx.sum("x") + fx.sum("y")).over(first)
    written = table("t").select(total, fx.sum("x").over(first), fx.max(fx.at("x", 0)).over(second)).to_sql()
    assert written == (
        "SELECT sum(x) OVER w + sum(y) OVER w, sum(x) OVER w, max(lag(x, 0)) OVER w2 FROM t WINDOW "
        "w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), "
        "w2 AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
    )


def test_texts_and_names_are_quoted() -> None:
    query = table("`my t`").select(fx.lit("it's").alias("a b"), fx.window_split("s", "'"), fx.lit(None), fx.lit(1))
    assert query.to_sql() == "SELECT 'it\\'s' AS `a b`, window_split(s, '\\''), NULL, 1 FROM `my t`"


def test_scalars_of_numpy_and_pandas_are_values() -> None:
    window = fx.window("k", "ts").rows_range(np.timedelta64(90, "s"), np.int64(0), maxsize=np.int64(3))
    assert window.frame == "ROWS_RANGE BETWEEN 90s PRECEDING AND CURRENT ROW MAXSIZE 3"
    period = fx.period(np.int64(1), pd.Timestamp("2024-01-01", tz="UTC"))
    query = table("a").select(
        fx.lit(np.float64(1.5)),
        fx.expr("x") + np.int64(2),
        fx.expr("x").isin(np.int64(1), pd.NaT),
        fx.iseql_before(period, "p", delta=np.int64(5)),
        fx.lag("v", np.int64(1)),
        fx.expr("{} > {}", "x", pd.Timedelta("1s")),
    )
    assert query.to_sql() == (
        "SELECT 1.5D, x + 2L, x IN (1L, NULL), "
        "iseql_before(PERIOD (1L, TIMESTAMP '2024-01-01 00:00:00.000000+00:00'), p, delta => 5), "
        "lag(v, 1L), x > INTERVAL '0 00:00:01.000000' DAY TO SECOND FROM a"
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fx.window("k", "ts").rows_range(pd.NaT), "NaT is no amount"),
        (lambda: fx.window("k", "ts").rows_range(pd.Timedelta(1, "ns")), "finer than a microsecond"),
        (lambda: fx.window("k", "ts").rows_range(1.5), "cannot begin at 1.5"),
        (lambda: table("orders o"), "is not the name of a table"),
        (lambda: table("a").join("b; drop", on="k").to_sql(), "is not the name of a table"),
        (lambda: fx.window("k", "ts").rows_range("1h", "5m"), "has no direction"),
        (lambda: fx.window("k", "ts").rows_range(timedelta(microseconds=-1)), "cannot begin"),
        (lambda: table("a").window_union("b", partition_by="k"), "needs one frame"),
        (lambda: fx.window("k").union("a", by_name=True).union("b", by_name=False), "for all sources of a window"),
        (lambda: fx.expr("{} = {}", 1), "2 places for 1 values"),
        (lambda: table("a").hint("x */"), "a hint cannot hold"),
        (lambda: table("a").join("b", on="k", how="sideways"), "there is no join 'sideways'"),
        (lambda: table("a").emit_after("7s"), "needs a select list"),
        (lambda: fx.lit(object()), "has no SQL literal"),
    ],
)
def test_refusals(build: Callable[[], object], message: str) -> None:
    with pytest.raises(SqlExtError, match=message) as caught:
        build()
    assert caught.value.help is not None


def test_python_does_not_compare_expressions() -> None:
    with pytest.raises(TypeError, match="eq"):
        assert fx.expr("a") == "b"
    with pytest.raises(TypeError, match="neither true nor false"):
        assert fx.expr("a")


def test_an_error_names_the_argument() -> None:
    query = table("views").last_join("orders", on=["user_id", "orders.nothing > 1"], order_by="ts")
    with pytest.raises(AnalysisError) as caught:
        query.plan()
    assert "note: this text comes from on of last_join" in str(caught.value)
    query = table("views").window_union("orders", partition_by="who", order_by="ts", rows_range=("1h", 0))
    with pytest.raises(AnalysisError, match="this text comes from partition_by of the window"):
        query.select(fx.count()).plan()
    free = table("shifts").difference("shifts", partition_by="emp", period=("ts", "te"), other_period=("ts", "until"))
    with pytest.raises(AnalysisError, match="this text comes from other_period of difference"):
        free.plan()


@pytest.mark.every_spark("Python builders")
def test_dataframes_and_columns(spark: SparkSession) -> None:
    """A DataFrame is a reference of the text, where braces are doubled; computed Columns are made in its rows."""
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    frame = spark.range(6).selectExpr("id % 2 AS k", "id AS ts", "id * 10 AS x")
    query = (
        Session(spark)
        .table(frame)
        .window_union(frame, partition_by=F.col("k") + 1, order_by=frame.ts, rows_range=(None, 0))
        .select("*", F.upper(F.lit("{a}")), text="'{b}'", most=fx.max(F.col("x") * 2))
    )
    assert "{{b}}" in query.to_sql()
    assert set(query.frames()) == {"df1", "df2"}
    found = query.df()
    assert found.columns == ["k", "ts", "x", "upper({a})", "text", "most"]
    assert sorted(tuple(row)[2:] for row in found.collect()) == [(x, "{A}", "{b}", 2 * x) for x in range(0, 60, 10)]
    joined = Session(spark).table(frame).alias("a").last_join(frame, on=F.col("k"))
    assert joined.df().count() == 6
    with pytest.raises(UnsupportedError, match=r"on of last_join: .* is computed"):
        Session(spark).table(frame).last_join(frame, on=F.col("k") == F.col("x")).df()
    with pytest.raises(UnsupportedError, match="is not a plain column"):
        Session(spark).sql("SELECT {c} FROM {t}", c=F.lit("k"), t=frame)


def test_computed_columns_where_a_source_by_name_lacks_columns(spark: SparkSession) -> None:
    """In calls they are computed with NULL for what is not there, which is what text gives; keys are refused."""
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    session = Session(spark)
    seen = spark.createDataFrame([(1, "A", 10), (1, "b", 30)], "k int, Item string, ts int")
    paid = spark.createDataFrame([(20, 5, 1)], "ts int, price int, K int")

    def rows(price: Any, shout: Any, key: Any = "k") -> list[tuple[Any, ...]]:
        w = fx.window(key, "ts").union(paid, by_name=True).rows(None, 0)
        query = session.table(seen).select("ts", shout, spent=fx.sum(price).over(w), n=fx.count().over(w))
        return sorted(tuple(row) for row in query.df().collect())

    wanted = [(10, "a", -1, 1), (30, "b", 8, 3)]
    assert rows("coalesce(price * 2, -1)", "lower(Item)") == wanted
    assert rows("coalesce(price * 2, -1)", F.lower("Item")) == wanted
    assert rows(F.coalesce(F.col("PRICE") * 2, F.lit(-1)), F.lower("item"), F.col("k") + 0) == wanted
    with pytest.raises(AnalysisError, match=r"lacks a column of .*lower.* partitioned or ordered by"):
        rows("price", "Item", F.lower("item"))


def test_computed_columns_in_operations_over_periods(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    shifts = spark.createDataFrame([("A", 1, 2), ("a", 2, 3), ("b", 5, 6)], "site string, s int, e int")
    found = fx.normalize(shifts, partition_by=F.lower("site"), period=(F.col("s") * 10, F.col("e") * 10)).df()
    assert found.columns == ["lower(site)", "start", "end"]
    assert sorted(tuple(row) for row in found.collect()) == [("a", 10, 30), ("b", 50, 60)]
    struct = fx.gaps(shifts, period=F.struct("s", "e")).df()
    assert [(row.s, row.e) for row in struct.collect()] == [(3, 5)]
    both = fx.concurrent(shifts, period=("s", "e")).select("s", twice=F.col("concurrent") * 2).df()
    assert sorted(tuple(row) for row in both.collect()) == [(1, 2), (5, 2)]
    assert both.columns == ["s", "twice"]


@pytest.mark.parametrize("name", ["window_functions.pyi", "period_functions.pyi"])
def test_stubs_are_those_of_the_tables(name: str) -> None:
    generated = load(ROOT / "docs" / "functions.py").stub(name)
    assert (ROOT / "sqlext" / "builders" / name).read_text(encoding="utf-8") == generated, (
        "run `python docs/functions.py`"
    )


def test_functions_of_the_tables_look_like_written_ones() -> None:
    assert (fx.lag.__name__, fx.lag.__qualname__, fx.lag.__module__) == (
        "lag",
        "lag",
        "sqlext.builders.window_functions",
    )
    assert str(inspect.signature(fx.lag)) == "(x: 'Value', n: 'int' = 1, default: 'Value | None' = None) -> 'Expr'"
    assert str(inspect.signature(fx.before)) == (
        "(left: 'PeriodLike', right: 'PeriodLike', *, delta: 'Amount | None' = None) -> 'Expr'"
    )
    assert (fx.lag.__doc__ or "").endswith("\n\nlag(x[, n][, default])")
    assert pickle.loads(pickle.dumps(fx.mean)) is fx.avg
    with pytest.raises(TypeError, match=r"^sum\(\) missing a required argument: 'x'$"):
        fx.sum()  # type: ignore[call-arg]


SCRIPT = """
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlext import Session
from sqlext import functions as fx


def features(spark: SparkSession, orders: DataFrame) -> DataFrame:
    session = Session(spark)
    w = fx.window("user_id", F.col("ts")).union(orders, "returns", by_name=True)
    w = w.rows_range(timedelta(days=1), maxsize=100)
    views = session.table("views").select("user_id", "ts", spent=fx.sum("price").over(w), n=fx.count().over(w))
    joined = views.alias("v").last_join(orders, on=["user_id"], order_by=fx.desc("ts"))
    during = fx.overlaps(("l.s", "l.e"), fx.period("r.s", "r.e", open=True)) | fx.before("l.p", "r.p", delta="5m")
    free = session.table("shifts").difference(orders, partition_by=["emp"], period=("ts", "te"), other_period="p")
    shared = fx.period_length(fx.period_intersect(("l.s", "l.e"), "r.p"))
    free = free.alias("f").join(fx.gaps(orders, period=fx.period("s", "e", open=True)).distinct(), on=shared > 3)
    visits = fx.interval_join(session.table("a").alias("l"), session.table("b").alias("r"), on=during, how="semi")
    joined = joined.alias("j").join(free, on="emp")
    return joined.df().union(visits.select(fx.top("x", 3)).df())
"""


@pytest.mark.slow
def test_a_users_script_passes_mypy(tmp_path: Path) -> None:
    """mypy reads the whole package for it, which takes longer than all other tests of this file."""
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT)
    wrong.write_text(SCRIPT.replace('fx.top("x", 3)', 'fx.top("x", "3")').replace('how="semi"', 'how="sideways"'))
    path = ":".join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    done = [
        subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
            cwd=tmp_path,
            env={**os.environ, "MYPYPATH": path, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        for file in (right, wrong)
    ]
    told = [[line for line in item.stdout.splitlines() if line.startswith(("right", "wrong"))] for item in done]
    assert told[0] == []
    assert len(told[1]) == 2, done[1].stdout


def test_every_function_is_in_the_namespace() -> None:
    assert {"sum", "fz_top1_ratio", "overlaps", "allen_meets", "before", "strictly_contains"} <= set(fx.__all__)
    assert all(hasattr(fx, name) for name in fx.__all__)
    assert isinstance(table("a"), Query)
