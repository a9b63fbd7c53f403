"""What Spark says of a streaming DataFrame, and what our operators say of theirs: which columns are event times.

Rows from far in the future are left out here: one of them moves the watermark, and makes all others late. They are
looked at below the watermark, so Spark's plan of the stream is written anew from there up.

With them, Spark's settings for state that is kept from one micro-batch to the next.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, raise_error
from sqlext_planner.spark.plans import class_name, items_of
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.versions import MAP_IN_ARROW, frame_of_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from sqlext_planner.config import Config


_DELAY = "spark.watermarkDelayMs"
#: Metadata of a column of our operators' results: the name of the operator, and how long after the time in the column
#: its rows come at most, in microseconds, or why nobody knows.
_EVENT_TIME = "sqlext.eventTime"

#: Nodes of Spark that give each row in the micro-batch that brings it, with the metadata of its columns.
_ROW_BY_ROW = {"CollectMetrics", "Filter", "Generate", *MAP_IN_ARROW, "MapInPandas", "Project", "SubqueryAlias", "View"}
_ROW_BY_ROW |= {"Repartition", "RepartitionByExpression", "ResolvedHint", "UnresolvedHint"}
_WORDS = {
    "EventTimeWatermark": "withWatermark",
    "Aggregate": "an aggregate of Spark",
    "Deduplicate": "dropDuplicates",
    "Distinct": "DISTINCT",
    "Union": "UNION ALL",
}
_JOIN = "a join of streams by Spark"
_CONNECT = "Spark Connect"


#: Time zones whose days all have 24 hours.
FIXED_ZONE = re.compile(r"(?:Etc/)?(?:UTC|GMT|UCT|Z)|(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?")

#: Observed metrics of our operators start so.
OBSERVED = "sqlext_"


@dataclass(frozen=True)
class Origin:
    """Where the rows of a stream come from: our `operators` whose results it reads, by name, and what else keeps rows
    from one micro-batch to the next above one of these, or in their place (`behind`, None: nothing)."""

    operators: tuple[str, ...] = ()
    behind: str | None = None


@dataclass(frozen=True)
class EventTimes:
    """The event times of a stream's rows. In a micro-batch, no row that is in time is older than the watermark of the
    micro-batch before less the delay.

    delays     by column, in microseconds; 0 for a column with a watermark of Spark
    unknown    other columns that are times of events in the input of an operator of ours: why there is no such delay
    operators  the operators of ours whose results the rows are, by name
    """

    delays: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: StructType, operators: tuple[str, ...]) -> EventTimes:
        """The times among columns of results of these operators; metadata of any other is out of date."""
        delays = dict.fromkeys(watermarks(schema), 0)
        unknown = {}
        for item in schema:
            stored = item.metadata.get(_EVENT_TIME)
            if stored is None or stored["operator"] not in operators:
                continue
            if "delay" in stored:
                delays[item.name] = int(stored["delay"])
            else:
                unknown[item.name] = str(stored["why"])
        return cls(delays, unknown, operators)


def watermarks(schema: StructType) -> dict[str, int]:
    """The columns that have a watermark, with their delays in milliseconds."""
    return {item.name: int(item.metadata[_DELAY]) for item in schema if _DELAY in item.metadata}


def result_times(schema: StructType, operator: str, times: Mapping[str, int | str]) -> StructType:
    """The schema of results that come after the watermark, which no column has any more: Spark's own operators would
    drop them as late. The columns in `times` have a delay in microseconds, or a reason for having none."""
    from pyspark.sql.types import StructField, StructType

    def marked(item: StructField) -> StructField:
        kept = {key: value for key, value in item.metadata.items() if key not in (_DELAY, _EVENT_TIME)}
        if (time := times.get(item.name)) is not None:
            kept[_EVENT_TIME] = {"operator": operator, "delay" if isinstance(time, int) else "why": time}
        return StructField(item.name, item.dataType, item.nullable, kept)

    return StructType(list(map(marked, schema)))


def endless_source(frame: DataFrame) -> str | None:
    """The name of a source of a stream that is not one of files; None if there is none. A query over files has read all
    of them at some time; of other sources Spark cannot tell in general."""
    for leaf in items_of(frame._jdf.queryExecution().analyzed().collectLeaves()):
        if leaf.isStreaming():
            kind = class_name(leaf)
            name = str(leaf.sourceName()) if kind.startswith("StreamingRelation") else kind
            if not name.startswith("FileSource"):
                return name
    return None


def origin_of(frame: DataFrame) -> Origin:
    """Where the rows of a stream come from.
    Under Connect, where the plan is out of reach, none of our results is passed on."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:
        return Origin(behind=_CONNECT if any(_EVENT_TIME in item.metadata for item in frame.schema) else None)
    operators: list[str] = []
    behind = None
    # each node with what keeps rows above it
    stack: list[tuple[Any, str | None]] = [(java_frame.queryExecution().analyzed(), None)]
    while stack:
        node, above = stack.pop()
        kind = class_name(node)
        if kind == "CollectMetrics" and str(node.name()).startswith(OBSERVED):
            operators.append(str(node.name()))
            behind = behind or above
        elif kind.startswith("TransformWithState"):
            behind = behind or kind
        else:
            below = above or _keeps(node, kind)
            stack += [(child, below) for child in reversed(items_of(node.children()))]
    return Origin(tuple(operators), behind)


