"""Period predicates and functions outside of joins, in Spark, against the formulas in Python."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import DataError

from sqlext import Session
from tests.analyzer.period_formulas import BOUNDED, FORMULAS, INF, WORDS, allen_relation, contains_point, related

VALUES = (None, -3, 0, 1, 2, 5)
ROWS = list(itertools.product(VALUES, repeat=4))
EPOCH = datetime.datetime(2024, 3, 31, 1, 0)


def tick(value: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=value)


#: type -> (a value of it for a number, how a bound of so many units is written)
TYPES: dict[str, tuple[Callable[[int], Any], Callable[[float], str]]] = {
    "int": (int, str),
    "bigint": (lambda v: v + 2**62, str),
    "smallint": (int, str),
    "date": (lambda v: datetime.date(2024, 2, 28) + datetime.timedelta(days=v), lambda v: f"INTERVAL '{v}' DAY"),
    "timestamp": (lambda v: tick(v).replace(tzinfo=datetime.UTC), lambda v: f"INTERVAL {v} MICROSECONDS"),
    "timestamp_ntz": (tick, lambda v: f"INTERVAL '0.{v:06}' SECOND"),
    "double": (lambda v: v / 4, lambda v: f"{v / 4}D"),
    "float": (lambda v: v / 4, lambda v: str(v / 4)),
    "decimal(12,2)": (lambda v: Decimal(v) / 100, lambda v: f"0.0{v}"),
}


@pytest.fixture(scope="module", params=TYPES)
def typed(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[tuple[str, str]]:
    """A type, and a table of all rows with columns of it; `untyped` has the same where no type is known before."""
    dtype, convert = request.param, TYPES[request.param][0]
    rows = [(i, *(None if v is None else convert(v) for v in row)) for i, row in enumerate(ROWS)]
    frame = spark.createDataFrame(rows, f"id int, a {dtype}, b {dtype}, c {dtype}, d {dtype}").coalesce(1)
    frame.createOrReplaceTempView("period_rows")
    ends = ", ".join(f"CASE WHEN id >= 0 THEN nvl2(id, {x}, {x}) END AS {x}" for x in "abcd")
    yield dtype, f"(SELECT id, {ends} FROM period_rows)"
    spark.catalog.dropTempView("period_rows")


def check(session: Session, source: str, wanted: dict[str, Callable[..., Any]]) -> None:
    """Each expression gives for each row what the function does."""
    items = ", ".join(f"{text} AS e{i}" for i, text in enumerate(wanted))
    got = sorted(session.sql(f"SELECT id, {items} FROM {source}").collect())
    assert len(got) == len(ROWS)
    for column, (text, function) in enumerate(wanted.items(), 1):
        wrong = [
            (row, found[column], function(*row))
            for row, found in zip(ROWS, got, strict=True)
            if found[column] != function(*row)
        ]
        assert wrong[:3] == [], text


def bounded(
    name: str, bounds: list[tuple[float, float]], write: Callable[[float], str]
) -> dict[str, Callable[..., Any]]:
    """Calls of a relation with bounds, as SQL and as Python."""
    found: dict[str, Callable[..., Any]] = {}
    takes_delta, takes_epsilon, _ = BOUNDED[name]
    for x, y in bounds:
        given = [(takes_delta, "delta", x), (takes_epsilon, "epsilon", y)]
        text = "".join(f", {word} => {write(v)}" for takes, word, v in given if takes and v != INF)
        x, y = x if takes_delta else INF, y if takes_epsilon else INF
        found[f"{name}(a, b, c, d{text})"] = lambda a, b, c, d, x=x, y=y: related(name, a, b, c, d, x, y)
    return found


@pytest.mark.few(3)
def test_every_relation(typed: tuple[str, str], session: Session) -> None:
    """The function form, over columns of known type and over expressions whose types only Spark knows."""
    dtype, untyped = typed
    wanted: dict[str, Callable[..., Any]] = {
        f"{name}(a, b, c, d)": lambda a, b, c, d, name=name: related(name, a, b, c, d) for name in FORMULAS
    }
    bounds = [(INF, INF), (0, 1), (1, 0), (5, 3)]
    for name in BOUNDED:
        wanted |= bounded(name, bounds, TYPES[dtype][1])
    wanted["period_contains(a, b, c)"] = lambda a, b, c, d: contains_point(a, b, c)
    wanted["allen_relation(a, b, c, d)"] = allen_relation
    check(session, "period_rows", wanted)
    few = [text for i, text in enumerate(wanted) if i % 3 == 0 and not ("delta" in text and dtype == "date")]
    check(session, untyped, {text: wanted[text] for text in few})


#: type -> the length of a period of so many units
LENGTHS: dict[str, Callable[[int], Any]] = {
    "date": lambda v: datetime.timedelta(days=v),
    "timestamp": lambda v: datetime.timedelta(microseconds=v),
    "timestamp_ntz": lambda v: datetime.timedelta(microseconds=v),
    "double": lambda v: v / 4,
    "float": lambda v: v / 4,
    "decimal(12,2)": lambda v: Decimal(v) / 100,
}


def made_of(name: str, a: Any, b: Any, c: Any, d: Any) -> tuple[str, str] | None:
    """Which ends a function of two periods gives, by their names; None for NULL."""
    if None in (a, b, c, d) or a >= b or c >= d:
        return None
    late, early = ("a" if a >= c else "c"), ("b" if b <= d else "d")
    first, last = ("c" if late == "a" else "a"), ("d" if early == "b" else "b")
    if name == "period_intersect":
        return (late, early) if max(a, c) < min(b, d) else None
    if name == "period_union":
        return (first, last) if max(a, c) <= min(b, d) else None
    return (early, late) if min(b, d) < max(a, c) else None


@pytest.mark.few(3)
def test_functions_of_periods(typed: tuple[str, str], session: Session) -> None:
    dtype, untyped = typed
    names = ("period_intersect", "period_union", "period_gap")
    calls = ", ".join(f"{name}(a, b, PERIOD(c, d)) AS {name}" for name in names)
    lengths = "period_length(a, b) AS length, period_length(period_gap(a, b, c, d)) AS gap_length"
    for items, source in ((f"{calls}, {lengths}", "period_rows"), (calls, untyped)):
        for row, found in zip(ROWS, session.sql(f"SELECT a, b, c, d, {items} FROM {source}").collect(), strict=True):
            for name in names:
                ends = made_of(name, *row)
                assert found[name] == (None if ends is None else tuple(found[end] for end in ends)), (name, row)
            if "length" in found:
                a, b = row[:2]
                gap = made_of("period_gap", *row)
                ends_of: dict[str, Any] = dict(zip("abcd", row, strict=True))
                length = LENGTHS.get(dtype, int)
                assert found.length == (None if a is None or b is None or a >= b else length(b - a)), row
                assert found.gap_length == (None if gap is None else length(ends_of[gap[1]] - ends_of[gap[0]])), row


@pytest.fixture
def integers(spark: SparkSession) -> Iterator[str]:
    """A table of all rows with bigint columns."""
    frame = spark.createDataFrame([(i, *row) for i, row in enumerate(ROWS)], "id int, a int, b int, c int, d bigint")
    frame.createOrReplaceTempView("period_integers")
    yield "period_integers"
    spark.catalog.dropTempView("period_integers")


def test_every_spelling(integers: str, session: Session) -> None:
    wanted: dict[str, Callable[..., Any]] = {}
    for words, name in WORDS.items():
        wanted[f"PERIOD(a, b) {words} PERIOD(c, d)"] = lambda a, b, c, d, n=name: related(n, a, b, c, d)
        wanted[f"(a, b) NOT {words} (c, d)"] = lambda a, b, c, d, n=name: negated(related(n, a, b, c, d))
    wanted["PERIOD(a, b) BEFORE (c, d) WITHIN 2"] = lambda a, b, c, d: related("iseql_before", a, b, c, d, 2)
    wanted["PERIOD(a, b) END FOLLOWED BY (c, d) WITHIN 2"] = lambda a, b, c, d: related(
        "iseql_end_followed_by", a, b, c, d, INF, 2
    )
    wanted["PERIOD(a, b) LEFT OVERLAP (c, d) WITHIN (END 3, START 1)"] = lambda a, b, c, d: related(
        "iseql_left_overlap", a, b, c, d, 1, 3
    )
    check(session, integers, wanted)


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def test_sets_of_relations(integers: str, session: Session) -> None:
    def among(*names: str) -> Callable[..., Any]:
        def of(*ends: int | None) -> bool | None:
            name = allen_relation(*ends)  # type: ignore[arg-type]
            return None if name is None else name in names

        return of

    some = among("meets", "overlaps", "contains")
    check(
        session,
        integers,
        {
            "allen_relation(a, b, c, d) IN ('meets', 'overlaps', 'contains', 'meets')": some,
            "allen_relation(a, b, c, d) NOT IN ('meets', 'overlaps', 'contains')": lambda *r: negated(some(*r)),
            "NOT (allen_relation((a, b), c, d) IN ('meets', 'overlaps', 'contains'))": lambda *r: negated(some(*r)),
            "allen_relation(a, b, c, d) = 'met_by'": among("met_by"),
            "'equals' = allen_relation(a, b, c, d)": among("equals"),
            "allen_relation(a, b, c, d) <> 'before'": lambda *r: negated(among("before")(*r)),
            "allen_relation(a, b, c, d) IN ('none', 'before')": among("none", "before"),
            "upper(allen_relation(a, b, c, d)) LIKE 'START%'": among("starts", "started_by"),
        },
    )


def test_closed_and_open_periods(integers: str, session: Session) -> None:
    last = 2**63 - 1

    def closed(a: Any, b: Any, c: Any, d: Any) -> bool | None:
        return related("period_overlaps", a, None if b is None else b + 1, c, d)

    def open_end(a: Any, b: Any, c: Any, d: Any) -> bool | None:
        return related("period_overlaps", a, b, c, last if d is None else d)

    def both(a: Any, b: Any, c: Any, d: Any) -> bool | None:
        ends = (last if b is None else b + 1, last if d is None else d + 1)
        return related("iseql_during", a, ends[0], c, ends[1], INF, 3)

    check(
        session,
        integers,
        {
            "PERIOD CLOSED (a, b) OVERLAPS PERIOD(c, d)": closed,
            "PERIOD(a, b) OVERLAPS PERIOD(c, d OPEN)": open_end,
            "PERIOD CLOSED (a, b OPEN) DURING PERIOD CLOSED (c, d OPEN) WITHIN END 3": both,
            "period_overlaps(PERIOD CLOSED (a, b), c, d)": closed,
        },
    )


def test_where_clauses_and_expressions(integers: str, session: Session) -> None:
    overlap = "PERIOD(a, b) OVERLAPS PERIOD(c, d)"
    truth = [related("period_overlaps", *row) for row in ROWS]
    count = truth.count(True)
    for text, expected in {
        f"WHERE {overlap}": count,
        f"WHERE NOT ({overlap})": truth.count(False),
        f"WHERE ({overlap}) IS NULL": truth.count(None),
        f"WHERE {overlap} OR id < 0": count,
        f"WHERE CASE WHEN {overlap} THEN 1 WHEN NOT {overlap} THEN 2 END = 2": truth.count(False),
        f"WHERE {overlap} = TRUE": count,
        f"WHERE coalesce({overlap}, true)": count + truth.count(None),
    }.items():
        assert session.sql(f"SELECT count(*) AS n FROM {integers} {text}").first()[0] == expected, text
    grouped = session.sql(f"SELECT {overlap} AS o, count(*) AS n FROM {integers} GROUP BY {overlap} ORDER BY o")
    assert [tuple(row) for row in grouped.collect()] == [(v, truth.count(v)) for v in (None, False, True)]
    having = f"SELECT a FROM {integers} GROUP BY a HAVING PERIOD(a, max(d)) OVERLAPS PERIOD(4, 5) ORDER BY a"
    assert [row[0] for row in session.sql(having).collect()] == [-3, 0, 1, 2]
    ordered = f"SELECT id FROM {integers} ORDER BY {overlap} DESC NULLS LAST, id LIMIT 1"
    assert session.sql(ordered).first()[0] == truth.index(True)


def test_struct_columns(session: Session) -> None:
    rows = session.sql(
        "WITH r AS (SELECT struct(1 AS s, 4 AS e) AS valid), q AS (SELECT 2 AS x, struct(x AS a, 9 AS b) AS p)"
        "SELECT r.valid OVERLAPS q.p, period_overlaps(r.valid, q.p), r.valid CONTAINS q.x, (r.valid) ALLEN OVERLAPS"
        " (q.p), allen_relation(r.valid, q.p), r.valid NOT OVERLAPS (4, 5) FROM r, q"
    ).collect()
    assert [tuple(row) for row in rows] == [(True, True, True, True, "overlaps", True)]


def test_the_clock_going_forward(spark: SparkSession, session: Session) -> None:
    """Distances of TIMESTAMPs are elapsed time, where Spark's difference is that of the local clocks."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        ends = "TIMESTAMP '2024-03-30 10:00:00', TIMESTAMP '2024-03-30 12:00:00'"
        later = "TIMESTAMP '2024-03-31 12:00:00', TIMESTAMP '2024-03-31 13:00:00'"
        text = f"SELECT iseql_before({ends}, {later}, delta => INTERVAL {{}}) AS x"
        untyped = text.replace("TIMESTAMP '2024-03-31 12:00:00'", "to_timestamp('2024-03-31 12:00:00')")
        for query in (text, untyped):
            assert session.sql(query.format("23 HOURS")).first()[0] is True
            assert session.sql(query.format("22 HOURS 59 MINUTES")).first()[0] is False
        local = text.replace("TIMESTAMP '", "TIMESTAMP_NTZ '")
        assert session.sql(local.format("23 HOURS")).first()[0] is False
        assert session.sql(local.format("1 DAY")).first()[0] is True
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("a", "b", "c", "d", "delta", "expected"),
    [
        ("-9223372036854775808L", "-9223372036854775807L", "9223372036854775806L", "9223372036854775807L", "5", False),
        ("-2147483648", "-2147483647", "2147483646", "2147483647", "5000000000", True),
        ("-2147483648", "-2147483647", "2147483646", "2147483647", "4000000000", False),
        ("double('-Infinity')", "0.0D", "0.5D", "double('Infinity')", "0.5", True),
        ("0.0D", "double('NaN') + 0", "1.0D", "2.0D", "5", False),
        ("DATE '0001-01-01'", "DATE '0002-01-01'", "DATE '9999-01-01'", "DATE '9999-12-31'", "5", False),
        ("DATE '2024-01-01'", "DATE '2024-01-02'", "DATE '2024-01-07'", "DATE '2024-02-01'", "5", True),
        (
            *("TIMESTAMP '-290000-01-01 00:00:00'", "TIMESTAMP '-280000-01-01 00:00:00'"),
            *("TIMESTAMP '+290000-01-01 00:00:00'", "TIMESTAMP '+290001-01-01 00:00:00'", "INTERVAL 5 DAYS", False),
        ),
        ("-0.0D", "0.5D", "0.5D", "1.0D", "0", True),
        ("CAST(0.1 AS FLOAT)", "CAST(0.3 AS FLOAT)", "0.4D", "1.0D", "0.1", True),
        ("0.1", "0.3", "0.4", "1", "0.1", True),
    ],
)
def test_distances_never_overflow(a: str, b: str, c: str, d: str, delta: str, expected: bool, session: Session) -> None:
    text = f"SELECT iseql_before({a}, {b}, {c}, {d}, delta => {delta}) AS x"
    assert session.sql(text).first()[0] is expected


