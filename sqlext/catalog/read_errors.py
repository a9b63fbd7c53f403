"""What Spark and Hadoop say about data that they cannot read, in one sentence with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Scheme:
    """A scheme of URIs: the package with its file system (None: Spark has it), and how to give credentials."""

    package: str | None
    credentials: str


_AZURE = (
    "set spark.hadoop.fs.azure.account.key.ACCOUNT.dfs.core.windows.net, or fs.azure.account.auth.type and its keys"
)
SCHEMES = {
    "s3a": Scheme(
        "hadoop-aws",
        "set spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or spark.hadoop.fs.s3a.aws.credentials.provider",
    ),
    "gs": Scheme(
        "hadoop-gcp",
        "set spark.hadoop.fs.gs.auth.type and spark.hadoop.fs.gs.auth.service.account.json.keyfile, or "
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    "abfss": Scheme("hadoop-azure", _AZURE),
    "abfs": Scheme("hadoop-azure", _AZURE),
    "wasbs": Scheme("hadoop-azure", "set spark.hadoop.fs.azure.account.key.ACCOUNT.blob.core.windows.net"),
    "hdfs": Scheme(None, "log in with kinit, or set spark.kerberos.principal and spark.kerberos.keytab"),
    "webhdfs": Scheme(None, "log in with kinit, or set spark.kerberos.principal and spark.kerberos.keytab"),
    "viewfs": Scheme(None, "log in with kinit, or set spark.kerberos.principal and spark.kerberos.keytab"),
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
        "AVRO_DATA_SOURCE_NOT_ENABLED",
        "is Avro, and Spark's package for it is missing",
        "start Spark with spark.jars.packages=org.apache.spark:spark-avro_2.13:{version}",
    ),
    ("CONFLICTING_", "has folders of different partition columns", _LAYOUT),
    ("PATH_NOT_FOUND", "does not exist", "check the path"),
    ("FileNotFoundException", "does not exist", "check the path"),
    ("MALFORMED_RECORD", "holds a line that is not one JSON object", "write one object a line"),
    ("UNABLE_TO_INFER_SCHEMA", "holds no columns", "give a folder with data files"),
)


@contextmanager
def told(spark: SparkSession, path: str) -> Iterator[None]:
    """Errors of Spark and of a file system become a ConfigurationError about the path or URI; one of ours stays."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("py4j", "pyspark")):  # a Connect client may have no py4j
            raise
        message, help = explained(path, _text(error), spark.version)
        raise ConfigurationError(message, condition="file-access", help=help) from error


def explained(path: str, text: str, version: str) -> tuple[str, str]:
    """What an error of Spark about a path or URI means, and what to do. `version` is Spark's."""
    name = path.partition(":")[0].lower() if ":/" in path else "file"
    scheme = SCHEMES.get(name)
    if "No FileSystem for scheme" in text:
        return f"Spark has no file system for '{name}:' ('{path}')", _meant(name)
    missing = _MISSING_CLASS.search(text)
    if missing is not None and scheme is not None and scheme.package is not None:
        return (
            f"Spark has no file system for '{name}:' here ('{path}'): class {missing[1]} is missing",
            f"start Spark with spark.jars.packages=org.apache.hadoop:{scheme.package}:VERSION; the version is that of "
            "hadoop-client-api among Spark's jars",
        )
    for pattern, what, help in (
        (_REFUSED, "may not be read", scheme.credentials if scheme is not None else "check who may read it"),
        (_UNREACHABLE, "cannot be reached", "check the host in the URI, and the network"),
        (_NO_HOST, "names no host", f"write {name}://HOST:PORT/folder"),
    ):
        if pattern.search(text):
            return f"'{path}' {what}: {_line(text, pattern)}", help
    for words, what, help in _SPARKS_WORDS:
        if words in text:
            return f"'{path}' {what}", help.format(version=version)
    return f"'{path}' cannot be read: {_line(text, re.compile(r'.'))}", "check the files"


def _text(error: Exception) -> str:
    """All that is known of an error, causes included."""
    java = getattr(error, "java_exception", None)
    return f"{error}\n{java.toString()}" if java is not None else str(error)


def _meant(scheme: str) -> str:
    near = _MEANT.get(scheme) or next(iter(get_close_matches(scheme, [*SCHEMES, "file"], 1, 0.5)), None)
    known = ", ".join(f"{name}:" for name in ("file", *SCHEMES))
    return f"write {near}: instead" if near is not None else f"Hadoop has {known}; others need a package of their own"


def _line(text: str, pattern: re.Pattern[str]) -> str:
    """The first line with the words, without the names of Java's classes before it."""
    line = next(line for line in text.splitlines() if pattern.search(line)).strip()
    return re.sub(r"^(Caused by: |: )", "", line)[:200]