def _keeps(node: Any, kind: str) -> str | None:
    """How a message calls a node that need not give a row in the micro-batch that brings it."""
    children = items_of(node.children())
    if kind in _ROW_BY_ROW or not children:
        return None
    if kind == "Join":
        return _JOIN if all(child.isStreaming() for child in children) else None
    return _WORDS.get(kind, kind)


def watermark_stacks(frame: DataFrame) -> list[tuple[str, ...]]:
    """The columns of the watermarks of each input, the uppermost first; also of columns that the frame has no longer,
    but not those below our operators. Spark refuses two above each other only when the query starts. Under Connect,
    where the plan is out of reach, those of the frame's own columns."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:
        return [(name,) for name in watermarks(frame.schema)]
    stacks: list[tuple[str, ...]] = []
    stack: list[tuple[Any, tuple[str, ...]]] = [(java_frame.queryExecution().analyzed(), ())]
    while stack:
        node, above = stack.pop()
        kind = class_name(node)
        if kind == "EventTimeWatermark":
            above = (*above, str(node.eventTime().name()))
        is_ours = kind == "CollectMetrics" and str(node.name()).startswith(OBSERVED)
        children = [] if is_ours else items_of(node.children())
        stack += [(child, above) for child in children]
        if not children and above:
            stacks.append(above)
    return stacks


#: Observed metrics of this module start so; `FUTURE_ROWS` is the only one.
_FUTURE = "future_rows_of_sqlext_"
FUTURE_ROWS = "future_rows"


def bounded_future(frame: DataFrame, config: Config) -> DataFrame:
    """A stream without the rows whose event time is more than `sqlext.stream.futureBound` after the clock at the start
    of their micro-batch, or one that fails at the first (`sqlext.stream.future`).

    Inputs below our own operators are those of another statement and stay.
    Raises ConfigurationError under Spark Connect, where plans are out of reach.
    """
    if is_remote(frame.sparkSession):
        raise ConfigurationError(
            "under Spark Connect rows of the future cannot be left out of a stream",
            condition="spark-connect",
            help="set sqlext.stream.future to keep, and filter the rows before withWatermark",
        )
    plan = frame._jdf.queryExecution().analyzed()
    return _frame(frame, _below_watermarks(plan, frame, config))


def future_rows(progress: Any) -> int | None:
    """The rows of the future that a micro-batch brought (its StreamingQueryProgress); None if nothing counts them."""
    rows = [row for name, row in (progress.observedMetrics or {}).items() if str(name).startswith(_FUTURE)]
    return sum(int(row[FUTURE_ROWS] or 0) for row in rows) if rows else None


def _below_watermarks(node: Any, frame: DataFrame, config: Config) -> Any:
    """The node over inputs without rows of the future; itself if no watermark is below it."""
    if class_name(node) == "CollectMetrics" and str(node.name()).startswith(OBSERVED):
        return node
    children = items_of(node.children())
    if class_name(node) == "EventTimeWatermark":
        (child,) = children
        below = child if _is_bounded(child) else _bounded(_frame(frame, child), str(node.eventTime().name()), config)
        found = [below]
    else:
        found = [_below_watermarks(child, frame, config) for child in children]
    if all(old is new for old, new in zip(children, found, strict=True)):
        return node
    return node.withNewChildren(_java(frame).org.apache.spark.api.python.PythonUtils.toSeq(found))


def _is_bounded(node: Any) -> bool:
    """Whether the input of a watermark is one that this module has made: a text may read what was a table before."""
    below = items_of(node.children())
    return bool(below) and class_name(below[0]) == "CollectMetrics" and str(below[0].name()).startswith(_FUTURE)


def _bounded(rows: DataFrame, time: str, config: Config) -> Any:
    """The plan of the rows whose `time` is not too far in the future."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name
    from pyspark.sql.types import StructType

    at = F.col("`" + time.replace("`", "``") + "`")
    if isinstance(rows.schema[time].dataType, StructType):  # what window() gives
        at = at["end"]
    seconds = config.stream_future_bound
    ahead = at > F.current_timestamp() + F.make_dt_interval(secs=F.lit(seconds))
    observed = rows.observe(_FUTURE + uuid.uuid4().hex[:12], F.count_if(ahead).alias(FUTURE_ROWS))
    beyond = F.lit(False) if config.stream_future == "drop" else F.expr(future_error(time, seconds))
    kept = F.when(ahead, beyond).otherwise(F.lit(True))
    return observed.where(kept)._jdf.queryExecution().analyzed()


def future_error(time: str, seconds: int) -> str:
    """A condition in SQL that fails."""
    text = raise_error(
        f"a row of a stream has a time in {time} that is more than {seconds:,} seconds after now",
        "set sqlext.stream.future to drop, which counts and drops such rows, or sqlext.stream.futureBound to more",
        None,
        condition="future-rows",
    )
    return f"CAST({text} AS BOOLEAN)"