def test_empty_periods_as_the_setting_says(spark: SparkSession, integers: str) -> None:
    stopping = Session(spark, config={"sqlext.interval.empty": "error"})
    text = f"SELECT count_if(PERIOD(a, b) OVERLAPS PERIOD(c, d)) AS n FROM {integers}"
    with pytest.raises(DataError, match="empty or reversed period"):
        stopping.sql(text).collect()
    valid = f"SELECT count_if(PERIOD(a, b) OVERLAPS PERIOD(c, d)) AS n FROM {integers} WHERE a < b AND c < d"
    assert stopping.sql(valid).first()[0] == [related("period_overlaps", *row) for row in ROWS].count(True)

    def moved(start: Any, end: Any) -> Any:
        return end + 1 if end is not None and start == end else end

    pointed = Session(spark, config={"sqlext.interval.empty": "point"})
    check(
        pointed,
        integers,
        {
            f"{name}(a, b, c, d)": lambda a, b, c, d, n=name: related(n, a, moved(a, b), c, moved(c, d))
            for name in ("period_overlaps", "allen_starts", "allen_meets", "iseql_during", "allen_equals")
        },
    )
    for first in ("DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'", "1.5"):
        assert pointed.sql(f"SELECT ({first}, {first}) EQUALS ({first}, {first}) AS x").first()[0] is True


