"""Windows of standard SQL over streams, which Spark refuses, as nodes of our operator.

Rows are those of standard SQL: RANGE holds all rows of the current row's time, and so does the frame that a window has
without words. A window over tables stays Spark's.

Some calls are computed in steps, each of which keeps little of a key or nothing:

- row_number() and rank() count rows; dense_rank() counts the rows whose time is not that of the row before.
- first_value(x), or nth_value(x, n), from the first row there is: a window numbers the rows, and the maximum of x over
  the one row with the number is the value in every later row.
- ROWS to n FOLLOWING, lead(x, n): what a row sees n rows ahead is what the n-th row after it sees looking back. So the
  window is moved back by n rows, the columns of the row are those of `lag(..., n)`, and a row comes out with the n-th
  row after it.

All windows with the same keys and order make one node for each step. What looks ahead is the last step: its rows come
any time after their own time, so that no window above it would ever be complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, SparkExpr, is_exact
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project
from sqlext_planner.window.nodes import (
    CURRENT_ROW,
    Bound,
    WindowCall,
    WindowFrame,
    WindowGroup,
    WindowUnion,
    is_condensed,
)
from sqlglot import exp

from sqlext.analyzer import calls, hints
from sqlext.analyzer.call_forms import called, ordered_call
from sqlext.analyzer.context import ComputedNames, Context, Env, LeftToSparkError, Scope
from sqlext.analyzer.definitions import Definition, order_key, partition_keys, plain_frame, table_call
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import mistake, span_of, unsupported
from sqlext.syntax.sql_settings import normal_text

#: A call over one of Spark's windows, its name in the result if it is a whole item, and its definition.
Native = tuple[exp.Window, str | None, Definition]

_START = Bound("preceding", None)
_ITSELF = WindowFrame("rows", CURRENT_ROW, CURRENT_ROW, plain=True)
_ROWS_UNTIL = WindowFrame("rows", _START, CURRENT_ROW, plain=True)
_PEERS = WindowFrame("range", CURRENT_ROW, CURRENT_ROW, peers=True, plain=True)
_UNTIL = WindowFrame("range", _START, CURRENT_ROW, peers=True, plain=True)
_BEFORE = WindowFrame("range", _START, Bound("preceding", 0, open=True), plain=True)
_UNNAMED = Column("", "")
#: What needs to know how many rows a partition has.
_SIZED = ("percent_rank", "cume_dist", "ntile")
_RANKS = ("row_number", "rank", "dense_rank")


@dataclass(frozen=True)
class _Ordered:
    """What windows have in common that are computed together: keys in any order, and an order."""

    keys: frozenset[Expression]
    order: Expression


@dataclass(frozen=True)
class _Window:
    """A definition with its keys, its order and its frame."""

    keys: tuple[Expression, ...]
    order: Expression
    order_dtype: str | None
    frame: WindowFrame
    definition: Definition

    @property
    def ordered(self) -> _Ordered:
        """What it has in common with others."""
        return _Ordered(frozenset(self.keys), self.order)

    @property
    def rows_ahead(self) -> int:
        """How many rows after the current one its frame holds."""
        frame = self.frame
        return frame.end.amount or 0 if frame.unit == "rows" and frame.end.direction == "following" else 0


@dataclass
class _Node:
    """The calls of one node, by their windows' frames. Calls whose rows can be condensed have groups of their own."""

    window: _Window
    groups: dict[tuple[WindowFrame, bool], list[WindowCall]] = field(default_factory=dict)
    windows: dict[tuple[WindowFrame, bool], _Window] = field(default_factory=dict)

    def column(self, window: _Window, frame: WindowFrame, made: WindowCall, named: Callable[[], Column]) -> Column:
        """The column of a call; the same one is computed once."""
        key = (frame, is_condensed(made))
        group = self.groups.setdefault(key, [])
        self.windows.setdefault(key, window)
        known = next((call.column for call in group if replace(call, column=_UNNAMED) == made), None)
        if known is None:
            known = named()
            group.append(replace(made, column=known))
        return known

    def over(self, source: LogicalPlan, rows: int = 0) -> WindowUnion:
        """The node; of frames moved back by some rows."""
        groups = []
        for key, made in self.groups.items():
            definition = self.windows[key].definition
            frame = _moved(key[0], rows)
            groups.append(WindowGroup(definition.name, frame, (), tuple(made), span=span_of(definition.node)))
        window = self.window
        node = window.definition.node
        block = node.find_ancestor(exp.Select)
        hint = hints.partitioner(block) if block is not None and block.args.get("hint") else None
        return WindowUnion(
            window.keys,
            window.order,
            tuple(groups),
            source,
            (),
            partitioner=hint,
            ahead=rows or None,
            span=span_of(node),
        )


