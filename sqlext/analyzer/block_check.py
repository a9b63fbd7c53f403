"""Asks Spark about a block of an extension statement: how its items are called, and whether it is legal.

Spark cannot parse ``FROM a LAST JOIN b ... GROUP BY ...``, but it can analyze the rest of the block over empty
relations with the columns of FROM:

    SELECT a.k + 1, count(*) FROM (SELECT CAST(NULL AS bigint) AS `k`) AS `a` CROSS JOIN (...) AS `b` GROUP BY a.k + 1

Calls over our windows become NULLs, and period predicates become tests of the columns that they name. Nothing runs; one
analysis takes Spark 2-5 ms. When we plan without Spark, the names are those of `item_names`, and what Spark refuses is
found when the statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlext_planner.catalog import Judgement
from sqlext_planner.conditions import condition_of
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer import subqueries
from sqlext.analyzer.context import Context, Env, LeftToSparkError, Scope, Visible
from sqlext.analyzer.definitions import Definitions
from sqlext.analyzer.items import Item, own_nodes
from sqlext.syntax.calls import is_group_call, is_period_predicate
from sqlext.syntax.parser import is_extension_window
from sqlext.syntax.spans import NoPlaceError, has_place, mistake, span_of

#: Refusals that count even if a stand-in has the wrong type.
_ABOUT_THE_FORM = re.compile(
    r"MISSING_AGGREGATION|MISSING_GROUP_BY|NESTED_AGGREGATE_FUNCTION|GROUP_BY_|STAR_GROUP_BY|UNSUPPORTED_SUBQUERY|"
    r"UNSUPPORTED_EXPR_FOR_OPERATOR|ORDER_BY_POS|WINDOW_FUNCTION_NOT_ALLOWED|INVALID_WHERE_CONDITION|"
    r"UNSUPPORTED_GENERATOR|GROUPING_"
)
#: Refusals that a stand-in may cause: names that Spark finds elsewhere, and texts that it cannot read.
#: Streams we report ourselves, with their place.
_NOT_MEANT = re.compile(
    r"PARSE_|INTERNAL_ERROR|TABLE_OR_VIEW_NOT_FOUND|UNRESOLVED_ROUTINE|UNSUPPORTED_FEATURE|.*\.STREAMING_QUERY"
)


#: Longest block, in characters, that we ask Spark about; reading a list of 100,000 values twice takes another second.
LONGEST = 100_000


@dataclass(frozen=True)
class BlockCheck:
    """Spark's answer about one block. `error` is its refusal, to be raised once we have analyzed the block without an
    error: ours know the user's names better. `names` are the names of the items, as far as Spark gives them."""

    names: tuple[str | None, ...]
    error: AnalysisError | None = None

    def named(self, items: Sequence[Item]) -> list[Item]:
        """The items with Spark's names."""
        if len(self.names) != len(items):
            return list(items)
        pairs = zip(items, self.names, strict=True)
        return [item if name is None else replace(item, name=name) for item, name in pairs]

    def check(self) -> None:
        """Raises AnalysisError for a block that Spark refuses."""
        if self.error is not None:
            raise self.error


_NO_ANSWER = BlockCheck(())


@dataclass
class _SlicedText:
    """Text put together from slices of the statement; knows where each came from."""

    context: Context
    parts: list[str]
    places: list[tuple[int, int, Span]]
    length: int = 0

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def slice(self, span: Span, edits: Sequence[tuple[Span, str]]) -> None:
        """The statement's text at `span`, with some of its parts replaced."""
        at = span.start
        for place, text in edits:
            if place.start < at or place.end > span.end:
                continue
            self._copy(Span(at, place.start))
            self.add(text)
            at = place.end
        self._copy(Span(at, span.end))

    def _copy(self, span: Span) -> None:
        self.places.append((self.length, self.length + span.end - span.start, span))
        self.add(self.context.slice(span))

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def origin(self, start: int, end: int) -> Span | None:
        """Where the characters `start` to `end` come from in the statement; None for our own text."""
        for first, last, span in self.places:
            if first <= start < last:
                return Span(span.start + start - first, span.start + min(end, last) - first)
        return None