def test_statements_around_and_places(spark: SparkSession, session: Session, integers: str) -> None:
    """A predicate never reaches Spark as it is written: in views, subqueries, set operations and lateral aliases."""
    overlap = "PERIOD(a, b) OVERLAPS PERIOD(c, d)"
    count = [related("period_overlaps", *row) for row in ROWS].count(True)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW period_view AS SELECT {overlap} AS o FROM {integers}")
    assert session.sql("SELECT count_if(o) FROM period_view").first()[0] == count
    spark.catalog.dropTempView("period_view")
    union = f"SELECT id FROM {integers} WHERE {overlap} UNION SELECT id FROM {integers} WHERE NOT ({overlap})"
    assert session.sql(union).count() == sum(None not in row for row in ROWS)
    lateral = f"SELECT {overlap} AS o, NOT o AS n FROM {integers} WHERE {overlap} LIMIT 1"
    assert tuple(session.sql(lateral).first()) == (True, False)
    nested = f"SELECT count(*) FROM (SELECT {overlap} AS o FROM {integers}) WHERE o"
    assert session.sql(nested).first()[0] == count


def test_blocks_that_only_spark_reads(session: Session, integers: str) -> None:
    """LATERAL VIEW, TABLESAMPLE, PIVOT, QUALIFY, lambdas: the predicate is written out in the text that Spark gets."""
    wanted = sum(contains_point(a, b, t) is True for a, b, _, _ in ROWS for t in (0, 2))
    lateral = f"SELECT count_if((a, b) CONTAINS t) FROM {integers} LATERAL VIEW explode(array(0, 2)) v AS t"
    assert session.sql(lateral).first()[0] == wanted
    view = f"FROM {integers} LATERAL VIEW explode(array(0, 2)) v AS t"
    filtered = f"WITH q AS (SELECT t {view} WHERE (a, b) CONTAINS t) SELECT count(*) FROM q"
    assert session.sql(filtered).first()[0] == wanted
    shared = f"WITH q AS (SELECT id, a, b FROM {integers} WHERE (a, b) OVERLAPS (0, 1)) SELECT count(*) FROM q"
    laterally = (
        f"{shared} LATERAL VIEW explode(array(0)) v AS t WHERE iseql_start_preceding(a, b, t, t + 1, delta => 3)"
    )
    expected = sum(related("iseql_start_preceding", a, b, 0, 1, 3) is True for a, b, _, _ in ROWS)
    assert session.sql(laterally).first()[0] == expected
    lambdas = f"SELECT count_if(exists(array(0, 2), t -> PERIOD(a, b) CONTAINS t)) FROM {integers}"
    either = sum(any(contains_point(a, b, t) for t in (0, 2)) for a, b, _, _ in ROWS)
    assert session.sql(lambdas).first()[0] == either
    sampled = f"SELECT count(*) FROM {integers} TABLESAMPLE (100 PERCENT) WHERE (a, b) CONTAINS 2"
    assert session.sql(sampled).first()[0] == sum(contains_point(a, b, 2) is True for a, b, _, _ in ROWS)