class PlainWindows:
    """The plain windows of one SELECT block. After `plan`, `columns` and `texts` are what replaces each call, by id."""

    def __init__(self, context: Context, env: Env, scope: Scope, names: ComputedNames) -> None:
        self._context = context
        self._builder = ExpressionBuilder(context, scope, env)
        self._names = names
        self._windows: dict[str, _Window] = {}
        self._first: dict[_Ordered, _Node] = {}
        self._second: dict[_Ordered, _Node] = {}
        self._between: list[NamedExpr] = []
        self._ahead: _Node | None = None
        self._leads: list[tuple[WindowCall, Column]] = []
        self.columns: dict[int, Column] = {}
        self.texts: dict[int, Expression] = {}
        self._deploys = context.options.deploys
        self._whole = "a deployment" if self._deploys else "a stream"
        self._time = "the time of the rows" if self._deploys else "the column with the watermark"
        self._incomplete = f"never complete {'in' if self._deploys else 'on'} {self._whole}"

    def _endless(self, place: exp.Expr | Span | None, message: str, help: str) -> SqlExtError:
        return unsupported("not-servable" if self._deploys else "stream-unbounded", place, message, help)

    def plan(self, native: Sequence[Native], child: LogicalPlan) -> LogicalPlan:
        """`child` with the windows. Raises SqlExtError, about a window, for one that a stream cannot have."""
        try:
            for call, name, definition in native:
                self._add(call, name, self._window(call, definition))
        except LeftToSparkError:
            raise
        except SqlExtError as error:
            raise error.about_window() from error.__cause__
        for node in self._first.values():
            child = node.over(child)
        if self._between:
            child = Project((*_same(child), *self._between), child)
        for node in self._second.values():
            child = node.over(child)
        return child if self._ahead is None else self._looking_ahead(self._ahead, child)

    def _window(self, call: exp.Window, definition: Definition) -> _Window:
        known = self._windows.get(definition.key)
        if known is None:
            node = definition.node
            order, dtype = order_key(node, self._builder)
            if order is None:
                raise self._endless(
                    call,
                    f"a window without ORDER BY holds its whole partition, which is {self._incomplete}",
                    f"order it by {self._time}, or aggregate with GROUP BY",
                )
            further = node.args["order"].expressions[1:]
            if further:
                raise unsupported(
                    "not-servable" if self._deploys else "stream-not-supported",
                    further[0],
                    f"a window over {self._whole} has one key: rows of one time stay in the order in which they came",
                    f"order by {self._time} only",
                )
            frame = plain_frame(self._context, node, dtype)
            if frame.end.direction == "following" and frame.end.amount is None:
                raise self._endless(
                    Span(*node.args["spec"].meta["places"]["end"]),
                    f"a window to UNBOUNDED FOLLOWING is {self._incomplete}",
                    "end it at CURRENT ROW, or at a time or a number of rows FOLLOWING",
                )
            known = _Window(partition_keys(node, self._builder), order, dtype, frame, definition)
            self._windows[definition.key] = known
        return known

    # One call

    def _add(self, call: exp.Window, name: str | None, window: _Window) -> None:
        inner = ordered_call(call.this) or call.this
        plain = called(inner)
        function = plain.name.lower() if isinstance(plain, exp.Anonymous) else ""
        if function in _SIZED:
            raise self._endless(
                call,
                f"{function}() needs the number of all rows of its partition, and {self._whole} has no end",
                "row_number(), rank() and dense_rank() are known when the row comes out",
            )
        if self._deploys and _differs(function, window):  # on streams Spark says so
            raise mistake(
                "window-frame",
                call,
                f"{function}() has a frame of its own, and Spark takes no other one",
                "leave the frame of its window out, or give it a window without one",
            )
        if function in _RANKS:
            self.texts[id(call)] = self._ranked(function, window, span_of(call))
            return
        if not table_call(plain):
            raise mistake(
                "unknown-function",
                plain,
                f"{function or self._text(plain)}() is not computed over a plain window of {self._whole}",
                "docs/window-functions.md has the functions; compute others with foreachBatch",
            )
        made = calls.window_call(self._builder, inner, _UNNAMED, whole=True)
        named = partial(self._names.column, name or function)
        if made.function in ("lag", "lead"):
            self.columns[id(call)] = self._neighbour(made, window, named)
            return
        made, window = self._in_steps(made, window)
        self.columns[id(call)] = self._last(window, made, named)

    def _text(self, node: exp.Expr) -> str:
        return normal_text(self._context.slice(span_of(node)), self._context.settings)

    def _ranked(self, function: str, window: _Window, span: Span) -> Expression:
        if function == "dense_rank":
            made = WindowCall("lag", (window.order,), (1,), _UNNAMED, window.order_dtype)
            before = self._computed(window, _ITSELF, made, "before")
            is_new = SparkExpr.of("NOT (", before, " <=> ", window.order, ")", dtype="boolean")
            flag = self._column_between(is_new, "is_new")
            made = WindowCall("count", (flag,), (), _UNNAMED, "bigint", filtered=True)
            column = self._last(replace(window, frame=_UNTIL), made, partial(self._names.column, function))
            return SparkExpr.of("CAST(", column, " AS INT)", dtype="int", span=span)
        frame = _ROWS_UNTIL if function == "row_number" else _BEFORE
        column = self._computed(window, frame, _counted(), function)
        more = " + 1" if function == "rank" else ""
        return SparkExpr.of("CAST(", column, f" AS INT){more}", dtype="int", span=span)

    def _neighbour(self, made: WindowCall, window: _Window, named: Callable[[], Column]) -> Column:
        if made.filtered:
            raise self._endless(
                made.span,
                f"{made.function}() with IGNORE NULLS looks for a row with a value, however far it is: "
                f"{self._whole} cannot tell when it has come",
                "leave out IGNORE NULLS, or use last_value(x) IGNORE NULLS over the rows before",
            )
        if made.function == "lag" or not _places(made):
            made = replace(made, function="lag")
            return self._node(self._first, window).column(window, _ITSELF, made, named)
        column = named()
        self._looks_ahead(window)
        self._leads.append((made, column))
        return column

    def _in_steps(self, made: WindowCall, window: _Window) -> tuple[WindowCall, _Window]:
        """A call over a window without a start as one that reads less of it, if there is one."""
        frame = window.frame
        if frame.start != _START or made.filtered or made.function not in ("first_value", "last_value", "nth_value"):
            return made, window
        ignores = bool(made.constants[-1])
        if made.function == "last_value":
            is_last = frame.unit == "rows" or frame.end == CURRENT_ROW
            if ignores or not is_last:
                return made, window
            end = replace(frame, start=frame.end) if frame.unit == "rows" else _PEERS
            return made, replace(window, frame=end)
        (value,), dtype = made.args, made.dtype
        if dtype is None or not calls.takes_plainly("max", dtype):
            return made, window
        place = made.constants[0] if made.function == "nth_value" else 1
        counted = WindowCall("count", (value,), (), _UNNAMED, "bigint") if ignores else _counted()
        number = self._computed(window, _ROWS_UNTIL, counted, "row_number")
        known: tuple[str | Expression, ...] = (" AND ", value, " IS NOT NULL") if ignores else ()
        chosen = SparkExpr.of("CASE WHEN ", number, f" = {place}", *known, " THEN ", value, " END", dtype=dtype)
        column = self._column_between(chosen, "chosen")
        return WindowCall("max", (column,), (), _UNNAMED, dtype, span=made.span), window

    # Nodes

    def _node(self, nodes: dict[_Ordered, _Node], window: _Window) -> _Node:
        return nodes.setdefault(window.ordered, _Node(window))

    def _computed(self, window: _Window, frame: WindowFrame, made: WindowCall, name: str) -> Column:
        """A column of the first step."""
        return self._node(self._first, window).column(window, frame, made, partial(self._names.column, name))

    def _column_between(self, expression: SparkExpr, name: str) -> Column:
        """The column of an expression over those of the first step."""
        known = next((item.column for item in self._between if item.expression == expression), None)
        if known is None:
            known = self._names.column(name)
            self._between.append(NamedExpr(expression, known))
        return known

    def _last(self, window: _Window, made: WindowCall, named: Callable[[], Column]) -> Column:
        """The column of a call over its own window, in the step that has its arguments."""
        if window.rows_ahead:
            return self._looks_ahead(window).column(window, window.frame, made, named)
        between = {item.column for item in self._between}
        nodes = self._second if made.references & between else self._first
        return self._node(nodes, window).column(window, window.frame, made, named)

    def _looks_ahead(self, window: _Window) -> _Node:
        self._ahead = self._ahead or _Node(window)
        if self._ahead.window.ordered != window.ordered:
            raise self._endless(
                window.definition.node,
                "only windows of one PARTITION BY can look at rows that follow: the rows of one come any time after "
                "their own time, and the other would never be complete",
                "use RANGE and a time FOLLOWING, or write the result to a table and read that as a stream",
            )
        return self._ahead

    def _looking_ahead(self, node: _Node, child: LogicalPlan) -> LogicalPlan:
        """The last step: each row with the row that is far enough behind it."""
        frames = [frame for frame, _ in node.groups]
        far = [frame.end.amount or 0 for frame in frames] + [_places(made) for made, _ in self._leads]
        rows = max(far)
        kept = [key for key in node.window.keys if isinstance(key, Column) and is_exact(child.dtypes.get(key))]
        moved: dict[Column, Column] = {}
        for item in child.output:
            if item.column not in kept:
                made = WindowCall("lag", (item.column,), (rows,), _UNNAMED, item.dtype)
                moved[item.column] = self._ahead_column(node, made, f"{item.column.name}_before")
        seen = self._ahead_column(
            node, WindowCall("lag", (Literal("true", dtype="boolean"),), (rows,), _UNNAMED, "boolean"), "has_row"
        )
        results = {call.column: call.column for group in node.groups.values() for call in group}
        for made, column in self._leads:
            back = replace(made, function="lag", args=made.args[:1], constants=(rows - _places(made),))
            results[column] = self._ahead_column(node, back, column.name)
        plan: LogicalPlan = node.over(child, rows)
        plan = Filter(SparkExpr((seen, " IS NOT NULL"), dtype="boolean"), plan)
        own = (NamedExpr(moved.get(column, column), column) for column in child.output_columns)
        return Project((*own, *(NamedExpr(found, column) for column, found in results.items())), plan)

    def _ahead_column(self, node: _Node, made: WindowCall, name: str) -> Column:
        return node.column(node.window, _ITSELF, made, partial(self._names.column, name))


