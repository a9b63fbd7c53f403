"""The engines that contestants run on: one local Spark for ours and native Spark, DuckDB in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    import duckdb

    from benchmarks.harness.cluster import LocalCluster
    from sqlext import Session


@dataclass
class Engines:
    """Starts each engine when it is first needed. `cores` limits both, `memory` is the JVM heap (`8g`). With `workers`
    Spark is a cluster of so many processes (cluster.py) with one core each, whose executors share the memory."""

    cores: int = 2
    memory: str = "8g"
    workers: int = 0
    spark_conf: dict[str, str] = field(default_factory=dict)
    _spark: SparkSession | None = None
    _session: Session | None = None
    _views: dict[str, Path] = field(default_factory=dict)
    _cluster: LocalCluster | None = None
    _before: dict[str, str | None] = field(default_factory=dict)
    _spark_is_ours: bool = False
    _duck: duckdb.DuckDBPyConnection | None = None

    def spark(self) -> SparkSession:
        """A local Spark with default settings except the size, the partition count and the console.

        Raises ConfigurationError if a cluster does not start, or if another Spark runs in this process already.
        """
        if self._spark is None:
            import sqlext.embedded

            settings = {
                "spark.driver.memory": self.memory,
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                # 200 tiny partitions would only slow the native contestants down
                "spark.sql.shuffle.partitions": str(4 * self.cores),
                **self.spark_conf,
            }
            self._spark_is_ours = sqlext.embedded.active_session() is None
            if self.workers:
                self._spark = self._on_cluster(settings)
            else:
                self._spark = sqlext.embedded.start_spark(master=f"local[{self.cores}]", conf=settings)
        return self._spark

    def _on_cluster(self, settings: dict[str, str]) -> SparkSession:
        import sqlext.embedded
        from benchmarks.harness.cluster import DRIVER_MEMORY, LocalCluster

        if not self._spark_is_ours:
            raise ConfigurationError(
                "this process has a Spark already", condition="benchmark", help="stop it before a cluster is started"
            )
        if self._cluster is None:
            cluster = LocalCluster(self.workers, self.memory)
            cluster.start()
            self._cluster = cluster
        settings |= {"spark.driver.memory": DRIVER_MEMORY, **self._cluster.settings()}
        with sqlext.embedded.environment_of(**self._cluster.environment()):
            spark = sqlext.embedded.start_spark(self._cluster.master, settings)
        self._spark = spark
        self._cluster.await_executors(spark)
        return spark

    def session(self) -> Session:
        """Our Session on that Spark, the same one for all contestants."""
        if self._session is None:
            from sqlext import Session

            self._session = Session(self.spark())
        return self._session

    def view(self, name: str, path: Path) -> None:
        """Make a Parquet file, or a folder of them, the view `name` of the Session and of Spark."""
        if self._views.get(name) != path:
            self.session().register(name, path)
            self._views[name] = path

    def configured(self, settings: Mapping[str, str]) -> SparkSession:
        """That Spark with exactly these settings: those of an earlier call are undone first."""
        spark = self.spark()
        self._take_back(spark)
        for key, value in settings.items():
            self._before[key] = spark.conf.get(key, None)
            spark.conf.set(key, value)
        return spark

    def _take_back(self, spark: SparkSession) -> None:
        for key, value in self._before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
        self._before.clear()

    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """An in-memory DuckDB with one thread for each core. Raises ConfigurationError if it is not installed."""
        if self._duck is None:
            try:
                import duckdb
            except ImportError as error:
                raise ConfigurationError(
                    "the duckdb contestant needs the duckdb package",
                    condition="missing-package",
                    help="pip install 'sql-for-time-on-spark[bench]', or leave it out with --contestants",
                ) from error
            self._duck = duckdb.connect(config={"threads": self.cores})
            self._duck.execute("SET enable_progress_bar = false")  # it would appear in the middle of ours
        return self._duck

    def cancel_spark(self) -> None:
        """Cancel the running jobs; the statement that waits for them fails."""
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()

    def interrupt_duckdb(self) -> None:
        """Interrupt the running statement; it fails."""
        if self._duck is not None:
            self._duck.interrupt()

    def close(self) -> None:
        """Stop what was started here; a Spark that already ran before keeps running."""
        try:
            if self._duck is not None:
                self._duck.close()
            if self._spark is not None and self._spark_is_ours:
                self._spark.stop()
            elif self._spark is not None:
                self._take_back(self._spark)
        finally:
            if self._cluster is not None:
                self._cluster.stop()
        self._spark = self._session = self._duck = self._cluster = None
        self._views.clear()


def in_duckdb(path: Path | str) -> str:
    """A Parquet file, or a pattern of them, as a table in a statement of DuckDB."""
    return "read_parquet('" + str(path).replace("'", "''") + "')"


def in_spark(path: Path) -> str:
    """A Parquet file as a table in a statement of Spark."""
    return f"parquet.`{path}`"
