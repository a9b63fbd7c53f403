"""Random multi-way joins, planned for the operator and as a cascade, against nested loops. Needs no Spark: the physical
nodes are read here over Python rows, the operator and its routing are the real ones."""

from __future__ import annotations

import itertools
import math
import operator as operators
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.reshape import stacked
from sqlext_operators.exchange.scatter import MatchRouter, Router
from sqlext_operators.umjoin.processor import MultiwayJoin
from sqlext_operators.umjoin.shares_routing import SharesRouter
from sqlext_operators.umjoin.spec import COUNT, MultiwayInput, MultiwayJoinSpec
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction, conjuncts
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Filter, Project, Scan
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.umjoin.execute.cascade import cascade
from sqlext_planner.umjoin.execute.execution import UMJoinExec
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

from tests.properties import examples

Row = dict[Column, Any]
Tables = dict[str, list[tuple[Any, ...]]]

_NAMES = ("id", "x", "y", "z")
_OPERATORS = {"=": operators.eq, "<": operators.lt, "<>": operators.ne}
_COUNT = Column("", "many")


def holds(condition: Expression | None, row: Row) -> bool:
    """Whether a conjunction of comparisons of columns is true for a row."""
    for term in conjuncts(condition):
        assert isinstance(term, Compare)
        assert isinstance(term.left, Column)
        assert isinstance(term.right, Column)
        left, right = row[term.left], row[term.right]
        if left is None or right is None or not _OPERATORS[term.op](left, right):
            return False
    return True


def extended(rows: list[Row], others: list[Row], kind: str, match: Expression | None, columns: Sequence[Column]) -> Any:
    """A binary join by nested loops."""
    for row in rows:
        found = [other for other in others if holds(match, row | other)]
        if kind in ("semi", "anti"):
            if bool(found) == (kind == "semi"):
                yield row
            continue
        if kind == "left" and not found:
            found = [dict.fromkeys(columns)]
        yield from (row | other for other in found)


def scanned(scan: Scan, tables: Tables) -> list[Row]:
    columns = [item.column for item in scan.fields]
    return [dict(zip(columns, values, strict=True)) for values in tables[scan.relation]]


def expected(node: UMJoin, tables: Tables) -> list[Row]:
    """The node's rows as umjoin/nodes.py says it; the inputs that are not inner follow in their order."""
    inputs = [scanned(child, tables) for child in node.inputs if isinstance(child, Scan)]
    inner = [rows for rows, kind in zip(inputs, node.kinds, strict=True) if kind == "inner"]
    rows = [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*inner)]
    have = {
        c for child, kind in zip(node.inputs, node.kinds, strict=True) if kind == "inner" for c in child.output_columns
    }
    first = conjunction([term for term in conjuncts(node.condition) if term.references <= have])
    rows = [row for row in rows if holds(first, row)]
    for child, others, kind, match in zip(node.inputs, inputs, node.kinds, node.matches, strict=True):
        if kind != "inner":
            rows = list(extended(rows, others, kind, match, child.output_columns))
    return [row | {_COUNT: 1} for row in rows if holds(node.condition, row)]


def run(plan: PhysicalPlan, tables: Tables, way: Sequence[int] | int) -> list[Row]:
    """The rows of a physical plan; `way` are the shares of its hypercube, or the partitions of a join by shared key."""
    match plan:
        case SparkExec(Scan() as scan):
            return scanned(scan, tables)
        case SparkExec(Filter(condition), (child,)):
            return [row for row in run(child, tables, way) if holds(condition, row)]
        case SparkExec(Join(kind=kind, condition=condition), (left, right)):
            sides = run(left, tables, way), run(right, tables, way)
            return list(extended(*sides, kind, condition, right.output_columns))
        case SparkExec(Project(items), (child,)):
            rows = run(child, tables, way)
            return [
                {item.column: row[item.expression] if isinstance(item.expression, Column) else 1 for item in items}
                for row in rows
            ]
        case UMJoinExec():
            return operator_rows(plan, [run(child, tables, way) for child in plan.inputs], way)
    raise TypeError(type(plan).__name__)


def operator_rows(plan: UMJoinExec, inputs: list[list[Row]], way: Sequence[int] | int) -> list[Row]:
    """The operator's rows, cell by cell."""
    parts, batches = [], []
    for i, rows in enumerate(inputs):
        held = [columns for columns in plan.layout.columns[i] if columns]
        kept = [row for row in rows if all(len({row[c] for c in columns}) == 1 for columns in held)]
        keys = {f"k{place}": [row[columns[0]] for row in kept] for place, columns in enumerate(held)}
        values = {column.spark_name: [row[column] for row in kept] for column in plan.payload[i]}
        arrays = {name: pa.array(column, pa.int64()) for name, column in {**keys, **values}.items()}
        arrays = arrays or {"none": pa.nulls(len(kept))}
        parts.append(MultiwayInput(plan.kinds[i], plan.layout.classes[i], tuple(keys), tuple(values)))
        batches.append(pa.RecordBatch.from_pydict(arrays))
    spec = MultiwayJoinSpec(tuple(parts), plan.layout.count, plan.count is not None)
    routers: list[Router]
    if isinstance(way, int):
        named = [tuple(item.keys[item.classes.index(place)] for place in spec.shared) for item in parts]
        routers = [MatchRouter(names, (False,) * len(names), keep=False) for names in named]
        cells = way
    else:
        routers = [SharesRouter.of(item, tuple(way)) for item in parts]
        cells = math.prod(way)
    names = {column.spark_name: column for columns in plan.payload for column in columns} | {COUNT: _COUNT}
    found = []
    for cell in range(cells):
        own = [in_cell(batch, router, cells, cell) for batch, router in zip(batches, routers, strict=True)]
        for result in MultiwayJoin(spec, own).batches(3):
            found += [{names[name]: value for name, value in row.items()} for row in rows_of(result)]
    return found


