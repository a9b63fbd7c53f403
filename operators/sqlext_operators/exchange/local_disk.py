"""Temporary folders of this worker."""

from __future__ import annotations

import os
import tempfile

from sqlext_operators.errors import spilling


def local_folder() -> tempfile.TemporaryDirectory[str]:
    """A new folder below Spark's own local directories where the worker has them (SPARK_LOCAL_DIRS), so that a killed
    worker's files go with the application; elsewhere in the system's place for temporary files.

    Raises TaskError where none can be made.
    """
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    parent = places[os.getpid() % len(places)] or None
    with spilling(parent or os.environ.get("TMPDIR") or "/tmp"):
        return tempfile.TemporaryDirectory(prefix="sqlext-exchange-", dir=parent, ignore_cleanup_errors=True)
