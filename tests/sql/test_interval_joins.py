"""Interval joins through Session.sql against DuckDB: every relation, kind and type on random periods.

A statement holds all relations at once (UNION ALL), since a Spark query costs more than the join in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import duckdb
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.interval_join.relations import RELATIONS

from sqlext import Session

from .intervals import TYPES, Predicate, predicates, random_periods

Rows = list[tuple[object, ...]]
Oracle = Callable[[str], Rows]
COUNTS = {"ivl_r": 50, "ivl_s": 70}


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[Oracle]:
    """Runs a text in DuckDB, on tables that are views of Spark's too."""
    rng = random.Random(4)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, count in COUNTS.items():
        table = random_periods(rng, count)
        connection.register(name, table)
        spark.createDataFrame(table).createOrReplaceTempView(name)

    def run(text: str) -> Rows:
        return sorted(connection.execute(text).fetchall(), key=repr)

    yield run
    connection.close()
    for name in COUNTS:
        spark.catalog.dropTempView(name)


def sweeping(spark: SparkSession, form: str) -> Session:
    """A Session that makes interval joins in one form."""
    return Session(spark, config={"sqlext.intervalJoin.strategy": form, "sqlext.exchange.partitions": "2"})


#: (form, share): each kind has one in `share` of the relations, other ones for other kinds. All of them take minutes.
SHARES = [
    *(("auto", 4), ("exchange", 10)),
    *(pytest.param(form, 1, marks=pytest.mark.slow) for form in ("exchange", "broadcast", "spark")),
]
#: Forms for what is no matter of relations and kinds.
FORMS = ["auto", *(pytest.param(form, marks=pytest.mark.slow) for form in ("exchange", "spark"))]


def ours(session: Session, sql: str) -> Rows:
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)


def union(queries: Iterable[str]) -> str:
    """One statement for all, told apart by a number: every query begins with SELECT."""
    texts = (query.replace("SELECT ", f"SELECT {number} AS c, ", 1) for number, query in enumerate(queries))
    return " UNION ALL ".join(texts)


#: Keys and further conditions beside the relation; the last ones are no plain comparisons.
MORE = [
    *("", "r.k = s.k AND ", "r.k <=> s.k AND r.k2 = s.k2 AND ", "r.v < s.v AND ", "s.v > -2 AND r.k2 = s.k2 AND "),
    "coalesce(r.v, 0) + coalesce(s.v, 0) > -2 AND ",
    "(r.k = s.k OR r.v = s.v) AND ",
]


def cases(seed: int, share: int = 1) -> list[tuple[Predicate, str]]:
    """One in `share` of the relations, each with a further condition."""
    found = [(item, MORE[(number + seed) % len(MORE)]) for number, item in enumerate(predicates(random.Random(seed)))]
    return found[seed % share :: share]


def duck_text(text: str) -> str:
    return text.replace("<=>", "IS NOT DISTINCT FROM")


OUTER = ["INNER", "LEFT", "RIGHT", "FULL"]


@pytest.mark.few(3)
@pytest.mark.parametrize(("form", "share"), SHARES)
@pytest.mark.parametrize("kind", OUTER)
def test_relations_by_kind(kind: str, form: str, share: int, spark: SparkSession, oracle: Oracle) -> None:
    query = f"SELECT r.id AS a, s.id AS b FROM ivl_r r {kind} JOIN ivl_s s ON "
    mine, theirs = [], []
    for number, (item, more) in enumerate(cases(OUTER.index(kind), share)):
        mine.append(query + more + (item.infix() if number % 2 else item.function()))
        theirs.append(query + duck_text(more) + item.inequalities())
    want = oracle(union(theirs))
    assert ours(sweeping(spark, form), union(mine)) == want
    assert len({row[0] for row in want}) == len(mine)


@pytest.mark.few(2)
@pytest.mark.parametrize(("form", "share"), SHARES)
@pytest.mark.parametrize("negated", [False, True], ids=["semi", "anti"])
def test_relations_with_semi_and_anti(
    negated: bool, form: str, share: int, spark: SparkSession, oracle: Oracle
) -> None:
    """As LEFT SEMI JOIN and as EXISTS in turns."""
    mine, theirs = [], []
    for number, (item, more) in enumerate(cases(4 + negated, share)):
        condition = more + (item.function() if number % 4 < 2 else item.infix())
        exists = f"SELECT r.id AS a FROM ivl_r r WHERE {'NOT ' * negated}EXISTS (SELECT 1 FROM ivl_s s WHERE "
        join = f"SELECT r.id AS a FROM ivl_r r LEFT {'ANTI' if negated else 'SEMI'} JOIN ivl_s s ON {condition}"
        mine.append(f"{exists}{condition})" if number % 2 else join)
        theirs.append(f"{exists}{duck_text(more)}{item.inequalities()})")
    assert ours(sweeping(spark, form), union(mine)) == oracle(union(theirs))


