"""One meaning, shown: rows of a request table are replayed through a deployment, and each answer is compared with
batch over the rows that were stored before it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.expressions.nodes import TaskColumn
from sqlext_operators.serving.steps import BranchStep, LastJoinStep, ProjectStep, ServingSpec, Step, WindowStep
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.spark.session import active_kept
from sqlext_planner.spark.versions import arrow_table
from sqlglot import exp

from sqlext.analyzer.union import is_by_name
from sqlext.serving.deployment import Deployment
from sqlext.syntax.parser import parse
from sqlext.syntax.spans import span_of

if TYPE_CHECKING:
    from sqlext_operators.arrays import Int64s

    from sqlext.session import Session

#: The column that tells the request table's rows apart.
ROW = "__sqlext_row"
#: Sums of doubles depend on the order of adding in their last digits.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """A row whose answer is not that of batch: the request, the answer and the row of batch."""

    request: Mapping[str, Any]
    answer: Mapping[str, Any]
    batch: Mapping[str, Any]


@dataclass
class Verification:
    """How many rows were asked, and those that differ."""

    rows: int = 0
    differences: list[Difference] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.rows - len(self.differences)} of {self.rows} rows equal"


def verify(session: Session, deployment: Deployment, rows: int = 500) -> Verification:
    """Replay `rows` rows of the request table of a deployment that has no rows yet, spread over the table, and all rows
    of its tables, in the order of their times. They are read from the session's tables of the same names.

    Batch runs once over all rows: for most rows nothing that came later matters. Where it differs from the answer,
    batch runs again over what was stored before. Raises UnsupportedError for a statement whose rows cannot be told
    apart.
    """
    with active_kept(session.spark):
        return _Replay(session, deployment).run(rows)


class _Replay:
    def __init__(self, session: Session, deployment: Deployment) -> None:
        from sqlext.session import Session

        self._session, self._deployment = session, deployment
        #: Views of parts of the tables hide no table of the user's there.
        self._own = Session(session.spark.newSession(), compat=session.compat)
        for setting in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
            self._own.spark.conf.set(setting, str(session.spark.conf.get(setting)))
        self._sql = with_row(deployment.sql, deployment.compat, deployment.request)
        #: Those of batch: with ROW in the text, a column without an alias has another name.
        self._names = session.sql(deployment.sql).columns
        spark = session.spark
        analyzed = session.plan(deployment.sql).analyzed
        unread = {scan.table for scan in analyzed.collect(Scan)} - set(deployment.spec.tables) if analyzed else set()
        for name in unread:  # no answer needs it, and the text names it
            self._own.spark.createDataFrame(arrow_table(spark.table(name))).createOrReplaceTempView(name)
        self._tables = {name: arrow_table(spark.table(name)).combine_chunks() for name in deployment.spec.tables}
        request = deployment.request
        numbers = pa.array(np.arange(self._tables[request].num_rows))
        self._numbered = self._tables[request].append_column(ROW, numbers)
        self._times = {name: self._time_codes(name) for name in self._tables}

    def run(self, rows: int) -> Verification:
        """The replay."""
        request = self._deployment.request
        count = self._tables[request].num_rows
        asked = set(np.unique(np.linspace(0, max(0, count - 1), min(rows, count)).astype(int)).tolist())
        by_time = np.argsort(self._times[request], kind="stable").tolist()
        answers: dict[int, dict[str, Any]] = {}
        before: dict[int, dict[str, int]] = {}
        stored = dict.fromkeys(self._tables, 0)
        orders = {name: np.argsort(times, kind="stable") for name, times in self._times.items()}
        for number in by_time:
            time = int(self._times[request][number])
            for name in self._tables:
                if name != request:
                    due = int(np.searchsorted(self._times[name][orders[name]], time, side="right"))
                    self._push(name, orders[name][stored[name] : due])
                    stored[name] = max(stored[name], due)
            if number in asked:
                row = self._tables[request].slice(number, 1).to_pylist()[0]
                answers[number] = self._deployment.answer(row)
                before[number] = dict(stored)
            self._push(request, np.array([number]))
            stored[request] += 1
        return self._compared(answers, before, orders)

    def _push(self, name: str, places: Int64s) -> None:
        if len(places):
            self._deployment.push(name, self._tables[name].take(pa.array(places)))

    def _compared(
        self, answers: Mapping[int, dict[str, Any]], before: Mapping[int, dict[str, int]], orders: Mapping[str, Int64s]
    ) -> Verification:
        verification = Verification(len(answers))
        every = self._batch({name: orders[name] for name in self._tables})
        for number, answer in answers.items():
            if same(answer, every[number]):
                continue
            parts = {name: orders[name][: before[number][name]] for name in self._tables}
            request = self._deployment.request
            parts[request] = np.append(parts[request], number)
            exact = self._batch(parts)[number]
            if not same(answer, exact):
                row = self._tables[request].slice(number, 1).to_pylist()[0]
                verification.differences.append(Difference(row, answer, exact))
        return verification

    def _batch(self, parts: Mapping[str, Int64s]) -> dict[int, dict[str, Any]]:
        """The rows of batch over some rows of each table, by the numbers of the request rows."""
        spark, request = self._session.spark, self._deployment.request
        for name, places in parts.items():
            table = self._numbered if name == request else self._tables[name]
            columns = [f"CAST(`{item.name}` AS {item.dataType.simpleString()})" for item in spark.table(name).schema]
            frame = self._own.spark.createDataFrame(table.take(pa.array(places))).coalesce(1)
            frame.selectExpr(*columns, *([ROW] if name == request else [])).createOrReplaceTempView(name)
        found = self._own.sql(self._sql)
        columns = found.columns
        shown = [place for place, name in enumerate(columns) if name != ROW]
        return {
            row[columns.index(ROW)]: dict(zip(self._names, (row[place] for place in shown), strict=True))
            for row in found.collect()
        }

    def _time_codes(self, name: str) -> Int64s:
        """int64[rows], the codes of a table's times; the smallest one where it has none."""
        table = self._tables[name]
        column = _time_column(self._deployment.spec, name)
        if column is None:
            return np.full(table.num_rows, NULL_ORDER)
        return order_with_nulls(table.column(column).combine_chunks())


