"""Runs joins in a separate environment: one JSON request per line on standard input, one JSON answer per line out.

Started by the interpreter of a peer's environment as ``python child.py ENGINE``; imports nothing of this project.

A request for a join of periods has `left` and `right` (Parquet files with the columns id, k, ts, te), `conditions`
([left column, operator, right column, shift]: left + shift operator right), `keyed` (join on k too), `dirty` (some
periods are NULL, empty or reversed and match nothing), `query` ("pairs", "sums" or "count"), `memory` (whether the
tables are read before the clock starts) and `threads`. The answer has `seconds`, `rows` (the number of pairs) and,
except for a count, `checksums` (l and r, the sums of both ids, and mix, the sum of l * (r % 1009)), or `error`. The
clock stops when all pairs exist, for "sums" when they are summed up.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

Measure = Callable[[dict[str, Any]], dict[str, Any]]


def main() -> None:
    """Answer requests until the input ends."""
    channel = sys.stdout
    sys.stdout = sys.stderr  # an engine's own output must not get between the answers
    measure: Measure = importlib.import_module(f"engine_{sys.argv[1]}").measure
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line))
        except Exception as error:  # the parent reports it as this contestant's failure
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        channel.write(json.dumps(answer) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
