"""The physical node of early answers of windows: the exchange of the windows, and an operator that answers twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.early.nodes import Bounds, EarlyWindows, late_answer_error, value_type_error
from sqlext_planner.early.stream_execution import bound_fields
from sqlext_planner.errors import InternalError, UnsupportedError
from sqlext_planner.exchange.chains import shown
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.spark.streams import watermarks
from sqlext_planner.window.nodes import WindowUnion
from sqlext_planner.window.stream_execution import WindowStreamExec
from sqlext_planner.window.stream_execution import retention as windows_retention

if TYPE_CHECKING:
    from pyspark.sql.types import StructType
    from sqlext_operators.exchange.stream import StreamSpec
    from sqlext_operators.window.stream import WindowStreamSpec

    from sqlext_planner.exchange.stream_driver import Chain
    from sqlext_planner.window.inputs import WindowInputs


@dataclass(frozen=True)
class EarlyWindowsExec(WindowStreamExec):
    """Computes an EarlyWindows node over the inputs of its window union."""

    early: EarlyWindows = field(kw_only=True)

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.early.output

    def label(self) -> str:
        return f"{super().label()} EMIT {self.early.emission}"

    def stream_spec(
        self, windows: WindowStreamSpec, result: StructType, inputs: WindowInputs, chain: Chain
    ) -> tuple[StreamSpec, StructType]:
        """Raises UnsupportedError for types that are not estimated, AnalysisError for answers that come when their
        rows are final."""
        from pyspark.sql.types import StringType, StructField, StructType
        from sqlext_operators.early_windows.stream import EarlyWindowSpec
        from sqlext_operators.window.reach import reach_of

        self._check_values(inputs)
        found = [watermarks(frame.schema).get(str(inputs.spec.order)) for frame in inputs.frames]
        delays = [1_000 * delay for delay in found if delay is not None] if None not in found else []
        final = reach_of(windows.operator.window).ahead + max(delays, default=0) + chain.delay
        if delays and self.early.emission.delay >= final:
            raise late_answer_error(
                self.early.emission,
                f"an early answer {shown(self.early.emission.delay)} after a row is too late: rows are final "
                f"{shown(final)} after their time",
            )
        fields = [*result]
        for call in self._in_order():
            fields += bound_fields(call.bounds)
        fields.append(StructField(self.early.phase.spark_name, StringType(), nullable=False))
        spec = EarlyWindowSpec(
            windows,
            tuple(tuple(item.spark_name for item in call.bounds) for call in self._in_order()),
            self.early.phase.spark_name,
            self.early.emission.delay,
            self.early.emission.estimator,
            self.early.emission.confidence,
            lag=min(delays, default=0) if not chain.operators else 0,
        )
        return spec, StructType(fields)

    def parts(self, inputs: WindowInputs, *, ansi: bool) -> dict[str, str]:
        """What the state depends on besides the columns."""
        return super().parts(inputs, ansi=ansi) | {"operator": "early answers of windows"} | self.early.emission.parts()

    def _in_order(self) -> list[Bounds]:
        """The bounds in the order of the calls of all windows."""
        known = {call.column: call for call in self.early.calls}
        return [known[call.column] for group in self.node.windows for call in group.calls]

    def _check_values(self, inputs: WindowInputs) -> None:
        types = {item.name: item.dataType.simpleString() for item in inputs.frames[0].schema}
        for group, window in zip(self.node.windows, inputs.spec.windows, strict=True):
            for call, shipped in zip(group.calls, window.calls, strict=True):
                kind = types[shipped.args[0]] if shipped.args else "bigint"
                if call.function != "count" and kind not in (*INTEGERS, *FLOATS):
                    raise value_type_error(call.function, kind, call.span)


def check_windows(node: EarlyWindows, union: WindowUnion) -> None:
    """Raises UnsupportedError for windows that did not become one operator."""
    own = {call.column for group in union.windows for call in group.calls}
    if any(call.column not in own for call in node.calls):
        raise UnsupportedError(
            "EMIT AFTER needs windows that one operator can compute, and these UNION sources of different widths",
            condition="early-answer",
            span=union.span,
            help="select the same columns in all UNION sources",
        )
    if union.phase is not None:
        raise InternalError("early answers give no late rows")


def retention(node: EarlyWindows, union: WindowUnion) -> str:
    """When rows come out and what is kept, for EXPLAIN."""
    emission, by = node.emission, node.emission.estimator
    delay = f" + {shown(emission.delay)}" if emission.delay else ""
    final = windows_retention(union).replace("a row is", "its final row is", 1)
    return (
        f"an early row is emitted when the latest event time is {union.order_by}{delay}, estimated by {by} with "
        f"confidence {emission.confidence:g}; {final}; a record of it is kept until then, and what {by} has learned of "
        "final rows for good"
    )