def same(answer: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether an answer has the values of a row of batch, doubles but for their last digits."""
    return answer.keys() == row.keys() and all(_equal(value, row[name]) for name, value in answer.items())


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        both = math.isnan(value) and math.isnan(other)
        return both or math.isclose(value, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_equal, value, other))
    return bool(value == other)


def _time_column(spec: ServingSpec, table: str) -> str | None:
    """The column of a table by whose times its rows are kept or asked; None if it has none."""
    for item in spec.inputs:
        if item.table == table and item.kept.order is not None:
            found = _origin(item.steps, item.kept.order)
            if found is not None:
                return found
    if table != spec.request:
        return None
    return _asked_time(spec.steps)


def _asked_time(steps: tuple[Step, ...]) -> str | None:
    """The column of the request table by whose times a step looks for rows."""
    for place, step in enumerate(steps):
        if isinstance(step, BranchStep):
            column = _asked_time(step.steps)
            if column is not None:
                return column
        name = step.window.order if isinstance(step, WindowStep) else None
        if isinstance(step, LastJoinStep):
            name = next((right.until for right in step.rights if right.until is not None), None)
        column = None if name is None else _origin(steps[:place], name)
        if column is not None:
            return column
    return None


def _origin(steps: tuple[Any, ...], name: str) -> str | None:
    """The column of a table that a column behind some steps is; None if it is computed."""
    for step in reversed(steps):
        if isinstance(step, ProjectStep):
            expression = dict(step.columns).get(name)
            if not isinstance(expression, TaskColumn):
                return None
            name = expression.name
    return name


def with_row(sql: str, compat: str | None, request: str | None = None) -> str:
    """The query with the column ROW of its request table (the first one of FROM) at the end of its select list, and
    NULL in the sources of UNION that are to have FROM's columns.

    Raises UnsupportedError where that cannot be written.
    """
    statement = parse(sql, compat=compat)
    select: Any = statement.query
    edits: list[tuple[int, str]] = []
    chain: set[int] = set()
    while True:
        place = span_of(select.expressions[-1]) if isinstance(select, exp.Select) and select.expressions else None
        source = None if place is None else select.args["from_"].this
        if place is None or not isinstance(source, exp.Table | exp.Subquery):
            raise UnsupportedError(
                "rows of this query cannot be told apart", condition="not-servable", help="write SELECT ... FROM table"
            ).with_sql(sql)
        chain.add(id(select))
        edits.append((place.end, f", {source.alias_or_name}.{ROW}" if source.alias_or_name else f", {ROW}"))
        if isinstance(source, exp.Table):
            break
        select = source.this
    assert isinstance(source, exp.Table)
    assert statement.query is not None
    name = (request or source.name).split(".")[-1].lower()
    for window in statement.query.find_all(exp.Window):
        outer = window.parent_select
        if outer is None or is_by_name(window) or not _has_row(outer.args["from_"].this, name, chain):
            continue
        for one in window.args.get("union") or []:
            if not _has_row(one, name, set()):
                edits += _with_null(one)
    for end, text in sorted(dict.fromkeys(edits), key=lambda edit: edit[0], reverse=True):
        sql = sql[:end] + text + sql[end:]
    return sql


def _has_row(source: Any, request: str, chain: set[int]) -> bool:
    """Whether a table or subquery has the column ROW: it is the request table, or has all columns of what has it."""
    if isinstance(source, exp.Table):
        return source.name.lower() == request
    select = source.this
    if not isinstance(select, exp.Select):
        return False
    stars = any(item.is_star for item in select.expressions)
    return id(select) in chain or (stars and _has_row(select.args["from_"].this, request, chain))


def _with_null(source: Any) -> list[tuple[int, str]]:
    """The edits that give NULL as ROW to a source of UNION."""
    null = f", CAST(NULL AS BIGINT) AS {ROW}"
    place = span_of(source)
    if isinstance(source, exp.Table) and place is not None:
        return [(place.start, f"(SELECT *{null} FROM "), (place.end, ")")]
    last = span_of(source.this.expressions[-1]) if isinstance(source.this, exp.Select) else None
    return [] if last is None else [(last.end, null)]
