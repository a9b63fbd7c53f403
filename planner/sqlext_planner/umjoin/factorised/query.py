"""What a factorised aggregate has to compute, read from an Aggregate over a UMJoin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlext_planner.expressions.aggregates import (
    aggregate_calls,
    counts_rows,
    filtered_argument,
    function_of,
    sees_multiplicity,
)
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, arithmetic_type
from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, NamedExpr, SparkExpr, is_movable
from sqlext_planner.expressions.typed import NULL, FunctionCall, cast
from sqlext_planner.relational.nodes import Aggregate, Project
from sqlext_planner.umjoin.factorised.classes import Classes, NotFactorisedError
from sqlext_planner.umjoin.factorised.totals import PartialAggregate
from sqlext_planner.umjoin.nodes import UMJoin


@dataclass(frozen=True)
class CarriedValue:
    """A value that is carried from its input to the result: of a grouping expression or a DISTINCT argument.

    `homes` are the inputs that can compute it, with its text there.
    """

    homes: tuple[tuple[int, Expression], ...]


@dataclass(frozen=True)
class Result:
    """An aggregate call's result, in the column `column` of the last aggregation.

    `partials` are the numbers of the partial aggregates that it is made of: the sum and the count for avg, none
    for a number of rows, and for a call that `is_distinct`.
    """

    column: Column
    call: FunctionCall
    partials: tuple[int, ...] = ()
    is_distinct: bool = False


@dataclass
class FactorisedQuery:
    """The keys, calls and items of an Aggregate, taken apart.

    `keys` are the grouping expressions over pieces, with the columns of the last aggregation that hold them; `items`
    are the user's items over those columns and the results' columns.
    """

    classes: Classes
    pieces: dict[Expression, CarriedValue] = field(default_factory=dict)
    keys: list[NamedExpr] = field(default_factory=list)
    partials: list[PartialAggregate] = field(default_factory=list)
    results: dict[FunctionCall, Result] = field(default_factory=dict)
    items: list[NamedExpr] = field(default_factory=list)

    @property
    def sees_multiplicity(self) -> bool:
        """Whether numbers of rows are needed: not if there are only min, max, DISTINCT and keys."""
        return any(sees_multiplicity(result.call) for result in self.results.values())


def read_query(node: Aggregate) -> FactorisedQuery:
    """Take an aggregate apart. Raises NotFactorisedError with the reason if it cannot be factorised."""
    if node.grouping_sets is not None:
        raise NotFactorisedError("GROUPING SETS are several aggregates")
    keys, items, join = over_join(node)
    if join.count is not None:
        raise NotFactorisedError("the join already counts its rows")
    query = FactorisedQuery(Classes(join))
    given: dict[Expression, Column] = {}
    for number, key in enumerate(keys):
        if not _is_plain(key):
            raise NotFactorisedError(f"the grouping expression {key} must be evaluated in its place")
        own = key if isinstance(key, Column) and key not in given.values() else None
        column = own or Column("", f"__sqlext_k{number}")
        query.keys.append(NamedExpr(_carried(query, key), column))
        given[key] = column
    for item in items:
        expression = _restored(query, item.expression, given)
        query.items.append(NamedExpr(expression, item.column, span=item.span))
    return query


def over_join(node: Aggregate) -> tuple[tuple[Expression, ...], tuple[NamedExpr, ...], UMJoin]:
    """The keys and items of an aggregate over a UMJoin's columns, through projections, and the join.

    Raises NotFactorisedError where no such join is below, or is not plainly below.
    """
    keys, items, child = node.keys, node.items, node.child
    while isinstance(child, Project):
        given: Mapping[Column, Expression] = {item.column: item.expression for item in child.items}
        if any(not is_movable(expression) for expression in given.values()):
            raise NotFactorisedError("an expression below the aggregate must be evaluated in its place")
        keys = tuple(key.substitute(given) for key in keys)
        items = tuple(NamedExpr(item.expression.substitute(given), item.column, span=item.span) for item in items)
        child = child.child
    if not isinstance(child, UMJoin):
        raise NotFactorisedError("the aggregate is not directly above the join")
    if child.count is not None:
        raise NotFactorisedError("the join already counts its rows")
    return keys, items, child


def _is_plain(expression: Expression) -> bool:
    """True if the expression only computes with columns, so that it may be evaluated on an input."""
    known = (Column, Literal, SparkExpr, Compare, And)
    return is_movable(expression) and all(isinstance(node, known) for node in expression.walk())


def _carried(query: FactorisedQuery, expression: Expression) -> Expression:
    """The expression over pieces: it is a piece itself if one inner input can compute it, else its columns are."""
    if not expression.references:
        return expression
    homes = query.classes.homes(expression)
    inner = any(query.classes.is_inner(column) for column in expression.references)
    if homes and (inner or isinstance(expression, Column)):
        query.pieces[expression] = CarriedValue(homes)
        return expression
    for column in sorted(expression.references, key=str):
        query.pieces[column] = CarriedValue(query.classes.homes(column))
    return expression


def _restored(query: FactorisedQuery, expression: Expression, given: Mapping[Expression, Column]) -> Expression:
    """An item over the columns of keys and results."""
    if expression in given:
        return given[expression]
    if isinstance(expression, (Compare, And)):
        return expression.map_children(lambda child: _restored(query, child, given))
    calls = aggregate_calls(expression)
    if calls is None:
        raise NotFactorisedError(f"{expression} contains more than count, sum, avg, min and max")
    columns: dict[Expression, Column] = {call: _result(query, call) for call in calls}
    return _replaced(expression, {**columns, **given})


def _replaced(expression: Expression, columns: Mapping[Expression, Column]) -> Expression:
    if expression in columns:
        found = columns[expression]
        return SparkExpr((found,), dtype=expression.dtype) if isinstance(expression, FunctionCall) else found
    if isinstance(expression, (Literal, SparkExpr)):
        return expression.map_children(lambda child: _replaced(child, columns))
    raise NotFactorisedError(f"{expression} is neither a key nor an aggregate")


def _result(query: FactorisedQuery, call: FunctionCall) -> Column:
    """The column of a call's result; equal calls share one."""
    known = query.results.get(call)
    if known is None:
        column = Column("", f"__sqlext_t{len(query.results)}")
        if call.distinct and call.name not in ("min", "max"):
            known = Result(column, call, is_distinct=True)
            _carry_distinct(query, call)
        elif counts_rows(call) and call.condition is None:
            known = Result(column, call)
        else:
            known = Result(column, call, _partials(query, call))
        query.results[call] = known
    return known.column


