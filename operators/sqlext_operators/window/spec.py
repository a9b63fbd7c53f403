"""What a window-union operator has to compute: plain frozen data, picklable, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scalar = int | float | str | bool | None


@dataclass(frozen=True)
class Frame:
    """Which rows of the sequence are in the window of a FROM row (openmldb.md section 3).

    `start` and `end` are signed distances from the current row: in rows for ``unit="rows"``, in units of the
    order column for ``unit="range"`` (microseconds for a timestamp); None is UNBOUNDED. OPEN bounds are
    already folded in (``5 OPEN PRECEDING`` is -4). ``end == 0 and not end_following`` is CURRENT ROW:
    for a range frame it takes union rows of the same key and *earlier* FROM ties, not later ones.
    `end_following` says that the end was written FOLLOWING with n > 0: every row up to the bound is in, later
    ties included. `start_following` likewise for the start (then the current row is not in a range frame).
    Only one of maxsize (range frames only) and None; rows are counted from the newest.
    """

    unit: Literal["rows", "range"]
    start: int | None
    end: int | None
    start_following: bool = False
    end_following: bool = False
    maxsize: int | None = None
    exclude_current_row: bool = False
    exclude_current_time: bool = False
    instance_not_in_window: bool = False


@dataclass(frozen=True)
class Call:
    """One aggregate over one window. `args` name columns of the inputs, `constants` are literal arguments."""

    function: str
    args: tuple[str, ...]
    output: str
    constants: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Window:
    """A frame over FROM (source 0) and the union sources listed, first listed is the newest at equal keys."""

    frame: Frame
    sources: tuple[int, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class WindowUnionSpec:
    """All windows that share partition keys and order, so one exchange and one sort.

    `keys` and `order` name columns present in every input; `payload` names the FROM columns that are passed
    through. The operator's output is the payload, then one column for each call, windows in order.
    `ansi` makes integer overflow of sums an error; otherwise sums wrap at their type's width.
    """

    keys: tuple[str, ...]
    order: str | None
    payload: tuple[str, ...]
    windows: tuple[Window, ...]
    ansi: bool = False
