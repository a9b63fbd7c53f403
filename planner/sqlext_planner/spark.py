"""The Spark boundary: the one module that looks below PySpark's public API.

What is not public here: `pyspark.sql.pandas.types` (Spark and Arrow types), `recover_python_exception` (errors out of
tasks), `SparkContext._jsc` (None when it is stopped), the Java process of the gateway,
`SparkContext.defaultParallelism`, and the optimised plan behind a DataFrame (its estimated size, whether it is a plain
Parquet scan, whether it only selects columns of a mapInArrow of ours, the tables that it reads). Under Spark Connect
the plan is out of reach: sizes are then unknown and inputs are read by Spark.
"""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, DataError, Span, SqlExtError

if TYPE_CHECKING:
    from subprocess import Popen

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType
    from sqlext_operators.exchange.parquet_scan import Constant, Position

#: In the text of every error that a worker raises because it lacks the package. A statement's own run may be the
#: first to meet such a worker, long after `check_workers`: look for the mark in PythonException's message.
WORKER_MARK = "[SQLEXT_WORKER_PACKAGE]"
_WORKER_HELP = (
    "install the same sql-for-time-on-spark on every executor, or ship it with "
    "spark.sparkContext.addPyFile('sqlext_operators.zip'), and point PYSPARK_PYTHON "
    "(spark.pyspark.python) at that Python"
)
#: Plan statistics from here on mean "unknown" (Spark's default size is about 2^63 bytes).
_UNKNOWN_BYTES = 1 << 60