def check_block(
    context: Context, node: exp.Select, env: Env, scope: Scope, items: Sequence[Item], definitions: Definitions
) -> BlockCheck:
    """Spark's answer about the block `node` over the columns of `scope`; empty if we do not ask Spark.

    Raises LeftToSparkError for a generator of several columns, which none of our nodes can hold.
    """
    if context.questions.left <= 0 or context.outer or _is_plain(node, items):
        return _NO_ANSWER
    relations, exact = _relations(scope.columns)
    try:
        edits, typed = _edits(context, node, definitions)
        text = _surrogate(context, node, env, relations, edits)
    except (NoPlaceError, UnsupportedError):
        return _NO_ANSWER
    if text.length > LONGEST:
        return _NO_ANSWER
    context.questions.left -= 1
    judgement = context.catalog.judge(text.text)
    if judgement is None:
        return _NO_ANSWER
    if judgement.refusal is not None:
        place = None if judgement.place is None else text.origin(*judgement.place)
        return BlockCheck(
            (), _error(judgement, place, context, node) if _is_meant(judgement, exact and typed) else None
        )
    if len(judgement.columns) != len(items):
        _refuse_generators(items)
        return _NO_ANSWER
    names = (
        None if _keeps_name(item, edits) else name for item, (name, _) in zip(items, judgement.columns, strict=True)
    )
    return BlockCheck(tuple(names))


def _is_plain(node: exp.Select, items: Sequence[Item]) -> bool:
    """Whether we need not ask Spark about the block: it has only plain columns, sorted by plain columns."""
    if any(node.args.get(key) for key in ("group", "having", "windows", "qualify", "distinct")):
        return False
    order = node.args.get("order")
    keys = [key.this for key in order.expressions] if order is not None else []
    where = node.args.get("where")
    if where is not None and next(where.find_all(exp.Query, exp.Anonymous, exp.Window), None) is not None:
        return False
    computed = [item.node for item in items if item.node is not None and not item.aliased] + keys
    if not all(isinstance(one, exp.Column) for one in computed):
        return False
    shown = [item.name.lower() for item in items]
    return all(isinstance(key, exp.Column) and shown.count(key.name.lower()) <= 1 for key in keys)


def _keeps_name(item: Item, edits: Sequence[tuple[Span, str]]) -> bool:
    """Whether Spark does not name the item: it has a name, or holds something that Spark does not know."""
    if item.aliased or item.node is None:
        return True
    span = span_of(item.node)
    return any(span.start <= place.start and place.end <= span.end for place, _ in edits)


def _relations(columns: Sequence[Visible]) -> tuple[str, bool]:
    """FROM's columns as empty relations, and whether those show everything that is in the scope."""
    exact = True
    groups: list[tuple[tuple[str, ...], list[str]]] = []
    for item in columns:
        if item.qualified_only:
            exact = False
            continue
        if len(item.qualifier) > 1 or item.dtype is None:
            exact = False
        if not groups or groups[-1][0] != item.qualifier:
            groups.append((item.qualifier, []))
        value = "NULL" if item.dtype is None else f"CAST(NULL AS {item.dtype})"
        groups[-1][1].append(f"{value} AS {quoted(item.name)}")
    texts = []
    for qualifier, values in groups:
        alias = f" AS {quoted(qualifier[-1])}" if qualifier else ""
        texts.append(f"(SELECT {', '.join(values)}){alias}")
    return " CROSS JOIN ".join(texts), exact


def _edits(context: Context, node: exp.Select, definitions: Definitions) -> tuple[list[tuple[Span, str]], bool]:
    """What Spark cannot read in the block's expressions, with the text that replaces it; and whether the text has the
    same types. Raises UnsupportedError if nothing can replace it: our operators inside a subquery, our aggregates in
    HAVING or ORDER BY, which Spark resolves by their columns, and calls inside periods."""
    edits: list[tuple[Span, str]] = []
    typed = True
    sorting = [node.args[key] for key in ("having", "order") if node.args.get(key) is not None]
    if any(is_group_call(call) for clause in sorting for call in clause.find_all(exp.Anonymous)):
        raise UnsupportedError("a sqlext aggregate in HAVING or ORDER BY", condition="spark-block")
    stack = [(clause, False) for clause in _clauses(node)]
    while stack:
        top, in_subquery = stack.pop()
        if isinstance(top, exp.Query) and not in_subquery:
            if subqueries.holds_operator(context, top):
                raise UnsupportedError("a sqlext operator in a subquery", condition="spark-block")
            in_subquery = True
        call = top if isinstance(top, exp.Window) and top.arg_key != "windows" and not in_subquery else None
        if call is not None and definitions.is_ours(call):
            edits.append((span_of(top), "NULL"))
            typed = False
        elif is_period_predicate(top):
            if any(isinstance(inner, exp.Func) and inner is not top for inner in own_nodes(top)):
                raise UnsupportedError("a call inside of a period", condition="spark-block")
            edits.append((span_of(top), _named_columns(context, top)))
            typed = typed and not isinstance(top, exp.Anonymous)  # allen_relation() is a string
        elif isinstance(top, exp.Anonymous) and is_group_call(top):
            edits.append((span_of(top), "max(NULL)"))
            typed = False
        else:
            stack.extend((child, in_subquery) for child in top.iter_expressions())
    return sorted(edits, key=lambda edit: edit[0].start), typed


