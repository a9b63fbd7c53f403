"""Data files as DataFrames of Spark, read as the catalog of files describes them. Those behind URIs are listed by
Hadoop's file systems. What Spark and Hadoop say about data that they cannot read becomes one sentence with the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.relational.physical_plan import quoted
from sqlext_planner.spark.columns import as_instants
from sqlext_planner.spark.file_systems import can_list, entries, file_names
from sqlext_planner.spark.versions import ddl_type

from sqlext.catalog.csv import LINES, csv_table, layout_of
from sqlext.catalog.files import TableFiles, data_files, named_tables, table_files, table_info
from sqlext.catalog.inferred_types import exact_types
from sqlext.catalog.locations import (
    INFERRED,
    LAYOUT,
    TITLES,
    LocalData,
    RemoteData,
    format_of,
    is_hidden,
    located,
    spark_path,
    titles,
)
from sqlext.catalog.options import NONE, DataFiles, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_TYPED = "spark.sql.sources.partitionColumnTypeInference.enabled"
#: A value that is no JSON is an error, as in CSV files; without it Spark would add a column `_corrupt_record`.
_OPTIONS = {"json": {"mode": "FAILFAST"}}


def read_files(
    spark: SparkSession, path: Path | str, options: ReadOptions = NONE, *, zone: str | None = None
) -> DataFrame:
    """Data files as a DataFrame: a file, a folder (also of partition folders), a pattern or a URI.

    With `zone`, clock times without a time zone are of that zone, whatever the files are: also TIMESTAMP_NTZ columns,
    which become timestamps. Raises ConfigurationError.
    """
    place = located(path)
    if isinstance(place, RemoteData):
        frame = _read_remote(spark, place, options, zone)
    else:
        frame = _read_local(spark, place, options, zone)
    return frame if zone is None else as_instants(frame, zone)


def tables_at(folder: Path | str, spark: Callable[[], SparkSession]) -> dict[str, DataFiles]:
    """The tables of a folder, local or remote, by name, for `read_files`. `spark` is only called for a remote one.

    Raises ConfigurationError.
    """
    place = located(folder)
    if isinstance(place, RemoteData):
        return remote_tables(spark(), place)
    return data_files(folder)


def _reader(spark: SparkSession, zone: str | None) -> DataFrameReader:
    return spark.read if zone is None else spark.read.option("timeZone", zone)


def _read_local(spark: SparkSession, place: LocalData, options: ReadOptions, zone: str | None) -> DataFrame:
    data = table_files(place)
    if data.partitioning is not None and str(spark.conf.get(_TYPED)).lower() != "true":
        data = table_files(place, typed=False)
    if data.format == "csv":
        return _read_csv(spark, place, data, options, zone)
    if data.format == "parquet":
        table_info(place.text, place.text)  # an unreadable file is reported in one sentence
    reader = _reader(spark, zone)
    if place.base is not None:
        reader = reader.option("basePath", spark_path(place.base))
    folders = {} if data.partitioning is None else dict(data.partitioning.columns)
    with data_errors(spark, place.text):
        return _load(reader, data.format, list(map(spark_path, place.roots)), options, folders)


def _read_csv(
    spark: SparkSession, place: LocalData, data: TableFiles, options: ReadOptions, zone: str | None
) -> DataFrame:
    reader = _reader(spark, zone)
    columns = dict(table_info(place.text, place.text, options).columns)
    if data.partitioning is not None:
        columns.update(data.partitioning.columns)  # as strings, if the session wants that
        reader = reader.option("basePath", spark_path(data.partitioning.base))
    given = _checked(options, columns, (), "csv")
    columns = {name: given.get(name.lower(), dtype) for name, dtype in columns.items()}
    layout = csv_table(data.files, options).layout
    ddl = ", ".join(f"{quoted(name)} {dtype}" for name, dtype in columns.items())
    with data_errors(spark, place.text):
        return reader.schema(ddl).options(**layout.spark_options()).csv([spark_path(file) for file in data.files])


def _read_remote(spark: SparkSession, place: RemoteData, options: ReadOptions, zone: str | None) -> DataFrame:
    name = format_at(spark, place)
    reader = _reader(spark, zone)
    with data_errors(spark, place.uri):
        if name == "csv":
            lines = [str(row[0]) for row in spark.read.text(place.uri).take(LINES)]
            layout = layout_of(place.uri, lines, options)
            reader = reader.options(**layout.spark_options(), inferSchema="true")
        return _load(reader, name, place.uri, options, {})


def _load(
    reader: DataFrameReader, format: str, paths: str | list[str], options: ReadOptions, folders: Mapping[str, str]
) -> DataFrame:
    """The frame of files of which Spark knows the columns; those in the names of `folders`, and those of the options,
    have these types. Doubles that Spark has inferred tell all numbers apart.

    Raises ConfigurationError for a type of a column that does not exist, or whose files have one.
    """
    from pyspark.sql.types import StructType

    def read(schema: StructType) -> DataFrame:
        return reader.schema(schema).load(paths)

    reader = reader.format(format).options(**_OPTIONS.get(format, {}))
    frame = reader.load(paths)
    given = _checked(options, frame.columns, folders, format)
    wanted = _typed(frame, {**folders, **given})
    if format in INFERRED:
        inferred = StructType([field for field in wanted.fields if field.name.lower() not in given])
        exact = {field.name: field for field in exact_types(inferred, read).fields}
        wanted = StructType([exact.get(field.name, field) for field in wanted.fields])
    return frame if wanted == frame.schema else read(wanted)


def _checked(options: ReadOptions, columns: Collection[str], folders: Collection[str], format: str) -> dict[str, str]:
    """The types that the options give, by lowered names."""
    known = {name.lower() for name in (columns if format in INFERRED else folders)}
    odd = next((name for name, _ in options.types if name.lower() not in known), None)
    if odd is not None:
        has_type = odd.lower() in {name.lower() for name in columns}
        raise ConfigurationError(
            f"column '{odd}' has its type in the {TITLES[format]} files" if has_type else f"there is no column '{odd}'",
            condition="table-files",
            help="give types of columns whose types are inferred: of CSV and JSON files, and of names of folders",
        )
    return {name.lower(): dtype for name, dtype in options.types}


def _typed(frame: DataFrame, types: Mapping[str, str]) -> StructType:
    """The frame's schema with these types of its columns."""
    from pyspark.sql.types import StructField, StructType

    lowered = {name.lower(): dtype for name, dtype in types.items()}
    return StructType(
        [
            field
            if (dtype := lowered.get(field.name.lower())) is None or field.dataType.simpleString() == dtype
            else StructField(field.name, ddl_type(frame.sparkSession, dtype), field.nullable, field.metadata)
            for field in frame.schema.fields
        ]
    )