Entry = Callable[[int, Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def show_task_errors() -> None:
    """From now on, an exception of Spark's that carries an error of our tasks (`sqlext_operators.errors`) is raised as
    that error: a SqlExtError with its place.

    PySpark hands every exception that it has converted from Java to `recover_python_exception`, which looks for a
    Python traceback in its text; ours looks for our mark first. All other exceptions go through untouched.
    """
    import sys

    from pyspark.errors.exceptions import captured

    for module in (captured, sys.modules.get("pyspark.errors.exceptions.connect")):
        recover = getattr(module, "recover_python_exception", None)  # not in every version of PySpark
        if recover is not None and not hasattr(recover, "sqlext"):
            hooked: Any = module
            hooked.recover_python_exception = _with_task_errors(recover)


def _with_task_errors(recover: Callable[[BaseException], BaseException]) -> Callable[[BaseException], BaseException]:
    def recovered(error: BaseException) -> BaseException:
        found = task_error(error)
        return recover(error) if found is None else found

    recovered.sqlext = True  # type: ignore[attr-defined]
    return recovered


_TASK_ERRORS = {kind.__name__: kind for kind in (ConfigurationError, DataError)}


def task_error(error: BaseException) -> SqlExtError | None:
    """The error that a task of ours meant for the user, out of what Spark made of it; None for any other."""
    from sqlext_operators.errors import MARK

    cause = getattr(error, "_cause", None)
    if isinstance(cause, SqlExtError):
        return cause
    word = re.search(re.escape(MARK) + r" ([A-Za-z0-9+/=]+)", str(error))
    if word is None:
        return None
    try:
        found = json.loads(base64.b64decode(word[1], validate=True))
        place = found["place"]
        span, lines = (None, ()) if place is None else (Span(place[0], place[1]), tuple(place[2:]))
        return _TASK_ERRORS[found["kind"]](found["message"], help=found["help"], span=span, lines=lines)
    except (ValueError, KeyError, TypeError, IndexError):  # a text that only looks like ours
        return None


def worker_function(entry: Entry) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What to give `mapInArrow` for `partial(module_function, frozen_spec)`: it is called with the partition's
    index and batches."""
    load = _loading(entry)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        return task(context.partitionId() if context is not None else 0, batches)

    return run


def broadcast_function(
    entry: Callable[[bytes, int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], data: bytes, spark: SparkSession
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """As `worker_function`, for an entry point whose first argument are bytes that every executor gets once.

    Under Spark Connect, which has no broadcast variables, they travel with the function, once a task.
    """
    context = getattr(spark, "_sc", None)
    shared = context.broadcast(data) if context is not None else None
    held = data if shared is None else b""
    load = _loading(entry)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        given = held if shared is None else shared.value
        return task(given, context.partitionId() if context is not None else 0, batches)

    return run


def _loading(entry: Callable[..., Iterator[pa.RecordBatch]]) -> Callable[[], Callable[..., Iterator[pa.RecordBatch]]]:
    """A function that gives the entry point in a worker.

    It travels by value (it is nested, so cloudpickle cannot do otherwise) and holds the entry point pickled by
    reference; a worker that lacks the package says so in one sentence that starts with WORKER_MARK, where a plain
    pickle would fail inside Spark's deserialiser with a traceback of its own.
    """
    pickled, mark, help = pickle.dumps(entry), WORKER_MARK, _WORKER_HELP

    def load() -> Callable[..., Iterator[pa.RecordBatch]]:
        import gc
        import pickle as worker_pickle
        import sys

        try:
            task: Callable[..., Iterator[pa.RecordBatch]] = worker_pickle.loads(pickled)
        except ImportError as error:
            raise RuntimeError(f"{mark} the executor's Python {sys.executable} cannot load {error}; {help}") from None
        # Spark collects garbage between two tasks of a worker, which takes 0.1 s with numba and its kernels loaded:
        # what has stayed until now is here to stay, and need not be looked at again.
        if len(gc.get_objects()) > 20_000:
            gc.freeze()
        return task

    return load


def check_workers(spark: SparkSession) -> None:
    """Ask one Python worker whether it can load the operators; once for each application, 0.1 s when it is warm.

    Raises ConfigurationError if it cannot, or if Spark cannot start a Python worker at all.
    """
    application = spark.conf.get("spark.app.id", "")
    if application in _CHECKED:
        return
    from pyspark.errors import PySparkException
    from sqlext_operators.exchange.scatter import probe

    try:
        spark.range(1).mapInArrow(worker_function(probe), "partition int").collect()
    except PySparkException as error:
        text = str(error)
        if WORKER_MARK in text:
            found = text[text.index(WORKER_MARK) + len(WORKER_MARK) :].splitlines()[0]
            message = found.split("; install", 1)[0].strip()
            raise ConfigurationError(message, help=_WORKER_HELP) from None
        missing = re.search(r"No module named '(pyarrow|numpy|pandas)'", text)
        if missing is not None:  # PySpark itself looks for it, before our function does
            raise ConfigurationError(
                f"Spark's Python workers cannot import '{missing[1]}'", help=_WORKER_HELP
            ) from None
        if "PYTHON_VERSION_MISMATCH" in text or "Cannot run program" in text:
            message = next(line for line in text.splitlines() if "PYTHON_VERSION" in line or "Cannot run" in line)
            raise ConfigurationError(f"Spark cannot start its Python workers: {message}", help=_WORKER_HELP) from None
        raise
    _CHECKED.add(application)


_CHECKED: set[str | None] = set()


def substituted(spark: SparkSession, text: str) -> str:
    """A text with ``${name}`` replaced as Spark does before it parses one; as it is under Connect, where the settings
    of the server are out of reach."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return text
    jvm.SparkSession.setActiveSession(spark._jsparkSession)  # whose settings the JVM's class looks at
    return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type that Spark hands to Python for a column type; None where it has none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except (PySparkException, ValueError):  # ValueError: array(), an array of void that holds no NULL
        return None


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow column that Python gives back."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's Spark has been stopped from Python. Cheap: no call of the JVM."""
    context = getattr(spark, "_sc", None)
    return context._jsc is None if context is not None else bool(getattr(spark, "is_stopped", False))


def java_process() -> Popen[bytes] | None:
    """The Java process that PySpark has started for this one, if any."""
    from pyspark import SparkContext

    process: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def cores(spark: SparkSession) -> int:
    """How many tasks run at once, as far as Spark tells."""
    context = getattr(spark, "_sc", None)
    return int(context.defaultParallelism) if context is not None else 2


def estimated_bytes(frame: DataFrame) -> int | None:
    """Catalyst's estimate of the size of the frame's rows; None where it has none.

    Of several sources at most the sum: without statistics on columns Catalyst takes a join for the product of its
    sides (measured, two joins of 20,000 rows: 10,000 partitions instead of 2).
    """
    plan = _optimized_plan(frame)
    if plan is None:
        return None
    sources = [int(leaf.stats().sizeInBytes()) for leaf in _items(plan.collectLeaves())]
    size = int(plan.stats().sizeInBytes())
    size = min(size, sum(sources)) if len(sources) > 1 else size
    return size if size < _UNKNOWN_BYTES else None


@dataclass(frozen=True)
class ScannedFilter:
    """`column op value`, or `column is not null`."""

    column: str
    op: str
    value: int | str | None = None


@dataclass(frozen=True)
class PlainScan:
    """A frame that is nothing but Parquet files: local paths by name, the frame's columns by the names
    they have in the files (POSITION for monotonically_increasing_id(), a Constant for a literal), and comparisons that
    all hold."""

    paths: tuple[str, ...]
    columns: tuple[str | Constant | Position, ...]
    filters: tuple[ScannedFilter, ...]


def plain_parquet_scan(frame: DataFrame) -> PlainScan | None:
    """The scan behind a frame that only selects, renames and compares columns of unpartitioned local Parquet files.

    Works on the optimised plan, so that temporary views, `spark.read.parquet` tables and subqueries are alike.
    None for every other frame, and where options or settings change how Spark reads files.
    """
    plan = _optimized_plan(frame)
    if plan is None or not _reads_plainly(frame.sparkSession):
        return None
    return _scan_of(plan)


def over_sources(rows: DataFrame, frames: Iterable[DataFrame]) -> DataFrame:
    """`rows`, which others than Spark read or will read of `frames`, in a plan that holds the frames' tables.

    Catalyst then knows what the plan reads: it refuses to overwrite a table that it reads, what is cached of the plan
    goes when rows come to the table, and `inputFiles` is right. Of each table of files the plan holds those files that
    Spark has come to list since now, and an error for them: there are none unless the table was listed again, for a
    cached plan after an INSERT, or by REFRESH TABLE. Other tables stand in the plan without rows, and are optimised
    away. Under Connect `rows` is as it was.
    """
    others = ["NULL"] * (len(rows.columns) - 1)  # a union gives a NULL, and an error, the column's type
    for frame in frames:
        plan = _optimized_plan(frame)
        leaves = _items(plan.collectLeaves()) if plan is not None else []
        listed = [leaf for leaf in leaves if _is_file_relation(leaf)]
        for leaf in listed:
            scanned, error = _new_files(frame.sparkSession, leaf)
            rows = rows.unionAll(scanned.selectExpr(error, *others))
        if len(listed) < len(leaves):
            rows = rows.unionAll(frame.where("false").selectExpr("NULL", *others))
    return rows


def _is_file_relation(leaf: Any) -> bool:
    if _class_name(leaf) != "LogicalRelation" or _class_name(leaf.relation()) != "HadoopFsRelation":
        return False
    return bool(leaf.relation().location().getClass().getName() == _FILE_INDEX)


def _new_files(spark: SparkSession, relation: Any) -> tuple[DataFrame, str]:
    """The rows of files that Spark does not list now, and an expression over them that is an error.

    Spark compares the files' names when it plans the scan, which has then no task.
    """
    from pyspark.sql import DataFrame
    from sqlext_operators.errors import MARK, marked
    from sqlext_operators.exchange.source_files import AGAIN

    listed = list(relation.relation().location().inputFiles())
    listed += ["file:/" + uri.removeprefix("file:///") for uri in listed if uri.startswith("file:///")]
    jvm: Any = spark._jvm
    rows = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, relation), spark)
    path = "_metadata.file_path"
    if any(name.lower() == "_metadata" for name in rows.columns):  # a column of the data hides Spark's
        rows, path = rows.select(rows.metadataColumn("_metadata").getField("file_path").alias("path")), "path"
    told = "a file has come to a table of the statement since it was planned"
    mark = f"{MARK} {marked('ConfigurationError', told, AGAIN, None)}"
    known, line = _text_literal("\n".join(["", *listed, ""])), _text_literal("\n")
    after = _text_literal(f"' has come to its table since the statement was planned\n{mark}")
    error = f"raise_error(concat('file ', {_text_literal(chr(39))}, {path}, {after}))"
    return rows.where(f"instr({known}, concat({line}, {path}, {line})) = 0"), f"{error} AS error"