def _carry_distinct(query: FactorisedQuery, call: FunctionCall) -> None:
    for argument in call.operands:
        if not _is_plain(argument):
            raise NotFactorisedError(f"{argument} must be evaluated in its place")
        _carried(query, argument)


def _partials(query: FactorisedQuery, call: FunctionCall) -> tuple[int, ...]:
    value, function = filtered_argument(call), function_of(call)
    assert value is not None
    if not _is_plain(value):
        raise NotFactorisedError(f"{value} must be evaluated in its place")
    homes = query.classes.homes(value) if value.references else ((query.classes.inner[0], value),)
    if not homes:
        raise NotFactorisedError(f"{function}({value}) needs rows of {query.classes.names(value)} together")
    owner, argument = homes[0]
    dtype = arithmetic_type(argument, query.classes.dtypes)
    absent = _absent(query.classes, argument) if query.classes.join.kinds[owner] == "left" else None
    if function != "avg":
        kinds: tuple[str, ...] = (function,)
    else:
        if dtype not in (*INTEGERS, *FLOATS):
            raise NotFactorisedError(
                f"avg({argument}): Spark rounds averages of {dtype or 'an unknown type'} on the way"
            )
        kinds = ("sum", "count")
    places = []
    for kind in kinds:
        partial = PartialAggregate(kind, argument, owner, dtype, absent)  # type: ignore[arg-type]
        partial.check()
        if partial not in query.partials:
            query.partials.append(partial)
        places.append(query.partials.index(partial))
    return tuple(places)


def _absent(classes: Classes, value: Expression) -> Expression | None:
    """A left input's value over a row of NULLs; None where that is NULL."""
    if isinstance(value, Column):
        return None
    unknown = [column for column in value.references if classes.dtypes[column] is None]
    if unknown:
        raise NotFactorisedError(f"{value} reads {unknown[0]} of a left input, whose type is unknown")
    nulls = {column: cast(NULL, str(classes.dtypes[column])) for column in value.references}
    return value.substitute(nulls)
