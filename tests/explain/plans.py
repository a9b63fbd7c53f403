"""Plans whose pages are tested, and a reader that checks a page while it reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

from sqlext_planner.config import Config
from sqlext_planner.exchange.figures import NodeFigures
from sqlext_planner.exchange.measures import StageFigures

from sqlext.catalog import DictCatalog
from sqlext.explain.analyze import Measured
from sqlext.run.pipeline import StagedPlan, stage
from sqlext.tpc.benchmark import BENCHMARKS

TABLES = {
    "views": {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"},
    "orders": {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"},
    "shifts": {"id": "bigint", "ts": "timestamp", "te": "timestamp", "k": "int"},
    "alarms": {"id": "bigint", "ts": "timestamp", "te": "timestamp", "k": "int"},
}
WINDOW_UNION = """SELECT user_id, ts,
  sum(price) OVER w AS spent,
  count(item) OVER recent AS items
FROM views
WHERE user_id < 5
WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts
             ROWS_RANGE BETWEEN 1h OPEN PRECEDING AND CURRENT ROW MAXSIZE 3 EXCLUDE CURRENT_TIME),
       recent AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)"""
OVERLAP_JOIN = """SELECT s.id, a.id AS alarm
FROM shifts s JOIN alarms a ON PERIOD(s.ts, s.te) OVERLAPS PERIOD(a.ts, a.te) AND s.k = a.k
WHERE s.id < 100"""

_VOID = frozenset({"br", "meta", "hr"})
#: All elements that a page is made of.
_NAMES = """html head meta title style body header main footer nav section article details summary div span p pre code a
b i small sup mark ul ol li dl dt dd table caption thead tbody tr th td figure figcaption h1 h2 h3 h4 svg desc line
rect circle path text"""
ELEMENTS = frozenset(_NAMES.split())


def planned(sql: str) -> StagedPlan:
    """A statement over TABLES."""
    return stage(sql, DictCatalog(TABLES), Config())


def tpch(number: int) -> StagedPlan:
    """A query of TPC-H, as `sqlext tpch plan` plans it."""
    benchmark = BENCHMARKS["tpch"]
    return stage(benchmark.query(number), benchmark.catalog(), Config())


def page_of(plan: StagedPlan) -> str:
    """What `sqlext plan --format html` prints."""
    return plan.html()


def measured() -> StagedPlan:
    """The plan of a window, with what a run could have measured."""
    plan = planned(WINDOW_UNION)
    assert plan.physical is not None
    node = next(node for node in plan.physical.walk() if node.is_extension)
    figures = NodeFigures(
        node, 90, (90, 10), (90,), moved_rows=100, moved_bytes=2_500, running=[0.3, 0.1], scattering=[0.1]
    )
    stages = StageFigures(3, 7, 1.5, 0.5, 0.0, 2_000_000, 0.1, 0.2)
    return replace(plan, measured=Measured(90, 2.25, (figures,), stages))


class Page(HTMLParser):
    """Reads a page, and fails where it is not well formed, holds an element or attribute that no page of ours has, an
    id twice, or a link that leads nowhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.headings: list[int] = []
        self.elements: Counter[str] = Counter()
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []
        assert max(self.ids.values(), default=1) == 1
        assert [link for link in self.links if link.removeprefix("#") not in self.ids] == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        self.elements[tag] += 1
        if tag not in _VOID:
            self._open.append(tag)
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in ("src", "srcdoc", "style", "action"), name
            if name == "id":
                self.ids[value or ""] += 1
            if name == "href":
                assert value is not None
                assert value.startswith("#"), value
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data