def test_functions_of_periods_anywhere_in_a_statement(integers: str, session: Session, spark: SparkSession) -> None:
    """In WHERE, ON, GROUP BY, HAVING and over aggregates; elapsed time where clocks are put forward."""
    lengths = [b - a for a, b, c, _ in ROWS if a is not None and b is not None and a < b and c == 0]
    grouped = session.sql(
        f"SELECT period_length(a, b) AS n, count(*) AS c, sum(period_length(a, b)) AS s FROM {integers} "
        "WHERE c = 0 AND period_length(a, b) > 0 GROUP BY period_length(a, b) HAVING sum(period_length(a, b)) > 0"
    )
    assert sorted(map(tuple, grouped.collect())) == [
        (n, lengths.count(n), n * lengths.count(n)) for n in sorted(set(lengths))
    ]
    joined = session.sql(
        f"SELECT count(*) FROM {integers} x JOIN {integers} y "
        "ON x.id = y.id AND period_intersect(x.a, x.b, y.c, y.d).start = 1"
    )
    shared = [
        dict(zip("abcd", row, strict=True))[made[0]] for row in ROWS if (made := made_of("period_intersect", *row))
    ]
    assert joined.first()[0] == shared.count(1)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        night = "TIMESTAMP '2024-03-31 00:00:00', TIMESTAMP '2024-03-31 12:00:00'"
        assert session.sql(f"SELECT period_length({night}) AS n").first()[0] == datetime.timedelta(hours=11)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_functions_of_periods_under_other_rules_for_empty_ones(integers: str, spark: SparkSession) -> None:
    point = Session(spark, config={"sqlext.interval.empty": "point"})
    found = point.sql(
        "SELECT period_intersect(2, 2, 1, 5), period_length(DATE '2024-01-01', DATE '2024-01-01')"
    ).first()
    assert tuple(found[0]) == (2, 3)
    assert found[1] == datetime.timedelta(days=1)
    strict = Session(spark, config={"sqlext.interval.empty": "error"})
    with pytest.raises(DataError, match="there is an empty or reversed period"):
        strict.sql(f"SELECT period_union(a, b, c, d) FROM {integers}").collect()
    grouped = f"SELECT period_length(a, b) AS n, count(*) FROM {integers} WHERE a < b GROUP BY period_length(a, b)"
    assert len(strict.sql(grouped).collect()) == 6


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        ("date", ("DATE'2024-01-01'", "DATE'2024-01-05'", "DATE'2024-01-03'")),
        ("timestamp", ("TIMESTAMP'2024-01-01'", "TIMESTAMP'2024-01-05'", "TIMESTAMP'2024-01-03'")),
        ("bigint", ("1L", "5L", "3L")),
        ("double", ("1D", "5D", "3D")),
    ],
)
def test_open_ends_stay_open(session: Session, dtype: str, ends: tuple[str, str, str]) -> None:
    """What never ends has no largest day of the calendar as its end, and no length."""
    a, b, c = ends
    none = f"CAST(NULL AS {dtype})"

    def of(start: str, end: str) -> str:
        return f"named_struct('start', {start}, 'end', {end})"

    found = session.sql(
        f"""SELECT period_intersect(PERIOD({a}, {none} OPEN), PERIOD({c}, {none} OPEN)) <=> {of(c, none)} AS both,
                   period_intersect(PERIOD({a}, {none} OPEN), PERIOD({c}, {b} OPEN)) <=> {of(c, b)} AS one,
                   period_intersect(PERIOD({a}, {none} OPEN), PERIOD({c}, {b})) <=> {of(c, b)} AS closed,
                   period_union(PERIOD({a}, {b}), PERIOD({c}, {none} OPEN)) <=> {of(a, none)} AS united,
                   period_union(PERIOD({a}, {b}), PERIOD({c}, {b} OPEN)) <=> {of(a, b)} AS united_closed,
                   period_gap(PERIOD({a}, {c} OPEN), PERIOD({b}, {none} OPEN)) <=> {of(c, b)} AS gap,
                   period_length(PERIOD({a}, {none} OPEN)) IS NULL AS endless,
                   period_length(PERIOD({a}, {b} OPEN)) = period_length({a}, {b}) AS length"""
    ).collect()[0]
    assert [name for name, value in found.asDict().items() if value is not True] == []