def _text_literal(text: str) -> str:
    """A literal that no setting of the parser reads in another way."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _optimized_plan(frame: DataFrame) -> Any | None:
    """The JVM's optimised logical plan; None under Connect and for streams."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None or frame.isStreaming:
        return None
    return java_frame.queryExecution().optimizedPlan()


def output_ids(frame: DataFrame) -> tuple[int, ...] | None:
    """Catalyst's ids of the frame's columns; None under Connect and for streams."""
    plan = _optimized_plan(frame)
    return _attribute_ids(plan) if plan is not None else None


def selection_above_map(frame: DataFrame) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(ids of its output, places in it of the frame's columns) of the mapInArrow that a frame selects columns of.

    None for a frame that does anything else above it, and without one.
    """
    plan = _optimized_plan(frame)
    wanted = _attribute_ids(plan) if plan is not None else ()
    while plan is not None and _class_name(plan) == "Project":
        items = _items(plan.projectList())
        sources = {int(item.exprId().id()): _source_attribute(item) for item in items}
        traced = [sources.get(identity) for identity in wanted]
        wanted = tuple(identity for identity in traced if identity is not None)
        if len(wanted) < len(traced):
            return None
        plan = plan.child()
    if plan is None or _class_name(plan) != "MapInArrow":
        return None
    ids = _attribute_ids(plan)
    return ids, tuple(ids.index(identity) for identity in wanted)


def mapped_nodes(frame: DataFrame) -> list[tuple[int, ...]]:
    """The ids of the outputs of the topmost mapInArrow nodes in a frame's plan."""
    plan = _optimized_plan(frame)
    stack = [plan] if plan is not None else []
    found = []
    while stack:
        node = stack.pop()
        if _class_name(node) == "MapInArrow":
            found.append(_attribute_ids(node))
        else:
            stack.extend(_items(node.children()))
    return found


_ATTRIBUTE_ID = re.compile(r"#(\d+)L?(-T[^#]*)?$")


def _attribute_ids(plan: Any) -> tuple[int, ...]:
    """The ids of a plan's columns, read from their texts (`name#12`, `name#13L`): one call of the JVM for all."""
    count = int(plan.output().size())
    texts = str(plan.output().mkString("\0")).split("\0") if count else []
    found = [_ATTRIBUTE_ID.search(text) for text in texts]
    ids = tuple(int(match[1]) for match in found if match is not None)
    if not len(ids) == len(texts) == count:  # an attribute that prints otherwise
        return tuple(int(attribute.exprId().id()) for attribute in _items(plan.output()))
    return ids


#: Settings under which Spark's Parquet reader does more than read, with the value that is plain.
_PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
}
_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_FILE_INDEX = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
_PLAIN_OPTIONS = {"path", "paths", "serialization.format"}


