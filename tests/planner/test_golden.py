"""The golden-file format itself."""

from __future__ import annotations

import pytest

from tests.golden import parse_cases, run_case

TEXT = """\
# Two directives and a type with commas.
table t: a int, p decimal(10,2), s struct<x:int,y:string>
expect: prune_columns
expect-not: merge_filters, merge_projects
SELECT a
FROM t
----
Output: a
  Scan: t [a]
====
stage: analyzed, physical
error
SELECT nope FROM t
----
"""


def test_cases_are_read_and_written_back() -> None:
    first, second = parse_cases(TEXT)
    assert first.comment == "Two directives and a type with commas."
    assert first.tables == {"t": {"a": "int", "p": "decimal(10,2)", "s": "struct<x:int,y:string>"}}
    assert (first.expect, first.expect_not) == (("prune_columns",), ("merge_filters", "merge_projects"))
    assert first.sql == "SELECT a\nFROM t"
    assert first.expected == "Output: a\n  Scan: t [a]"
    assert second.tables == first.tables
    assert second.stages == ("analyzed", "physical")
    assert "====\n".join(case.text() for case in (first, second)) == TEXT


def test_a_case_runs_and_reports_its_rules() -> None:
    first, second = parse_cases(TEXT)
    printed, trace = run_case(first)
    assert printed == first.expected
    assert trace is not None
    assert trace.rules == ("prune_columns", "remove_no_op_project")
    message, no_trace = run_case(second)
    assert no_trace is None
    assert "nope" in message
    assert "^^^^" in message


def test_a_case_needs_a_ruler_and_known_stages() -> None:
    with pytest.raises(ValueError, match="line 1: a case has no line '----'"):
        parse_cases("SELECT 1\n")
    with pytest.raises(ValueError, match="unknown stage 'optimised'"):
        parse_cases("stage: optimised\nSELECT 1\n----\n")