def _frame(like: DataFrame, plan: Any) -> DataFrame:
    return frame_of_plan(like.sparkSession, plan)


def _java(frame: DataFrame) -> Any:
    return frame.sparkSession._jvm


#: Among these metrics: the most rows that a bucket of keys read in a micro-batch, and how many buckets read any.
MOST_ROWS, BUCKETS = "most_rows", "buckets"
#: The most work of a bucket (rows read, copies and results), and how many buckets there are.
MOST_WORK, ALL_BUCKETS = "most_work", "all_buckets"
_STORE = "spark.sql.streaming.stateStore."
_PROVIDER = f"{_STORE}providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: What the state needs: a store beyond the heap, that writes what has changed and not everything, in bounded memory.
_NEEDED = {
    _PROVIDER: _ROCKS,
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}rocksdb.boundedMemoryUsage": "true",
}
#: What makes it faster: counting all rows of the state costs a read for each write.
_BETTER = {f"{_STORE}rocksdb.trackTotalNumberOfRows": "false"}


def stream_settings(cores: int | None = None, memory_mb: int = 500) -> dict[str, str]:
    """Spark's settings for statements of the extension over streams: set them before the first query starts.

    The state is kept in RocksDB, which takes at most `memory_mb` megabytes on each executor. With `cores` there are as
    many partitions: each micro-batch has a task for every one of them, and 200, Spark's default, are too many for a
    small cluster. The number is part of a query's checkpoint.

        >>> settings = stream_settings(cores=2)
        >>> settings["spark.sql.shuffle.partitions"]
        '2'
    """
    found = {**_NEEDED, **_BETTER, f"{_STORE}rocksdb.maxMemoryUsageMB": str(memory_mb)}
    return found if cores is None else {**found, "spark.sql.shuffle.partitions": str(cores)}


def observed_name(below: Iterable[str] = ()) -> str:
    """A name for an operator's observed metrics, another one each time, because a query may hold the same statement
    twice. It holds the names of all operators below, where `below` are those whose results it reads."""
    parts = dict.fromkeys(part for name in below for part in operators_in(name))
    return "_".join([OBSERVED + uuid.uuid4().hex[:12], *parts])


def observed_figures(progress: Any) -> dict[str, dict[str, int]]:
    """What each of our operators has observed in a micro-batch (its StreamingQueryProgress), by the operator's name."""
    rows = {str(name): row.asDict() for name, row in (progress.observedMetrics or {}).items()}
    return {  # reports on keys are lists
        name: {key: int(value or 0) for key, value in row.items() if not isinstance(value, list)}
        for name, row in rows.items()
        if name.startswith(OBSERVED)
    }


def placement_property(operator: str) -> str:
    """The property of a query that says where the rows of an operator go, by the name of its observed metrics."""
    return f"spark.sqlext.placement.{operator}"


def operators_in(name: str) -> list[str]:
    """The operator with a name, and all those below it."""
    return name.removeprefix(OBSERVED).split("_")


def operators_below(names: Iterable[str]) -> frozenset[str]:
    """Those among the operators of a query whose results another one reads."""
    parts = {name: operators_in(name) for name in names}
    read = {part for found in parts.values() for part in found[1:]}
    return frozenset(name for name, found in parts.items() if found[0] in read)


def check_settings(spark: SparkSession) -> None:
    """Raises ConfigurationError if Spark's settings do not suit the state."""
    wrong = {key: value for key, value in _NEEDED.items() if str(spark.conf.get(key, "")).lower() != value.lower()}
    if not wrong:
        return
    shown = ", ".join(f"{key}={value}" for key, value in wrong.items())
    raise ConfigurationError(
        f"a statement over streams keeps its state in RocksDB, and Spark is not set up for it: it needs {shown}",
        condition="stream-settings",
        help="give them to the session: sqlext.Session(spark, config=sqlext.stream_settings())",
    )


def other_join_error(text: str) -> ConfigurationError | None:
    """The error about a checkpoint of Spark's joins of streams that our operator cannot go on with, or the other way
    round, in the text of Spark's exception; None for any other text."""
    if "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA" not in text:
        return None
    written, _, running = text.partition("in current batch")
    is_join = ["symmetricHashJoin" in part for part in (written, running)]
    is_ours = ["transformWithStateInPySpark" in part for part in (written, running)]
    if is_join[0] and is_ours[1] and not is_join[1]:
        before, now, setting = "Spark's joins of streams", "an operator in Python (sqlext's) joins them", "cascade"
    elif is_ours[0] and is_join[1] and not is_join[0]:
        before, now, setting = "an operator in Python (as sqlext's)", "Spark joins its streams", "operator"
    else:
        return None
    return ConfigurationError(
        f"the checkpoint was written by {before}, and now {now}",
        condition="checkpoint-mismatch",
        help=f"SET sqlext.umjoin.strategy = {setting} goes on with it; or start with a new checkpoint location",
    )
