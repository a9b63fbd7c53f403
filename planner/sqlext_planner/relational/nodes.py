"""The relational core: what plain Spark SQL can express."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import (
    Column,
    Expression,
    NamedExpr,
    conjunction,
    is_deterministic,
    is_generator,
    is_movable,
)
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, Passed, comma, reads, with_fields

SetKind = Literal["union", "intersect", "except"]


@dataclass(frozen=True)
class Scan(LogicalPlan):
    """Reads a catalog table under an alias: ``FROM orders o`` -> ``Scan: orders AS o``.

    Output columns are ``Column(relation, name)``. `relation` is unique in the whole plan. `watermark` is the name of
    the column with a stream's watermark and `watermark_delay` its delay in milliseconds, None where they are unknown.
    """

    table: str
    relation: str
    fields: tuple[Field, ...]
    is_stream: bool = field(default=False, kw_only=True)
    watermark: str | None = field(default=None, kw_only=True)
    watermark_delay: int | None = field(default=None, kw_only=True)

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        return with_fields(self, fields=tuple(f for f in self.fields if f.column in needed) or self.fields[:1])

    def label(self) -> str:
        alias = "" if self.relation == self.table else f" AS {self.relation}"
        return f"Scan: {self.table}{alias} [{comma(tuple(c.name for c in self.output_columns))}]"


@dataclass(frozen=True)
class SparkRelation(LogicalPlan):
    """A relation left to Spark as text: LATERAL VIEW, PIVOT, TABLESAMPLE, table functions.

    `sql` is a complete query; its columns become ``Column(relation, name)`` by position. The query reads the rows of
    `inputs` as tables: `input_names` has a name for each, and the names of its columns. `because` says why it is
    Spark's where it holds period predicates.
    """

    sql: str
    relation: str
    fields: tuple[Field, ...]
    inputs: tuple[LogicalPlan, ...] = ()
    input_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    because: str = field(default="", compare=False, kw_only=True)
    is_stream: bool = field(default=False, kw_only=True)

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(child, set(child.output_columns)) for child in self.inputs]

    def label(self) -> str:
        return f"SparkRelation: {' '.join(self.sql.split())} AS {self.relation}"


@dataclass(frozen=True)
class Values(LogicalPlan):
    """Literal rows: ``VALUES (1, 'a'), (2, 'b') AS t(x, y)``; also the one empty row of a SELECT without FROM."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]

    def label(self) -> str:
        return "Values: " + comma(tuple(f"({comma(row)})" for row in self.rows))


@dataclass(frozen=True)
class Filter(LogicalPlan):
    """Keeps the rows for which `condition` is true (WHERE, HAVING)."""

    condition: Expression
    child: LogicalPlan

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        return replace(self, condition=self.condition.substitute(mapping))

    def label(self) -> str:
        return f"Filter: {self.condition}"


def filtered(conditions: Iterable[Expression], child: LogicalPlan) -> LogicalPlan:
    """A Filter for all conditions above `child`; `child` itself if there are none."""
    condition = conjunction(tuple(conditions))
    return child if condition is None else Filter(condition, child)


class _SelectItems(LogicalPlan):
    """A node that gives its items, computed from the child's rows, and nothing else."""

    items: tuple[NamedExpr, ...]
    child: LogicalPlan

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        return with_fields(self, items=_kept_items(self.items, needed), child=built(self.child))

    def __post_init__(self) -> None:
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        known = self.child.dtypes
        return tuple(Field(item.column, item.expression.result_type(known)) for item in self.items)


