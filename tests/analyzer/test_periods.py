"""Period predicates in the dialect and the analyzer: spellings, words that stay free, amounts, types."""

from __future__ import annotations

import itertools

import pytest
import sqlglot
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_planner.errors import AnalysisError, SqlExtError
from sqlext_planner.expressions.nodes import Expression, SparkExpr, conjuncts
from sqlext_planner.expressions.typed import negation
from sqlext_planner.periods.predicates import Amount, PeriodPredicate
from sqlext_planner.periods.types import PeriodEnd, check_period_types, common_type
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, SubqueryExpression
from sqlext_planner.relational.nodes import Filter

from sqlext.analyzer.context import AnalyzerOptions
from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.nodes import OTHER_WORDS, PHRASES, PeriodComparison
from sqlext.syntax.parser import parse
from sqlext.syntax.spans import span_of
from tests.analyzer.period_formulas import BOUNDED, FORMULAS, WORDS

COLUMNS = {
    **dict.fromkeys(("k", "ts", "te"), "bigint"),
    **dict.fromkeys(("i", "j"), "int"),
    **dict.fromkeys(("d", "e"), "date"),
    **dict.fromkeys(("t", "u"), "timestamp"),
    **dict.fromkeys(("n", "m"), "timestamp_ntz"),
    **dict.fromkeys(("x", "y"), "double"),
    "p": "decimal(10,2)",
    "valid": "struct<start:bigint,end:bigint>",
    "deep": "struct<a:struct<`from`:date,`to`:date>>",
}
CATALOG = DictCatalog({"r": COLUMNS, "s": COLUMNS})


def plan(sql: str, options: AnalyzerOptions | None = None) -> LogicalPlan:
    result = analyze(parse(sql), CATALOG, options)
    for node in result.walk():
        assert not node.missing_references(), node.label()
    return result


def built(text: str) -> Expression:
    """The expression of ``FROM r JOIN s ON text``."""
    (join,) = plan(f"SELECT r.k FROM r JOIN s ON {text}").collect(Join)
    assert join.condition is not None
    return join.condition


def predicate(text: str) -> PeriodPredicate:
    found = built(text)
    assert isinstance(found, PeriodPredicate)
    return found


def test_the_words_are_those_of_the_table() -> None:
    assert {" ".join(words): row.name for words, row in PHRASES.items()} == WORDS


def test_words_of_other_systems_lead_to_relations() -> None:
    assert set(OTHER_WORDS.values()) <= set(WORDS)
    assert not OTHER_WORDS.keys() & WORDS.keys()
    assert set(RELATIONS) == {*FORMULAS, *BOUNDED}


@pytest.mark.few
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("PERIOD(r.ts, r.te)", "PERIOD(s.ts, s.te)"),
        ("(r.ts, r.te)", "period (s.ts, s.te)"),
        ("period(r.ts,r.te)", "(s.ts,s.te)"),
        ("((r.ts, r.te))", "(PERIOD(s.ts, s.te))"),
    ],
)
def test_infix_and_function_form_are_equal(words: str, left: str, right: str) -> None:
    name = WORDS[words]
    function = predicate(f"{name}(r.ts, r.te, s.ts, s.te)")
    assert function.relations == (name,)
    for spelled in (words, words.lower(), words.replace(" ", "\n /* words */ ")):
        assert predicate(f"{left} {spelled} {right}") == function
        assert built(f"r.k = s.k AND {left} {spelled} {right}").terms[1] == function  # type: ignore[attr-defined]
        for text in (f"{left} NOT {spelled} {right}", f"NOT {left} {spelled} {right}"):
            assert built(text) == negation(function), text
    assert predicate(f"{name}({left}, {right})") == function
    assert predicate(f"{name.upper()}({left}, s.ts, s.te)") == function
    assert built(f"NOT {name}(r.ts, r.te, s.ts, s.te)") == negation(function)


