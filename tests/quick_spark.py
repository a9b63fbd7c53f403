"""A Spark for thousands of small statements: what it spends on each, and no test asks for, is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from sqlext_planner.spark.versions import spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

#: For statements over a few rows, `make test-all` runs Spark as it ships. Compiling Spark's own operators takes long
#: for such: 55 tests on a cold Spark take 78 s without and 135 s with it.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

#: Without Hadoop's native library, a file of a checkpoint is moved with eight processes (`readlink`), or with none.
#: With this and without checksums tests/sql/test_placed_streams.py takes 225 s, else 380 s.
QUICK_CHECKPOINTS = (
    {"spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS} if spark_version() >= (4, 1) else {}
)

#: Arguments of a Java that runs thousands of statements: no threads that collect garbage; and where Spark starts a
#: process (`chmod` for each new file), it forks itself, without its helper.
LONG_JAVA = "-XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"

#: Arguments of a Java that runs a few of them, below the command line too: no second compiler either, which costs a
#: fifth of the CPU time of a short run. In a long one it pays: a run of random statements does twice as many.
QUICK_JAVA = f"{LONG_JAVA} -XX:TieredStopAtLevel=1"

#: What Spark keeps of each statement for its UI, which fills the heap of thousands, and the text of their plans.
QUIET_UI = {
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
}

#: Python workers that have the operators loaded.
READY_WORKERS = {"spark.python.daemon.module": "tests.daemon"}


def without_checksums(spark: SparkSession) -> None:
    """No file of checksums, which takes more processes, beside each file that Spark writes to the local disk."""
    inner: Any = spark
    inner._jvm.org.apache.hadoop.fs.FileSystem.getLocal(inner._jsc.hadoopConfiguration()).setWriteChecksum(False)


def remember_names() -> None:
    """Keep what a JVM's view and its packages answer, as their attributes: they live as long as the JVM.

    PySpark asks the JVM for ``jvm.org.apache.spark...`` at every use, and the JVM looks each part up in every jar of
    Spark before it says that it is a package: a sixth of the JVM's time in a run of small statements.
    """
    for kind in (JVMView, JavaPackage):
        if not hasattr(kind.__getattr__, "remembers"):
            kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(look_up: Any) -> Any:
    def found(self: Any, name: str) -> Any:
        answer = look_up(self, name)
        if isinstance(answer, JavaClass | JavaPackage):
            self.__dict__[name] = answer
        return answer

    found.remembers = True  # type: ignore[attr-defined]
    return found
