"""What happens when something breaks: killed workers and executors, cancelled jobs, full disks, files that change
under a query, speculation, lost shuffle files, heavy memory, many threads; streaming queries that are killed, changed,
or run for long.

Every test is slow and runs its Sparks in processes of its own (`harness.py`), so that the Spark of the other tests is
not hurt. Answers are compared with those of DuckDB over the same files.

`SQLEXT_FAULTS=quick make test-all ARGS="tests/faults"` is a pass with small sizes: it runs every probe, but most of the
memory probes then prove nothing about memory. `SQLEXT_SOAK=60` lets the long streaming query run for 60 s, not for 600.
"""

from __future__ import annotations

import os

QUICK = os.environ.get("SQLEXT_FAULTS") == "quick"

#: Rows of each of the tables that the faults meet.
ROWS = 60_000 if QUICK else 200_000
#: Runs of each statement in which something is killed.
RUNS = 1 if QUICK else 2
#: Rows of the memory probes' tables; nine rows of ten have one key.
HOT_ROWS = 1_000_000 if QUICK else 20_000_000
LONG_STRINGS, LONG_STRING_BYTES = (100 if QUICK else 2_000), 1 << 20
WIDE_ROWS, WIDE_COLUMNS = (5_000 if QUICK else 200_000), 500
SINGLE_KEYS = 100_000
NESTED_ROWS = 20_000 if QUICK else 500_000
#: How long several threads share a Session.
THREAD_SECONDS = 10 if QUICK else 60
THREADS = 8
#: The largest Python process may have less than this.
MOST_BYTES = 4 << 30
