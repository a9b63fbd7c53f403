"""Aggregates over a multi-way join whose rows are counted instead of made."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.weighted_aggregates import weighted
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.umjoin.factorised.classes import Classes, NotFactorisedError
from sqlext_planner.umjoin.factorised.query import over_join

#: The number of joined rows that a row stands for.
COUNT = Column("", "__sqlext_count")


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
        partners = _partners(classes, _read(keys, items))
    except NotFactorisedError:
        return None
    new_keys = tuple(key.substitute(partners) for key in keys)
    found: list[NamedExpr] = []
    for item in items:
        own = item.expression.substitute(partners)
        if item.expression not in keys:
            new = weighted(own, classes.dtypes, COUNT)
            if new is None:
                return None
            own = new
        found.append(NamedExpr(own, item.column, span=item.span))
    wanted = {column for item in (*new_keys, *found) for column in item.references} - {COUNT}
    payload = tuple(field.column for field in join.joined if field.column in wanted)
    if len({classes.owner[column] for column in payload}) == sum(kind in ("inner", "left") for kind in join.kinds):
        return None
    return Aggregate(new_keys, None, tuple(found), replace(join, count=COUNT, payload=payload), span=node.span)


def _read(keys: tuple[Expression, ...], items: tuple[NamedExpr, ...]) -> frozenset[Column]:
    """The columns that keys and calls read."""
    return frozenset(column for item in (*keys, *items) for column in item.references)


def _partners(classes: Classes, read: frozenset[Column]) -> dict[Column, Column]:
    """For columns of a key class, the same value in another input: one with payload anyway, else the first with it."""
    fixed = {classes.owner[column] for column in read if column not in classes.of}
    found: dict[Column, Column] = {}
    for column in sorted(read & classes.of.keys(), key=str):
        homes = [number for number in classes.inner if classes.same(column, number) is not None]
        home = next((number for number in homes if number in fixed), homes[0])
        fixed.add(home)
        partner = classes.same(column, home)
        if partner is not None and partner != column:
            found[column] = partner
    return found