@pytest.mark.few(4)
@pytest.mark.parametrize("words", WORDS)
def test_period_columns(words: str) -> None:
    name = WORDS[words]
    columns = predicate(f"r.valid {words} s.valid")
    assert columns.relations == (name,)
    assert str(columns.left) == "PERIOD(r.valid.start, r.valid.end)"
    assert columns.left.start.sql() == "(`r.valid`.start)"
    assert predicate(f"{name}(r.valid, s.valid)") == columns == predicate(f"(r.valid) {words} (s.valid)")
    assert columns.dtype == "bigint"


def test_nested_and_computed_structs() -> None:
    found = predicate("r.deep.a OVERLAPS (s.d, s.e)")
    assert found.left.start.sql() == "((`r.deep`.a).from)"
    sql = "SELECT v OVERLAPS w AS o FROM (SELECT struct(ts AS a, te) AS v, struct(1, 2) AS w FROM r)"
    assert plan(sql).output[0].dtype == "boolean"


@pytest.mark.parametrize(("name", "takes"), [(name, BOUNDED[name][:2]) for name in BOUNDED])
def test_bounds(name: str, takes: tuple[bool, bool]) -> None:
    words = name.removeprefix("iseql_").replace("_", " ")
    periods = f"(r.ts, r.te) {words} (s.ts, s.te) WITHIN"
    call = f"{name}(r.ts, r.te, s.ts, s.te"
    for parameter, spelled, is_taken in (("delta", ("START", "DELTA"), takes[0]), ("epsilon", ("END",), takes[1])):
        if not is_taken:
            continue
        function = predicate(f"{call}, {parameter} => 5)")
        assert getattr(function, parameter) == Amount(5, False)
        for word in spelled:
            assert predicate(f"{periods} {word} 5") == predicate(f"{periods} ({word} 5)") == function
        if parameter == RELATIONS[name].parameters[0]:
            assert predicate(f"{periods} 5") == predicate(f"{periods} (5)") == function
    if all(takes):
        function = predicate(f"{call}, epsilon => 7, delta => 5)")
        assert predicate(f"{periods} (START 5, END 7)") == predicate(f"{periods} (epsilon 7, delta 5)") == function


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INTERVAL 5 MINUTES", 300_000_000),
        ("interval '5' minute", 300_000_000),
        ("INTERVAL '5 minutes'", 300_000_000),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 26 * HOUR + 184_500_000),
        ("INTERVAL '02:30' HOUR TO MINUTE", 2 * HOUR + HOUR // 2),
        ("INTERVAL '2 3' DAY TO HOUR", 51 * HOUR),
        ("INTERVAL 1 DAY 2 HOURS", 26 * HOUR),
        ("INTERVAL '1' DAY '2' HOURS", 26 * HOUR),
        ("INTERVAL '1 day -2 hours'", 22 * HOUR),
        ("INTERVAL 1.5 SECONDS", 1_500_000),
        ("INTERVAL '1.000001' SECOND", 1_000_001),
        ("INTERVAL 2 WEEKS", 14 * 24 * HOUR),
        ("INTERVAL 7 MICROSECONDS", 7),
        ("INTERVAL 7 MILLISECONDS", 7_000),
        ("INTERVAL +5 MINUTES", 300_000_000),
        ("10s", 10_000_000),
        ("3d", 72 * HOUR),
        ("5M", 300_000_000),
        ("20ms", 20_000),
        ("2h", 2 * HOUR),
    ],
)
def test_times(text: str, value: int) -> None:
    function = predicate(f"iseql_before(r.t, r.u, s.t, s.u, delta => {text})")
    assert function.delta == Amount(value, True)
    assert predicate(f"(r.t, r.u) BEFORE (s.t, s.u) WITHIN {text} AND r.k = s.k".split(" AND ")[0]) == function
    number = text.removeprefix("INTERVAL ")
    if text.startswith("INTERVAL ") and number[0].isdigit() and number.count(" ") == 1 and "." not in number:
        assert predicate(f"(r.t, r.u) BEFORE (s.t, s.u) WITHIN {number}") == function


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("5L", 5),
        ("2.5", 2.5),
        ("2.50D", 2.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("(7)", 7),
        ("2.5BD", 2.5),
        ("CAST('0.25' AS DECIMAL(3, 2))", 0.25),
        ("double('0.25')", 0.25),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert predicate(f"iseql_before(r.x, r.y, s.x, s.y, delta => {text})").delta == Amount(value, False)
    assert predicate(f"(r.x, r.y) BEFORE (s.x, s.y) WITHIN {text}").delta == Amount(value, False)


@pytest.mark.parametrize("text", ["double('Infinity')", "CAST('inf' AS DOUBLE)"])
def test_infinity_bounds_nothing(text: str) -> None:
    call = "iseql_before(r.x, r.y, s.x, s.y"
    assert predicate(f"{call}, delta => {text})") == predicate(f"{call})")


def test_units_of_amounts() -> None:
    assert Amount(36 * HOUR, True).units("date") == 1
    assert Amount(3, False).units("date") == 3
    assert Amount(300, True).units("timestamp") == 300
    assert Amount(2.7, False).units("bigint") == 2
    assert Amount(2.7, False).units("double") == 2.7
    assert Amount(0.129, False).units("decimal(10,2)") == 0.12
    assert Amount(3, False).units("decimal(10,2)") == 3


@pytest.mark.few(4)
@pytest.mark.parametrize("words", WORDS)
def test_round_trip(words: str) -> None:
    within = {1: " WITHIN 5 MINUTES", 2: " WITHIN (START 10s, END INTERVAL '5' HOURS)"}
    bounds = within.get(len(RELATIONS[WORDS[words]].parameters), "")
    for left, right in itertools.product(
        ("PERIOD(a, b)", "(a, b)", "PERIOD CLOSED (a, b)", "r.valid"),
        ("PERIOD(c, d)", "PERIOD(c, d OPEN)", "PERIOD(c, d OPEN BY k, s.d)", "s.valid"),
    ):
        text = f"SELECT * FROM r WHERE x = 1 AND NOT {left} NOT {words} {right}{bounds} OR y"
        tree = sqlglot.parse_one(text, read=SqlExt)
        node = tree.find(PeriodComparison)
        assert node is not None
        span = span_of(node)
        assert text[span.start : span.end] == f"{left} NOT {words} {right}{bounds}"
        assert sqlglot.parse_one(tree.sql(SqlExt), read=SqlExt) == tree
        assert sqlglot.parse_one(tree.sql(SqlExt, pretty=True), read=SqlExt) == tree


FREE = sorted(
    {word.lower() for words in WORDS for word in words.split()} - {"end", "left", "right", "by", "start"}
    | {"period", "within", "closed", "open", "delta", "epsilon", "allen_meets", "period_overlaps", "start"}
)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FREE)
def test_words_stay_free(name: str) -> None:
    """As columns, aliases with and without AS, tables, fields, lambda variables, windows, and functions."""
    text = (
        f"SELECT {name}, t.{name} AS {name}, x AS {name}, t.x.{name}, (a, b) AS {name}, SUM({name}) OVER (PARTITION BY "
        f"{name} ORDER BY {name}), transform(xs, {name} -> {name} + 1), CASE WHEN {name} THEN {name} ELSE {name} END "
        f"FROM {name} AS t JOIN u AS {name} ON {name}.k = t.{name} WHERE {name} > 1 AND t.{name} BETWEEN {name} AND 2 "
        f"GROUP BY {name} HAVING {name} IS NULL ORDER BY {name} DESC"
    )
    assert sqlglot.parse_one(text, read=SqlExt) == sqlglot.parse_one(text, read="spark")
    assert not parse(text).uses_extension
    for bare in (
        f"SELECT x {name}, t.y {name} FROM t {name}",
        f"SELECT x {name} FROM t",
        f"SELECT a.b {name} FROM t AS {name} WHERE c",
        f"SELECT (x, y) {name}, struct(x, y) {name} UNION SELECT x {name}, y {name} LIMIT 3",
        f"SELECT CASE WHEN a THEN b END {name} FROM t WINDOW {name} AS (PARTITION BY k)",
        f"WITH {name} AS (SELECT 1 {name}) SELECT * FROM {name}, u {name}2",
    ):
        tree = sqlglot.parse_one(bare, read=SqlExt)
        written = tree.sql("spark")
        assert sqlglot.parse_one(written, read="spark").sql("spark") == written
        assert tree.find(PeriodComparison) is None, bare
        assert not parse(bare).uses_extension


