"""Forks three processes, as Spark's daemon forks its workers, each of which runs a window: python compiling.py PATH

PATH is where `sqlext_operators` is. Prints a line of JSON for each process: the seconds of CPU of importing and of
running, and how many kernels numba found in its cache (hits) and compiled (misses).
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    for _ in range(3):
        process = os.fork()
        if process == 0:
            try:
                _work()
            except Exception:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(process, 0)[1]:
            sys.exit("a process failed")


def _work() -> None:
    begin = time.process_time()
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.sequences.sequence import Piece
    from sqlext_operators.window.processor import WindowUnionProcessor
    from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

    imported = time.process_time()
    names = ("sum", "avg", "min", "max", "distinct_count")
    window = Window(Frame("range", -30, 0), (), tuple(Call(name, ("x",), name) for name in names))
    spec = WindowUnionSpec(("k",), "ts", ("id",), (window,))
    processor = WindowUnionProcessor(spec, {"x": pa.int64()}, pa.schema([("id", pa.int64())]))
    order = np.arange(1_000)
    rows = pa.RecordBatch.from_pydict({"id": pa.array(order)})
    piece = Piece(np.zeros(1_000, np.int64), order, np.zeros(1_000, np.uint8), {"x": pa.array(order)}, rows)
    assert sum(batch.num_rows for batch in processor.process(piece, True)) == 1_000
    seconds = {"import": round(imported - begin, 2), "run": round(time.process_time() - imported, 2)}
    print(json.dumps({**seconds, **_cache()}), flush=True)


def _cache() -> dict[str, int]:
    """What numba's cache did for the kernels that were called."""
    import gc

    from numba.core.dispatcher import Dispatcher

    called = [item.stats for item in gc.get_objects() if isinstance(item, Dispatcher) and item.overloads]
    hits, misses = (sum(sum(found[at].values()) for found in called) for at in (1, 2))
    return {"hits": hits, "misses": misses}


if __name__ == "__main__":
    main()
