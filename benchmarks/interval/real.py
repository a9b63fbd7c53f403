"""The real data of the suite `interval`, read from their folder and written in the form of `intervals.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.harness.data import stored

#: The end of a file version that is still current.
OPEN_END = 2_000_000_000


@dataclass(frozen=True)
class RealJoin:
    """Two of the tables (or one with itself), joined by overlap; `pairs` is the known right number.

    `dirty` tables have NULL, empty and reversed periods.
    """

    title: str
    left: str
    right: str
    keyed: bool
    pairs: int
    dirty: bool = False


#: The joins by name. The numbers are those of the data's documentation.
REAL_JOINS: Mapping[str, RealJoin] = {
    "exons-fbrain": RealJoin("exons x fBrain, by contig", "exons", "fbrain", True, 54_246),
    "flights": RealJoin("flights x flights", "flights", "flights", False, 1_659_442, dirty=True),
    "git-keyed": RealJoin("git x git, by folder", "git", "git", True, 144_154_812),
    "git": RealJoin("git x git", "git", "git", False, 667_688_502),
}


def read_real(name: str, folder: Path) -> pa.Table:
    """A table (git, exons, fbrain or flights) with the columns id, k, ts and te.

    Raises FileNotFoundError if its files are not in `folder`.
    """
    files, read = _TABLES[name]
    paths = [folder / file for file in files]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(path)
    k, ts, te = read(pa.concat_tables([pq.read_table(path) for path in paths]))
    columns = {"id": pa.array(np.arange(len(k))), "k": k.cast(pa.string()), "ts": ts.cast(pa.int64())}
    return pa.table({**columns, "te": te.cast(pa.int64())})


def write_real(join: RealJoin, source: Path, root: Path) -> tuple[Path, Path]:
    """The paths of both sides below `root`, written if they are missing. Raises what `read_real` raises."""

    def written(name: str) -> Path:
        return stored(root / f"{name}.parquet", lambda: read_real(name, source))

    return written(join.left), written(join.right)


Columns = tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]


def _git(table: pa.Table) -> Columns:
    return table["dir"], table["ts"], pc.fill_null(table["te"], OPEN_END)


def _genome(table: pa.Table) -> Columns:
    return table["contig"], table["pos_start"], table["pos_end"]


def _flights(table: pa.Table) -> Columns:
    """Departure and arrival in minutes."""
    minutes = [
        pc.divide(pc.strptime(table[name], "%Y-%m-%d %H:%M:%S", "s").cast(pa.int64()), 60)
        for name in ("dep_time", "arr_time")
    ]
    return table["tail_num"], minutes[0], minutes[1]


_TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[pa.Table], Columns]]] = {
    "git": (("git_file_versions.parquet",), _git),
    "exons": (("exons_0.parquet", "exons_1.parquet"), _genome),
    "fbrain": (("fBrain-DS14718_0.parquet", "fBrain-DS14718_1.parquet"), _genome),
    "flights": (("bts_flights_50k.parquet",), _flights),
}
