"""Physical plans: how a statement is computed. Each node builds a Spark DataFrame lazily from its children's.

Printing a physical plan needs no Spark: pyspark is imported inside `execute` only.

Spark's refusal of an expression becomes our error: one sentence, in the user's names, at the expression's place.
Spark sees columns under our names and knows nothing of the user's text, so its own message points nowhere. All of
this runs only after a failure: the node's expressions are tried one by one, which costs one analysis each.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from sqlext_planner.conditions import condition_of
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, InternalError, Locate, Span, UnsupportedError, current_statement
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, ShownCall
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, PlanNode
from sqlext_planner.spark.versions import condition_name, sentences_of
from sqlext_planner.tree import TreeNode

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_operators.errors import Places


_Kept = TypeVar("_Kept")
_LOG = logging.getLogger("sqlext")
_FALLBACK_HELP = (
    "write the condition as a conjunct of the join's ON, over values that an operator compares; or set "
    "sqlext.fallback to warn: Spark's rows are the same"
)


@dataclass
class ExecutionContext:
    """What nodes need to build DataFrames. One context serves one statement.

    `cache` maps id(node) to (node, DataFrame): a node shared by two parents is built once. The node is kept
    in the value so that its id stays taken. `memory` has what mechanisms keep for the statement, by its class.

    `place` finds a span of the statement in the user's text, with the lines that show it; None if there
    is no text. `building` are the nodes whose DataFrames are being built, the innermost last. `observed` are operators
    on streams by the names of their observed metrics.
    """

    spark: SparkSession
    config: Config = field(default_factory=Config)
    cache: dict[int, tuple[PhysicalPlan, DataFrame]] = field(default_factory=dict)
    memory: dict[type, Any] = field(default_factory=dict)
    place: Locate | None = field(default_factory=current_statement)
    building: list[PhysicalPlan] = field(default_factory=list)
    observed: dict[str, PhysicalPlan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from sqlext_planner.spark.workers import show_task_errors

        show_task_errors()

    def remembered(self, kind: type[_Kept]) -> _Kept:
        """The one object of a class that a mechanism keeps for the statement; made when it is first asked for."""
        found: _Kept = self.memory.setdefault(kind, kind())
        return found

    def left_to_spark(self, reason: str, span: Span | None) -> None:
        """Say that Spark compares rows in place of an operator of ours, as `sqlext.fallback` asks for. Raises
        UnsupportedError if the setting is "fail"."""
        message = f"Spark compares rows where an operator of sqlext was asked for: {reason}"
        if self.config.fallback == "fail":
            raise UnsupportedError(message, condition="left-to-spark", span=span, help=_FALLBACK_HELP)
        if self.config.fallback == "warn":
            place = None if self.place is None or span is None else self.place(span)
            _LOG.warning("%s", "\n".join([message, *(() if place is None else place.lines)]))

    def places(self) -> Places:
        """The place in the user's text of the node that is being built."""
        from sqlext_operators.errors import Places

        if self.place is None or not self.building:
            return Places()

        whole, named = spans_of(self.building[-1])
        found = {name: self.place(span) for name, span in named.items()}
        return Places(None if whole is None else self.place(whole), found)


#: Analyses one expression; raises Spark's AnalysisException if Spark refuses it.
Trial = Callable[[Expression], object]


