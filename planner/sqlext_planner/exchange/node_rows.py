"""What was measured of each node of a plan: of our tasks, of Spark's operators, and what the nodes around it tell.

Our tasks know their node. Spark's do not: Catalyst moves filters, joins inputs in another order and merges projections.
An operator of Spark belongs to the node that reads the same relations and does the same kind of work; what a join or an
aggregate needs besides (exchanges, sorts) belongs to the node of the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.exchange.figures import NodeFigures
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Hint,
    Limit,
    Output,
    Project,
    SetOperation,
    Sort,
    SubqueryAlias,
    Window,
)
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.spark_exec import SparkExec

if TYPE_CHECKING:
    from sqlext_planner.spark.plans import SparkOperator

#: Nodes that give each row of their child once.
_SAME_ROWS = (Project, Output, SubqueryAlias, Hint, Sort, Window)
#: Which nodes an operator of Spark may do the work of, by a word in its name.
_KINDS: Mapping[str, tuple[type[LogicalPlan], ...]] = {
    "Filter": (Filter,),
    "Join": (Join,),
    "CartesianProduct": (Join,),
    "Aggregate": (Aggregate, Distinct, SetOperation),
    "Window": (Window,),
    "Limit": (Limit,),
    "TakeOrdered": (Limit,),
    "Sort": (Sort,),
    "Union": (SetOperation,),
}
#: The work of exchanges is that of the operator above them.
_SERVES = "Exchange"
#: Where rows go to Python and come back: that is what our tasks measure.
_PYTHON = ("MapInArrow", "MapInPandas")
_WIRE = frozenset(("pid", "tag", "block"))


def plan_figures(
    plan: PhysicalPlan,
    reported: Sequence[NodeFigures],
    ran: SparkOperator | None,
    columns: Mapping[int, frozenset[int]],
    results: Mapping[int, int],
) -> list[NodeFigures]:
    """The figures of every node of the plan, in its order, then those of no node.

    `reported` are figures of tasks, `ran` is the plan that Spark ran, `columns` are Catalyst's ids of each node's
    columns, `results` the rows of nodes that are known, by the nodes' ids.
    """
    nodes = list(plan.walk())
    by_node = {id(node): NodeFigures(node) for node in nodes} | {id(item.node): item for item in reported}
    if ran is not None:
        homes = _Homes(nodes, columns)
        homes.settle(ran)
        for key, operators in homes.found.items():
            by_node[key].spark = tuple(replace(item, below=()) for item in operators)
        counted = {key: _rows_of(homes.nodes[key], operators) for key, operators in homes.found.items()}
    else:
        counted = {}
    known = _RowCounts(by_node, counted, results)
    known.from_above(plan, None)
    known.from_below(plan)
    return [by_node[id(node)] for node in nodes] + [item for item in reported if item.node is None]


def _rows_of(node: PhysicalPlan, operators: Sequence[SparkOperator]) -> int | None:
    """The rows of a node's result as its operators tell: the last of those that do its kind of work, else of all."""
    same = [item for item in operators if _does(item, node)]
    return next((item.rows for item in same or operators if item.rows is not None), None)


def _passes_on(node: PhysicalPlan) -> bool:
    """Whether a node gives each row of its child once."""
    return node.stands_for_child or (isinstance(node, SparkExec) and isinstance(node.node, _SAME_ROWS))


def _does(operator: SparkOperator, node: PhysicalPlan) -> bool:
    """Whether an operator of Spark does the kind of work that a node asks Spark for."""
    if not isinstance(node, SparkExec):
        return False
    if not node.children:
        return not operator.below
    return any(word in operator.name and isinstance(node.node, kinds) for word, kinds in _KINDS.items())


