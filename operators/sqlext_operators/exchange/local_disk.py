"""Temporary folders of this worker."""

from __future__ import annotations

import os
import tempfile


def local_folder() -> tempfile.TemporaryDirectory[str]:
    """A new folder below Spark's own local directories where the worker has them (SPARK_LOCAL_DIRS), so that a killed
    worker's files go with the application; elsewhere in the system's place for temporary files."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return tempfile.TemporaryDirectory(prefix="sqlext-exchange-", dir=places[os.getpid() % len(places)] or None)