def grid() -> list[Predicate]:
    """Every relation with every combination of bounds, each with one of the types."""
    bounds = {"delta": (0, 1, 2, 5, None), "epsilon": (0, 1, 3, None)}
    found = []
    for relation in RELATIONS.values():
        for values in product(*(bounds[name] for name in relation.parameters)):
            given = dict(zip(relation.parameters, values, strict=True))
            found.append(Predicate(relation, TYPES[len(found) % len(TYPES)], **given))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["slices", "join-by-s", "lazy-join-by-s"])
@pytest.mark.parametrize("part", range(8))
def test_every_relation_with_every_bound(part: int, algorithm: str, spark: SparkSession, oracle: Oracle) -> None:
    chosen = grid()[part::8]
    query = "SELECT r.id AS a, s.id AS b FROM ivl_r r JOIN ivl_s s ON "
    want = oracle(union(query + item.inequalities() for item in chosen))
    session = Session(spark, config={"sqlext.intervalJoin.algorithm": algorithm})
    assert ours(session, union(query + item.function() for item in chosen)) == want


WHERE_FORMS = [
    "ivl_r r, ivl_s s WHERE {more}{condition}",
    "ivl_r r CROSS JOIN ivl_s s WHERE {condition} AND {more}TRUE",
    "ivl_r r JOIN ivl_s s USING (k) WHERE {more}{condition}",
    "ivl_r r NATURAL JOIN (SELECT k, k2, id AS id2, {ends} FROM ivl_s) s WHERE {condition}",
    "ivl_r r INNER JOIN ivl_s s ON r.k2 = s.k2 WHERE {condition} AND r.v > -3",
]


@pytest.mark.slow
@pytest.mark.every_spark("interval joins")
def test_relations_in_where(session: Session, oracle: Oracle) -> None:
    mine, theirs = [], []
    for number, (item, more) in enumerate(cases(8)):
        form = WHERE_FORMS[number % len(WHERE_FORMS)]
        id = "s.id2" if "NATURAL" in form else "s.id"
        query = f"SELECT r.id AS a, {id} AS b FROM {form}"
        ends = ", ".join(end.removeprefix("s.") for end in item.ends().values() if end.startswith("s."))
        mine.append(query.format(more=more, condition=item.infix(), ends=ends))
        theirs.append(query.format(more=duck_text(more), condition=item.inequalities(), ends=ends))
    assert ours(session, union(mine)) == oracle(union(theirs))


def test_forms_give_one_plan(session: Session) -> None:
    """Function and infix form of each relation with each bound."""
    for item in (found for seed in range(3) for found in predicates(random.Random(seed))):
        texts = [f"SELECT * FROM ivl_r r JOIN ivl_s s ON {text}" for text in (item.function(), item.infix())]
        plans = [session.plan(text) for text in texts]
        assert plans[0].optimized == plans[1].optimized
        assert plans[0].extensions == plans[1].extensions


@pytest.mark.parametrize("words", range(3))
def test_every_spelling(words: int, session: Session) -> None:
    """A relation's words mean the same relation, in any case and with or without PERIOD."""
    for relation in RELATIONS.values():
        if words < len(relation.words):
            a, b, c, d = Predicate(relation, TYPES[0]).ends().values()
            text = f"SELECT * FROM ivl_r r, ivl_s s WHERE ({a}, {b}) {relation.words[words].lower()} ({c}, {d})"
            want = f"SELECT * FROM ivl_r r, ivl_s s WHERE {relation.name}({a}, {b}, {c}, {d})"
            assert session.plan(text).optimized == session.plan(want).optimized


@pytest.mark.parametrize("form", FORMS)
def test_self_joins(form: str, spark: SparkSession, oracle: Oracle) -> None:
    mine, theirs = [], []
    for kind in ("INNER", "LEFT", "FULL"):
        for name, kinds in (("period_overlaps", TYPES[0]), ("iseql_before", TYPES[3]), ("period_contains", TYPES[5])):
            item = Predicate(RELATIONS[name], kinds, left="x", right="y")
            query = f"SELECT x.id AS a, y.id AS b FROM ivl_s x {kind} JOIN ivl_s y ON x.id <> y.id AND "
            mine.append(query + item.infix())
            theirs.append(query + item.inequalities())
    assert ours(sweeping(spark, form), union(mine)) == oracle(union(theirs))


@pytest.mark.parametrize("form", FORMS)
def test_a_point_in_a_period(form: str, spark: SparkSession, oracle: Oracle) -> None:
    mine, theirs = [], []
    for number, kind in enumerate(TYPES):
        join = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")[number % 4]
        query = f"SELECT r.id AS a, s.id AS b FROM ivl_r r {join} ivl_s s ON "
        start, end, point = f"r.{kind}_ts", f"r.{kind}_te", f"s.{kind}_ts"
        both = (f"PERIOD({start}, {end}) CONTAINS {point}", f"period_contains({start}, {end}, {point})")
        mine.append(query + both[number % 2])
        theirs.append(query + f"{start} <= {point} AND {point} < {end} AND {start} < {end}")
    assert ours(sweeping(spark, form), union(mine)) == oracle(union(theirs))


