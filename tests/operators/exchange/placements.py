"""Random placements for tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.placement import KeyPlace, Placement


@st.composite
def placements(
    draw: st.DrawFn, keys: list[pa.Array], times: st.SearchStrategy[int] | None, partitions: int = 4
) -> Placement:
    """Teams for the hash slots and for some of the keys (columns with one row a key); some are cut at `times`."""
    teams = st.lists(st.integers(0, partitions - 1), unique=True, min_size=1).map(tuple)
    slots = draw(st.lists(teams, min_size=4, max_size=4) | st.lists(teams, min_size=1, max_size=1))
    hashes = sorted({int(value) for value in hash_keys(keys)}) if keys else [0]
    chosen = draw(st.lists(st.sampled_from(hashes), unique=True)) if hashes else []
    places = []
    for key in sorted(chosen):
        team = draw(teams)
        cuts: tuple[int, ...] | None = None
        if times is not None and draw(st.booleans()):
            found: set[Any] = draw(st.sets(times, max_size=len(team) - 1))
            cuts, team = tuple(sorted(found)), team[: len(found) + 1]
        places.append(KeyPlace(key, team, cuts))
    return Placement(partitions, tuple(slots), tuple(places))
