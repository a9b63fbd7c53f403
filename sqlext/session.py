"""The Session: SQL text in, an ordinary PySpark DataFrame out."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlext_planner.config import PREFIX, Config
from sqlext_planner.errors import ConfigurationError, UnsupportedError, statement
from sqlext_planner.spark.session import check_version, is_stopped, settings_changed, substituted, use_own_python
from sqlext_planner.spark.session import settings as settings_of
from sqlext_planner.spark.tables import VIEW_SETTINGS, TemporaryViews

from sqlext.packages import PACKAGES, check_running, packages_of
from sqlext.run.parameters import BoundText, bind_arguments, errors_show, format_references, literal, replace_spans
from sqlext.run.passthrough_cache import PassthroughCache
from sqlext.syntax.sql_settings import ANSI, SqlSettings, references

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_planner.errors import Span

    from sqlext.builders import Query, Source
    from sqlext.catalog.options import DataFiles
    from sqlext.run.pipeline import StagedPlan
    from sqlext.serving.deployment import Deployment
    from sqlext.streams import Streams

COMPAT = ("openmldb",)
#: What OpenMLDB's statements mean by arithmetic and by times as text: no ANSI errors, and UTC+8.
ZONE = "spark.sql.session.timeZone"
OPENMLDB_SETTINGS = {ANSI: "false", ZONE: "Asia/Shanghai"}
#: Whether a Session is at work in this thread. What it asks Spark then is Spark's own SQL, also if `enable` has given
#: spark.sql to the extension.
AT_WORK: ContextVar[bool] = ContextVar("sqlext_at_work", default=False)
_DEPLOYMENT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\s+DEPLOYMENT\b", re.IGNORECASE | re.DOTALL)
#: Our own settings.
_KEYS = tuple(setting.key for setting in Config.described())


class Session:
    """Runs SQL with the extension on a Spark session.

    spark   the session to run on; None uses the one running in this process, else starts an embedded local one
            (when it is first needed)
    compat  "openmldb": every window of a statement follows OpenMLDB, with its dialect, its arithmetic and time zone
            (`OPENMLDB_SETTINGS`, for the statement only; a value given in `config` wins), and what it refuses
    config  settings: a Config, or a mapping of `sqlext.*` keys (and `spark.*` keys, applied to the Spark session).
            Settings that are not given here are read from the Spark session for each statement, so
            ``SET sqlext.planner.alwaysLower = true`` works.
    packages  of Spark, as `group:artifact:version`, which an embedded Spark downloads and sets up when it starts

    Between statements a Session remembers which queries went to Spark as they are, so that it does not plan them again
    (passthrough_cache.py), and what temporary views are, as long as Spark has the same ones (spark/tables.py of the
    planner). Several threads can use it.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        compat: str | None = None,
        config: Config | Mapping[str, str] | None = None,
        packages: Sequence[str] = (),
    ) -> None:
        if compat is not None and compat not in COMPAT:
            known = " or ".join(map(repr, COMPAT))
            raise ConfigurationError(
                f"unknown compatibility mode '{compat}'", condition="python-call", help=f"use {known}, or leave it out"
            )
        self.compat = compat
        self._config = config if isinstance(config, Config) else None
        given = {} if config is None or isinstance(config, Config) else {k: str(v) for k, v in config.items()}
        given |= {PACKAGES: ",".join([*packages_of(given), *packages])} if packages else {}
        self._settings = {key: value for key, value in given.items() if key.lower().startswith(PREFIX)}
        self._spark_settings = {key: value for key, value in given.items() if key not in self._settings}
        Config.from_mapping(self._settings)  # a wrong key or value fails now, not at the first statement
        self._lock = threading.Lock()
        from sqlext.catalog.spark import RegisteredFiles  # with pyarrow: not when the package is imported

        zone = None if compat is None else self._spark_settings.get(ZONE, OPENMLDB_SETTINGS[ZONE])
        self._files = RegisteredFiles(zone)
        self._passed = PassthroughCache()
        self._views: TemporaryViews | None = None
        self._is_given = spark is not None
        self._spark: SparkSession | None = None
        if spark is not None:
            if is_stopped(spark):
                help = "give a running one, or none: then an embedded one is started"
                raise ConfigurationError("the Spark session has been stopped", condition="spark-stopped", help=help)
            self._spark = self._attached(spark)

    @property
    def spark(self) -> SparkSession:
        """The underlying Spark session. If none was given: the one running in this process, else a new embedded one,
        also after a stop, with the registered files.

        Raises ConfigurationError if the given one has been stopped.
        """
        with self._lock:
            if self._spark is not None and is_stopped(self._spark):
                if self._is_given:
                    raise ConfigurationError(
                        "the Spark session that this Session runs on has been stopped",
                        condition="spark-stopped",
                        help="make a new one with SparkSession.builder.getOrCreate(), and a new Session with it",
                    )
                self._spark = None
                self._passed, self._views = PassthroughCache(), None
            if self._spark is None:
                self._spark = self._get_or_start()
                self._files.register_again(self._spark)
            return self._spark

    def _get_or_start(self) -> SparkSession:
        from sqlext.embedded import active_session, start_spark

        running = active_session()
        return start_spark(conf=self._spark_settings) if running is None else self._attached(running)

    def sql(self, sqlQuery: str, args: dict[str, Any] | list[Any] | None = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's own name
        """Like `SparkSession.sql`, but understands the extension's syntax too.

        A statement that leaves the extension nothing to do goes to `spark.sql` exactly as written, arguments
        included. Raises SqlExtError for a mistake in a statement of the extension; Spark's own errors otherwise.
        """
        with self._working(sqlQuery), ExitStack() as views:
            return self._answer(sqlQuery, args, kwargs, views)

    def _answer(
        self,
        sqlQuery: str,  # noqa: N803 - as `sql`
        args: dict[str, Any] | list[Any] | None,
        kwargs: dict[str, Any],
        views: ExitStack,
    ) -> DataFrame:
        from sqlext.run.pipeline import left_to_spark, too_deep
        from sqlext.run.spark_analysis import lowered_ordinary
        from sqlext.run.statements import run, run_lowered

        given = self._given()
        settings = self._reading_settings(given)
        with self._bound(sqlQuery, args, kwargs, views, settings) as text:
            if words := _DEPLOYMENT.match(text.sql):
                from sqlext.serving.statements import explained_deployment

                return explained_deployment(self, text.sql, words.end())
            try:
                config, wrong = self._effective_config(given), None
            except ConfigurationError as error:  # our setting must not stop a Spark statement, least of all SET
                config, wrong = Config(), error
            key = (text.sql, config, settings, self.compat)
            frame = self._by_spark(sqlQuery, args, kwargs, settings) if key in self._passed.passed else None
            if frame is not None and self._passed.holds(key, frame):
                return frame
            plan, frame = self._stage(text.sql, config, settings, given, lenient=True), None
            unfit = wrong or next(iter(text.unbound), None)
            if plan.refused is not None:
                self._by_spark(sqlQuery, args, kwargs, settings)  # its errors come first
                raise plan.refused
            if not plan.passthrough and not plan.ordinary:
                if unfit is not None:
                    raise unfit
                try:
                    return run(plan, self.spark, config)
                except RecursionError:
                    raise too_deep(plan.statement) from None
                except Exception as error:
                    if plan.statement.uses_extension or plan.explain == "analyze":
                        raise
                    left_to_spark(error)  # EXPLAIN of a statement that Spark can run
            elif not plan.passthrough and unfit is None:
                if plan.statement.kind == "query":
                    frame = self._by_spark(sqlQuery, args, kwargs, settings)
                lowered = lowered_ordinary(plan, self.spark, config, frame)
                if lowered is not None:
                    # From here on a command may have begun: if it fails now, Spark does not run it again.
                    with suppress(UnsupportedError):  # before it has begun: a view that Spark keeps as text
                        return run_lowered(plan, lowered, self.spark)
        if frame is None:
            frame = self._by_spark(sqlQuery, args, kwargs, settings)
        if plan.statement.kind == "query" and plan.explain is None and not kwargs:
            self._passed.remember(key, frame)
        return frame

    def _by_spark(
        self,
        sqlQuery: str,  # noqa: N803 - as `sql`
        args: dict[str, Any] | list[Any] | None,
        kwargs: dict[str, Any],
        settings: SqlSettings,
    ) -> DataFrame:
        """The statement as written, by Spark alone."""
        from sqlext_planner.spark.versions import sql_with_references

        def filled(view: Callable[[DataFrame], str]) -> str:
            return format_references(sqlQuery, kwargs, lambda value: _reference(value, view, settings)).sql

        return sql_with_references(self.spark, sqlQuery, args, kwargs, filled)

    def plan(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as `sql`
        """The statement at every stage of planning, with the `kwargs` of `sql`; nothing is run."""
        with self._working(sqlQuery), ExitStack() as views:
            given = self._given()
            settings = self._reading_settings(given)
            with self._bound(sqlQuery, None, kwargs, views, settings) as text:
                staged = self._stage(text.sql, self._effective_config(given), settings, given, lenient=False)
                return staged.with_details()

    def analyze(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as `sql`
        """Runs a query, throws its rows away, and returns its plan with what was measured of each node (`measured`):
        what EXPLAIN ANALYZE prints. Printed it is that text. A query over streams of files runs until all files are
        read that are there.

        Raises UnsupportedError for a statement that is no query, or one over a stream without an end.
        """
        from sqlext.explain.analyze import measured

        with self._working(sqlQuery), ExitStack() as views:
            given = self._given()
            settings, config = self._reading_settings(given), self._effective_config(given)
            with self._bound(sqlQuery, None, kwargs, views, settings) as text:
                plan = self._stage(text.sql, config, settings, given, lenient=False, analyze=True)
                return measured(plan.with_details(), self.spark, config)

    def deploy(
        self,
        sqlQuery: str,  # noqa: N803 - as `sql`
        *,
        request: str | None = None,
        name: str = "deployment",
        lateness: int | None = 0,
    ) -> Deployment:
        """A deployment of a query with windows and LAST JOINs, which answers one row of the table `request` (by default
        the first one of FROM) at a time in this process (docs/serving.md). It has no rows yet: `load` and `push`.

        Raises UnsupportedError for a query that cannot be answered for one row.
        """
        from sqlext_planner.serving.lowering import ServingSettings

        from sqlext.serving.statements import deployed

        plan = self.plan(sqlQuery)
        with self._working(sqlQuery):
            config, ansi = self._effective_config(self._given()), str(self.spark.conf.get(ANSI)).lower() == "true"
            zone = str(self.spark.conf.get(ZONE))
            settings = ServingSettings(ansi, zone, config.stream_future, config.stream_future_bound)
            return deployed(self, plan, sqlQuery, settings, request=request, name=name, lateness=lateness)

    def table(self, source: Source) -> Query:
        """A query over a table or view, a DataFrame, or another query, to which Python adds windows, joins and
        conditions (`sqlext.builders`): ``session.table("a").last_join("b", on="k", order_by="ts").df()``.

        Raises AnalysisError for text that is no name of a table.
        """
        from sqlext.builders.queries import query_over

        return query_over(self, source)

    @property
    def streams(self) -> Streams:
        """The running queries with statements of the extension over streams, with their figures."""
        from sqlext.streams import Streams

        return Streams(self.spark)

    def register(
        self,
        name: str,
        path: str | Path,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        multiline: bool | None = None,
        types: str | Mapping[str, str] | None = None,
    ) -> None:
        """Make data files the temporary view `name`: a file, a folder, a pattern (`2024-*.parquet`) or a URI of
        Parquet, CSV, ORC, JSON or Avro files. Names of folders like `dt=2024-01-01` are columns (docs/storage.md).

        delimiter  the character between values of CSV files ("tab" for a tab); None: found by looking at the file
        header     whether CSV files begin with the names of their columns; None: found by looking at the file
        multiline  whether quoted values of CSV files may hold line breaks; None: found by looking at the files
        types      Spark types of columns that are not to be inferred: "uid string, price decimal(10,2)", or a dict

        Raises ConfigurationError if there are none, or if they cannot be read.
        """
        from sqlext.catalog.options import DataFiles, ReadOptions

        self._files.register(self.spark, name, DataFiles(path, ReadOptions.of(delimiter, header, multiline, types)))

    def register_when_named(self, tables: Mapping[str, DataFiles]) -> None:
        """Make data files temporary views once a statement names them: files that no statement names are not read, and
        stop none if they cannot be."""
        self._files.offer(tables)

    def read_named(self, text: str) -> None:
        """Read the tables of `register_when_named` whose names stand in a text.

        Raises ConfigurationError for a text that is the name of one that cannot be read.
        """
        self._files.read_named(self.spark, text)
        self._files.check(text)

    @property
    def tables_offered(self) -> tuple[str, ...]:
        """The names of the tables of `register_when_named` that no statement has named yet."""
        return self._files.offered

    def __repr__(self) -> str:
        mode = "" if self.compat is None else f", compat={self.compat!r}"
        running = self._spark is not None and not is_stopped(self._spark)
        return f"Session({f'Spark {self.spark.version}' if running else 'no Spark yet'}{mode})"

    @contextmanager
    def _working(self, text: str) -> Iterator[None]:
        """A statement is planned inside: with the files that it names, and with OpenMLDB's settings for its SQL."""
        before = AT_WORK.set(True)
        try:
            wanted = OPENMLDB_SETTINGS if self.compat == "openmldb" else {}
            missing = {key: value for key, value in wanted.items() if key not in self._spark_settings}
            with settings_changed(self.spark, missing) if missing else nullcontext():
                self._files.read_named(self.spark, text)
                with self._files.errors_of_files():
                    yield
        finally:
            AT_WORK.reset(before)

    def _attached(self, spark: SparkSession) -> SparkSession:
        """A running Spark, with the settings given here applied, and on this machine with workers of this Python.

        Raises ConfigurationError for a setting that can no longer change, and for a server of another version."""
        check_version(spark)
        use_own_python(spark)
        check_running(spark, self._spark_settings)
        for key, value in self._spark_settings.items():
            if spark.conf.isModifiable(key):
                spark.conf.set(key, value)
            elif key != PACKAGES and spark.conf.get(key, None) != value:
                message = f"setting '{key}' cannot change while Spark runs"
                raise ConfigurationError(message, condition="fixed-setting", help="set it when Spark starts")
        return spark

    def _stage(
        self,
        sql: str,
        config: Config,
        settings: SqlSettings,
        given: Mapping[str, str],
        *,
        lenient: bool,
        analyze: bool = False,
    ) -> StagedPlan:
        from sqlext.catalog import SparkCatalog
        from sqlext.run.pipeline import stage

        spark = self.spark
        with self._lock:
            views = self._views = self._views or TemporaryViews(spark)
        exact = settings.case_sensitive
        catalog = SparkCatalog(
            spark, self._files.known, case_sensitive=exact, views=views, settings=given, check=self._files.check
        )
        return stage(sql, catalog, config, self.compat, lenient=lenient, settings=settings, analyze=analyze)

    def _given(self) -> dict[str, str]:
        """Those of the settings that we read that are set in the Spark session."""
        return settings_of(self.spark, (*SqlSettings.names(), *_KEYS, *VIEW_SETTINGS))

    def _reading_settings(self, given: Mapping[str, str]) -> SqlSettings:
        """Spark's settings for reading SQL text."""
        from sqlext_planner.spark.versions import fixed_settings

        ansi = ANSI in given or str(self.spark.conf.get(ANSI)).lower() == "true"
        return SqlSettings.of({**given, **fixed_settings()}, ansi=ansi)

    def _effective_config(self, given: Mapping[str, str]) -> Config:
        """The settings given to this Session, over those set in the Spark session."""
        if self._config is not None:
            return self._config
        chosen = {key: given[key] for key in _KEYS if key in given} | self._settings
        return Config.from_mapping(chosen) if chosen else Config()

    @contextmanager
    def _bound(
        self,
        sql: str,
        args: Mapping[str, Any] | Sequence[Any] | None,
        values: Mapping[str, Any],
        views: ExitStack,
        settings: SqlSettings,
    ) -> Iterator[BoundText]:
        """The text with references, variables and markers replaced, in Spark's order. Errors raised inside, or by what
        is built inside, point at the original text."""
        from sqlext.run.statements import temporary_view

        def view(frame: DataFrame) -> str:
            return views.enter_context(temporary_view(frame))

        given = sql
        steps: list[BoundText] = []
        with ExitStack() as shows:
            shows.enter_context(errors_show(sql))
            if values:
                formatted = format_references(sql, values, lambda value: _reference(value, view, settings))
                shows.enter_context(errors_show(sql, formatted))
                steps.append(formatted)
                sql = formatted.sql
            if found := references(sql, settings):
                replaced = replace_spans(sql, found, lambda text: substituted(self.spark, text))
                shows.enter_context(errors_show(sql, replaced))
                steps.append(replaced)
                sql = replaced.sql
            text = bind_arguments(sql, args, settings)
            shows.enter_context(errors_show(sql, text))
            steps.append(text)

            def original(span: Span) -> Span:
                for step in reversed(steps):
                    span = step.original(span)
                return span

            shows.enter_context(statement(given, original))
            yield text


def sql(sqlQuery: str, args: dict[str, Any] | list[Any] | None = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's own name
    """`Session().sql(...)`: on the Spark session running in this process, else on an embedded local one."""
    return Session().sql(sqlQuery, args, **kwargs)


def _reference(value: Any, view: Callable[[DataFrame], str], settings: SqlSettings) -> Any:
    """What `{name}` in a text becomes: a view for a DataFrame, a name for a column, a literal for a string."""
    from sqlext_planner.spark.columns import name_of
    from sqlext_planner.spark.versions import is_column, is_frame

    if is_frame(value):
        return view(value)
    if is_column(value):
        name = name_of(value)
        if name is None:
            help = "write the expression into the text, or give a plain column"
            raise UnsupportedError(f"{value} is not a plain column", condition="python-call", help=help)
        return name
    return literal(value, settings) if isinstance(value, str) else value
