"""The process that sends requests: pickled jobs on standard input, pickled results on standard output."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.serving.load import serve_jobs

if __name__ == "__main__":
    asyncio.run(serve_jobs(sys.stdin.buffer, sys.stdout.buffer))
