"""Spark drivers in processes of their own, and digests of answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
#: A request that takes longer hangs.
MOST_SECONDS = 900.0


class DriverError(AssertionError):
    """A request failed in the driver: its error's class, its message and the driver's log."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Driver:
    """A process with one Spark, in which functions of `probes.py` run one at a time.

    master  Spark's master, e.g. "local[2,4]" (two cores, four attempts of a task)
    conf    Spark's settings
    folder  a folder of this driver: its log, its temporary files (`spark.local.dir` is `folder/local` unless given)
    first   a folder with modules that are found before ours
    """

    def __init__(
        self, master: str, folder: Path, conf: Mapping[str, str] | None = None, first: Path | None = None
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "log.txt"
        settings = {"spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse")}
        start = json.dumps({"master": master, "conf": {**settings, **(conf or {})}})
        ours, theirs = os.pipe()
        path = [*([str(first)] if first else []), *_import_path()]
        environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(path)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.serve", str(theirs), start],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(theirs,),
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        os.close(theirs)
        self._replies: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(ours,), daemon=True).start()
        self._reply(MOST_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, function: str, /, *, within: float = MOST_SECONDS, **arguments: Any) -> Any:
        """What the function `function` of probes.py (`stream_probes.NAME`: of that module) gives, as JSON. Raises
        DriverError if it raises, or hangs."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"function": function, "arguments": arguments}).encode() + b"\n")
        self._process.stdin.flush()
        return self._reply(within)

    def close(self) -> None:
        """End the process, its Spark and everything that these started."""
        tree = self._tree()
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def kill(self) -> None:
        """SIGKILL to the process, its Java and its Python workers at once, as when a machine stops."""
        while living := [process for process in self._tree() if _is_alive(process)]:
            for process in living:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.01)
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _tree(self) -> list[psutil.Process]:
        """The processes of the driver's session."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(process.pid) == self._process.pid:
                    found.append(process)
        return found

    def _read(self, end: int) -> None:
        with os.fdopen(end) as replies:
            for line in replies:
                self._replies.put(line)
        self._replies.put(json.dumps({"error": "Ended", "message": "the driver has ended"}))

    def _reply(self, seconds: float) -> Any:
        try:
            reply = json.loads(self._replies.get(timeout=seconds))
        except queue.Empty:
            reply = {"error": "Timeout", "message": f"no answer in {seconds:.0f} s"}
        if "error" in reply:
            raise DriverError(reply["error"], f"{reply['message']}\n{self._log.read_text(errors='replace')[-4000:]}")
        return reply["answer"]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _import_path() -> list[str]:
    return [str(ROOT / name) for name in ("", "planner", "operators")]


def digest(table: pa.Table) -> dict[str, Any]:
    """Number of rows and a hash of an answer of integer columns, whatever the order of its rows."""
    columns = []
    for column in table.columns:
        array = column.combine_chunks().cast(pa.int64())
        columns.append(array.is_null().to_numpy(zero_copy_only=False).astype(np.int64))
        columns.append(array.fill_null(0).to_numpy())
    order = np.lexsort(columns[::-1]) if table.num_rows else np.empty(0, np.int64)
    found = hashlib.sha256()
    for values in columns:
        found.update(np.ascontiguousarray(values[order]).tobytes())
    return {"rows": table.num_rows, "hash": found.hexdigest()}
