"""What a group aggregate ships: keys, arguments, and what Spark's own aggregates read; checked against real types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlext_operators.window.group_aggregate import GroupAggregateSpec, empty_group
from sqlext_operators.window.spec import Call

from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.exchange.collations import BY_BYTES
from sqlext_planner.exchange.driver import memory_bytes
from sqlext_planner.exchange.wire import WireColumns, shippable
from sqlext_planner.exchange.year_month import YEAR_MONTH, as_months
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.window.input_types import result_type
from sqlext_planner.window.nodes import WindowCall

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType
    from sqlext_operators.window.group_aggregate import GroupOperatorSpec

    from sqlext_planner.window.group_nodes import GroupAggregate


@dataclass(frozen=True)
class GroupInputs:
    """A group aggregate ready to run: `frame` has the wire columns only, `keys` are the names of its key columns.

    `passed` are the columns that pass through: the keys, and what Spark's own aggregates read. Year-month intervals
    are months in the frame, and in what the workers return; `result_schema` has them.
    """

    frame: DataFrame
    keys: tuple[str, ...]
    passed: tuple[str, ...]
    spec: GroupAggregateSpec
    result_schema: StructType

    @classmethod
    def of(cls, node: GroupAggregate, child: DataFrame) -> GroupInputs:
        """Check all types and choose what is shipped.

        Raises AnalysisError or UnsupportedError, which point at the text.
        """
        from pyspark.sql.types import StructField, StructType

        wire = WireColumns()
        keys = tuple(wire.name(key.expression) for key in node.keys)
        read = dict.fromkeys(column for item in node.items for column in sorted(item.references, key=str))
        passed = tuple(dict.fromkeys((*keys, *(wire.name(column) for column in read))))
        calls = {call: call.shipped(wire.name) for call in node.calls}
        frame = wire.select(child)
        fields = {item.name: item for item in frame.schema}
        types = {name: item.dataType for name, item in fields.items()}
        places = _places(node, calls)
        kinds = {name: shippable(item, places.get(name)) for name, item in fields.items()}
        for key, name in zip(node.keys, keys, strict=True):
            _check_key(key.expression, places.get(name), types[name], kinds[name])
        results = [
            StructField(call.output, result_type(logical, call, kinds, types)) for logical, call in calls.items()
        ]
        conf = child.sparkSession.conf
        spec = GroupAggregateSpec(
            tuple(calls.values()),
            every_row=bool(node.items),
            ansi=str(conf.get("spark.sql.ansi.enabled")).lower() == "true",
            time_zone=str(conf.get("spark.sql.session.timeZone")),
        )
        return cls(as_months(frame), keys, passed, spec, StructType([*(fields[name] for name in passed), *results]))

    def operator(self, config: Config) -> GroupOperatorSpec:
        """What a worker does with a partition."""
        from sqlext_operators.sequences.sequence import SequenceSpec
        from sqlext_operators.window.group_aggregate import GroupOperatorSpec

        sequence = SequenceSpec(
            keys=self.keys,
            order=None,
            args=self._args,
            payload=self.passed,
            memory_bytes=memory_bytes(config),
            piece_rows=config.max_piece_rows,
        )
        return GroupOperatorSpec(sequence, self.spec, config.output_batch_rows)

    def empty_result(self, output: str) -> tuple[Any, DataType]:
        """A call's result for a group without rows, and its type; the driver computes it."""
        return self._empty[output], self.result_schema[output].dataType

    @cached_property
    def _args(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arg for call in self.spec.calls for arg in call.args))

    @cached_property
    def _empty(self) -> dict[str, Any]:
        kinds = {item.name: shippable(item, None) for item in self.frame.schema}
        return dict(empty_group(self.spec, {name: kinds[name] for name in self._args}).to_pylist()[0])


def _places(node: GroupAggregate, calls: dict[WindowCall, Call]) -> dict[str, Span | None]:
    """Where the statement names the wire columns."""
    places: dict[str, Span | None] = {}
    for logical, call in calls.items():
        for arg, name in zip(logical.args, call.args, strict=True):
            places.setdefault(name, arg.span or logical.span)
    for item in node.items:
        for column in item.references:
            places.setdefault(column.spark_name, item.span or item.expression.span)
    return places


def _check_key(expression: Expression, span: Span | None, kind: DataType, arrow: pa.DataType) -> None:
    """Raises AnalysisError for a key without an equality, UnsupportedError for a collation."""
    from sqlext_operators.columns.keys import is_key_type

    name = kind.simpleString()
    if "collate" in name.lower():
        raise UnsupportedError(
            f"GROUP BY does not take a string with a collation beside a sqlext function: {expression} is {name}",
            condition="key-type",
            span=expression.span or span,
            help=f"in a subquery, {BY_BYTES}",
        )
    if arrow != YEAR_MONTH and not is_key_type(arrow):
        raise AnalysisError(
            f"GROUP BY does not take {name} beside a sqlext function: {expression}",
            condition="key-type",
            span=expression.span or span,
            help="group by its fields, or cast it to string",
        )
