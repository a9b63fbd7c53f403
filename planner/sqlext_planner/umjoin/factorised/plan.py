"""Factorised aggregates: an aggregate over a multi-way join without making the join's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlext_planner.expressions.aggregates import COUNT, function_of, weighted_items
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, SparkExpr, conjunction
from sqlext_planner.expressions.typed import FunctionCall
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Project
from sqlext_planner.umjoin.factorised.inputs import Classes, Members, NotFactorisedError, members
from sqlext_planner.umjoin.factorised.query import (
    FactorisedQuery,
    Result,
    count_of,
    mean,
    one_or,
    one_row,
    over_join,
    product_of,
    read_query,
    rows,
    sum_of_counts,
    unmatched,
)
from sqlext_planner.umjoin.factorised.tree import Edge, JoinTree, join_tree


def factorise(node: Aggregate, sizes: Sequence[float | None] | None = None) -> Project | str:
    """The aggregate over a UMJoin as aggregates over its inputs, multiplied along a join tree: a plan with its columns,
    types and rows. Why there is none, in words.

    ``SELECT a.g, count(*), sum(b.v) FROM a, b, c WHERE a.k = b.k AND b.j = c.j GROUP BY a.g``, where p is the sum of
    b.v and n are numbers of rows::

        Aggregate: [a.g] sum(n_a * n_b), sum(n_a * p_b)
          Join: inner ON a.k = b.k
            Aggregate: [a.k, a.g] count(*) AS n_a
              Scan: a
            Aggregate: [b.k] sum(n_c) AS n_b, sum(b.v * n_c) AS p_b
              Join: inner ON b.j = c.j
                Scan: b
                Aggregate: [c.j] count(*) AS n_c
                  Scan: c

    Message passing over a join tree (Yannakakis 1981, with the semiring of FAQ, Abo Khamis et al. 2016): every input is
    reduced to its key classes and the values to carry (an input between others is not), joined with its children's
    messages, and aggregated to what its parent joins on. `sizes` are the rows of the inputs, to choose the root.

    Legal because a joined row is a choice of one row of each input that agree on the classes, and inputs apart in the
    tree share only what the inputs between them have: for each value there, the numbers of choices multiply,
    and sums over one input's rows multiply with the numbers of the others. min, max and DISTINCT do not see
    multiplicities. A left input without a match counts as one row of NULLs; semi and anti inputs filter the input that
    they are looked up from. Not legal, so there is a reason: inputs in a cycle (a triangle's rows are no
    product), terms over several inputs (``a.x < c.y``), arguments over several (``sum(a.x * b.y)``), aggregates that
    see single rows (``collect_list(a.x)``, ``stddev(a.x)``).

    Exact: results are Spark's for counts, whole numbers and decimals; if the true count or sum is beyond bigint, the
    query fails in both ANSI modes (without ANSI Spark would wrap). A sum within bigint is returned even where
    Spark's running sum may overflow. Sums of doubles add in another order and multiply by counts: they differ in the
    last digits.
    """
    try:
        query = read_query(node)
        found = members(query.classes)
        wanted = [[number for number, _ in homes] for homes in query.pieces.values()]
        tree = join_tree(query.classes, found.lefts, wanted, sizes or [None] * len(query.classes.join.inputs))
    except NotFactorisedError as error:
        return str(error)
    return _Fold(query, found, tree).result(node)


class _Fold:
    """Builds the plan from the leaves of a join tree to its root."""

    def __init__(self, query: FactorisedQuery, found: Members, tree: JoinTree) -> None:
        self.query = query
        self.members = found
        self.tree = tree
        self.homes: dict[Expression, tuple[int, Expression]] = {
            whole: min(homes, key=lambda home: tree.depths[home[0]]) for whole, homes in query.pieces.items()
        }
        #: The column that carries a piece.
        self.columns: dict[Expression, Column] = {
            whole: own if isinstance(own, Column) else Column("", f"__sqlext_g{number}")
            for number, (whole, (_, own)) in enumerate(self.homes.items())
        }

    def result(self, node: Aggregate) -> Project:
        """The last aggregation, and the user's items over it."""
        plan = self._joined(self.tree.root)
        keys = tuple(NamedExpr(self._over_pieces(key.expression), key.column) for key in self.query.keys)
        results = [NamedExpr(self._result(item), item.column) for item in self.query.results.values()]
        top = Aggregate(tuple(key.expression for key in keys), None, (*keys, *results), plan)
        return Project(tuple(self.query.items), top, span=node.span)

    def _over_pieces(self, expression: Expression) -> Expression:
        if expression in self.columns:
            return self.columns[expression]
        return expression.substitute({whole: own for whole, own in self.columns.items() if isinstance(whole, Column)})

    def _result(self, result: Result) -> Expression:
        root = self.tree.root
        if result.is_distinct:
            return self._distinct(result.call)
        if not result.partials:
            return count_of(_count(root), "count")
        values = [(self.query.partials[number], _partial(number, root)) for number in result.partials]
        if function_of(result.call) == "avg":
            return mean(values[0][0], values[0][1], values[1][1])
        partial, value = values[0]
        return partial.result(value)

    def _distinct(self, call: FunctionCall) -> Expression:
        parts: list[str | Expression] = [f"{function_of(call)}(DISTINCT "]
        for place, argument in enumerate(call.arguments):
            parts += ([", "] if place else []) + [self._over_pieces(argument)]
        parts.append(")")
        if call.condition is not None:
            parts += [" FILTER (WHERE ", self._over_pieces(call.condition), ")"]
        return SparkExpr.of(*parts, dtype="bigint" if call.name == "count" else call.dtype)

    def _message(self, number: int, edge: Edge) -> LogicalPlan:
        """The subtree of `number`, one row for each combination of its join columns and of what it carries."""
        if not self.tree.children(number):
            return self._reduced(number)
        plan = self._joined(number)
        columns = tuple(dict.fromkeys((*edge.child_columns, *self._carried(number))))
        merged = [NamedExpr(sum_of_counts(_count(number)), _count(number))]
        for place in self._partials(number):
            value = _partial(place, number)
            merged.append(NamedExpr(self.query.partials[place].merged(value), value))
        return _aggregate([NamedExpr(column, column) for column in columns], merged, plan)

    def _joined(self, number: int) -> LogicalPlan:
        """Input `number`, reduced and joined with the messages of its children, with products for its own counts."""
        plan = self._reduced(number)
        edges = self.tree.children(number)
        for edge in edges:
            message = self._message(edge.child, edge)
            plan = Join(plan, message, "left" if edge.left else "inner", conjunction(list(edge.terms)))
        return self._multiplied(number, edges, plan) if edges else plan

    def _multiplied(self, number: int, edges: tuple[Edge, ...], plan: LogicalPlan) -> Project:
        """Numbers of rows, and partial results times the numbers of rows of the other inputs."""
        counts: dict[int, Expression] = {} if self._is_kept(number) else {number: _count(number)}
        for edge in edges:
            counts[edge.child] = one_or(_count(edge.child)) if edge.left else _count(edge.child)
        above = self.tree.above(number)
        kept = dict.fromkeys((*(above.child_columns if above else ()), *self._carried(number)))
        items = [NamedExpr(column, column) for column in kept]
        many = self.query.sees_multiplicity
        items.append(NamedExpr(product_of(list(counts.values())) if many else one_row(), _count(number)))
        for place in self._partials(number):
            partial = self.query.partials[place]
            origin = next((edge for edge in edges if partial.owner in self.tree.below(edge.child)), None)
            side = number if origin is None else origin.child
            value: Expression = _partial(place, side)
            absent = partial.of_nothing() if origin is not None and origin.left else None
            if absent is not None:
                value = unmatched(_count(side), absent, value, partial.type)
            others = [count for child, count in counts.items() if child != side]
            items.append(NamedExpr(partial.times(value, others), _partial(place, number)))
        return Project(tuple(items), plan)

    def _is_kept(self, number: int) -> bool:
        """Whether an input's rows are joined with its children's messages as they are.

        An input between others seldom has fewer combinations of its join columns than rows, and one more aggregation
        costs one more shuffle; on one column it does. CPU seconds for count and sum over 4 x 1M rows, ten of each key
        (1e9 result rows), kept and reduced: 5.4 to 7.5 and 9.7 as a chain, 6.9 and 3.9 to 4.3 as a star on one key.
        """
        edges = self.tree.children(number)
        above = self.tree.above(number)
        columns = {column for edge in edges for column in edge.parent_columns}
        return bool(edges) and len(columns | set(above.child_columns if above else ())) > 1

    def _reduced(self, number: int) -> LogicalPlan:
        """An input by the columns that it is joined on and what it carries: numbers of rows, partial results.

        An input that is kept has these columns for each row.
        """
        above = self.tree.above(number)
        wanted = list(above.child_columns if above else ())
        for edge in self.tree.children(number):
            wanted += edge.parent_columns
        keys = {column: column for column in wanted} | {
            self.columns[whole]: local for whole, (home, local) in self.homes.items() if home == number
        }
        is_kept = self._is_kept(number)
        partials = [
            NamedExpr(partial.of_row() if is_kept else partial.of_rows(), _partial(place, number))
            for place, partial in enumerate(self.query.partials)
            if partial.owner == number
        ]
        named = [NamedExpr(expression, column) for column, expression in keys.items()]
        if is_kept:
            return Project((*named, *partials), self.members.plans[number])
        return _aggregate(named, [NamedExpr(rows(), _count(number)), *partials], self.members.plans[number])

    def _carried(self, number: int) -> tuple[Column, ...]:
        """The columns of pieces in the subtree of `number`."""
        below = self.tree.below(number)
        return tuple(dict.fromkeys(self.columns[whole] for whole, (home, _) in self.homes.items() if home in below))

    def _partials(self, number: int) -> tuple[int, ...]:
        below = self.tree.below(number)
        return tuple(place for place, partial in enumerate(self.query.partials) if partial.owner in below)


