"""Many cases in several processes, each with a Spark of its own; goes on where it stopped, stops at no failure."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .checker import BLOCK, Checker, Outcome, shown
from .generator import FEATURES

#: A case that takes longer than this is a failure, and its process starts anew.
PATIENCE = 600
#: Blocks after which a process starts anew: Spark's heap fills slowly.
BLOCKS_A_PROCESS = 60


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    found.add_argument("--count", type=int, default=400, help="statements")
    found.add_argument("--start", type=int, default=0, help="number of the first one")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--workers", type=int, default=2, help="processes")
    found.add_argument("--resume", type=Path, help="file of what is done; failures go to FILE.failures")
    found.add_argument("--only", choices=list(FEATURES), help="one feature at the top of every statement")
    found.add_argument("--with", dest="switches", default="", help="names,settings: odd names, settings of the parser")
    found.add_argument("--show", type=int, default=0, metavar="N", help="print N failures")
    found.add_argument("--case", metavar="SEED:NUMBER", help="run one case and print all of it")
    found.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return found


def switches(options: argparse.Namespace) -> frozenset[str]:
    return frozenset(filter(None, options.switches.split(",")))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every statement was right."""
    options = parser().parse_args(arguments)
    if options.worker:
        return work(options)
    if options.case:
        return replay(options)
    return Run(options).run()


def start() -> Any:
    """A small quiet Spark with one core."""
    from sqlext.embedded import start_spark
    from tests.quick_spark import INTERPRETED, LONG_JAVA, QUIET_UI, READY_WORKERS, remember_names
    from tests.spark_versions.older import complete

    complete()
    remember_names()
    # the second compiler earns what it costs after some hundreds of statements: 1.2 a second become 1.9
    os.environ["SPARK_SUBMIT_OPTS"] = LONG_JAVA
    return start_spark(
        "local[1]",
        {
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "1",
            "spark.shuffle.compress": "false",
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
            **QUIET_UI,
            **READY_WORKERS,
            **INTERPRETED,
        },
    )


def replay(options: argparse.Namespace) -> int:
    """One case, with its data, plan, and the smallest data on which it still fails."""
    seed, number = (int(part) for part in options.case.split(":"))
    with tempfile.TemporaryDirectory(prefix="sqlext-diff-") as folder:
        checker = Checker(start(), Path(folder))
        case, outcome = checker.run(seed, number, only=options.only, switches=switches(options))
        smallest, scale = outcome, 1.0
        while outcome.kind == "wrong" and scale > 0.02:
            _, again = checker.run(seed, number, only=options.only, switches=switches(options), scale=scale / 2)
            if again.kind != "wrong":
                break
            smallest, scale = again, scale / 2
        checker.load(seed, number, scale)
        print(shown(case, smallest, checker.data))
        print(f"outcome: {outcome.kind}; smallest share of the data with it: {scale}")
        from sqlext import Session

        for key, value in case.spark.items():
            checker.spark.conf.set(key, value)
        try:
            session = Session(checker.spark, config=case.ours)
            for name, query in case.statement.views:
                session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
            text = f"EXPLAIN {case.statement.sql}"
            print("\n".join(row[0] for row in session.sql(text, args=case.statement.args or None).collect()))
        except Exception as error:  # the outcome has been printed, this is more of it
            print(f"no plan: {error}")
    return 0 if outcome.kind in ("ok", "refused") else 1


def work(options: argparse.Namespace) -> int:
    """Reads blocks as lines of JSON (lists of numbers), runs their cases, writes a line for each."""
    # Spark and its workers write to stdout now and then: the lines go where nobody else writes
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="sqlext-diff-") as folder:
        checker = Checker(start(), Path(folder))
        for line in sys.stdin:
            for number in json.loads(line):
                print(json.dumps({"started": number}), file=out, flush=True)
                case, outcome = checker.run(options.seed, number, only=options.only, switches=switches(options))
                found: dict[str, Any] = {
                    "number": number,
                    "kind": outcome.kind,
                    "feature": case.statement.feature,
                    "seconds": round(outcome.seconds, 3),
                    "rows": outcome.rows,
                }
                if outcome.kind not in ("ok", "refused"):
                    found["shown"] = shown(case, outcome)
                elif outcome.kind == "refused":
                    found["refusal"] = outcome.detail[:200]
                print(json.dumps(found), file=out, flush=True)
            print(json.dumps({"block": "done"}), file=out, flush=True)
        checker.close()
    return 0


