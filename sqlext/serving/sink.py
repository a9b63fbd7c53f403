"""What follows a stream: the function for `writeStream.foreachBatch` that brings each micro-batch to a deployment or to
a server once, also where Spark or the server starts again.

A micro-batch has a name, the query's id with the batch's number. Spark may run it again, then with the same rows, but
not always in the same order: rows are sorted before they are sent, so that a part of a micro-batch has the same rows
the second time. The server remembers the names with its journal.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pyarrow.types as kinds
from sqlext_planner.errors import ConfigurationError, DataError
from sqlext_planner.spark.versions import arrow_table

from sqlext.serving.arrow_bodies import ARROW, arrow_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's name for the id of the query that a thread works for.
_QUERY_ID = "sql.streaming.queryId"
#: Keys that are remembered, the newest ones.
MOST_KEYS = 100_000
#: The bytes of a push, well below the limit of a server, and the most rows.
_PART_BYTES, _PART_ROWS = 1 << 19, 50_000
#: Seconds between two tries, at most.
_LONGEST_WAIT = 10.0
_BUSY = (429, 503)


@dataclass
class Sink:
    """Brings micro-batches to a table, each once.

    columns  the table's columns; a micro-batch has them, and others that are left out
    query    a name for the stream, the same one after a restart; None: Spark's id of the query
    push     stores rows under a key, or does nothing if it did so before
    parts    how rows are cut
    """

    table: str
    columns: Sequence[str]
    query: str | None
    push: Callable[[pa.Table, str], None]
    parts: Callable[[pa.Table], Iterator[pa.Table]]

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Store a micro-batch. Raises ConfigurationError if nothing names the query."""
        name = self.query or _query_id(frame)
        rows = arrow_table(frame.select(*(f"`{column}`" for column in self.columns)))
        for number, part in enumerate(self.parts(_sorted(rows))):
            self.push(part, f"{name}/{batch}/{number}/{self.table}")


def _query_id(frame: DataFrame) -> str:
    number: Any = None
    try:
        number = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    except Exception:  # Connect has no SparkContext; which error says so depends on the version
        number = None
    if not number:
        raise ConfigurationError(
            "nothing says which query this micro-batch is of",
            condition="python-call",
            help="name the stream: deployment.sink(query='orders'), the same name after a restart",
        )
    return str(number)


def _sorted(rows: pa.Table) -> pa.Table:
    """The rows in an order that depends on their values only."""
    names = [item.name for item in rows.schema if not (kinds.is_nested(item.type) or kinds.is_null(item.type))]
    return rows.sort_by([(name, "ascending") for name in names]) if names and rows.num_rows else rows


def whole(rows: pa.Table) -> Iterator[pa.Table]:
    """All rows at once."""
    if rows.num_rows:
        yield rows


def parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Rows in parts that a server takes."""
    width = rows.nbytes / max(1, rows.num_rows)
    count = int(max(1, min(_PART_ROWS, _PART_BYTES // max(1.0, width))))
    return (rows.slice(start, count) for start in range(0, rows.num_rows, count))


@dataclass
class Server:
    """Pushes to a server's table, again and again while it is busy or starts, for `timeout` seconds."""

    url: str
    table: str
    token: str | None
    timeout: float

    def __post_init__(self) -> None:
        split = urlsplit(self.url)
        if split.scheme not in ("http", "https") or not split.netloc:
            raise ConfigurationError(
                f"{self.url} is no address of a server", condition="python-call", help="write http://host:port"
            )

    def __call__(self, rows: pa.Table, key: str) -> None:
        """Store rows under a key. Raises DataError if the server refuses them, or does not answer in time."""
        batches = rows.combine_chunks().to_batches()
        body, end, wait = arrow_stream(rows.schema, batches), time.monotonic() + self.timeout, 0.1
        while (told := self._put(body, key)) is not None:
            if time.monotonic() + wait > end:
                raise DataError(
                    f"{self.url} did not take rows of '{self.table}' within {self.timeout:g} s: {told}",
                    condition="server-busy",
                    help="start the query again when the server is there: it goes on where it was",
                )
            time.sleep(wait * random.uniform(0.5, 1))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _put(self, body: bytes, key: str) -> str | None:
        """None if the rows are stored, else why they should be sent again. Raises DataError."""
        headers = {"Content-Type": ARROW, "Idempotency-Key": key}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        address = f"{self.url.rstrip('/')}/tables/{quote(self.table, safe='')}"
        request = urllib.request.Request(address, body, headers, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=max(1.0, self.timeout)) as response:
                response.read()
            return None
        except urllib.error.HTTPError as error:
            told = _words(error)
            if error.code in _BUSY:
                return told
            raise DataError(
                f"{self.url} refused rows of '{self.table}': {told}",
                condition="row-value",
                help="the server's /openapi.json says what it takes",
            ) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            return str(getattr(error, "reason", None) or error)


def _words(error: urllib.error.HTTPError) -> str:
    """What a server says of an error."""
    try:
        told = json.loads(error.read())["error"]
        return f"{told['message']}; {told['help']}"
    except (ValueError, KeyError, TypeError, OSError):
        return f"status {error.code}"
