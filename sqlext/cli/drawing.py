"""Drawings as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(inches: tuple[float, float]) -> Figure:
    """An empty drawing. Raises ConfigurationError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "drawing the chart needs matplotlib",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[bench]'",
        ) from error
    return Figure(figsize=inches, layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """Write it. Raises ConfigurationError if the format or the path is not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise ConfigurationError(
            f"cannot draw {path}: {error}", condition="file-access", help="use .png, .svg or .pdf"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}", condition="file-access") from error
