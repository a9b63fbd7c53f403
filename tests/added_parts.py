"""A relation, a window function and a rule that the product does not have, each put into its public table before the
product reads it; then statements with them. Run by test_additions.py in a process of its own.

Prints JSON: what was found of each.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_operators.window.evaluators.sums import total
from sqlext_operators.window.functions import FUNCTIONS, Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.types import bigint
from sqlext_planner.plan_format import tree_text

from tests.operators.window.twins import TWINS

RELATIONS["period_holds_start_of"] = PeriodRelation(
    "period_holds_start_of", "period", ("HOLDS START OF",), "a <= c, c < b", None, "s starts while r lasts."
)

evaluators = ModuleType("sqlext_operators.window.evaluators.added")
evaluators.added_sum = total  # type: ignore[attr-defined]
sys.modules[evaluators.__name__] = evaluators
FUNCTIONS["added_sum"] = WindowFunction(
    "added_sum", (Parameter("x"),), bigint, Evaluation("added", "added_sum"), "A sum.", aliases=("sum_added",)
)
TWINS["added_sum"] = TWINS["sum"]

# What follows reads the tables.
from sqlext_planner.batches import BATCHES  # noqa: E402
from sqlext_planner.config import Config  # noqa: E402
from sqlext_planner.expressions.nodes import Literal  # noqa: E402
from sqlext_planner.optimizer.executor import (  # noqa: E402
    ONCE,
    Batch,
    RuleExecutor,
    rule,
)
from sqlext_planner.relational.logical_plan import LogicalPlan  # noqa: E402
from sqlext_planner.relational.nodes import Filter  # noqa: E402

from benchmarks.interval.kernels import kernel_pairs  # noqa: E402
from sqlext.catalog.dictionary import DictCatalog  # noqa: E402
from sqlext.run.pipeline import StagedPlan, stage  # noqa: E402
from tests.operators.window.test_window_twins import check  # noqa: E402
from tests.operators.window.window_data import Line  # noqa: E402

CATALOG = DictCatalog({name: {"k": "bigint", "ts": "bigint", "te": "bigint", "v": "bigint"} for name in "ab"})


@rule(order="bottom_up")
def drop_true_filter(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter: true`` over a child -> the child."""
    match node:
        case Filter(Literal(text), child) if text.lower() == "true":
            return child
    return None


def planned(sql: str) -> StagedPlan:
    return stage(sql, CATALOG, Config(always_lower=True))


def _types(plan: StagedPlan) -> list[str | None]:
    assert plan.optimized is not None
    assert not plan.passthrough
    return [field.dtype for field in plan.optimized.output]


def relation() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    starts = generator.integers(0, 300, (2, 80))
    ends = starts + generator.integers(1, 30, (2, 80))
    tables = [pa.table({"ts": start, "te": end}) for start, end in zip(starts, ends, strict=True)]
    pairs = {
        pair for rows in kernel_pairs("slices", "period_holds_start_of", *tables) for pair in zip(*rows, strict=True)
    }
    plans = [
        planned(f"SELECT a.k, b.v FROM a JOIN b ON {condition}").physical
        for condition in (
            "PERIOD(a.ts, a.te) HOLDS START OF PERIOD(b.ts, b.te)",
            "period_holds_start_of(a.ts, a.te, b.ts, b.te)",
        )
    ]
    return {
        "pairs": len(pairs),
        "wrong": len(
            pairs ^ {(i, j) for i in range(80) for j in range(80) if starts[0, i] <= starts[1, j] < ends[0, i]}
        ),
        "plans": [plan is not None and "IntervalJoinExec" in tree_text(plan, details=False) for plan in plans],
    }


def window_function() -> dict[str, Any]:
    from sqlext_operators.window.spec import Call, Frame, Window

    lines = [Line(0, order, order % 2, {"i64": order}) for order in range(20)]
    window = Window(Frame("range", -5, 0), (1,), (Call("added_sum", ("i64",), "s"),))
    check((window,), lines, [3, 11])
    over = "OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"
    texts = [f"SELECT k, {name}(v) {over} AS s FROM a" for name in ("added_sum", "SUM_ADDED")]
    texts.append("SELECT k, added_sum(v) AS s FROM a GROUP BY k")
    return {"types": [_types(planned(text))[1] for text in texts]}


def optimizer_rule() -> dict[str, Any]:
    logical = planned("SELECT k FROM a WHERE true").analyzed
    assert logical is not None
    before = RuleExecutor(BATCHES).optimize(logical).final
    after = RuleExecutor((*BATCHES, Batch("Added", ONCE, (drop_true_filter,)))).optimize(logical).final
    return {"before": len(before.collect(Filter)), "after": len(after.collect(Filter))}


if __name__ == "__main__":
    print(json.dumps({"relation": relation(), "function": window_function(), "rule": optimizer_rule()}))