def _aggregate(keys: list[NamedExpr], items: list[NamedExpr], plan: LogicalPlan) -> Aggregate:
    """One row for each group; no row if there are no rows, even without keys."""
    grouping = tuple(key.expression for key in keys) or (SparkExpr(("true",), dtype="boolean"),)
    return Aggregate(grouping, None, (*keys, *items), plan)


def _count(number: int) -> Column:
    return Column("", f"__sqlext_n{number}")


def _partial(place: int, number: int) -> Column:
    return Column("", f"__sqlext_p{place}_{number}")


def counted(node: Aggregate) -> Aggregate | None:
    """``Aggregate(count(*), sum(v))`` over a UMJoin -> the same over its counts: ``sum(n), sum(v * n)``.

    ``SELECT a.g, count(*), sum(a.v) FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.z = a.z GROUP BY a.g``::

        Aggregate: [a.g] count(*), sum(a.v)          Aggregate: [a.g] coalesce(sum(n), 0L), sum(a.v * n)
          UMJoin: a, b, c ON ...               ->      UMJoin: a, b, c ON ... PAYLOAD [a.g, a.v] AS n
            Scan: a [x, z, g, v]                         Scan: a [x, z, g, v]
            ...                                          ...

    Pays off for joins that cannot be factorised (cycles): inputs without payload are counted, not enumerated.

    Legal for any kinds of inputs, because a row of `UMJoin.count` stands for n > 0 joined rows that are equal in the
    payload, and keys and arguments read nothing else. Columns of a key class that have one value are taken from one
    input, so that few inputs have payload. count(*) is the sum of n, sum and avg weigh by n in types that lose nothing;
    min, max and DISTINCT do not see multiplicities. None for aggregates that see single rows (``collect_list``), for
    grouping sets, and where every input would have payload: then there is nothing to count. Arguments may read several
    inputs (``sum(a.x * c.y)``): their columns are in one row. Counter-example: a term that a Filter in between
    would decide (``a.x < c.y``) must be one of the join's own, which the operator checks before it counts.
    """
    if node.grouping_sets is not None:
        return None
    try:
        keys, items, join = over_join(node)
        classes = Classes(join)
        read = frozenset(column for item in (*keys, *items) for column in item.references)
        partners = _partners(classes, read)
    except NotFactorisedError:
        return None
    new_keys = tuple(key.substitute(partners) for key in keys)
    new_items = weighted_items(keys, items, partners, classes.dtypes)
    if new_items is None:
        return None
    wanted = {column for item in (*new_keys, *new_items) for column in item.references} - {COUNT}
    payload = tuple(field.column for field in join.joined if field.column in wanted)
    if len({classes.owner[column] for column in payload}) == sum(kind in ("inner", "left") for kind in join.kinds):
        return None
    return Aggregate(new_keys, None, new_items, replace(join, count=COUNT, payload=payload), span=node.span)


def _partners(classes: Classes, read: frozenset[Column]) -> dict[Column, Column]:
    """For columns of a key class, the same value in another input: one with payload anyway, else the first with it."""
    fixed = {classes.owner[column] for column in read if column not in classes.of}
    partners: dict[Column, Column] = {}
    for column in sorted(read & classes.of.keys(), key=str):
        homes = [number for number in classes.inner if classes.same(column, number) is not None]
        home = next((number for number in homes if number in fixed), homes[0])
        fixed.add(home)
        partner = classes.same(column, home)
        if partner is not None and partner != column:
            partners[column] = partner
    return partners
