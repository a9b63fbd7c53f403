"""The windows of a deployment are those of a stream of its statement, to the letter: so its state is found again."""

from __future__ import annotations

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.serving.lowering import ServingSettings
from sqlext_planner.serving.steps import serving_plan
from sqlext_planner.window.inputs import wire_windows
from sqlext_planner.window.nodes import WindowUnion

from sqlext.analyzer.context import AnalyzerOptions
from sqlext.analyzer.queries import analyze
from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.deployment import Deployment
from sqlext.syntax.parser import parse
from tests.serving.warm_cases import COLUMNS, NAMES, STATEMENTS

TABLES = dict.fromkeys((*NAMES, "wt"), COLUMNS)


@pytest.mark.parametrize("title", list(STATEMENTS))
def test_the_windows_of_a_deployment_are_those_of_its_stream(title: str) -> None:
    sql = STATEMENTS[title].format("", "")
    options = AnalyzerOptions(None, plain_windows=True)
    plan = RuleExecutor(BATCHES).optimize(analyze(parse(sql), DictCatalog(TABLES, NAMES), options)).final
    streamed = list(plan.collect(WindowUnion))
    deployment = Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(True, "UTC"))
    _, served = serving_plan(deployment.plan, deployment.request, deployment.settings)
    assert len(streamed) == len(served)
    for node, window in zip(reversed(streamed), served, strict=True):
        wire = WireColumns()
        keys = tuple(wire.name(item) for item in node.partition_by)
        assert node.order_by is not None
        order = wire.name(node.order_by)
        calls = {call: call.shipped(wire.name) for group in node.windows for call in group.calls}
        spec = window.step.window
        assert (spec.keys, spec.order) == (keys, order)
        assert repr(spec.windows) == repr(wire_windows(node, calls, "timestamp"))
        assert window.computed == wire.texts()
        assert window.payload == tuple(item.column.spark_name for item in node.payload_fields)