@pytest.mark.parametrize("form", FORMS)
def test_sets_of_relations(form: str, spark: SparkSession, oracle: Oracle) -> None:
    """allen_relation(...) IN (...): any of them, in every kind."""
    sets = [
        ("meets", "overlaps"),
        ("before",),
        ("starts", "during", "finishes", "equals"),
        ("after", "met_by", "contains"),
    ]
    mine, theirs = [], []
    for number, kind in enumerate(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN")):
        names = sets[number]
        items = [Predicate(RELATIONS[f"allen_{name}"], TYPES[number]) for name in names]
        semi = kind == "LEFT SEMI JOIN"
        query = f"SELECT r.id AS a, {'r.v' if semi else 's.id'} AS b FROM ivl_r r {kind} ivl_s s ON "
        listed = ", ".join(f"'{name}'" for name in names)
        call = f"allen_relation({', '.join(items[0].ends().values())})"
        mine.append(query + (f"{call} = {listed}" if len(names) == 1 else f"{call} IN ({listed})"))
        duck = query.replace("LEFT SEMI", "SEMI")
        theirs.append(duck + "(" + " OR ".join(f"({item.inequalities()})" for item in items) + ")")
    assert ours(sweeping(spark, form), union(mine)) == oracle(union(theirs))


@pytest.mark.every_spark("interval joins")
@pytest.mark.parametrize("form", FORMS)
def test_period_columns_closed_and_open_ends(form: str, spark: SparkSession, oracle: Oracle) -> None:
    """A struct of two fields is a period; PERIOD CLOSED takes its end in; an OPEN end that is NULL never comes."""
    query = "SELECT r.id AS a, s.id AS b FROM ivl_r r {} ivl_s s ON {}"
    mine = [
        query.format("JOIN", "r.valid OVERLAPS s.valid"),
        query.format("LEFT JOIN", "r.valid DURING PERIOD(s.int_ts, s.int_te)"),
        query.format("JOIN", "period_precedes(r.valid.ts, r.valid.te, s.int_ts, s.int_te)"),
        query.format("FULL JOIN", "PERIOD CLOSED (r.int_ts, r.int_te) OVERLAPS PERIOD CLOSED (s.int_ts, s.int_te)"),
        query.format("JOIN", "PERIOD CLOSED (r.date_ts, r.date_te) MEETS PERIOD(s.date_ts, s.date_te)"),
        query.format("LEFT JOIN", "PERIOD(r.stamp_ts, r.stamp_te OPEN) OVERLAPS PERIOD(s.stamp_ts, s.stamp_te OPEN)"),
        query.format("JOIN", "PERIOD(r.long_ts, r.long_te OPEN) BEFORE PERIOD(s.long_ts, s.long_te)"),
        query.format("JOIN", "PERIOD(r.double_ts, r.double_te OPEN) CONTAINS s.double_ts"),
    ]
    valid = "r.int_ts < r.int_te AND s.int_ts < s.int_te"
    for_ever = "coalesce({0}.int_te, 1000)"
    r_end, s_end = for_ever.format("r"), for_ever.format("s")
    int_s = "s.int_ts < s.int_te"
    theirs = [
        query.format(
            "JOIN",
            "r.valid.ts < s.valid.te AND s.valid.ts < r.valid.te "
            "AND r.valid.ts < r.valid.te AND s.valid.ts < s.valid.te",
        ),
        query.format(
            "LEFT JOIN", f"s.int_ts <= r.valid.ts AND r.valid.te <= s.int_te AND r.valid.ts < r.valid.te AND {int_s}"
        ),
        query.format("JOIN", f"r.valid.te <= s.int_ts AND r.valid.ts < r.valid.te AND {int_s}"),
        query.format(
            "FULL JOIN",
            "r.int_ts <= s.int_te AND s.int_ts <= r.int_te AND r.int_ts <= r.int_te AND s.int_ts <= s.int_te",
        ),
        query.format("JOIN", f"r.int_te + 1 = s.int_ts AND r.int_ts <= r.int_te AND {int_s}"),
        query.format(
            "LEFT JOIN", f"r.int_ts < {s_end} AND s.int_ts < {r_end} AND r.int_ts < {r_end} AND s.int_ts < {s_end}"
        ),
        query.format("JOIN", f"r.int_te <= s.int_ts AND {valid}"),
        query.format("JOIN", f"r.int_ts <= s.int_ts AND s.int_ts < {r_end}"),
    ]
    assert ours(sweeping(spark, form), union(mine)) == oracle(union(theirs))
