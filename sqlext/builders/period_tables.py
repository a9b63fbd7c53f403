"""Operations over periods in FROM: what `Query.normalize`, `gaps`, `concurrent` and `difference` read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlext.builders.computed import ComputedColumns, column_title
from sqlext.builders.expressions import Expr, PeriodLike, period_of
from sqlext.builders.text import Block, Source, Subquery, Writer, opened_table, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext.builders.select import Runner

_WRITTEN = re.compile(r"\s*PERIOD\s*(CLOSED\s*)?\(", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Periods:
    """An input: its rows, their key and their period, and the arguments that these came from."""

    source: Source
    keys: tuple[Expr, ...]
    period: PeriodLike
    source_from: str = "the input"
    keys_from: str = "partition_by"
    period_from: str = "period"

    def write(self, writer: Writer, runner: Runner, method: str) -> None:
        """Append ``source PARTITION BY keys PERIOD (start, end)``. Computed Columns are made in the source."""
        period = _clause(period_of(self.period))
        source, name = opened_table(self.source)
        computed = ComputedColumns(runner, source, (*self.keys, period), ())
        # In parentheses it is no column, whose name the result would get.
        columns = {id(column): f"({made})" for made, column in computed.columns.items()}
        with writer.block(Block(columns, opened=computed.opened if columns else None)):
            with writer.argument(f"{self.source_from} of {method}"):
                writer.source(source)
            writer.write("" if name is None else f" AS {name}")
            for number, key in enumerate(self.keys):
                writer.write(", " if number else " PARTITION BY ")
                with writer.argument(f"{self.keys_from} of {method}"):
                    writer.write(key)
                title = key.name or column_title(runner, source, key)
                writer.write("" if title is None else f" AS {quoted(title)}")
            writer.write(" ")
            with writer.argument(f"{self.period_from} of {method}"):
                writer.write(period)


@dataclass(frozen=True, eq=False)
class PeriodTable(Subquery):
    """An operation over the periods of one input, or of one without those of another, as SQL's `word` has it."""

    runner: Runner = field(repr=False)
    word: str
    method: str
    periods: Periods
    removed: Periods | None = None

    def write(self, writer: Writer) -> None:
        writer.write("SELECT * FROM ")
        self.write_input(writer)

    def write_input(self, writer: Writer) -> None:
        writer.write(f"{self.word}(")
        self.periods.write(writer, self.runner, self.method)
        if self.removed is not None:
            writer.write(" EXCEPT ")
            self.removed.write(writer, self.runner, self.method)
        writer.write(")")

    def df(self) -> DataFrame:
        return self.runner.table(self).df()

    @property
    def table(self) -> None:
        return None


def _clause(period: Expr) -> Expr:
    """The period behind the word PERIOD: a struct as its one operand."""
    first = period.parts[0]
    if isinstance(first, str) and _WRITTEN.match(first):
        return period
    return Expr(("PERIOD(", period, ")"))