def _named_columns(context: Context, predicate: exp.Expr) -> str:
    """A condition over the columns of a period predicate, so that Spark sees which these are."""
    columns = [context.slice(span_of(node)) for node in own_nodes(predicate) if isinstance(node, exp.Column)]
    return f"isnull(struct({', '.join(dict.fromkeys(columns)) or 'NULL'}))"


def _clauses(node: exp.Select) -> Iterator[exp.Expr]:
    """The parts of the block above FROM."""
    yield from node.expressions
    for key in ("where", "group", "having", "order"):
        if node.args.get(key) is not None:
            yield node.args[key]
    yield from _windows(node)


def _windows(node: exp.Select) -> list[exp.Window]:
    """The named windows that belong to Spark."""
    named: dict[str, exp.Window] = {item.this.name.lower(): item for item in node.args.get("windows") or []}

    def ours(item: exp.Window) -> bool:
        seen: set[str] = set()
        while not is_extension_window(item) and item.args.get("alias") is not None:
            base = item.args["alias"].name.lower()
            if base in seen or base not in named:
                return False
            seen.add(base)
            item = named[base]
        return is_extension_window(item)

    return [item for item in named.values() if not ours(item)]


def _surrogate(
    context: Context, node: exp.Select, env: Env, relations: str, edits: Sequence[tuple[Span, str]]
) -> _SlicedText:
    """The block as a plain Spark query over `relations`."""
    text = _SlicedText(context, [], [])
    text.add(subqueries.cte_prefix(context, list(_clauses(node)), env))
    text.add("SELECT " + ("DISTINCT " if node.args.get("distinct") else ""))
    for number, item in enumerate(node.expressions):
        text.add(", " if number else "")
        text.slice(span_of(item), edits)
    text.add(f" FROM {relations}" if relations else "")
    for key in ("where", "group", "having"):
        if node.args.get(key) is not None:
            text.add(" ")
            text.slice(span_of(node.args[key]), edits)
    for number, window in enumerate(_windows(node)):
        text.add(", " if number else " WINDOW ")
        text.slice(span_of(window), edits)
    if node.args.get("order") is not None:
        text.add(" ")
        text.slice(span_of(node.args["order"]), edits)
    return text


def _is_meant(judgement: Judgement, exact: bool) -> bool:
    """Whether Spark refuses the user's block, and not what replaces FROM."""
    condition = judgement.refusal or ""
    if _NOT_MEANT.match(condition):
        return False
    return exact or _ABOUT_THE_FORM.match(condition) is not None


def refusal(context: Context, text: str, node: exp.Expr) -> AnalysisError | None:
    """The error that a running Spark has for a block whose text, with other inputs, is `text`."""
    judgement = context.catalog.judge(text)
    if judgement is None or judgement.refusal is None:
        return None
    words = "" if judgement.place is None else text[slice(*judgement.place)]
    return _error(judgement, _place_of(words, context, node.walk()), context, node)


def _error(judgement: Judgement, place: Span | None, context: Context, node: exp.Expr) -> AnalysisError:
    known = f"Spark's error condition is {judgement.refusal}"
    error = mistake(
        condition_of(judgement.refusal),
        place or _named_place(judgement.sentence, context, node) or span_of(node),
        judgement.sentence,
        judgement.help or known,
        notes=(known,) if judgement.help else (),
    )
    error.__cause__ = judgement.cause
    return error


def _named_place(sentence: str, context: Context, node: exp.Expr) -> Span | None:
    """The place of an expression of the block that Spark's sentence quotes; None if it quotes none."""
    clauses = [*node.expressions, *(node.args[key] for key in ("having", "order", "group") if node.args.get(key))]
    nodes = [inner for clause in clauses for inner in clause.walk()]
    places = (_place_of(words, context, nodes) for words in re.findall(r'"([^"]+)"', sentence))
    return next((place for place in places if place is not None), None)


def _place_of(words: str, context: Context, nodes: Iterable[exp.Expr]) -> Span | None:
    """The place of the first of the nodes that the user wrote in these words, whatever their case and spaces."""
    searched = "".join(words.lower().split())
    for inner in nodes:
        if has_place(inner) and "".join(context.slice(span_of(inner)).lower().split()) == searched:
            return span_of(inner)
    return None


def _refuse_generators(items: Sequence[Item]) -> None:
    """Raises LeftToSparkError if an item is a generator of several columns (`explode` of a map)."""
    for item in items:
        if isinstance(item.node, exp.Anonymous) and item.node.name.lower() in ("explode", "explode_outer"):
            raise LeftToSparkError(
                f"{item.node.name}() gives several columns here, which is left to Spark", span=item.span
            )