@dataclass
class _Homes:
    """Which node each operator of Spark works for; `found` has the operators by the id of the node, the last one of the
    work first. `columns` are Catalyst's ids of each node's own columns."""

    ordered: Sequence[PhysicalPlan]
    columns: Mapping[int, frozenset[int]]
    found: dict[int, list[SparkOperator]] = field(default_factory=dict)
    floors: dict[int, PhysicalPlan | None] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> dict[int, PhysicalPlan]:
        return {id(node): node for node in self.ordered}

    @cached_property
    def subtrees(self) -> dict[int, frozenset[int]]:
        """The ids of each node and those below it."""
        return {id(node): frozenset(map(id, node.walk())) for node in self.ordered}

    @cached_property
    def parents(self) -> dict[int, PhysicalPlan]:
        """One parent of each node but the root."""
        return {id(child): node for node in reversed(self.ordered) for child in node.children}

    @cached_property
    def marks(self) -> dict[int, frozenset[int | str]]:
        """What columns of a node and those below it are recognised by: Catalyst's ids, and names with a relation."""
        found: dict[int, frozenset[int | str]] = {}
        self._marked(self.ordered[0], found)
        return found

    def _marked(self, node: PhysicalPlan, found: dict[int, frozenset[int | str]]) -> frozenset[int | str]:
        if id(node) not in found:
            names = {column.spark_name for column in node.output_columns if column.relation}
            below = (self._marked(child, found) for child in node.children)
            found[id(node)] = frozenset(names).union(self.columns.get(id(node), ()), *below)
        return found[id(node)]

    def settle(
        self, operator: SparkOperator, above: PhysicalPlan | None = None, inherited: frozenset[int | str] = frozenset()
    ) -> None:
        """Find the nodes of an operator and of those below it; `above` is that of the operator above, whose columns
        are `inherited` as long as it has no other input."""
        marks = self._marks(operator, inherited)
        is_python = operator.name.startswith(_PYTHON)
        node = above
        if not is_python and operator.names != _WIRE:
            node = self._home(operator, marks, above) or above
            if node is not None and operator.tells:
                self.found.setdefault(id(node), []).append(operator)
        passed = marks if len(operator.below) == 1 and not is_python else frozenset[int | str]()
        for item in operator.below:
            self.settle(item, node if marks else None, passed)

    def _marks(self, operator: SparkOperator, inherited: frozenset[int | str]) -> frozenset[int | str]:
        """The columns of an operator and those below it that nodes have. Ids alone may be those of two nodes that read
        one table, names are not: those of the operators above tell more."""
        known = self.marks[id(self.ordered[0])]
        marks = frozenset(mark for item in operator.walk() for mark in (*item.names, *item.ids) if mark in known)
        is_named = any(isinstance(mark, str) for mark in marks)
        return marks if is_named or not inherited else inherited

    def _home(
        self, operator: SparkOperator, marks: frozenset[int | str], above: PhysicalPlan | None
    ) -> PhysicalPlan | None:
        """The node that an operator works for; None if its columns are of no node."""
        start = self._start(operator, marks)
        if start is None or (_SERVES in operator.name and above is not None):
            return above
        for node in self._upwards(start):
            if _does(operator, node) or (node.is_extension and len(node.children) > 1):
                return node
        reads_only = all(not item.below or "Filter" in item.name or item.name == "Project" for item in operator.walk())
        return start if reads_only or above is None else above

    def _start(self, operator: SparkOperator, marks: frozenset[int | str]) -> PhysicalPlan | None:
        """The smallest node that has all columns, and of which the operators below do no more than a part."""
        if not marks:
            return None
        floors = {id(found) for item in operator.below if (found := self._floor(item)) is not None}
        fitting = [node for node in self.ordered if marks <= self.marks[id(node)] and floors <= self.subtrees[id(node)]]
        return min(reversed(fitting), key=lambda node: len(self.subtrees[id(node)]), default=None)

    def _floor(self, operator: SparkOperator) -> PhysicalPlan | None:
        """The node whose kind of work an operator does, else that of the operators below it."""
        if id(operator) not in self.floors:
            start = self._start(operator, self._marks(operator, frozenset()))
            same = (node for node in self._upwards(start) if _does(operator, node)) if start is not None else iter(())
            self.floors[id(operator)] = next(same, start)
        return self.floors[id(operator)]

    def _upwards(self, start: PhysicalPlan) -> Iterator[PhysicalPlan]:
        """A node, and those above it as long as they only select rows and columns of it."""
        yield start
        node = self.parents.get(id(start))
        while node is not None and len(node.children) == 1:
            yield node
            if isinstance(node, SparkExec) and isinstance(node.node, (Aggregate, Distinct, Limit, Window)):
                return
            node = self.parents.get(id(node))


@dataclass
class _RowCounts:
    """Fills in the rows that nobody counted. `counted` are those that Spark's operators tell, by the id of the node."""

    found: Mapping[int, NodeFigures]
    counted: Mapping[int, int | None]
    results: Mapping[int, int]
    asked: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)

    def from_above(self, node: PhysicalPlan, rows: int | None) -> None:
        """A node gives so many rows, as what is above it tells; None: that does not tell."""
        figures = self.found[id(node)]
        if id(node) in self.asked and (rows is None or figures.rows is not None):
            return
        self.asked.add(id(node))
        figures.rows = self.results.get(id(node), rows)
        inputs = self._inputs(figures)
        same = _passes_on(node)
        for number, child in enumerate(node.children):
            self.from_above(child, figures.rows if same else inputs.get(number))
            if number in figures.read:
                self._read(child, figures.read[number])

    def _inputs(self, figures: NodeFigures) -> Mapping[int, int]:
        """The rows of the children that tasks have read, where each was read once."""
        numbers = [*figures.inputs, *figures.held_rows]
        if figures.node is None or sorted(numbers) != list(range(len(figures.node.children))):
            return {}
        return dict(zip(figures.inputs, figures.rows_in, strict=True)) | figures.held_rows

    def _read(self, node: PhysicalPlan, rows: int) -> None:
        """Tasks have read so many rows of the files below a node."""
        while len(node.children) == 1:
            (node,) = node.children
        if not node.children:
            self.found[id(node)].rows = rows

    def from_below(self, node: PhysicalPlan) -> None:
        """What Spark's operators, the operator's own tasks or its children say of a node."""
        if id(node) in self.done:
            return
        self.done.add(id(node))
        for child in node.children:
            self.from_below(child)
        figures = self.found[id(node)]
        below = [self.found[id(child)].rows for child in node.children]
        same = _passes_on(node)
        told = [self.counted.get(id(node)), *(figures.rows_out if len(figures.rows_out) == 1 else ())]
        told += below if same else []
        if figures.rows is None:
            figures.rows = next((rows for rows in told if rows is not None), None)
        if not figures.by_tasks and None not in below:
            figures.rows_in = tuple(rows for rows in below if rows is not None)