def _end_with_parent(parent: int) -> None:
    """Ends this process and its JVM when nobody reads its lines any more."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


class Run:
    """Deals blocks out to processes, counts, and writes down what is done."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.kinds: Counter[str] = Counter()
        self.features: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.done: set[int] = set()
        self.resume: Path | None = options.resume
        if self.resume is not None and self.resume.exists():
            for line in self.resume.read_text().splitlines():
                number, kind, feature = line.split()
                self.done.add(int(number))
                self.kinds[kind] += 1
                self.features[feature] += 1
        self.blocks: queue.Queue[list[int]] = queue.Queue()
        numbers = [n for n in range(options.start, options.start + options.count) if n not in self.done]
        by_block: dict[int, list[int]] = {}
        for number in numbers:
            by_block.setdefault(number // BLOCK, []).append(number)
        for block in by_block.values():
            self.blocks.put(block)
        self.total, self.started, self.fresh, self.last = len(numbers), time.time(), 0, 0.0
        self.shown = 0

    def run(self) -> int:
        threads = [threading.Thread(target=self._serve) for _ in range(self.options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._progress(force=True)
        bad = sum(n for kind, n in self.kinds.items() if kind not in ("ok", "refused"))
        print(f"features: {dict(self.features)}")
        return 1 if bad else 0

    def _serve(self) -> None:
        """One process after the other, until no block is left."""
        while not self.blocks.empty():
            command = [sys.executable, "-m", "tests.differential", "--worker", "--seed", str(self.options.seed)]
            command += ["--with", self.options.switches] if self.options.switches else []
            command += ["--only", self.options.only] if self.options.only else []
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            try:
                for _ in range(BLOCKS_A_PROCESS):
                    try:
                        block = self.blocks.get_nowait()
                    except queue.Empty:
                        break
                    left = self._deal(process, block)
                    if left is not None:
                        if left:
                            self.blocks.put(left)
                        break
            finally:
                _end(process)

    def _deal(self, process: subprocess.Popen[str], block: list[int]) -> list[int] | None:
        """Runs a block; gives what is left of it if the process died or hung, else None."""
        assert process.stdin is not None
        assert process.stdout is not None
        left, current = list(block), block[0]
        try:
            process.stdin.write(json.dumps(block) + "\n")
            process.stdin.flush()
        except OSError:
            pass  # it has died: the next line says so
        while True:
            timer = threading.Timer(PATIENCE, lambda: _kill(process))
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                self._note(
                    {
                        "number": current,
                        "kind": "died",
                        "feature": "-",
                        "shown": f"=== {self.options.seed}:{current} the process died or hung\n",
                    }
                )
                return [n for n in left if n != current]
            found = json.loads(line)
            if "block" in found:
                return None
            if "started" in found:
                current = found["started"]
                continue
            left.remove(found["number"])
            self._note(found)

    def _note(self, found: dict[str, Any]) -> None:
        with self.lock:
            self.kinds[found["kind"]] += 1
            self.features[found["feature"]] += 1
            self.fresh += 1
            if self.resume is not None:
                with self.resume.open("a") as file:
                    file.write(f"{found['number']} {found['kind']} {found['feature']}\n")
            if "shown" in found:
                if self.shown < self.options.show:
                    print(found["shown"], flush=True)
                    self.shown += 1
                if self.resume is not None:
                    with Path(f"{self.resume}.failures").open("a") as file:
                        file.write(found["shown"] + "\n")
            self._progress()

    def _progress(self, force: bool = False) -> None:
        now = time.time()
        if force or now - self.last > 10:
            self.last = now
            rate = self.fresh / max(0.001, now - self.started)
            counts = ", ".join(f"{kind} {n}" for kind, n in sorted(self.kinds.items()))
            print(f"{self.fresh}/{self.total} statements, {rate:.1f}/s: {counts}", flush=True)


def _kill(process: subprocess.Popen[str]) -> None:
    """The process and its JVM."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.wait()


__all__ = ["Outcome", "main"]
