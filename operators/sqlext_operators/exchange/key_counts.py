"""What a bucket of a stream tells about its keys in a micro-batch, from which the planner places them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.columns.times import shown
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import owned_rows

#: Keys that a bucket tells of, those with the most rows, and the least share of its rows that such a key has.
MOST_KEYS, LEAST_SHARE = 16, 1 / 64
#: The longest text of a key, in characters.
_SHOWN = 40


@dataclass(frozen=True)
class CountedKey:
    """A key by its hash, its text, and its new rows of each input that are no copies, the owned input first."""

    key: int
    name: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class BucketReport:
    """pid, placement  the bucket, and the number of the placement that its new rows were routed by (None: no new rows)
    watermark       that of the operator; None before the first
    owned, copied   until when the rows that are kept may be in a result (`stream.Expiry`)
    rows            new rows of each input that are no copies, the owned input first
    keys            those with the most rows
    """

    pid: int
    placement: int | None
    watermark: int | None
    owned: int | None
    copied: int | None
    rows: tuple[int, ...]
    keys: tuple[CountedKey, ...]

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> BucketReport:
        """From JSON."""
        found = json.loads(text)
        keys = tuple(CountedKey(item["key"], item["name"], tuple(item["rows"])) for item in found.pop("keys"))
        return cls(**{**found, "rows": tuple(found["rows"]), "keys": keys})


@dataclass(frozen=True)
class CountedInputs:
    """What is counted: the keys in the columns `keys` of each input, by tag. Rows of the input `owned` are owned."""

    keys: tuple[tuple[str, ...], ...]
    owned: int = 0

    def of(self, blocks: Sequence[Block]) -> tuple[tuple[int, ...], tuple[CountedKey, ...]]:
        """New rows of each input that are no copies, and of its keys with the most of them, the owned input first."""
        inputs = len(self.keys)
        tags, hashes, batches = [], [], []
        for block in blocks:
            own = np.flatnonzero(owned_rows(block.batch))
            if len(own):
                columns = [block.batch.column(name).take(pa.array(own)) for name in self.keys[block.tag]]
                hashes.append(hash_keys(columns) if columns else np.zeros(len(own), np.uint64))
                tags.append(np.full(len(own), self._place(block.tag)))
                batches.append(columns)
        if not hashes:
            return (0,) * inputs, ()
        every, tag = np.concatenate(hashes), np.concatenate(tags)
        found, first, code = np.unique(every, return_index=True, return_inverse=True)
        counts = np.bincount(code * inputs + tag, minlength=len(found) * inputs).reshape(-1, inputs)
        starts = np.cumsum([0, *map(len, hashes)])
        rows = counts.sum(axis=1)
        most = np.argsort(-rows, kind="stable")[:MOST_KEYS]
        most = most[rows[most] >= LEAST_SHARE * len(every)]
        counted = (CountedKey(int(found[n]), _name(batches, starts, int(first[n])), _ints(counts[n])) for n in most)
        return _ints(np.bincount(tag, minlength=inputs)), tuple(counted)

    def _place(self, tag: int) -> int:
        """The place of an input in the counts."""
        return 0 if tag == self.owned else tag + (tag < self.owned)


def _name(batches: Sequence[Sequence[pa.Array]], starts: npt.NDArray[np.int64], row: int) -> str:
    """The text of the key of a row."""
    place = int(np.searchsorted(starts, row, side="right")) - 1
    text = ", ".join(shown(column, row - int(starts[place])) for column in batches[place])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _ints(values: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(values.tolist())
