"""Where the time of a task goes: a stopwatch whose hand always points at one part of one step.

A step is what one entry point does with its rows (the scatter of an input, the run of an operator); a task may have
several, one inside the other. Parts are words as in `measured("sort")`, or a word and what it is about, as in
`measured("evaluate", "total", "IntegerSum")`. The time of a part is without that of the parts inside it, so that the
parts of a task add up to its time. Without `recorded` nothing is measured, and `timed` returns its items.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

Item = TypeVar("Item")
Part = tuple[str, ...]
Clock = Callable[[], float]

#: Taking batches from Spark: the CPU seconds of it.
RECEIVE: Part = ("receive",)
#: Waiting for batches from Spark, and for Spark to take the results.
ELSEWHERE: Part = ("elsewhere",)


@dataclass(frozen=True)
class StepFigures:
    """What a task spent on a step, in seconds by part, and what it counted there (rows, bytes)."""

    step: int
    seconds: dict[Part, float]
    counts: dict[str, int]


class Stopwatch:
    """The seconds of one task; `step` is the one that the task is for. `clock` is wall time, `cpu` this thread's."""

    def __init__(self, step: int, clock: Clock = time.perf_counter, cpu: Clock = time.thread_time) -> None:
        self._clock, self._cpu = clock, cpu
        self._seconds: dict[tuple[int, Part], float] = defaultdict(float)
        self._counts: dict[tuple[int, str], int] = defaultdict(int)
        self._hand = (step, ELSEWHERE)
        self._since = clock()

    @property
    def step(self) -> int:
        """The step that the hand is in."""
        return self._hand[0]

    def turn(self, hand: tuple[int, Part]) -> tuple[int, Part]:
        """Point at a part of a step from now on; returns where the hand was."""
        now = self._clock()
        self._seconds[self._hand] += now - self._since
        before, self._hand, self._since = self._hand, hand, now
        return before

    def taken(self, iterator: Iterator[Item], hand: tuple[int, Part]) -> Iterator[Item]:
        """The items of an iterator; what it does for them counts as `hand`, what their consumer does does not."""
        while True:
            before = self.turn(hand)
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.turn(before)
            yield item

    def received(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches from Spark: taking one is RECEIVE as long as this thread computes, else ELSEWHERE."""
        iterator = iter(batches)
        while True:
            step = self.step
            before, cpu = self.turn((step, ELSEWHERE)), self._cpu()
            start = self._since
            try:
                batch = next(iterator)
            except StopIteration:
                return
            finally:
                self.turn(before)
                computed = min(self._cpu() - cpu, self._since - start)
                self._seconds[(step, ELSEWHERE)] -= computed
                self._seconds[(step, RECEIVE)] += computed
            yield batch

    def count(self, name: str, number: int) -> None:
        """Add to a count of the current step."""
        self._counts[(self.step, name)] += number

    def figures(self) -> tuple[StepFigures, ...]:
        """What was measured until now, by step."""
        self.turn(self._hand)
        steps = {step for step, _ in (*self._seconds, *self._counts)}
        return tuple(
            StepFigures(
                step,
                {name: value for (own, name), value in self._seconds.items() if own == step},
                {name: value for (own, name), value in self._counts.items() if own == step},
            )
            for step in sorted(steps)
        )


#: The stopwatch of the task that this worker runs; a worker runs one at a time.
_watch: Stopwatch | None = None
_OFF = nullcontext()


class _Within:
    """A block of code that counts as a part."""

    def __init__(self, watch: Stopwatch, name: Part) -> None:
        self._watch, self._name = watch, name

    def __enter__(self) -> None:
        self._before = self._watch.turn((self._watch.step, self._name))

    def __exit__(self, *error: object) -> None:
        self._watch.turn(self._before)


def measured(*name: str) -> AbstractContextManager[None]:
    """Wraps code that is a part of the current step. There is no `yield` inside: the consumer's time would count."""
    return _OFF if _watch is None else _Within(_watch, name)


def timed(name: str, items: Iterable[Item]) -> Iterable[Item]:
    """The items; the time that it takes to make them is a part of the step that asks for them."""
    watch = _watch
    return items if watch is None else watch.taken(iter(items), (watch.step, (name,)))


def counted(name: str, number: int) -> None:
    """Add to a count of the current step."""
    if _watch is not None:
        _watch.count(name, number)


def as_step(
    step: int, rest: str, entry: Callable[..., Iterator[pa.RecordBatch]], *args: object
) -> Iterator[pa.RecordBatch]:
    """The batches of `entry(*args)`, whose time and rows ("out") are those of a step; `rest` is for all else."""
    watch = _watch
    if watch is None:
        yield from entry(*args)
        return
    yield from watch.taken(_counted_out(watch, entry(*args)), (step, (rest,)))


def _counted_out(watch: Stopwatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        watch.count("out", batch.num_rows)
        yield batch


def recorded(
    step: int,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
    report: Callable[[tuple[StepFigures, ...]], None],
) -> Iterator[pa.RecordBatch]:
    """The batches of `function(batches)`, a task's; at its end `report` gets what was measured. A task that fails, or
    is left before its end, reports nothing."""
    global _watch
    watch = _watch = Stopwatch(step)
    try:
        yield from function(watch.received(batches))
        report(watch.figures())
    finally:
        _watch = None
