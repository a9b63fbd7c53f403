import random, sys
import pytest
from sqlext import Session
from .test_random_windows import *


@pytest.mark.parametrize("seed", [101, 103, 105, 106, 109, 110])
def test_alone(spark, session, seed):
    rng = random.Random(seed)
    null_order = seed % 3 == 1
    tables = random_tables(rng, spark, null_order=null_order)
    windows = [random_window(rng, null_order=null_order, following=seed % 2 == 0) for _ in range(4)]
    chosen = [(rng.choice(AGGREGATES), place) for place in range(len(windows)) for _ in range(8)]
    for w in range(4):
        check(session, tables, [windows[w]], [(a, 0, f"{a.sql} OVER w0") for a, place in chosen if place == w])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_compat(spark, seed):
    rng = random.Random(2000 + seed)
    tables = random_tables(rng, spark, null_order=False)
    windows = [random_window(rng, null_order=False, following=False) for _ in range(2)]
    windows.append(WindowDef("ROWS", Bound(3), Bound(0)))
    windows.append(WindowDef("ROWS", Bound(None), Bound(0), partition_by=("k2",)))
    chosen = [(rng.choice(AGGREGATES), place) for place in range(len(windows)) for _ in range(6)]
    s = Session(spark, compat="openmldb")
    for w in range(4):
        check(s, tables, [windows[w]], [(a, 0, f"{a.sql} OVER w0") for a, place in chosen if place == w])
