"""What Tab offers, without Spark."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from sqlext_planner.catalog import TableInfo

from sqlext.catalog import DictCatalog
from sqlext.cli.shell.commands import command_words
from sqlext.cli.shell.completion import ShellCompleter
from sqlext.cli.shell.tables import KnownTables

TABLES = {
    "views": {"user_id": "bigint", "ts": "timestamp", "unit price": "double"},
    "orders": {"user_id": "bigint", "amount": "double"},
}


@pytest.fixture(scope="module")
def completer() -> ShellCompleter:
    files = DictCatalog(TABLES)
    return ShellCompleter(KnownTables(files, lambda: None), command_words(), lambda: ("date_trunc",))


def offered(completer: ShellCompleter, typed: str) -> list[str]:
    before, _, after = typed.partition("|")
    document = Document(before + after, len(before))
    return [found.text for found in completer.get_completions(document, CompleteEvent(completion_requested=True))]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("SELECT v.| FROM views v", ["user_id", "ts", "`unit price`"]),
        ("SELECT v.t| FROM views v JOIN orders o", ["ts"]),
        ("SELECT o.| FROM views v, orders AS o", ["user_id", "amount"]),
        ("SELECT orders.| FROM views LAST JOIN orders ORDER BY orders.ts", ["user_id", "amount"]),
        ("SELECT orders.| FROM views ASOF JOIN orders MATCH_CONDITION (ts", ["user_id", "amount"]),
        ("SELECT x FROM views WINDOW w AS (UNION orders PARTITION BY am|", ["amount"]),
        ("SELECT * FROM views WHERE `un|", ["`unit price`"]),
        ("WITH f AS (SELECT ts, 1 AS one FROM views) SELECT f.| FROM f", ["ts", "one"]),
        ("SELECT q.on| FROM (SELECT *, 1 AS one FROM views) q", ["one"]),
        ("SELECT 1; SELECT orders.am| FROM orders; SELECT 2", ["amount"]),
        ("SELECT other.| FROM views v", []),
        ("SELECT user_|", ["user_id"]),
        ("SELECT * FROM ", ["orders", "views"]),
        ("SELECT * FROM views v JOIN o|", ["orders"]),
        ("SELECT * FROM views v, o|", ["orders"]),
        ("SELECT x FROM views WINDOW w AS (UNION o|", ["orders"]),
        ("WITH made AS (SELECT 1 AS one) SELECT * FROM m|", ["made"]),
        ("SELECT 'views v|", []),
        ("SELECT 1 -- FROM v|", []),
        ("SELECT date_t|", ["date_trunc("]),
        ("SELECT distinct_c|", ["distinct_count("]),
        ("sele|", ["select"]),
        ("SELE|", ["SELECT"]),
        ("SELECT a FROM views WHERE PERIOD(a, b) met|", ["met by"]),
        ("SELECT a OVER (PARTITION BY b ROWS_R|", ["ROWS_RANGE"]),
        ("SET sqlext.planner.alwaysL|", ["sqlext.planner.alwaysLower"]),
        ("SET sqlext.planner.alwaysLower = t|", ["true"]),
        (r"\tim|", [r"\timing"]),
        (r"\timing |", ["on", "off"]),
        (r"\d vi|", ["views"]),
        (r"\plan an|", ["analyze"]),
        (r"\plan SELECT v.t| FROM views v;", ["ts"]),
        (r"\h last j|", ["LAST JOIN"]),
        (r"\set planner.|", []),
        (r"\set sqlext.planner.alwaysL|", ["sqlext.planner.alwaysLower"]),
    ],
)
def test_offered(completer: ShellCompleter, typed: str, expected: list[str]) -> None:
    assert offered(completer, typed) == expected


def test_what_says_what_it_is(completer: ShellCompleter) -> None:
    found = completer.get_completions(Document("SELECT amo FROM orders", 10), CompleteEvent(completion_requested=True))
    assert [item.display_meta_text for item in found] == ["double, orders"]


def test_nothing_unasked_where_nothing_is_typed(completer: ShellCompleter) -> None:
    typing = CompleteEvent(text_inserted=True)
    assert list(completer.get_completions(Document("SELECT 1 "), typing)) == []


class Counting(DictCatalog):
    """Counts questions."""

    asked = 0

    def table(self, name: str) -> TableInfo | None:
        self.asked += 1
        return super().table(name)


def test_a_table_is_looked_up_once() -> None:
    catalog = Counting(TABLES)
    tables = KnownTables(None, lambda: catalog)
    completer = ShellCompleter(tables, (), lambda: ())
    for _ in range(3):
        assert offered(completer, "SELECT v.t| FROM views v") == ["ts"]
    assert catalog.asked == 1
    tables.forget()
    assert offered(completer, "SELECT v.t| FROM views v") == ["ts"]
    assert catalog.asked == 2