def in_cell(batch: pa.RecordBatch, router: Router, cells: int, cell: int) -> pa.RecordBatch:
    done = 0
    parts = [batch.slice(0, 0)]
    while done < batch.num_rows:
        rest = batch.slice(done)
        routes = router.route(rest, cells)
        rows = range(len(routes.pids)) if routes.rows is None else routes.rows.tolist()
        parts.append(
            rest.take(pa.array([row for row, pid in zip(rows, routes.pids, strict=True) if pid == cell], pa.int64()))
        )
        done += rest.num_rows if routes.done is None else routes.done
    return stacked(parts)


def rows_of(result: pa.RecordBatch) -> list[dict[str, Any]]:
    return result.to_pylist() if result.num_columns else [{}] * result.num_rows


def bag(rows: list[Row], node: UMJoin) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        values = tuple(row[item.column] for item in node.output if item.column != _COUNT)
        found[values] += row[_COUNT] if node.count is not None else 1
    return found


@st.composite
def joins(draw: st.DrawFn) -> tuple[UMJoin, Tables]:
    """Up to six inputs: a random graph of equalities, other comparisons, members of members, payload, counts."""
    aliases = "abcdef"[: draw(st.integers(2, 6))]
    kinds: dict[str, MemberKind] = dict.fromkeys(aliases, "inner")
    for alias in aliases[2:]:
        kinds[alias] = draw(st.sampled_from(("inner", "inner", "left", "semi", "anti")))
    inner = [alias for alias in aliases if kinds[alias] == "inner"]
    name = st.sampled_from(_NAMES[1:])

    def compared(one: str, others: Sequence[str], op: str = "=") -> Compare:
        pair = Column(one, draw(name)), Column(draw(st.sampled_from(others)), draw(name))
        return Compare(op, *(pair if draw(st.booleans()) else pair[::-1]))

    terms: list[Expression] = [compared(inner[place], inner[:place]) for place in range(1, len(inner))]
    more = st.lists(st.sampled_from(("=", "=", "<", "<>")), max_size=3)
    terms += [compared(draw(st.sampled_from(inner)), inner, op) for op in draw(more)]
    there, matches = list(inner), dict[str, Expression | None]()
    for alias in aliases:
        if kinds[alias] == "inner":
            continue
        links: list[Expression] = [compared(alias, there) for _ in range(draw(st.integers(0, 2)))]
        if draw(st.integers(0, 2)) == 0:
            links.append(compared(alias, [*there, alias], draw(st.sampled_from(("<", "<>")))))
        matches[alias] = conjunction(links)
        if kinds[alias] == "left":
            there.append(alias)
    if len(there) > len(inner) and draw(st.booleans()):
        terms.append(compared(there[-1], there, draw(st.sampled_from(("=", "<>")))))
    # Mostly one value: of joins of six inputs with several, nearly all are empty.
    row = st.tuples(*[st.sampled_from((0, 0, 0, 0, 1, 1, None))] * 3)
    sizes = [draw(st.sampled_from((0, 1, 2, 2, 3, 3, 4, 4))) for _ in aliases]
    tables = {
        alias: [(n, *values) for n, values in enumerate(draw(st.lists(row, min_size=size, max_size=size)))]
        for alias, size in zip(aliases, sizes, strict=True)
    }
    wanted = draw(st.lists(st.sampled_from([Column(alias, "id") for alias in there]), unique=True))
    node = UMJoin(
        tuple(Scan(alias, alias, tuple(Field(Column(alias, n), "bigint") for n in _NAMES)) for alias in aliases),
        tuple(kinds[alias] for alias in aliases),
        conjunction(terms),
        tuple(matches.get(alias) for alias in aliases),
        _COUNT if draw(st.booleans()) else None,
        tuple(wanted),
    )
    return node, tables


@examples(300)
@given(case=joins(), data=st.data())
def test_every_way_gives_the_rows_of_nested_loops(case: tuple[UMJoin, Tables], data: st.DataObject) -> None:
    node, tables = case
    inputs = [SparkExec(item) for item in node.inputs if isinstance(item, Scan)]
    rows = bag(expected(node, tables), node)
    plan = cascade(node, inputs)
    assert plan.output_columns == node.output_columns
    assert bag(run(plan, tables, 1), node) == rows
    if ineligible(node) is not None:
        return
    layout = UMJoinSplit.of(node).layout
    shares = data.draw(st.lists(st.integers(1, 3), min_size=layout.count, max_size=layout.count))
    if math.prod(shares) <= 27:
        assert bag(run(operator_plan(node, inputs, "hypercube"), tables, shares), node) == rows
    if layout.shared:
        assert bag(run(operator_plan(node, inputs, "shared key"), tables, data.draw(st.integers(1, 3))), node) == rows