#: Files that are looked at for a folder's format.
_LOOKED_AT = 1_000


def format_at(spark: SparkSession, place: RemoteData) -> str:
    """The format of a remote table, by its name or by those of the files in its folder. Raises ConfigurationError."""
    named = format_of(place.uri.rstrip("/").rpartition("/")[2])
    if named is not None:
        return named
    if not can_list(spark):
        raise ConfigurationError(
            f"the format of '{place.uri}' is not in its name, and a folder cannot be listed under Spark Connect",
            condition="spark-connect",
            help=f"read it in Spark: spark.read.format('parquet').load('{place.uri}').createOrReplaceTempView(...)",
        )
    with data_errors(spark, place.uri):
        found = {format_of(name) for name in file_names(spark, place.uri, _LOOKED_AT)} - {None}
    formats = [name for name in found if name is not None]
    if len(formats) == 1:
        return formats[0]
    what = f"both {titles(formats)} files" if formats else "no data file"
    raise ConfigurationError(f"'{place.uri}' contains {what}", condition="table-files", help=LAYOUT)


def remote_tables(spark: SparkSession, place: RemoteData) -> dict[str, DataFiles]:
    """The tables of a remote folder by name. Raises ConfigurationError."""
    if not can_list(spark):
        raise ConfigurationError(
            f"folder '{place.uri}' cannot be listed under Spark Connect, whose clients have no file system",
            condition="spark-connect",
            help="register its tables one by one: session.register(name, uri)",
        )
    folder = place.uri.rstrip("/")
    with data_errors(spark, place.uri):
        names = [
            name
            for name, is_folder in entries(spark, place.uri)
            if not is_hidden(name) and (format_of(name) is not None or (is_folder and _has_data(spark, folder, name)))
        ]
    return named_tables(names, folder)


def _has_data(spark: SparkSession, folder: str, name: str) -> bool:
    return any(format_of(file) is not None for file in file_names(spark, f"{folder}/{name}", _LOOKED_AT))


_AZURE = (
    "set spark.hadoop.fs.azure.account.key.ACCOUNT.dfs.core.windows.net, or fs.azure.account.auth.type and its keys"
)
_KERBEROS = "log in with kinit, or set spark.kerberos.principal and spark.kerberos.keytab"
#: The schemes of URIs: the package with the file system of each (None: Spark has it), and how to give credentials.
SCHEMES: dict[str, tuple[str | None, str]] = {
    "s3a": (
        "hadoop-aws",
        "set spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or spark.hadoop.fs.s3a.aws.credentials.provider",
    ),
    "gs": (
        "hadoop-gcp",
        "set spark.hadoop.fs.gs.auth.type and spark.hadoop.fs.gs.auth.service.account.json.keyfile, or "
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    "abfss": ("hadoop-azure", _AZURE),
    "abfs": ("hadoop-azure", _AZURE),
    "wasbs": ("hadoop-azure", "set spark.hadoop.fs.azure.account.key.ACCOUNT.blob.core.windows.net"),
    **dict.fromkeys(("hdfs", "webhdfs", "viewfs"), (None, _KERBEROS)),
}
#: Other names of what Hadoop calls otherwise.
_MEANT = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "adl": "abfss", "wasb": "wasbs"}

