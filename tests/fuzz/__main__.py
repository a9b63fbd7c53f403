"""``python -m tests.fuzz --count 100000 --seed 1 [--resume]``: plan mutants and print what is wrong."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import multiprocessing
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.told import bugs_told

from .check import check
from .corpus import corpus
from .mutants import mutant

_CHUNK = 250
_SECONDS = 30
_sources: Any = None


class SlowError(BaseException):
    """A statement takes too long; no handler of the planner's may catch it."""


def _alarm(*_: object) -> None:
    raise SlowError


def _chunk(task: tuple[int, int, int]) -> tuple[int, list[tuple[int, str, float, str | None, bool]]]:
    """The verdicts of some mutants."""
    global _sources
    if _sources is None:
        _sources = corpus()
        signal.signal(signal.SIGALRM, _alarm)
    seed, start, end = task
    found: list[tuple[int, str, float, str | None, bool]] = []
    with bugs_told():
        for number in range(start, end):
            try:
                signal.alarm(_SECONDS)
                verdict = check(mutant(_sources, seed, number))
                found.append((number, verdict.kind, verdict.seconds, verdict.fault, verdict.placed))
            except SlowError:
                found.append((number, "slow", float(_SECONDS), f"takes more than {_SECONDS} s", True))
            finally:
                signal.alarm(0)
    return end, found


def main() -> int:
    """0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on where the last run of this seed ended")
    parser.add_argument("--state", type=Path, default=Path(".fuzz-state.json"), help="where a run notes how far it is")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print one mutant and what comes of it")
    options = parser.parse_args()
    if options.show is not None:
        return _show(options.seed, options.show)
    done = json.loads(options.state.read_text()) if options.resume and options.state.exists() else {}
    first = done.get(str(options.seed), options.start)
    end = options.start + options.count
    tasks = [(options.seed, at, min(end, at + _CHUNK)) for at in range(first, end, _CHUNK)]
    kinds: collections.Counter[str] = collections.Counter()
    faults: dict[str, list[int]] = {}
    without, slowest, started = 0, (0.0, 0), time.time()
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        for reached, found in pool.map(_chunk, tasks):
            for number, kind, seconds, fault, placed in found:
                kinds[kind] += 1
                without += not placed
                slowest = max(slowest, (seconds, number))
                if fault is not None:
                    if fault not in faults:
                        print(f"mutant {number}: {fault}", flush=True)
                    faults.setdefault(fault, []).append(number)
            options.state.write_text(json.dumps(done | {str(options.seed): reached}))
            if reached % 5000 == 0:
                print(f"{reached - first} done in {time.time() - started:.0f} s: {dict(kinds)}", flush=True)
    total = sum(kinds.values())
    print(f"{total} mutants in {time.time() - started:.0f} s: {dict(kinds)}; {without} errors without a place")
    print(f"slowest: mutant {slowest[1]}, {slowest[0]:.2f} s; {sum(map(len, faults.values()))} wrong")
    for fault, numbers in sorted(faults.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers):6} x {fault} (mutants {', '.join(map(str, numbers[:5]))})")
    return 1 if faults else 0


def _show(seed: int, number: int) -> int:
    source = mutant(corpus(), seed, number)
    print(source.sql)
    with bugs_told():
        print(f"[{source.compat}]", check(source))
    return 0


if __name__ == "__main__":
    sys.exit(main())