@pytest.mark.parametrize(
    "text",
    [
        "SELECT contains(a, b), startswith(a, b), equals(a), overlaps(a, b), before(a), period(a) FROM t",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY before) AS within FROM t",
        "SELECT a AS before, '(a, b) OVERLAPS (c, d)' AS x /* (a, b) OVERLAPS (c, d) */ FROM t -- (a,b) MEETS (1,2)",
        "SELECT CASE WHEN a THEN b END following, CASE WHEN a THEN b END followed FROM t",
        "SELECT `PERIOD`(a, b) AS `OVERLAPS`, a `CONTAINS` FROM t",
        "ALTER TABLE t ADD COLUMN x INT DEFAULT 5 AFTER y",
        "SELECT db.allen_meets(1, 2, 3, 4), x.period_overlaps(1) FROM t",
        "SELECT allen_meets(1, 2, 3, 4) OVER (PARTITION BY k) FROM t",
        "SELECT period_add(a, 3), allenby(x), iseql FROM t",
        "SELECT 1 overlaps",
        "SELECT a before EXCEPT SELECT b after INTERSECT SELECT c during",
        "SELECT a meets FROM VALUES (1) AS before(a)",
        "SELECT a contains, b starts FROM t LATERAL VIEW explode(xs) during AS equals",
    ],
)
def test_what_is_sparks_own(text: str) -> None:
    assert not parse(text).uses_extension