@pytest.mark.few(3)
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "ends",
    [
        "-9223372036854775807L, 2L",
        "DATE'-5000000-01-01', DATE'+5000000-01-01'",
        "TIMESTAMP'-200000-01-01', TIMESTAMP'+200000-01-01'",
        "TIMESTAMP_NTZ'-200000-01-01', TIMESTAMP_NTZ'+200000-01-01'",
    ],
)
def test_lengths_beyond_their_type(session: Session, ends: str, ansi: str) -> None:
    session.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(DataError, match="a period is longer than") as raised:
            session.sql(f"SELECT period_length({ends})").collect()
        assert raised.value.condition == "overflow"
    finally:
        session.spark.conf.set("spark.sql.ansi.enabled", "true")


@pytest.mark.parametrize(
    ("kind", "last", "before"),
    [
        pytest.param(
            "BIGINT",
            "9223372036854775807L",
            "9223372036854775806L",
            marks=pytest.mark.spark_since("4.0", "constants that overflow in a branch that is not taken"),
        ),
        ("DATE", "date_from_unix_date(2147483647)", "date_from_unix_date(2147483646)"),
    ],
)
def test_closed_ends_at_the_end_of_their_type(
    session: Session, spark: SparkSession, kind: str, last: str, before: str
) -> None:
    """The value after the largest one cannot be said, so the largest one is forever or an error, never left out."""
    spark.sql(f"SELECT {before} AS s, {last} AS e").createOrReplaceTempView("closed_last")
    joined = "SELECT count(*) FROM closed_last a JOIN closed_last b ON PERIOD CLOSED (a.s, a.e{0}) OVERLAPS (b.s, b.e)"
    contains = "SELECT PERIOD CLOSED (s, s) CONTAINS s AS c, PERIOD CLOSED (s, e OPEN) CONTAINS s AS o FROM closed_last"
    try:
        for text in (joined.format(""), "SELECT * FROM NORMALIZE(closed_last PERIOD CLOSED (s, e))"):
            with pytest.raises(DataError, match=f"the end of a PERIOD CLOSED is the largest {kind}") as raised:
                session.sql(text).collect()
            assert raised.value.condition == "overflow"
            assert raised.value.span is not None
        assert session.sql(joined.format(" OPEN")).collect()[0][0] == 1
        assert tuple(session.sql(contains).collect()[0]) == (True, True)
    finally:
        spark.catalog.dropTempView("closed_last")


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_closed_dates_of_clock_times(session: Session, kind: str) -> None:
    """Spark compares the clock time itself with a DATE, which must be one that clock times have."""
    rows = f"(VALUES ({kind} '2024-01-05 10:00:00'), (NULL), ({kind} '2025-01-01 10:00:00')) AS v(t)"
    year = "PERIOD(DATE '2024-01-01', DATE '2025-01-01')"
    text = f"SELECT PERIOD CLOSED (CAST(t AS DATE), CAST(t AS DATE)) OVERLAPS {year} AS x FROM {rows}"
    assert [row.x for row in session.sql(text).collect()] == [True, None, False]
