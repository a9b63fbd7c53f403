"""Peak memory of the process tree."""

from __future__ import annotations

import subprocess
import sys
import time
from mmap import mmap

import pytest
from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.memory import MemoryWatch, process_tree

MIB = 1 << 20
CHILD = "x = bytearray(b'1') * (200 << 20); import sys; print('ready', flush=True); sys.stdin.read()"


def test_children_count() -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        found = {p.pid: p for p in process_tree()}
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()
    assert found[child.pid].kind == "python"
    assert 200 * MIB <= found[child.pid].resident < 300 * MIB


def test_the_watch_keeps_the_peak() -> None:
    with MemoryWatch(interval=0.01) as watch:
        expected = watch.peak_process + 90 * MIB
        block = mmap(-1, 100 * MIB)  # pages of its own: what this process has freed before is not used again
        block.write(b"1" * (100 * MIB))
        deadline = time.monotonic() + 30
        while watch.peak_process < expected and time.monotonic() < deadline:
            time.sleep(0.01)
        block.close()
    assert watch.peak_process >= expected
    assert watch.peak_python >= watch.peak_process


def test_psutil_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ConfigurationError, match="measuring memory needs psutil"):
        process_tree()
