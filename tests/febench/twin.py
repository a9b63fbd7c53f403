"""A small interpreter of the SQL that FEBench's scripts use: every row by itself, in plain Python.

It shares the parser with the product and nothing else. Windows are those of tests/sql/oracle.py, LAST JOIN is that of
docs/reference/last-join.md: `=` never matches NULL; the largest ORDER BY value wins, NULL only if there is no other;
among equals, and without ORDER BY, the last row of the right side.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from sqlext.syntax.nodes import Duration, FrameSpec, LastJoinClause, UnionWindow
from sqlext.syntax.parser import parse
from tests.sql.oracle import Bound, WindowDef, evaluate

from .scripts import Table
from .values import AGGREGATES, SCALARS, ZEROS, Moment, null_safe

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Field:
    """A column of a relation: the name of the table it may be asked by, its own name (lower case), its Spark type."""

    table: str
    name: str
    dtype: str


@dataclass(frozen=True)
class Relation:
    """Rows in their order under named columns."""

    fields: tuple[Field, ...]
    rows: list[Row]

    def called(self, table: str) -> Relation:
        return Relation(tuple(Field(table.lower(), field.name, field.dtype) for field in self.fields), self.rows)

    def place(self, column: exp.Column) -> int:
        table, name = column.table.lower(), column.name.lower()
        found = [i for i, f in enumerate(self.fields) if f.name == name and table in ("", f.table)]
        assert len(found) == 1, (column.sql(), found)
        return found[0]


@dataclass(frozen=True)
class Frame:
    """What a call over a window sees: the rows of the frame and of the history, newest first."""

    rows: list[Row]
    history: list[Row]


def run(sql: str, tables: Mapping[str, Table], wanted: Sequence[int] | None = None) -> Relation:
    """The rows of a query over the tables; with `wanted`, only the rows at these places of its FROM."""
    query = parse(sql, compat="openmldb").query
    assert query is not None
    return _Interpreter(tables).query(query, wanted)


class _Interpreter:
    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables = {name.lower(): table for name, table in tables.items()}

    def query(self, node: exp.Expr, wanted: Sequence[int] | None = None) -> Relation:
        node = node.this if isinstance(node, exp.Subquery) else node
        assert isinstance(node, exp.Select)
        assert not {"where", "group", "having", "order", "limit", "with_"} & {k for k, v in node.args.items() if v}
        source = self.source(node.args["from_"].this)
        for join in node.args.get("joins") or []:
            source = self.last_join(source, join)
        return _Block(self, node, source, range(len(source.rows)) if wanted is None else wanted).result()

    def source(self, node: exp.Expr) -> Relation:
        if isinstance(node, exp.Subquery):
            return self.query(node.this).called(node.alias)
        table = self.tables[node.name.lower()]
        name = (node.alias or node.name).lower()
        fields = tuple(Field(name, column.lower(), dtype) for column, dtype in table.columns)
        return Relation(fields, list(table.rows))

    def last_join(self, left: Relation, join: exp.Expr) -> Relation:
        assert isinstance(join, LastJoinClause)
        right = self.source(join.this)
        both = Relation(left.fields + right.fields, [])
        order = join.args["order"].expressions[0].this if join.args.get("order") else None
        place = right.place(order) if order is not None else None
        nothing = (None,) * len(right.fields)
        rows = []
        for row in left.rows:
            matches = [other for other in right.rows if value(join.args["on"], both, row + other) is True]
            rows.append(row + (_last(matches, place) if matches else nothing))
        return Relation(both.fields, rows)


def _last(matches: list[Row], place: int | None) -> Row:
    if place is None:
        return matches[-1]
    winner = max(range(len(matches)), key=lambda i: (matches[i][place] is not None, matches[i][place] or 0, i))
    return matches[winner]


class _Block:
    """One SELECT over a finished FROM."""

    def __init__(self, interpreter: _Interpreter, node: exp.Select, source: Relation, wanted: Sequence[int]) -> None:
        self.interpreter, self.node, self.source, self.wanted = interpreter, node, source, wanted
        self.windows = {window.this.name.lower(): window for window in node.args.get("windows") or []}
        self.frames: dict[str, list[Frame]] = {}

    def result(self) -> Relation:
        fields: list[Field] = []
        columns: list[list[Any]] = []
        for item in self.node.expressions:
            if isinstance(item, exp.Star):
                fields += [Field("", field.name, field.dtype) for field in self.source.fields]
                columns += [[self.source.rows[n][i] for n in self.wanted] for i in range(len(self.source.fields))]
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias_or_name.lower() if isinstance(item, (exp.Alias, exp.Column)) else ""
            fields.append(Field("", name, _type(inner, self.source)))
            columns.append([self.at(inner, n, self.source.rows[n]) for n in self.wanted])
        return Relation(tuple(fields), list(zip(*columns, strict=True)))

    def at(self, node: exp.Expr, number: int, row: Row) -> Any:
        def over(window: exp.Window) -> Any:
            frame = self.frame_of(window.args["alias"].name.lower())[number]
            if window is node and window.this.name.lower() in ("at", "lag"):  # a whole item: rows of the sequence
                argument, places = window.this.expressions[0], int(window.this.expressions[1].name)
                return value(argument, self.source, frame.history[places]) if places < len(frame.history) else None
            return value(window.this, self.source, row, frame)

        return value(node, self.source, row, over=over)

    def frame_of(self, name: str) -> list[Frame]:
        if name not in self.frames:
            self.frames[name] = self.evaluated(self.windows[name])
        return self.frames[name]

    def evaluated(self, window: exp.Window) -> list[Frame]:
        names = [field.name for field in self.source.fields]
        unions = [self.interpreter.source(node) for node in window.args.get("union") or []]
        assert isinstance(window, UnionWindow) == bool(unions)
        assert all(
            [(f.name, f.dtype) for f in u.fields] == [(f.name, f.dtype) for f in self.source.fields] for u in unions
        )

        def dicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
            return [{**dict(zip(names, row, strict=True)), "": row} for row in rows]

        def frame(rows: list[dict[str, Any]], history: list[dict[str, Any]]) -> Frame:
            return Frame([row[""] for row in rows], [row[""] for row in history])

        definition = _definition(window)
        base, others = dicts(self.source.rows), [dicts(union.rows) for union in unions]
        return evaluate(base, others, definition, frame, frozenset(self.wanted))


def _definition(window: exp.Window) -> WindowDef:
    spec = window.args["spec"]
    order = window.args["order"].expressions[0].this
    unit: Literal["ROWS", "ROWS_RANGE"] = "ROWS" if spec.args["kind"] == "ROWS" else "ROWS_RANGE"
    maxsize = spec.args.get("maxsize")
    return WindowDef(
        unit,
        _bound(spec, "start"),
        _bound(spec, "end"),
        partition_by=tuple(column.name.lower() for column in window.args["partition_by"]),
        order_by=order.name.lower(),
        maxsize=int(maxsize.name) if maxsize is not None else None,
        exclude_current_row=bool(spec.args.get("exclude_current_row")),
        exclude_current_time=bool(spec.args.get("exclude_current_time")),
        instance_not_in_window=bool(spec.args.get("instance_not_in_window")),
        ticks=1000,
    )


def _bound(spec: exp.Expr, side: str) -> Bound:
    amount = spec.args[side]
    assert spec.args[f"{side}_side"] == "PRECEDING"
    is_open = isinstance(spec, FrameSpec) and bool(spec.args.get(f"{side}_open"))
    if isinstance(amount, Duration):
        return Bound(int(amount.this.name), open=is_open, unit=amount.args["unit"].name)
    return Bound(int(amount.name), open=is_open)


_OPERATORS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.LT: operator.lt,
    exp.GT: operator.gt,
    exp.Mul: operator.mul,
    exp.Div: lambda left, right: None if right == 0 else left / right,
    exp.Sub: lambda left, right: left.shifted(-right) if isinstance(left, Moment) else left - right,
}


def value(
    node: exp.Expr,
    source: Relation,
    row: Row,
    frame: Frame | None = None,
    over: Callable[[exp.Window], Any] = lambda window: None,
) -> Any:
    """The value of an expression on one row; `frame` is the window that a call in it belongs to."""

    def of(child: exp.Expr) -> Any:
        return value(child, source, row, frame, over)

    match node:
        case exp.Column():
            return row[source.place(node)]
        case exp.Literal():
            return node.name if node.is_string else float(node.name) if "." in node.name else int(node.name)
        case exp.Null():
            return None
        case exp.Paren():
            return of(node.this)
        case exp.Window():
            return over(node)
        case exp.Not():
            inner = of(node.this)
            return None if inner is None else not inner
        case exp.And():
            sides = (of(node.left), of(node.right))
            return False if False in sides else None if None in sides else True
        case exp.Case():
            chosen = next((branch.args["true"] for branch in node.args["ifs"] if of(branch.this) is True), None)
            last = node.args.get("default") if chosen is None else chosen
            return None if last is None else of(last)
        case exp.Anonymous():
            return _call(node, source, row, frame, of)
        case exp.Binary():
            return null_safe(_OPERATORS[type(node)])(of(node.left), of(node.right))
    raise AssertionError(f"FEBench does not use {node!r}")


def _call(node: exp.Anonymous, source: Relation, row: Row, frame: Frame | None, of: Callable[[exp.Expr], Any]) -> Any:
    name, arguments = node.name.lower(), node.expressions
    if name in SCALARS:
        return SCALARS[name](*map(of, arguments))
    assert frame is not None, f"{name} needs a window"

    def each(argument: exp.Expr) -> list[Any]:
        return [value(argument, source, other, frame) for other in frame.rows]

    match name:
        case "at":
            place = int(arguments[1].name)
            return each(arguments[0])[place] if place < len(frame.rows) else None
        case "count_where":
            values, conditions = each(arguments[0]), each(arguments[1])
            return sum(v is not None and c is True for v, c in zip(values, conditions, strict=True))
        case "distinct_count":
            zero = ZEROS[_type(arguments[0], source)]
            return len({zero if v is None else v for v in each(arguments[0])})
    return AGGREGATES[name](each(arguments[0]), *(int(literal.name) for literal in arguments[1:]))


def _type(node: exp.Expr, source: Relation) -> str:
    """The type of what a union or distinct_count needs to know; '?' for anything else."""
    match node:
        case exp.Column():
            return source.fields[source.place(node)].dtype
        case exp.Literal() if node.is_string:
            return "string"
        case exp.Anonymous() if node.name.lower() in ("int", "bigint", "double", "timestamp"):
            return str(node.name.lower())
    return "?"