#: Words of errors of storage that knows its caller not, or not as one who may read.
_REFUSED = re.compile(
    r"NoAwsCredentials|NoAuthWithAWS|Unable to load credentials|AccessDenied|Access Denied|Forbidden|"
    r"InvalidAccessKeyId|SignatureDoesNotMatch|Status Code: 40[13]|, 40[13],|\b401 Unauthorized|AuthorizationFailure|"
    r"AuthenticationFailed|Failure to initialize configuration|InvalidConfigurationValueException|"
    r"KeyProviderException|default credentials|AccessControlException|SIMPLE authentication is not enabled|"
    r"GSS initiate failed|Permission denied",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(r"UnknownHostException|ConnectException|Connection refused|NoRouteToHost|SocketTimeout")
_NO_HOST = re.compile(r"no host: ")
_MISSING_CLASS = re.compile(r"ClassNotFoundException: (?:Class )?([\w.$]+)")
_LAYOUT = "all files of a table must be below folders of the same columns: dt=2024-01-01/city=Bern/part.parquet"
#: Words of Spark's errors, what they say of a path, and what to do.
_SPARKS_WORDS = (
    (
        "Failed to find data source: avro",
        "is Avro, and Spark's package for it is missing",
        "start Spark with spark.jars.packages=org.apache.spark:spark-avro_{scala}:{version}",
    ),
    ("UnknownStoreException", "is in a bucket that is not there", "check the name of the bucket, or make it first"),
    ("CONFLICTING_", "has folders of different partition columns", _LAYOUT),
    ("PATH_NOT_FOUND", "does not exist", "check the path"),
    ("FileNotFoundException", "does not exist", "check the path"),
    ("Malformed records are detected", "holds a line that is not one JSON object", "write one object a line"),
    ("UNABLE_TO_INFER_SCHEMA", "holds no columns", "give a folder with data files"),
)


@contextmanager
def data_errors(spark: SparkSession, path: str, done: str = "read") -> Iterator[None]:
    """Errors of Spark and of a file system become a ConfigurationError about the path or URI that is `done`; one of
    ours stays."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("py4j", "pyspark")):  # a Connect client may have no py4j
            raise
        message, help = explained(path, _text(error), spark.version, done)
        raise ConfigurationError(message, condition="file-access", help=help) from error


def explained(path: str, text: str, version: str, done: str = "read") -> tuple[str, str]:
    """What an error of Spark about a path or URI means, and what to do. `version` is Spark's; `done` is what was done
    to it: `read` or `written`."""
    name = path.partition(":")[0].lower() if ":/" in path else "file"
    package, credentials = SCHEMES.get(name, (None, "check who may read it"))
    if "No FileSystem for scheme" in text:
        return f"Spark has no file system for '{name}:' ('{path}')", _meant(name)
    missing = _MISSING_CLASS.search(text)
    if missing is not None and package is not None:
        return (
            f"Spark has no file system for '{name}:' here ('{path}'): class {missing[1]} is missing",
            f"start Spark with spark.jars.packages=org.apache.hadoop:{package}:VERSION; the version is that of "
            "hadoop-client-api among Spark's jars",
        )
    for pattern, what, help in (
        (_REFUSED, f"may not be {done}", credentials),
        (_UNREACHABLE, "cannot be reached", "check the host in the URI, and the network"),
        (_NO_HOST, "names no host", f"write {name}://HOST:PORT/folder"),
    ):
        if pattern.search(text):
            return f"'{path}' {what}: {_line(text, pattern)}", help
    for words, what, help in _SPARKS_WORDS:
        if words in text:
            return f"'{path}' {what}", help.format(version=version, scala="2.12" if version[:1] == "3" else "2.13")
    return f"'{path}' cannot be {done}: {_line(text, re.compile(r'.'))}", "check the files"


def _text(error: Exception) -> str:
    """All that is known of an error, causes included."""
    texts, java = [str(error)], getattr(error, "java_exception", None)
    while java is not None:
        texts.append(java.toString())
        java = java.getCause()
    return "\n".join(texts)


def _meant(scheme: str) -> str:
    near = _MEANT.get(scheme) or next(iter(get_close_matches(scheme, [*SCHEMES, "file"], 1, 0.5)), None)
    known = ", ".join(f"{name}:" for name in ("file", *SCHEMES))
    return f"write {near}: instead" if near is not None else f"Hadoop has {known}; others need a package of their own"


def _line(text: str, pattern: re.Pattern[str]) -> str:
    """The first line with the words, without the names of Java's classes before it."""
    line = next(line for line in text.splitlines() if pattern.search(line)).strip()
    return re.sub(r"^(Caused by: |: )", "", line)[:200]
