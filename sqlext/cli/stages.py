"""What Spark is doing, on the terminal: stages and tasks of a run that takes longer than two seconds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds before it shows, and between two looks at Spark.
_QUIET_SECONDS = 2.0
_EVERY_SECONDS = 0.25


class StageProgress:
    """A line on stderr: the active stages, how many of their tasks are done, seconds. Only on a terminal.

    Works inside a `with` block; `stop` removes the line earlier, before something else is written to the terminal.
    """

    def __init__(self, spark: SparkSession, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._tracker = spark.sparkContext.statusTracker()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> StageProgress:
        if self._console.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *caught: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the line, for good."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._over.wait(_QUIET_SECONDS):
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn("{task.completed}/{task.total} tasks"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as line:
            task = line.add_task("Running", total=None)
            while not self._over.wait(_EVERY_SECONDS):
                try:
                    stages, done, total = self._active()
                except Exception:  # Spark is being stopped
                    return
                what = f"Stage {', '.join(map(str, stages))}" if stages else "Running"
                line.update(task, description=what, completed=done, total=total or None)

    def _active(self) -> tuple[list[int], int, int]:
        """The active stages, and how many tasks of theirs are done, of how many."""
        stages = sorted(self._tracker.getActiveStageIds())
        found = [info for info in map(self._tracker.getStageInfo, stages) if info is not None]
        return stages, sum(info.numCompletedTasks for info in found), sum(info.numTasks for info in found)
