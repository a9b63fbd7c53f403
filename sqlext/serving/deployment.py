"""A deployment: a statement that is answered for one row at a time, over rows that are kept in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Bools
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.serving.steps import InputSpec, ServingSpec
from sqlext_operators.serving.store import KeptRows, KeptState
from sqlext_operators.serving.together import Requests, answered_together
from sqlext_planner.batches import BATCHES
from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import AnalysisError, DataError, SqlExtError, UnsupportedError
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.serving.lowering import ServingSettings
from sqlext_planner.serving.steps import serving_spec
from sqlext_planner.spark.versions import arrow_table, is_frame

from sqlext.analyzer.context import AnalyzerOptions
from sqlext.analyzer.queries import analyze
from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.folder import SavedDeployment, read, write
from sqlext.serving.sink import MOST_KEYS, Server, Sink, parts, whole
from sqlext.serving.values import parquet_rows, to_batch, to_rows, with_zone, zone_of
from sqlext.syntax.deploy_options import check_deploy_options
from sqlext.syntax.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqlext.serving.warm import WarmStart

#: At most so many request rows are answered in one go: with more of them hardly anything is gained.
TOGETHER = 32
#: Rows of one push of `load`.
_LOADED_ROWS = 1_000_000
#: How often `explain` answers a row.
_TIMED = 5
#: Rows of a table as they are pushed.
Rows: TypeAlias = Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch


@dataclass(frozen=True)
class Answer:
    """The result, one row, and whether rows that it may have needed are gone: its time is before what is kept."""

    result: pa.RecordBatch
    names: tuple[str, ...]
    is_partial: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """As `Row.asDict()` has it."""
        (row,) = to_rows(self.result, self.names)
        return row


@dataclass(frozen=True)
class PreparedRows:
    """Pushed rows as a deployment keeps them: how many were pushed, by the place of an input what it keeps, the clock
    then in microseconds, and how many rows of an input were left out at most because their time is to come."""

    count: int
    by_input: tuple[tuple[int, pa.RecordBatch], ...]
    clock: int
    left_out: int = 0


class Deployment:
    """A statement with windows and LAST JOINs over one request table, answered in this process.

    `answer(row)` is the row that batch gives for it if the tables held all rows that were pushed, and this row came
    last in input order; it is not stored. Rows that were pushed are seen by every later answer. A row is kept while an
    answer may need it: reach counts back from the newest time of its table, less `lateness` (in units of the order
    column, microseconds for timestamps; None: for good). Safe for several threads.

    Raises what planning raises, and UnsupportedError (`not-servable`) for what cannot be answered for one row.
    """

    def __init__(
        self,
        sql: str,
        catalog: Catalog,
        *,
        request: str | None = None,
        settings: ServingSettings,
        name: str = "deployment",
        compat: str | None = None,
        lateness: int | None = 0,
    ) -> None:
        self.name, self.sql, self.lateness, self.settings, self.compat = name, sql, lateness, settings, compat
        statement = parse(sql, compat=compat)
        try:
            if statement.kind != "query" or statement.query is None:
                raise UnsupportedError(
                    "only a query can be deployed", condition="not-servable", help="write SELECT ... FROM table"
                )
            if compat == "openmldb":
                check_deploy_options(sql, statement.query)
            options = AnalyzerOptions(compat, plain_windows=True, deploys=True)
            #: The optimized plan.
            analyzed = analyze(statement, catalog, options)
            self.plan = plan = RuleExecutor(BATCHES).optimize(analyzed).final
            first = _first_scan(plan)
            self.spec: ServingSpec = serving_spec(plan, _table_name(plan, request or first), settings)
        except SqlExtError as error:
            raise error.with_sql(statement.sql) from None
        #: The columns of the tables with their Spark types, also of those that the text names and no answer needs.
        self.tables = {scan.table: _columns(catalog, scan.table) for scan in analyzed.collect(Scan)}
        self.schemas = {table: _schema(columns) for table, columns in self.tables.items()}
        self._stores = [KeptRows(item.kept) for item in self.spec.inputs]
        self._newest: dict[int, int] = {}
        self._keys: dict[str, None] = {}
        self._lock = threading.RLock()

    @property
    def request(self) -> str:
        """The request table."""
        return self.spec.request

    def push(self, table: str, rows: Rows) -> int:
        """Store rows of a table: mappings, or Arrow with its columns, whose times without a zone are of the
        deployment's. Returns how many they are.

        Raises AnalysisError for a table that the statement does not read, an unknown column, or a value that does not
        fit its column's type; then none of the rows is stored.
        """
        name = self.known_table(table)
        if isinstance(rows, pa.Table | pa.RecordBatch):
            rows = with_zone(rows, self.schemas[name], zone_of(self.settings.time_zone))
        prepared = self.prepared(name, to_batch(rows, self.schemas[name], name))
        self.store(prepared)
        return prepared.count

    def prepared(self, table: str, batch: pa.RecordBatch, clock: int | None = None) -> PreparedRows:
        """What is kept of rows of a table (its name as in `tables`, its columns as in `schemas`) that come at a time
        in microseconds, by default now. Nothing is stored. Raises DataError for a row that is to come, with `fail`."""
        clock = time.time_ns() // 1000 if clock is None else clock
        places = [(place, item) for place, item in enumerate(self.spec.inputs) if item.table == table]
        by_input = {place: item.rows(batch) for place, item in places}
        left_out = 0
        for place, item in places:
            present = self.present(item, by_input[place], clock)
            left_out = max(left_out, by_input[place].num_rows - present.num_rows)
            by_input[place] = present
        return PreparedRows(batch.num_rows, tuple(by_input.items()), clock, left_out)

    def present(self, item: InputSpec, rows: pa.RecordBatch, clock: int) -> pa.RecordBatch:
        """Rows of an input without those that are to come, where these are not kept. Raises DataError for such a row
        with `fail`."""
        if self.settings.future == "keep":
            return rows
        present = self._present(item, rows, clock)
        left_out = len(present) - int(np.count_nonzero(present))
        if left_out and self.settings.future == "fail":
            raise DataError(
                f"{left_out} rows of '{item.table}' have a time that is more than {self.settings.future_bound:,} "
                "seconds after now",
                condition="future-rows",
                help="correct the clock of the source; or deploy with sqlext.stream.future = drop or keep",
            )
        return rows.filter(pa.array(present))

    def newest(self, item: InputSpec, batches: Iterable[pa.RecordBatch], clock: int) -> int:
        """The newest time of rows of an input with an order, but for those that are to come; NULL_ORDER without any."""
        order = str(item.kept.order)
        times = (order_with_nulls(rows.column(order))[self._present(item, rows, clock)] for rows in batches)
        return max((int(np.max(some, initial=NULL_ORDER)) for some in times), default=NULL_ORDER)

    def _present(self, item: InputSpec, rows: pa.RecordBatch, clock: int) -> Bools:
        """bool[n], the rows whose time is not far after a clock; all where times are no timestamps."""
        order = item.kept.order
        if order is None or not pa.types.is_timestamp(rows.schema.field(order).type):
            return np.ones(rows.num_rows, np.bool_)
        present: Bools = order_with_nulls(rows.column(order)) <= clock + self.settings.future_bound * 1_000_000
        return present

    def store(self, prepared: PreparedRows) -> None:
        """Store prepared rows."""
        with self._lock:
            for place, rows in prepared.by_input:
                self._stores[place].add(rows)
                self._forget(place, self.spec.inputs[place], rows, prepared.clock)

    def load(self, table: str, source: str | Path | DataFrame | Rows) -> int:
        """Store the rows of Parquet files (a file or a folder, read without Spark), of a DataFrame, or of `push`, in
        their order. Returns how many they are. Raises as `push`."""
        name = self.known_table(table)
        columns = self._read_of(name)
        if isinstance(source, str | Path):
            batches = parquet_rows(source, columns)
        elif is_frame(source):
            frame = source.select(*(f"`{column}`" for column in columns))
            batches = iter(arrow_table(frame).to_batches(_LOADED_ROWS))
        else:
            return self.push(name, cast(Rows, source))
        return sum(self.push(name, batch) for batch in batches)

    def load_checkpoint(self, checkpoint: str | Path, spark: SparkSession | None = None) -> WarmStart:
        """Store the rows that a streaming query of the same statement keeps for its windows, as its checkpoint
        has them at the last micro-batch that is committed. `spark` (by default the active session) reads them.

        Answers are then those of batch over the rows that the query has taken; one that needs rows that its watermark
        has let go says that it is partial. Call it before rows are pushed; the tables in `missing` of what it gives are
        to be loaded beside it.

        Raises ConfigurationError for a checkpoint of another statement or in another format, for one that is damaged or
        cannot be read, and where rows are stored already; then nothing is stored.
        """
        from sqlext.serving.warm import load_checkpoint

        return load_checkpoint(self, checkpoint, spark)

    def sink(
        self,
        table: str | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        query: str | None = None,
        timeout: float = 300,
    ) -> Sink:
        """What `writeStream.foreachBatch` takes to bring a stream's rows to a table (by default the request table):

            orders.writeStream.foreachBatch(deployment.sink("orders", url="http://localhost:8080")).start()

        With `url` they go to a server of this deployment, with its `token`, and are there once whatever starts again;
        a server without a journal forgets them when it ends. Without it they go to this deployment. `query` names the
        stream where Spark's id of the query is not known, as on Spark Connect. `timeout`: seconds until a micro-batch
        fails because the server is busy or away.

        Raises AnalysisError for a table that the statement does not read, ConfigurationError for a wrong `url`.
        """
        name = self.known_table(table or self.request)
        columns = self._read_of(name)
        if url is None:
            return Sink(name, columns, query, partial(self._push_once, name), whole)
        return Sink(name, columns, query, Server(url, name, token, timeout), parts)

    def _push_once(self, table: str, rows: pa.Table, key: str) -> None:
        with self._lock:
            if key in self._keys:
                return
            self.push(table, rows)
            self._keys[key] = None
            if len(self._keys) > MOST_KEYS:
                del self._keys[next(iter(self._keys))]

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The result for one row of the request table, as `Row.asDict()` has it. Raises as `push`."""
        return self.answers(to_batch([row], self.schemas[self.request], self.request))[0].row

    def answer_many(self, rows: Rows) -> list[dict[str, Any]]:
        """The results for several rows, each as if it came alone. Raises as `push`."""
        return [answer.row for answer in self.answers(to_batch(rows, self.schemas[self.request], self.request))]

    def answers(self, batch: pa.RecordBatch) -> list[Answer]:
        """The results for rows of the request table, each as if it came alone. Raises for whichever row."""
        with self._lock:
            if batch.num_rows == 1:
                return [self._answer(batch)]
            parts = (batch.slice(start, TOGETHER) for start in range(0, batch.num_rows, TOGETHER))
            return [answer for part in parts for answer in self._answered(part)]

    def _answered(self, rows: pa.RecordBatch) -> list[Answer]:
        requests = Requests(self.spec, rows, self._stores)
        results = answered_together(self.spec.steps, requests)
        return [
            Answer(results.slice(place, 1), self.spec.names, is_partial)
            for place, is_partial in enumerate(requests.missed)
        ]

    def _answer(self, row: pa.RecordBatch) -> Answer:
        for store in self._stores:
            store.missed = False
        result = self.spec.answer(row, self._stores)
        return Answer(result, self.spec.names, any(store.missed for store in self._stores))

    def settle(self) -> None:
        """Sort the rows that were stored, so that no answer has to wait for it: after many at once."""
        with self._lock:
            for store in self._stores:
                store.settle()
        pa.default_memory_pool().release_unused()  # each row was there twice

    def state(self) -> list[KeptState]:
        """What the inputs keep, for a snapshot."""
        with self._lock:
            return [
                KeptState(
                    tuple(batch for batch in store.every_batch() if batch.num_rows),
                    self._newest.get(place, NULL_ORDER),
                    store.cutoff,
                )
                for place, store in enumerate(self._stores)
            ]

    def restore(self, place: int, state: KeptState) -> None:
        """Give an input back what a snapshot has of it, in one call or several."""
        with self._lock:
            for batch in state.batches:
                self._stores[place].add(batch)
            self._newest[place], self._stores[place].cutoff = state.newest, state.cutoff

    @cached_property
    def saved(self) -> SavedDeployment:
        """What a folder has of it: all that its answers depend on."""
        return SavedDeployment(
            self.name, self.sql, self.tables, self.request, self.settings, self.lateness, self.compat
        )

    def save(self, folder: str | Path) -> None:
        """Write the deployment as a folder, without its rows. Raises ConfigurationError for one of something else."""
        from sqlext_planner.plan_format.formats import tree_text

        plan = f"{self.explain()}\n\n{tree_text(self.plan)}"
        write(self.saved, plan, Path(folder))

    @classmethod
    def open(cls, folder: str | Path) -> Deployment:
        """The deployment of a folder, without rows. Raises ConfigurationError for one that was changed, that a newer
        version wrote, or that is none; and what planning raises."""
        return cls.of(read(Path(folder)))

    @classmethod
    def of(cls, saved: SavedDeployment) -> Deployment:
        """The deployment, without rows, of what a folder has. Raises what planning raises."""
        return Deployment(
            saved.sql,
            DictCatalog(saved.tables),
            request=saved.request,
            settings=saved.settings,
            name=saved.name,
            compat=saved.compat,
            lateness=saved.lateness,
        )

    def explain(self, row: Mapping[str, Any] | None = None) -> str:
        """What is kept of each table, and what an answer reads and computes; with a row of the request table also how
        long each step takes to answer it, the shortest of a few times. Raises as `answer`."""
        from sqlext.serving.explained import explained

        return explained(self, () if row is None else self._step_seconds(row))

    def _step_seconds(self, row: Mapping[str, Any]) -> list[float]:
        batch = to_batch([row], self.schemas[self.request], self.request)
        with self._lock:
            return [
                min(times)
                for times in zip(*(self.spec.step_seconds(batch, self._stores) for _ in range(_TIMED)), strict=True)
            ]

    def kept_of(self, place: int) -> tuple[int, int]:
        """The rows that an input keeps, and their Arrow bytes."""
        with self._lock:
            return self._stores[place].rows, self._stores[place].nbytes

    @property
    def kept_rows(self) -> int:
        """How many rows the inputs keep."""
        return sum(store.rows for store in self._stores)

    @property
    def kept_bytes(self) -> int:
        """The Arrow bytes of these rows."""
        with self._lock:
            return sum(store.nbytes for store in self._stores)

    def known_table(self, table: str) -> str:
        """The name in `tables` of a table, ignoring case. Raises AnalysisError if the statement does not name it."""
        known = {name.lower(): name for name in self.tables}
        if table.lower() not in known:
            raise AnalysisError(
                f"the deployment '{self.name}' reads no table '{table}'",
                condition="unknown-table",
                help=f"it reads {', '.join(sorted(self.tables))}",
            )
        return known[table.lower()]

    def _read_of(self, name: str) -> list[str]:
        """The columns that are read of a table; where no answer needs any, all of them, to count the rows."""
        return list(self.spec.tables.get(name, self.schemas[name]).names)

    def _forget(self, place: int, item: InputSpec, rows: pa.RecordBatch, clock: int) -> None:
        """Let rows go that no answer needs any longer. Rows that are to come let none go."""
        if item.back is None or item.kept.order is None or self.lateness is None:
            return
        if not rows.num_rows:
            return
        newest = max(self._newest.get(place, NULL_ORDER), self.newest(item, [rows], clock))
        self._newest[place] = newest
        if newest > NULL_ORDER:
            self._stores[place].forget(newest - self.lateness - item.back)


def _columns(catalog: Catalog, table: str) -> dict[str, str]:
    info = catalog.table(table)
    assert info is not None
    return dict(info.columns)


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, to_arrow(dtype)) for name, dtype in columns.items()])


def _first_scan(plan: Any) -> str:
    """The table at the end of the chain of first children."""
    while plan.children:
        plan = plan.children[0]
    return str(plan.table) if isinstance(plan, Scan) else ""


def _table_name(plan: Any, request: str) -> str:
    """The name that a table has in the plan. Raises AnalysisError."""
    names = {scan.table.lower(): scan.table for scan in plan.collect(Scan)}
    table = names.get(request.lower()) or next(
        (n for key, n in names.items() if key.split(".")[-1] == request.lower()), None
    )
    if not names:
        raise UnsupportedError(
            "a statement without tables cannot be deployed", condition="not-servable", help="write FROM a table"
        )
    if table is None:
        raise AnalysisError(
            f"the statement reads no table '{request}'",
            condition="unknown-table",
            help=f"it reads {', '.join(sorted(names.values()))}",
        )
    return str(table)
