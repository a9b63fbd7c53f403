"""The command line: in a process of its own, as people start it, or in this one, where all of it is loaded."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from sqlext.cli import _run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parent.parent

#: ``sqlext("plan", "-e", "SELECT 1")``: what a finished command returned and printed, as text.
Sqlext = Callable[..., "subprocess.CompletedProcess[str]"]


def in_a_process(
    *arguments: object,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Runs `sqlext` with these words in a new process, with all of an environment, or this one's."""
    path = os.pathsep.join(map(str, (_ROOT, _ROOT / "planner", _ROOT / "operators")))
    environment = {**(os.environ if env is None else env), "PYTHONPATH": path}
    command = [sys.executable, "-m", "sqlext", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, env=environment, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )


def in_this_process(
    *arguments: object, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The same without a new process."""
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for name in ("stdout", "stderr")}
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ, env or {}, clear=env is not None):
        for name, stream in {"stdin": given, **streams}.items():
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "path", sys.path.copy())
        if cwd is not None:
            patch.chdir(cwd)
        try:
            code = _run([str(item) for item in arguments])
        except SystemExit as ended:  # completion in a shell
            code = int(ended.code or 0)
    for stream in streams.values():
        stream.seek(0)
    return subprocess.CompletedProcess(arguments, code, *(stream.read() for stream in streams.values()))


@contextlib.contextmanager
def on_shared_spark(spark: SparkSession) -> Iterator[Sqlext]:
    """In this process, on a new session of `spark` for each Spark that a command starts; `spark` goes on running."""

    def started(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
        fresh = spark.newSession()
        for key, value in (conf or {}).items():
            if fresh.conf.isModifiable(key):
                fresh.conf.set(key, value)
        return fresh

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqlext.embedded.active_session", lambda: None)
        patch.setattr("sqlext.embedded.start_spark", started)
        patch.setattr("sqlext.cli.shell.engine.end_java", lambda: None)
        patch.setattr("sqlext.cli.shell.main._quiet_py4j", lambda: None)
        patch.setattr(type(spark), "stop", lambda stopped: None)
        yield in_this_process