@dataclass(frozen=True)
class Rival:
    """One way of computing a node: what it costs, what else is to say of it, whether it was taken."""

    name: str
    cost: str = ""
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Estimate:
    """Rows and bytes of a result as planning expects them, None where it does not."""

    rows: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class PhysicalPlan(PlanNode):
    """A physical operator; frozen, its children are the fields that hold physical plans.

    `runs` names the operator and the way that it runs, "IntervalJoin (slices)", where there are several; `why` is the
    strategy's reason for choosing this node, with its numbers. EXPLAIN prints both. `rivals` are the ways
    that the strategy compared, `estimated` what it expects of the result. `computes` is the logical node whose result
    this is, where a strategy answered for one.
    """

    runs: str = field(default="", compare=False, kw_only=True, repr=False)
    why: str = field(default="", compare=False, kw_only=True, repr=False)
    rivals: tuple[Rival, ...] = field(default=(), compare=False, kw_only=True, repr=False)
    estimated: Estimate | None = field(default=None, compare=False, kw_only=True, repr=False)
    computes: LogicalPlan | None = field(default=None, compare=False, kw_only=True, repr=False)

    #: True for nodes that have no plain Spark SQL text.
    is_extension = False
    #: True for operators of ours that keep state from one micro-batch to the next.
    reads_streams = False
    #: True for nodes that say something of their child, which does all of the work.
    stands_for_child = False

    @classmethod
    def child_type(cls) -> type[TreeNode]:
        return PhysicalPlan

    @property
    def frame_columns(self) -> tuple[str, ...]:
        """The names of the DataFrame's columns: `Column.spark_name` of every output field, in order."""
        return tuple(column.spark_name for column in self.output_columns)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """A lazy DataFrame whose columns are `frame_columns`; its only child's, if the class says nothing.

        Call it through `execute_cached`, also for children.
        """
        (child,) = self.children
        return execute_cached(child, context)

    def shown_relation(self) -> tuple[str, str] | None:
        """The relation that the node brings in, and the name that the user knows: a table without an alias that the
        statement reads again is `b_2` in the plan, and still `b` for the user."""
        return None

    def shown_calls(self) -> Iterator[ShownCall]:
        """The calls of windows and groups that the node computes."""
        return iter(())

    def expressions(self) -> Iterator[Expression]:
        """The scalar expressions that the node holds: its items, keys, and the arguments of its calls."""
        for item in fields(self):
            value = getattr(self, item.name)
            for entry in value if isinstance(value, tuple) else (value,):
                if isinstance(entry, NamedExpr):
                    yield entry.expression
                elif isinstance(entry, Expression):
                    yield entry
                elif isinstance(getattr(entry, "expression", None), Expression):  # a key of ORDER BY
                    yield entry.expression

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        """The node's expressions, each with a way to analyse it as the node does; `frames` are the children's."""
        if frames:
            yield from ((expression, tried(frames[0])) for expression in self.expressions())

    def source(self) -> LogicalPlan | None:
        """The logical node that the node computes, None for one that a strategy added."""
        return self.computes

    def estimate(self) -> Estimate | None:
        """What planning expects of the result."""
        return self.estimated

    def choices(self) -> dict[str, tuple[Rival, ...]]:
        """The ways that were compared, by what there was to choose."""
        return {"strategy": self.rivals} if self.rivals else {}

    def details(self) -> dict[str, Any]:
        """Facts for EXPLAIN beyond the label (numbers behind a choice), JSON values only."""
        return {name: text for name, text in (("runs", self.runs), ("why", self.why)) if text}


@dataclass(frozen=True)
class NodeExec(PhysicalPlan):
    """Computes what a logical node says; `inputs` are the plans of the node's children, in their order."""

    node: LogicalPlan
    inputs: tuple[PhysicalPlan, ...] = ()

    def source(self) -> LogicalPlan | None:
        return self.node if self.computes is None else self.computes

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.node.output

    def label(self) -> str:
        return f"{self.node_name()}{self.node.label().removeprefix(self.node.node_name())}"

    def expressions(self) -> Iterator[Expression]:
        for item in self.node.expressions():
            inner = getattr(item, "expression", None)  # an item, or a key of ORDER BY
            yield inner if isinstance(inner, Expression) else item


def spark_column(expression: Expression) -> SparkColumn:
    """The expression as a PySpark column, resolved by name against the DataFrame it is used on."""
    from pyspark.sql.functions import expr

    return expr(expression.sql())


def tried(frame: DataFrame) -> Trial:
    """Analyses an expression as an item selected from a frame."""
    return lambda expression: frame.select(spark_column(expression)).columns


def quoted(name: str) -> str:
    """A column name as one Spark SQL identifier, even if it holds dots or backticks."""
    return "`" + name.replace("`", "``") + "`"


def execute_cached(node: PhysicalPlan, context: ExecutionContext) -> DataFrame:
    """The node's DataFrame, built once for each node object in a context.

    Raises AnalysisError, at the place in the text, for an expression that Spark refuses, InternalError if the
    node's columns are not those that it declares.
    """
    from pyspark.errors import AnalysisException

    known = context.cache.get(id(node))
    if known is not None:
        return known[1]
    if node.is_extension and not node.reads_streams:
        _check_inputs(node, context)
    context.building.append(node)
    try:
        frame = node.execute(context)
        expected, given = node.frame_columns, tuple(frame.columns)
    except AnalysisException as error:
        raise located(node, [execute_cached(child, context) for child in node.children], context, error) from error
    finally:
        context.building.pop()
    if given != expected:
        raise InternalError(f"{node.node_name()} declares columns {expected} and gives {given}")
    context.cache[id(node)] = (node, frame)
    return frame