def test_functions_of_the_user_stay_theirs() -> None:
    text = "SELECT allen_meets(ts, te, ts, te), allen_whatever(1) FROM r"
    assert parse(text).uses_extension
    assert not parse(text, is_user_function=lambda name: True).uses_extension


@pytest.mark.parametrize(
    "text",
    [
        "SELECT PERIOD(a, b) overlaps PERIOD(c, d) overlaps FROM t",
        "SELECT PERIOD(a, b) BEFORE (c, d) within FROM t",
        "SELECT PERIOD(a, b) BEFORE (c, d) WITHIN 5 MINUTES within, x before FROM t",
        "SELECT PERIOD(a, b) CONTAINS x contains FROM t",
        "SELECT CASE WHEN (a, b) MEETS (c, d) THEN e END following FROM t",
        "SELECT before.a AFTER during.b AS after FROM before, during",
    ],
)
def test_words_beside_predicates_stay_free(text: str) -> None:
    tree = sqlglot.parse_one(text, read=SqlExt)
    assert len(list(tree.find_all(PeriodComparison))) == 1
    assert parse(text).uses_extension


@pytest.mark.parametrize(
    "point",
    ["s.ts", "s.ts + 1", "5", "-5", "abs(s.ts)", "CASE WHEN s.k = 1 THEN 2 END", "s.valid.start", "CAST(5 AS BIGINT)"],
)
def test_points(point: str) -> None:
    found = predicate(f"PERIOD(r.ts, r.te) CONTAINS {point} AND r.k > 1".split(" AND ")[0])
    assert found.point
    assert found == predicate(f"period_contains(r.ts, r.te, {point})") == predicate(f"(r.ts, r.te) CONTAINS ({point})")
    assert predicate("PERIOD(r.d, r.e) CONTAINS DATE '2024-01-01'").dtype == "date"
    assert predicate("r.valid CONTAINS s.ts").point


def test_sets_of_allens_relations() -> None:
    call = "allen_relation(r.ts, r.te, s.ts, s.te)"
    one = predicate("allen_meets(r.ts, r.te, s.ts, s.te)")
    assert predicate(f"{call} = 'meets'") == predicate(f"'meets' = {call}") == predicate(f"{call} IN ('meets')") == one
    some = predicate(f"{call} IN ('overlaps', 'meets', 'overlaps')")
    assert some.relations == ("allen_meets", "allen_overlaps")
    assert built(f"{call} NOT IN ('overlaps', 'meets')") == built(f"NOT {call} IN ('overlaps', 'meets')")
    assert built(f"NOT ({call} IN ('meets'))") == negation(one)
    for opaque in (
        f"{call} <> 'meets'",
        f"{call} IN ('none', 'meets')",
        f"{call} IN ('meets', r.k)",
        f"{call} = 'none'",
    ):
        assert not isinstance(built(opaque), PeriodPredicate)