@dataclass(frozen=True)
class Project(_SelectItems):
    """Computes the SELECT items, row by row."""

    items: tuple[NamedExpr, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, reads(_kept_items(self.items, needed)))]

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        return replace(self, items=tuple(item.substitute(mapping) for item in self.items))

    def label(self) -> str:
        return f"Project: {comma(self.items)}"

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms that read only movable items, if the whole projection is deterministic: it is row by row, so rows that
        are dropped early change no other row.

        Not legal for ``(SELECT a, monotonically_increasing_id() AS i FROM t) WHERE a > 5`` (fewer rows are numbered
        differently), nor for ``(SELECT a, rank() OVER (ORDER BY b) AS r FROM t) WHERE a > 5`` (ranks are over all
        rows). A term over a generator's column stays above; others may pass it, since all rows made from one input row
        have the same a.
        """
        if not all(is_deterministic(item.expression) for item in self.items):
            return None
        mapping = {item.column: item.expression for item in self.items}
        passed = [term for term in terms if all(is_movable(mapping[column]) for column in term.references)]
        if not passed:
            return None
        return replace(self, child=filtered([term.substitute(mapping) for term in passed], self.child)), passed


@dataclass(frozen=True)
class Window(LogicalPlan):
    """Appends Spark's own window functions (`OVER` with RANGE, ROWS, GROUPS) to the child's columns."""

    items: tuple[NamedExpr, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        kept = [item for item in self.items if item.column in needed]
        return [(self.child, (needed - {item.column for item in self.items}) | reads(kept))]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        kept = tuple(item for item in self.items if item.column in needed)
        return with_fields(self, items=kept, child=built(self.child)) if kept else built(self.child)

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        return replace(self, items=tuple(item.substitute(mapping) for item in self.items))

    def __post_init__(self) -> None:
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output + tuple(Field(item.column) for item in self.items)

    def label(self) -> str:
        return f"Window: {comma(self.items)}"


@dataclass(frozen=True)
class Aggregate(_SelectItems):
    """GROUP BY. `items` may hold any mix of keys and aggregate functions, as Spark's own Aggregate does.

    `keys` are the grouping expressions. `grouping_sets` lists, for ROLLUP, CUBE and GROUPING SETS, which keys
    (by index) each set holds; None is a plain GROUP BY. No keys at all is one group over everything.
    """

    keys: tuple[Expression, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None
    items: tuple[NamedExpr, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, reads(_kept_items(self.items, needed)) | reads(self.keys))]

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        keys = tuple(key.substitute(mapping) for key in self.keys)
        return replace(self, keys=keys, items=tuple(item.substitute(mapping) for item in self.items))

    def label(self) -> str:
        keys = comma(self.keys)
        if self.grouping_sets is not None:
            sets = comma(tuple(f"({comma(tuple(self.keys[i] for i in s))})" for s in self.grouping_sets))
            keys = f"GROUPING SETS ({sets})"
        return f"Aggregate: [{keys}] {comma(self.items)}"


@dataclass(frozen=True)
class SortKey(Expression):
    """One ORDER BY item; `nulls_first` is always explicit."""

    expression: Expression
    descending: bool
    nulls_first: bool

    @cached_property
    def references(self) -> frozenset[Column]:
        return self.expression.references

    def sql(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expression.sql()} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    def __str__(self) -> str:
        default = self.nulls_first != self.descending
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expression} {direction}" + (
            "" if default else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        )


@dataclass(frozen=True)
class Sort(LogicalPlan):
    """ORDER BY over the whole result."""

    keys: tuple[SortKey, ...]
    child: LogicalPlan

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        return replace(self, keys=tuple(key.map_children(lambda part: part.substitute(mapping)) for key in self.keys))

    def label(self) -> str:
        return f"Sort: {comma(self.keys)}"


@dataclass(frozen=True)
class Limit(LogicalPlan):
    """LIMIT and OFFSET; a None count keeps all rows."""

    count: int | None
    offset: int
    child: LogicalPlan

    def label(self) -> str:
        parts = [str(self.count)] if self.count is not None else ["ALL"]
        return "Limit: " + " ".join(parts + ([f"OFFSET {self.offset}"] if self.offset else []))


@dataclass(frozen=True)
class SetOperation(LogicalPlan):
    """UNION, INTERSECT, EXCEPT by position; output columns are `columns`, one for each position."""

    kind: SetKind
    all: bool
    columns: tuple[Column, ...]
    left: LogicalPlan
    right: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        wanted = set(self._pruned(needed))
        return [(side, by_position(self.columns, side, wanted)) for side in (self.left, self.right)]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        wanted = self._pruned(needed)
        places = [i for i, column in enumerate(self.columns) if column in wanted]
        left, right = (exactly(side, places, built(side)) for side in (self.left, self.right))
        return with_fields(self, columns=wanted, left=left, right=right)

    def _pruned(self, needed: Set[Column]) -> tuple[Column, ...]:
        """The columns that stay: only UNION ALL does not compare rows."""
        if self.kind != "union" or not self.all:
            return self.columns
        return tuple(column for column in self.columns if column in needed) or self.columns[:1]

    def __post_init__(self) -> None:
        if not len(self.left.output) == len(self.right.output) == len(self.columns):
            raise InternalError("the sides of a set operation have the same number of columns")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        pairs = zip(self.columns, self.left.output, self.right.output, strict=True)
        return tuple(Field(c, a.dtype if a.dtype == b.dtype else None) for c, a, b in pairs)

    def expressions(self) -> Iterator[Expression]:  # `columns` are defined here, not read
        return iter(())

    def label(self) -> str:
        return f"SetOperation: {self.kind.upper()}{' ALL' if self.all else ''}"


@dataclass(frozen=True)
class Distinct(LogicalPlan):
    """SELECT DISTINCT."""

    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, set(self.child.output_columns))]


@dataclass(frozen=True)
class SubqueryAlias(LogicalPlan):
    """Gives a query's columns the names of an alias: ``(SELECT ...) AS d`` -> ``Column('d', ...)`` by position.

    The same child object under two aliases is a CTE used twice.
    """

    relation: str
    names: tuple[str, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, by_position(self.output_columns, self.child, needed))]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        name_of = dict(zip(self.child.output_columns, self.names, strict=True))
        new = built(self.child)
        return with_fields(self, names=tuple(name_of[column] for column in new.output_columns), child=new)

    def __post_init__(self) -> None:
        if len(self.names) != len(self.child.output):
            raise InternalError(
                f"alias {self.relation} has {len(self.names)} names for {len(self.child.output)} columns"
            )
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return tuple(
            Field(Column(self.relation, name), item.dtype)
            for name, item in zip(self.names, self.child.output, strict=True)
        )

    def label(self) -> str:
        return f"SubqueryAlias: {self.relation}"

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """All: an alias only renames columns. (A term with a subquery is not movable: its text may name ``d.x``.)"""
        names = dict(zip(self.output_columns, self.child.output_columns, strict=True))
        return replace(self, child=filtered([term.substitute(names) for term in terms], self.child)), terms


@dataclass(frozen=True)
class Output(LogicalPlan):
    """The root of a query: the result's column names as the user wrote them (they may repeat)."""

    names: tuple[str, ...]
    child: LogicalPlan

    def label(self) -> str:
        return f"Output: {comma(self.names)}"