def _check_inputs(node: PhysicalPlan, context: ExecutionContext) -> None:
    """Raises UnsupportedError if an input of one of our operators is a stream: planning refuses the streams that it
    knows (streams.py), but a name may mean another table by now."""
    for child in node.children:
        if execute_cached(child, context).isStreaming:
            raise UnsupportedError(
                f"{node.node_name().removesuffix('Exec')} cannot read a stream yet",
                condition="stream-not-supported",
                help="run the statement again over tables, or compute each micro-batch with foreachBatch",
            )


_SENTENCE_END = re.compile(r"(?<=[.?])\s+(?=[A-Z])")
_QUOTED = re.compile(r'"[^"]*"|`[^`]*`')


def located(
    node: PhysicalPlan, frames: Sequence[DataFrame], context: ExecutionContext, error: AnalysisException
) -> AnalysisError:
    """What to raise (from `error`) if building the node's DataFrame failed; `frames` are the children's."""
    sentence, rest = sentences(error)
    guilty = _guilty(node.trials(frames, context), sentence)
    names = _shown_names(node)
    condition = condition_name(error)
    known = f"Spark's error condition is {condition}" if condition else None
    return AnalysisError(
        _in_user_names(sentence, names),
        condition=condition_of(condition),
        span=_together(map(place_of, node.expressions() if guilty is None else [guilty])),
        help=_in_user_names(rest, names) or known,
        notes=(known,) if rest and known else (),
    )


def sentences(error: PySparkException) -> tuple[str, str]:
    """The first sentence of Spark's message, and the rest of it; without codes, positions and plans."""
    text = sentences_of(error)
    text = " ".join(re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text).split())
    first, *rest = _SENTENCE_END.split(text, maxsplit=1)
    return first.rstrip("."), "".join(rest).rstrip(".")


def _guilty(trials: Iterable[tuple[Expression, Trial]], sentence: str) -> Expression | None:
    """The innermost expression that Spark refuses with this sentence."""
    from pyspark.errors import PySparkException

    def refused(expression: Expression, trial: Trial) -> str | None:
        try:
            trial(expression)
        except PySparkException as error:
            return sentences(error)[0]
        return None

    def innermost(expression: Expression, trial: Trial) -> Expression:
        for part in expression.children:
            if not isinstance(part, Column) and part.span is not None and refused(part, trial) == sentence:
                return innermost(part, trial)
        return expression

    for expression, trial in trials:
        if refused(expression, trial) == sentence:
            return innermost(expression, trial)
    return None


def spans_of(node: PhysicalPlan) -> tuple[Span | None, dict[str, Span]]:
    """The place in the text of a whole node, and of the calls of its windows and groups by their columns' names."""
    calls = {call.column.spark_name: call.span for call in node.shown_calls() if call.span is not None}
    condition = getattr(node, "condition", None)
    if isinstance(condition, Expression) and (place := place_of(condition)) is not None:
        return place, calls
    return _together((*calls.values(), *map(place_of, node.expressions()))), calls


def place_of(expression: Expression) -> Span | None:
    """The expression's place in the text; if it has none, that of its parts."""
    if expression.span is not None:
        return expression.span
    return _together(place_of(child) for child in expression.children)


def _together(places: Iterable[Span | None]) -> Span | None:
    whole: Span | None = None
    for place in places:
        if place is not None:
            whole = place | whole
    return whole


def _shown_names(node: PhysicalPlan) -> dict[str, str]:
    """DataFrame column -> the name that the user knows, for the columns that the node reads: a window's is its call."""
    made = {call.column: call.text for below in node.walk() for call in below.shown_calls()}
    columns = [column for child in node.children for column in child.output_columns]
    tables = dict(found for below in node.walk() if (found := below.shown_relation()) is not None)
    return {column.spark_name: made.get(column, _shown(column, tables)) for column in columns}


def _shown(column: Column, tables: dict[str, str]) -> str:
    """A column of an unnamed subquery has no qualifier that the user wrote."""
    if re.fullmatch(r"(subquery|values)(_\d+)?", column.relation):
        return column.name
    return Column(tables.get(column.relation, column.relation), column.name).spark_name


def _in_user_names(text: str, names: dict[str, str]) -> str:
    """The text with the columns' names inside Spark's quotes turned back; a single name loses its backticks."""
    if not names:
        return text
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    name = re.compile(rf"(?<![\w.])(?:{'|'.join(longest)})(?![\w.(])")

    def quoted(match: re.Match[str]) -> str:
        whole = match.group()
        if whole[0] == "`" and whole[1:-1] in names:
            return names[whole[1:-1]]
        return whole[0] + name.sub(lambda found: names[found.group()], whole[1:-1]) + whole[-1]

    return _QUOTED.sub(quoted, text)