def test_the_condition_and_where_hold_predicates_among_their_terms() -> None:
    text = "r.k = s.k AND (PERIOD(r.ts, r.te) OVERLAPS PERIOD(s.ts, s.te)) AND (r.i > 1 AND r.valid MEETS s.valid)"
    for sql, kind in ((f"SELECT r.k FROM r JOIN s ON {text}", Join), (f"SELECT r.k FROM r, s WHERE {text}", Filter)):
        (node,) = plan(sql).collect(kind)
        terms = conjuncts(node.condition)  # type: ignore[attr-defined]
        assert [type(term).__name__ for term in terms] == ["Compare", "PeriodPredicate", "Compare", "PeriodPredicate"]


def test_a_table_and_a_column_of_one_name() -> None:
    """`k.ts` is the outer table's: the column k of s has no fields."""
    sql = "SELECT k.ts FROM r AS k WHERE EXISTS (SELECT 1 FROM s WHERE (k.ts, k.te) ALLEN CONTAINS (s.ts, s.te))"
    (filter_,) = plan(sql).collect(Filter)
    assert isinstance(filter_.condition, SubqueryExpression)
    (inner,) = filter_.condition.plan.collect(Filter)
    assert str(inner.condition) == "PERIOD(k.ts, k.te) ALLEN CONTAINS PERIOD(s.ts, s.te)"


def test_the_key_of_an_open_period_is_kept_and_changes_nothing_in_a_table() -> None:
    found = predicate("PERIOD(r.ts, r.te OPEN BY r.i, r.d) OVERLAPS PERIOD(s.ts, s.te)")
    assert str(found.left) == "PERIOD(r.ts, r.te OPEN BY r.i, r.d)"
    assert found.sql() == predicate("PERIOD(r.ts, r.te OPEN) OVERLAPS PERIOD(s.ts, s.te)").sql()
    assert {column.name for column in found.left.references} == {"ts", "te", "i", "d"}


def test_closed_and_open_ends() -> None:
    closed = predicate("PERIOD CLOSED (r.i, r.j) OVERLAPS PERIOD CLOSED (s.d, s.d)".replace("s.d", "s.i"))
    assert str(closed.left) == "PERIOD(CAST(r.i AS BIGINT), CAST(r.j AS BIGINT) + 1)"
    days = predicate("PERIOD CLOSED (r.d, r.e OPEN) OVERLAPS PERIOD(s.d, s.e OPEN)")
    last = "date_from_unix_date(2147483647)"
    after = f"CASE WHEN unix_date(`r.e`) = 2147483647 THEN {last} ELSE date_add(`r.e`, 1) END"
    assert days.left.end.sql() == f"coalesce({after}, {last})"
    end = predicate("PERIOD CLOSED (r.ts, r.te) OVERLAPS (s.ts, s.te)").left.end.sql()
    assert end.startswith("CASE WHEN `r.te` = 9223372036854775807L THEN CAST(raise_error(")
    assert end.endswith(" AS bigint) ELSE `r.te` + 1 END")
    assert days.right.end.sql() == "coalesce(`s.e`, date_from_unix_date(2147483647))"
    assert str(days.right.end) == "s.e OPEN"
    for column, other in (("t", "u"), ("n", "m"), ("x", "y"), ("p", "p"), ("ts", "te"), ("i", "j")):
        found = predicate(f"PERIOD(r.{column}, r.{other} OPEN) OVERLAPS (s.{column}, s.{other})")
        assert found.left.end.sql().startswith(f"coalesce(`r.{other}`, ")
    assert predicate("PERIOD(r.ts, NULL OPEN) OVERLAPS (s.ts, s.te)").dtype == "bigint"


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("(r.i, r.j) MEETS (s.ts, 7)", "bigint"),
        ("(r.t, r.t + INTERVAL 5 MINUTES) MEETS (INTERVAL 1 DAY + s.t, s.u)", "timestamp"),
        ("(r.d, r.d + INTERVAL 5 DAYS) MEETS (s.d, date_add(s.d, 3))", "date"),
        ("(r.d, r.d + INTERVAL 5 HOURS) MEETS (s.d, s.e)", None),
        ("(r.x, 5) MEETS (1.5, s.y)", "double"),
        ("(r.p, 5) MEETS (1.555, s.p)", "decimal(13,3)"),
        ("(r.t, TIMESTAMP '2024-01-01 00:00:00') MEETS (s.t, NULL)", "timestamp"),
        ("(r.n, TIMESTAMP_NTZ '2024-01-01 00:00:00') MEETS (s.n, s.m)", "timestamp_ntz"),
        ("(abs(r.k), r.te) MEETS (s.ts, s.te)", None),
    ],
)
def test_types(text: str, dtype: str | None) -> None:
    assert predicate(text).dtype == dtype