def _reads_plainly(spark: SparkSession) -> bool:
    return all(str(spark.conf.get(key, plain)).lower() == plain for key, plain in _PLAIN_SETTINGS.items())


def _scan_of(plan: Any) -> PlainScan | None:
    """Project(Filter(Project(...(relation)))) in any order and number, as long as all of it is plain."""
    kind = _class_name(plan)
    if kind == "LogicalRelation":
        return _relation_scan(plan)
    if kind not in ("Project", "Filter"):
        return None
    below = _scan_of(plan.child())
    if below is None:
        return None
    attributes = [int(attribute.exprId().id()) for attribute in _items(plan.child().output())]
    names: dict[int | None, str | Constant | Position] = dict(zip(attributes, below.columns, strict=True))
    if kind == "Filter":
        filters = _filters_of(plan.condition(), names)
        return None if filters is None else PlainScan(below.paths, below.columns, below.filters + filters)
    columns = [_scanned(item, names) for item in _items(plan.projectList())]
    if None in columns:
        return None
    return PlainScan(below.paths, tuple(column for column in columns if column is not None), below.filters)


#: Types whose literals are plain Python values.
_LITERAL_TYPES = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"}


def _scanned(item: Any, names: dict[int | None, str | Constant | Position]) -> str | Constant | Position | None:
    """What a projection item reads from the files; None if it computes something."""
    from sqlext_operators.exchange.parquet_scan import POSITION, Constant

    below = item.child() if _class_name(item) == "Alias" else None
    if below is None or _class_name(below) == "AttributeReference":
        return names.get(_source_attribute(item))
    if _class_name(below) == "MonotonicallyIncreasingID":
        return POSITION
    if _class_name(below) != "Literal" or below.dataType().sql().lower() not in _LITERAL_TYPES:
        return None
    value = below.value()
    return Constant(value if isinstance(value, (bool, int, float, type(None))) else str(value))


