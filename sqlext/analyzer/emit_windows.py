"""A block with EMIT AFTER over windows of rows: COUNT, SUM and AVG of each FROM row of a stream, twice.

SELECT k, ts, v, sum(v) OVER w AS total
FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)
EMIT AFTER DELAY INTERVAL '2' SECONDS
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlext_planner.early.nodes import Bounds, EarlyWindows, Emission
from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project
from sqlext_planner.window.nodes import WindowUnion
from sqlglot import exp

from sqlext.analyzer import block_check, joins, subquery_plans
from sqlext.analyzer.computed_calls import has_inner_calls
from sqlext.analyzer.context import Analyzed, ComputedNames, Context, Env, Scope
from sqlext.analyzer.definitions import Definitions
from sqlext.analyzer.emit_options import BOUNDS, OUTER, emission, estimated, refuse_clauses, refuse_names
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import Item, outer_calls, select_items, unwrapped
from sqlext.analyzer.windows import PHASE, BlockWindows
from sqlext.syntax.spans import mistake, span_of, unsupported

_unsupported = partial(unsupported, "early-answer")

_FUNCTIONS = ("count", "sum", "avg")
_LEAVE = "leave EMIT AFTER out: it is computed when the window is complete"


def has_windows(node: exp.Select) -> bool:
    """Whether the select list of a block has windows of rows."""
    return any(True for item in node.expressions for _ in outer_calls(item))


@dataclass
class EmitWindows:
    """A block with EMIT AFTER and OVER."""

    context: Context
    node: exp.Select
    env: Env

    def analyze(self) -> Analyzed:
        """Its plan. Raises AnalysisError, UnsupportedError, with the place of what does not fit."""
        clause = self.node.args["emit"]
        emission_spec = emission(self.context, clause, rows=True)
        refuse_clauses(self.node, span_of(clause))
        group = self.node.args.get("group")
        if group is not None:
            raise _unsupported(group, "EMIT AFTER over windows of rows (OVER) cannot be combined with GROUP BY", OUTER)
        plan, scope = joins.from_clause(self.context, self.node, self.env)
        plan = subquery_plans.filtered(self.node, plan, ExpressionBuilder(self.context, scope, self.env))
        if not plan.is_streaming:
            raise mistake(
                "early-answer",
                plan.span or span_of(clause),
                "EMIT AFTER needs streams, and FROM is a table",
                "leave EMIT AFTER out: nothing of a table comes late",
            )
        items = select_items(self.context, self.node, scope)
        calls = [call for item in items if item.node is not None for call in outer_calls(item.node)]
        definitions = Definitions(self.context, self.node, calls)
        verdict = block_check.check_block(self.context, self.node, self.env, scope, items, definitions)
        items = verdict.named(items)
        for item in items:
            self._check_item(item, definitions)
        names = ComputedNames()
        names.reserve(plan)
        # late rows are dropped: they could not have an early row
        options = replace(self.context.options, late_rows=False)
        windows = BlockWindows(replace(self.context.inside(), options=options), self.env, scope, names, definitions)
        roots = [(item.node, item.name if item.aliased else None) for item in items if item.node is not None]
        plan = windows.plan(roots, plan)
        self._check_windows(plan)
        result = self._result(items, plan, windows, names, scope, emission_spec)
        verdict.check()
        return result

    def _check_item(self, item: Item, definitions: Definitions) -> None:
        """Raises UnsupportedError for an item with OVER that is not one COUNT, SUM or AVG."""
        call = None if item.node is None else next(outer_calls(item.node), None)
        if item.node is None or call is None:
            return
        if unwrapped(item.node) is not call:
            raise _unsupported(call, "EMIT AFTER gives each aggregate as it is, with its bounds", OUTER)
        if not definitions.of(call).is_ours:
            raise _unsupported(
                call,
                "EMIT AFTER estimates windows with UNION or ROWS_RANGE, and this one is Spark's",
                "write ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW",
            )
        inner = call.this
        estimated(inner, _FUNCTIONS, _LEAVE)
        if has_inner_calls(inner):
            raise _unsupported(inner, "EMIT AFTER does not estimate aggregates over aggregates", _LEAVE)

    def _check_windows(self, plan: LogicalPlan) -> None:
        """Raises UnsupportedError for windows that are not sums over time, or need two operators."""
        found = list(_unions(plan))
        for union in found:
            first = found[0]
            if frozenset(union.partition_by) != frozenset(first.partition_by) or (union.order_by, union.further) != (
                first.order_by,
                first.further,
            ):
                raise _unsupported(
                    first.span,
                    "the windows of EMIT AFTER need the same PARTITION BY and ORDER BY",
                    "write a statement for each",
                )
            for source in union.unions:
                if not source.is_streaming:
                    raise mistake(
                        "early-answer",
                        source.span or union.span,
                        "EMIT AFTER needs streams, and this UNION source is a table",
                        "read it as a stream, or leave EMIT AFTER out",
                    )
            for group in union.windows:
                _check_frame(group.frame.unit, group.frame.maxsize, group.span or union.span)

    def _result(
        self,
        items: Sequence[Item],
        plan: LogicalPlan,
        windows: BlockWindows,
        names: ComputedNames,
        scope: Scope,
        emission_spec: Emission,
    ) -> Analyzed:
        builder = ExpressionBuilder(self.context, scope, self.env, windows.replace)
        bounds: dict[Column, Bounds] = {}
        chosen: list[NamedExpr] = []
        more: list[tuple[str, Column]] = []
        taken: set[Column] = set()
        for item in items:
            plain = None if item.node is None else unwrapped(item.node)
            is_call = isinstance(plain, exp.Window)
            expression = builder.build(plain) if isinstance(plain, exp.Window) else item.build(builder)
            column = names.of_item(item.name, expression, taken)
            taken.add(column)
            chosen.append(NamedExpr(expression, column, span=item.span))
            if is_call:
                assert isinstance(expression, Column)
                if expression not in bounds:
                    own = tuple(names.column(f"{item.name}_{word}") for word in BOUNDS)
                    bounds[expression] = Bounds(expression, own)
                pairs = zip(BOUNDS, bounds[expression].bounds, strict=True)
                more += [(f"{item.name}_{word}", one) for word, one in pairs]
        phase = names.column(PHASE)
        refuse_names(self.context, items, {name for name, _ in more} | {PHASE})
        for _, column in more:
            given = names.column(column.name) if column in taken else column
            taken.add(column)
            chosen.append(NamedExpr(column, given))
        chosen.append(NamedExpr(phase, phase))
        clause = self.node.args["emit"]
        early = EarlyWindows(tuple(bounds.values()), phase, emission_spec, plan, span=span_of(clause))
        shown = (*(item.name for item in items), *(name for name, _ in more), PHASE)
        return Analyzed(Project(tuple(chosen), early), shown)


def _check_frame(unit: str, maxsize: int | None, span: Span | None) -> None:
    if unit == "rows" or maxsize is not None:
        what = "MAXSIZE" if maxsize is not None else "ROWS"
        raise _unsupported(
            span,
            f"EMIT AFTER does not estimate windows that count rows ({what}): a late row pushes another one out",
            "use ROWS_RANGE with a time, without MAXSIZE",
        )


def _unions(plan: LogicalPlan) -> Iterator[WindowUnion]:
    """The windows of the block, the last one first."""
    while isinstance(plan, WindowUnion):
        yield plan
        plan = plan.source