def test_common_types_are_symmetric_and_exact() -> None:
    types = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,0)", "date"]
    types += ["timestamp", "timestamp_ntz"]
    for left, right in itertools.product(types, types):
        assert common_type(left, right) == common_type(right, left)
    assert common_type("int", "double") == "double"
    assert common_type("bigint", "double") is None
    assert common_type("int", "decimal(10,2)") == "decimal(12,2)"
    assert common_type("decimal(38,0)", "decimal(10,2)") is None


def test_types_of_an_execution_are_checked_with_the_same_messages() -> None:
    ends = [PeriodEnd("timestamp"), PeriodEnd("timestamp"), PeriodEnd("date"), PeriodEnd("date")]
    with pytest.raises(AnalysisError, match="ends of the periods have different types, timestamp and date"):
        check_period_types(ends)
    with pytest.raises(AnalysisError, match="needs a unit"):
        check_period_types(ends[:2], [Amount(5, False)])
    assert check_period_types(ends[2:], [Amount(5, True), Amount(5, False)]) == "date"
    assert check_period_types([*ends[2:], PeriodEnd(None)]) is None
    with pytest.raises(AnalysisError, match="which has no next value"):
        check_period_types([PeriodEnd("double"), PeriodEnd("double")], (), "point")


def test_comparisons_say_the_same_where_they_can() -> None:
    texts = [str(item) for item in predicate("(r.ts, r.te) MEETS (s.ts, s.te)").comparisons() or ()]
    assert texts == ["r.ts < r.te", "s.ts < s.te", "r.te = s.ts"]
    contains = predicate("r.valid CONTAINS s.ts").comparisons()
    assert [str(item) for item in contains or ()][1:] == ["r.valid.start <= s.ts", "r.valid.end > s.ts"]
    assert predicate("(r.x, r.y) MEETS (s.x, s.y)").comparisons() is None
    assert predicate("(r.ts, r.te) BEFORE (s.ts, s.te) WITHIN 5").comparisons() is None


def test_the_setting_for_empty_periods_reaches_the_predicate() -> None:
    sql = "SELECT r.k FROM r JOIN s ON r.valid OVERLAPS s.valid"
    for empty in ("drop", "error", "point"):
        (join,) = plan(sql, AnalyzerOptions(None, empty)).collect(Join)  # type: ignore[arg-type]
        assert isinstance(join.condition, PeriodPredicate)
        assert join.condition.empty == empty
    with pytest.raises(SqlExtError, match="which has no next value"):
        plan("SELECT (x, y) OVERLAPS (x, y) FROM r", AnalyzerOptions(None, "point"))


def test_columns_are_substituted_inside() -> None:
    found = predicate("(r.ts, r.te) OVERLAPS (s.ts, s.te)")
    column = next(item for item in found.references if str(item) == "r.ts")
    new = found.substitute({column: SparkExpr(("1 + ", column))})
    assert isinstance(new, PeriodPredicate)
    assert str(new.left) == "PERIOD(1 + r.ts, r.te)"
    assert new.right is found.right
    assert new.dtype == found.dtype
    assert "(1 + `r.ts`) < `r.te`" in new.sql()