def _relation_scan(plan: Any) -> PlainScan | None:
    relation = plan.relation()
    if _class_name(relation) != "HadoopFsRelation" or relation.fileFormat().getClass().getName() != _PARQUET:
        return None
    options = {str(key).lower() for key in _items(relation.options().keys().toSeq())}
    location = relation.location()
    if location.getClass().getName() != _FILE_INDEX or not options <= _PLAIN_OPTIONS:
        return None
    if relation.partitionSchema().size() > 0:
        return None
    paths = [_local_path(uri) for uri in sorted(location.inputFiles())]  # the listing has no order of its own
    known = set(relation.dataSchema().fieldNames())
    columns = tuple(str(attribute.name()) for attribute in _items(plan.output()))
    if not paths or None in paths or not set(columns) <= known:
        return None
    return PlainScan(tuple(path for path in paths if path is not None), columns, ())


def _local_path(uri: str) -> str | None:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme in ("", "file") and not parts.netloc else None


def _source_attribute(item: Any) -> int | None:
    """The id of the column that a projection item hands on; None if it computes something."""
    expression = item.child() if _class_name(item) == "Alias" else item
    return int(expression.exprId().id()) if _class_name(expression) == "AttributeReference" else None


_COMPARISONS = {
    "EqualTo": ("=", "="),
    "LessThan": ("<", ">"),
    "LessThanOrEqual": ("<=", ">="),
    "GreaterThan": (">", "<"),
    "GreaterThanOrEqual": (">=", "<="),
}
_COMPARED_TYPES = ("tinyint", "smallint", "int", "bigint", "string")


def _filters_of(condition: Any, names: dict[int | None, str | Constant | Position]) -> tuple[ScannedFilter, ...] | None:
    """The condition as comparisons of columns with integer or (binary-ordered) string literals; None if it is more."""
    kind = _class_name(condition)
    if kind == "And":
        left, right = _filters_of(condition.left(), names), _filters_of(condition.right(), names)
        return None if left is None or right is None else left + right
    if kind == "IsNotNull":
        column = names.get(_source_attribute(condition.child()))
        return (ScannedFilter(column, "is not null"),) if isinstance(column, str) else None
    if kind not in _COMPARISONS:
        return None
    sides = (condition.left(), condition.right())
    literal_first = _class_name(sides[0]) == "Literal"
    attribute, literal = reversed(sides) if literal_first else sides
    column = names.get(_source_attribute(attribute))
    if (
        not isinstance(column, str)
        or _class_name(literal) != "Literal"
        or literal.dataType().sql().lower() not in _COMPARED_TYPES
    ):
        return None
    value = literal.value()
    if value is None:
        return None
    return (ScannedFilter(column, _COMPARISONS[kind][literal_first], value if isinstance(value, int) else str(value)),)


def _class_name(item: Any) -> str:
    return str(item.getClass().getSimpleName())


def _items(sequence: Any) -> list[Any]:
    """A Scala Seq as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]