def _differs(function: str, window: _Window) -> bool:
    """Whether the window of a call has a frame in the text that its function does not take in Spark."""
    spec = window.definition.node.args.get("spec")
    if spec is None or not spec.args.get("kind"):
        return False
    return function in ("lag", "lead") or (function in _RANKS and window.frame != _ROWS_UNTIL)


def _counted() -> WindowCall:
    return WindowCall("count", (), (), _UNNAMED, "bigint")


def _places(made: WindowCall) -> int:
    """How many rows ahead lead() looks."""
    return int(made.constants[0] or 0)


def _moved(frame: WindowFrame, rows: int) -> WindowFrame:
    """The frame as the row sees it that is so many rows later."""
    if not rows or frame == _ITSELF:
        return frame
    return replace(frame, start=_back(frame.start, rows), end=_back(frame.end, rows))


def _back(bound: Bound, rows: int) -> Bound:
    if bound.amount is None:
        return bound
    behind = rows + (bound.amount if bound.direction == "preceding" else -bound.amount)
    return Bound("preceding", behind) if behind else CURRENT_ROW


def _same(plan: LogicalPlan) -> Iterator[NamedExpr]:
    return (NamedExpr(column, column) for column in plan.output_columns)


def refuse_over(plan: LogicalPlan, call: exp.Expr, context: Context, why: str) -> None:
    """Raises UnsupportedError for a window over a stream that is no window of ours, because of `why`."""
    if context.options.plain_windows and plan.is_streaming:
        help = "compute the windows in a subquery of FROM, from the stream's own rows, or write these to a table first"
        raise unsupported("stream-not-supported", call, f"a window over a stream {why}", help).about_window()