def _kept_items(items: tuple[NamedExpr, ...], needed: Set[Column]) -> tuple[NamedExpr, ...]:
    """The items that are needed or make rows; at least one."""
    return tuple(item for item in items if item.column in needed or is_generator(item.expression)) or items[:1]


def by_position(columns: Sequence[Column], child: LogicalPlan, wanted: Set[Column]) -> set[Column]:
    """The child's columns at the places where `columns` has wanted ones; a child may be narrower."""
    return {theirs for ours, theirs in zip(columns, child.output_columns, strict=False) if ours in wanted}


def exactly(child: LogicalPlan, places: Sequence[int], new: LogicalPlan) -> LogicalPlan:
    """`new`, the narrowed child, with exactly the columns that the child had at `places`."""
    width = len(child.output_columns)
    columns = tuple(child.output_columns[i] for i in places if i < width)
    return new if new.output_columns == columns else Project(tuple(NamedExpr(c, c) for c in columns), new)


@dataclass(frozen=True)
class Hint(LogicalPlan):
    """A hint on the child: ``SELECT /*+ BROADCAST(d) */ ... JOIN d`` is ``Hint: BROADCAST`` above ``Scan: d``.

    A join hint has no parameters and sits above the relation that it names; REPARTITION, COALESCE and the like
    sit above the query's result, with numbers and columns as parameters.
    """

    name: str
    parameters: tuple[Expression, ...]
    child: LogicalPlan

    def label(self) -> str:
        return f"Hint: {self.name}" + (f"({comma(self.parameters)})" if self.parameters else "")
