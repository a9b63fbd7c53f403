"""What a window union ships: the columns of each input, checked against the DataFrames' real types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

from sqlext_planner.config import Config
from sqlext_planner.errors import Span
from sqlext_planner.exchange.driver import memory_bytes
from sqlext_planner.exchange.wire import WireColumns, check_key, shippable
from sqlext_planner.exchange.year_month import as_months
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.window.input_types import check_further, check_order, result_type, union_columns
from sqlext_planner.window.nodes import WindowCall, WindowUnion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType
    from sqlext_operators.sequences.sequence import FurtherKey
    from sqlext_operators.window.operator import WindowOperatorSpec

    from sqlext_planner.relational.nodes import SortKey
    from sqlext_planner.window.execution import WindowUnionExec


@dataclass(frozen=True)
class WindowInputs:
    """A window union ready to run: `frames` are FROM (first) and the unions with wire columns only.

    `computed` are the expressions among the wire columns. Year-month intervals are months in the frames, and in what
    the workers return; `result_schema` has them.
    """

    frames: tuple[DataFrame, ...]
    keys: tuple[str, ...]
    spec: WindowUnionSpec
    tie_order: str | None
    result_schema: StructType
    computed: tuple[str, ...] = ()
    further: tuple[FurtherKey, ...] = ()

    @classmethod
    def of(cls, planned: WindowUnionExec, frames: Sequence[DataFrame]) -> WindowInputs:
        """Check all types and choose what is shipped.

        Raises AnalysisError or UnsupportedError, which point at the text.
        """
        node = planned.node
        wire = WireColumns()
        keys = tuple(wire.name(expression) for expression in node.partition_by)
        order = wire.name(node.order_by) if node.order_by is not None and not _constant(node.order_by) else None
        further = tuple((key, wire.name(key.expression)) for key in node.further)
        calls = wire_calls(node, wire)
        payload = tuple(item.column for item in node.payload_fields)
        source = frames[0]
        names = [column.spark_name for column in node.source.output_columns]
        unions = [
            union_columns(planned.inputs[0], source, plan, frame, number, names, union.span)
            for number, (union, plan, frame) in enumerate(zip(node.unions, planned.inputs[1:], frames[1:], strict=True))
        ]
        tie = node.tie_order
        kept = payload if tie is None else (*payload, tie)
        shipped = (wire.select(source, kept), *(wire.select(union) for union in unions))
        types = {item.name: item.dataType for item in shipped[0].schema}
        places = _places(calls)
        kinds = {item.name: shippable(item, places.get(item.name, places.get(None))) for item in shipped[0].schema}
        for expression, name in zip(node.partition_by, keys, strict=True):
            check_key(expression, types[name], kinds[name])
        if order is not None:
            check_order(node.order_by, types[order])
        for key, name in further:
            check_further(key, types[name], kinds[name])
        spec = WindowUnionSpec(
            keys,
            order,
            tuple(column.spark_name for column in payload),
            wire_windows(node, calls, types[order].simpleString() if order is not None else None),
            time_zone=str(source.sparkSession.conf.get("spark.sql.session.timeZone")),
        )
        return cls(
            tuple(map(as_months, shipped)),
            keys,
            spec,
            tie.spark_name if tie is not None else None,
            _result_schema(shipped[0].schema, payload, calls, kinds),
            tuple(f"{name} = {expression.sql()}" for expression, name in wire.computed.items()),
            _further_keys(further),
        )

    def operator(self, config: Config, *, ansi: bool) -> WindowOperatorSpec:
        """What a worker does with a partition."""
        from dataclasses import replace

        found = operator_spec(replace(self.spec, ansi=ansi), self.tie_order, len(self.frames), config)
        return replace(found, sequence=replace(found.sequence, further=self.further)) if self.further else found


def _further_keys(keys: Sequence[tuple[SortKey, str]]) -> tuple[FurtherKey, ...]:
    from sqlext_operators.sequences.sequence import FurtherKey

    return tuple(FurtherKey(name, key.descending, key.nulls_first) for key, name in keys)


def wire_calls(node: WindowUnion, wire: WireColumns) -> dict[WindowCall, Call]:
    """Each call of a node, over the columns on the wire."""
    return {call: call.shipped(wire.name) for group in node.windows for call in group.calls}


def wire_windows(node: WindowUnion, calls: dict[WindowCall, Call], order_type: str | None) -> tuple[Window, ...]:
    """The windows of a node; `order_type` is the Spark type of its order, None without one."""
    return tuple(
        Window(
            frame=group.frame.resolve(order_type),
            sources=tuple(number + 1 for number in group.sources),
            calls=tuple(calls[call] for call in group.calls),
        )
        for group in node.windows
    )


def operator_spec(spec: WindowUnionSpec, tie_order: str | None, inputs: int, config: Config) -> WindowOperatorSpec:
    """The operator of a specification over so many inputs."""
    from sqlext_operators.sequences.sequence import SequenceSpec
    from sqlext_operators.window.operator import WindowOperatorSpec

    args = dict.fromkeys(arg for window in spec.windows for call in window.calls for arg in call.args)
    sequence = SequenceSpec(
        keys=spec.keys,
        order=spec.order,
        args=tuple(args),
        payload=spec.payload,
        tie_order=tie_order,
        memory_bytes=memory_bytes(config),
        piece_rows=config.max_piece_rows,
    )
    return WindowOperatorSpec(sequence, spec, inputs, config.output_batch_rows)


def _constant(expression: Expression) -> bool:
    """ORDER BY a constant orders nothing."""
    return isinstance(expression, Literal)


def _places(calls: dict[WindowCall, Call]) -> dict[str | None, Span | None]:
    """Where the statement names wire columns; under None, the place of the first call."""
    places: dict[str | None, Span | None] = {None: next((call.span for call in calls if call.span is not None), None)}
    for logical, call in calls.items():
        for arg, name in zip(logical.args, call.args, strict=True):
            places.setdefault(name, arg.span or logical.span)
    return places


def _result_schema(
    schema: StructType, payload: Sequence[Column], calls: dict[WindowCall, Call], kinds: dict[str, pa.DataType]
) -> StructType:
    """The payload's fields, then a nullable one for each call."""
    from pyspark.sql.types import StructField, StructType

    known: dict[str, StructField] = {item.name: item for item in schema}
    types = {name: item.dataType for name, item in known.items()}
    results = [StructField(call.output, result_type(logical, call, kinds, types)) for logical, call in calls.items()]
    return StructType([*(known[column.spark_name] for column in payload), *results])
