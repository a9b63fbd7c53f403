"""Plans as text, JSON, Mermaid, DOT and HTML."""

from __future__ import annotations

import json
import re

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.expressions.nodes import Literal
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.plan_format import dot, mermaid, side_by_side, trace_text, tree_json, tree_text
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.nodes import Limit, Sort, SortKey, Values
from sqlext_planner.strategies import contains_extension, plan_physical

from tests.planner.plans import Filter, SubqueryAlias, col, compare, output, project, scan, window_union

PLAN = output(project(Filter(compare("a.k", "=", 7), window_union(scan("a"), (scan("b"),))), "a.k", "s"))


def test_json_has_names_arguments_and_children() -> None:
    tree = json.loads(json.dumps(tree_json(PLAN)))
    assert tree["node"] == "Output"
    assert tree["args"] == {"names": ["k", "s"]}
    window = tree["children"][0]["children"][0]["children"][0]
    assert window["node"] == "WindowUnion"
    assert window["args"] == {
        "partition_by": ["a.k"],
        "order_by": "a.ts",
        "further": [],
        "windows": ["w (ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW): sum(a.v) AS s"],
    }
    assert [child["args"]["fields"][0] for child in window["children"]] == ["a.k bigint", "b.k bigint"]


def test_json_of_every_kind_of_argument() -> None:
    values = Values(((Literal("1"), Literal("'x'")),), scan("v", "n int, s string").fields)
    plan = Limit(5, 0, Sort((SortKey(col("v.n"), True, False),), values))
    assert json.loads(json.dumps(tree_json(plan))) == {
        "node": "Limit",
        "args": {"count": 5, "offset": 0},
        "children": [
            {
                "node": "Sort",
                "args": {"keys": ["v.n DESC"]},
                "children": [
                    {
                        "node": "Values",
                        "args": {"rows": [["1", "'x'"]], "fields": ["v.n int", "v.s string"]},
                        "children": [],
                    }
                ],
            }
        ],
    }


def test_a_physical_node_says_why() -> None:
    physical = plan_physical(PLAN, Config())
    assert contains_extension(physical) == ["WindowUnionExec"]
    text = tree_text(physical)
    assert "(why: one exchange and one sort for 2 inputs, 1 windows and 1 calls)" in text
    assert "why" not in tree_text(physical, details=False)
    window = tree_json(physical)["children"][0]["children"][0]["children"][0]
    assert window["args"]["why"].startswith("one exchange")


def test_a_shared_node_is_one_node_of_a_graph() -> None:
    shared = Filter(compare("a.k", ">", 1), scan("a"))
    names = ("k", "ts", "v")
    plan = Join(SubqueryAlias("x", names, shared), SubqueryAlias("y", names, shared), "cross", None)
    assert mermaid(plan).count("Filter") == 1
    assert mermaid(plan).count("-->") == 5
    assert dot(plan).count("->") == 5
    physical = plan_physical(plan, Config())
    assert physical.children[0].children[0] is physical.children[1].children[0]


def test_special_characters_are_escaped() -> None:
    plan = Filter(compare("a.k", "<", 1), scan("a", 'k string, "q\\`&<b> string'))
    assert 'n0["Filter: a.k #lt; 1"]' in mermaid(plan)
    assert '\\"q\\\\`&amp;<b>' in dot(plan)


@pytest.mark.parametrize(
    "hostile",
    [
        "%%{init: {'securityLevel': 'loose'}}%%",
        'x"] click n0 "javascript:alert(1)"',
        "---\ntitle: x\n---",
        "x\nclick n0 call alert()",
        "<img src=x onerror=alert(1)>",
        "`**bold**` $$x^2$$ #quot; &quot;",
        'x"]; n0 [URL="javascript:alert(1)"]; y [label=<<b>x</b>>',
        "x\\",
        "\u202e\x1b[31m\x00",
    ],
)
def test_no_text_gets_out_of_a_label(hostile: str) -> None:
    plan = Filter(Literal(hostile), scan("a"))
    first, *lines = mermaid(plan).split("\n")
    assert first == "flowchart BT"
    node, edge = (
        re.compile(r'  n\d+\["(?:[\w ,.:=+/()\'!?@~^-]|#\w+;|<br/>|[^\x00-\x7f])*"\]'),
        re.compile(r"  n\d+ --> n\d+"),
    )
    assert all(node.fullmatch(line) or edge.fullmatch(line) for line in lines), lines
    graph = dot(plan).split("\n")
    labels = [line for line in graph if "[label=" in line]
    assert len(labels) == 2
    assert all(re.fullmatch(r'  n\d+ \[label="(?:[^"\\]|\\["\\l])*"\];', line) for line in labels), labels
    assert len(graph) == 7


def test_side_by_side_marks_changes_or_stacks() -> None:
    assert side_by_side("x\ny", "x\nz") == "before   after\nx        x\ny      ! z"
    assert side_by_side("x" * 100, "y" * 100).startswith("-- before\nxxx")


def test_the_trace_shows_each_rule() -> None:
    text = trace_text(RuleExecutor(BATCHES).optimize(PLAN))
    assert text.startswith("Initial:\n  Output: k, s")
    assert "push_filter (Pushdown):" in text
