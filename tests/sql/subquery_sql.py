"""Random statements with subqueries in WHERE, over the tables of test_decorrelation."""

from __future__ import annotations

from hypothesis import strategies as st

_NUMBERS = {"dc_t": ("id", "k", "v"), "dc_u": ("k", "v", "w"), "dc_n": ("k", "v"), "dc_e": ("k", "v")}
_AGGREGATES = ("sum({})", "avg({})", "min({})", "max({})", "count({})", "count(*)", "1 + count({})", "0.5 * sum({})")
_AGGREGATES += ("coalesce(max({}), 2)", "max({}) - min({})", "CAST(sum({}) AS DOUBLE)", "count(DISTINCT {})")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@st.composite
def statements(draw: st.DrawFn) -> str:
    """``SELECT ... FROM dc_t t WHERE ...`` with one to three terms that hold a subquery."""
    terms = [draw(_term("t", depth=0)) for _ in range(draw(st.integers(1, 3)))]
    return f"SELECT t.id, t.k FROM dc_t t WHERE {' AND '.join(terms)}"


@st.composite
def _term(draw: st.DrawFn, outer: str, depth: int) -> str:
    table = draw(st.sampled_from(sorted(_NUMBERS)))
    inner = f"{outer}{depth}"
    form = draw(st.sampled_from(("in", "not in", "exists", "not exists", "scalar", "scalar", "or", "pair")))
    column = st.sampled_from([f"{inner}.{name}" for name in _NUMBERS[table]])
    own = draw(_own_column(outer))
    where = draw(_where(outer, inner, table, depth))
    source = f"FROM {table} {inner}{where}"
    if form in ("in", "not in"):
        return f"{own} {form.upper()} (SELECT {draw(column)} {source})"
    if form == "pair":
        word = draw(st.sampled_from(("IN", "NOT IN")))
        return f"({own}, {draw(_own_column(outer))}) {word} (SELECT {draw(column)}, {draw(column)} {source})"
    if form in ("exists", "not exists"):
        return f"{form.upper()} (SELECT {draw(column)} {source})"
    aggregate = draw(st.sampled_from(_AGGREGATES)).replace("{}", draw(column))
    compared = f"{own} {draw(st.sampled_from(_COMPARISONS))} {draw(st.sampled_from(('', '2 * ', '-1 + ')))}"
    text = f"{compared}(SELECT {aggregate} {source})"
    return f"({text} OR {own} = 2)" if form == "or" else text


def _own_column(outer: str) -> st.SearchStrategy[str]:
    """A column of the query around: every table has k and v."""
    return st.sampled_from((f"{outer}.k", f"{outer}.v"))


@st.composite
def _where(draw: st.DrawFn, outer: str, inner: str, table: str, depth: int) -> str:
    names = _NUMBERS[table]
    terms = []
    for _ in range(draw(st.integers(0, 2))):
        operator = draw(st.sampled_from(("=", "=", "=", "<=>")))
        terms.append(f"{inner}.{draw(st.sampled_from(names))} {operator} {draw(_own_column(outer))}")
    if draw(st.booleans()):
        terms.append(f"{inner}.{draw(st.sampled_from(names))} {draw(st.sampled_from(_COMPARISONS))} 2")
    if depth == 0 and draw(st.integers(0, 3)) == 0:
        terms.append(draw(_term(inner, depth + 1)))
    return f" WHERE {' AND '.join(terms)}" if terms else ""
