"""HTML is escaped where it is made."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.plan_format.markup import Markup, shown, tag, text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.data += data


@given(st.text(), st.text())
def test_any_text_stays_text(content: str, value: str) -> None:
    reader = _Reader()
    reader.feed(tag("p", content, title=value))
    reader.close()
    assert reader.found == [("p", [("title", shown(value))])]
    assert reader.data == shown(content)


def test_elements_nest_and_attributes_may_be_left_out() -> None:
    inner = tag("b", "<", class_="x", hidden=True, id=None, tabindex=False)
    assert inner == '<b class="x" hidden>&lt;</b>'
    assert tag("p", inner, None, ["a", tag("br")]) == f"<p>{inner}a<br></p>"
    assert text("<", Markup("<i>")) == "&lt;<i>"


@pytest.mark.parametrize("name", ["p onclick", "", "P", "p>"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not an element"):
        tag(name)
    with pytest.raises(ValueError, match="not an attribute"):
        tag("p", **{f"{name}<": "x"})


def test_what_is_not_seen_is_replaced() -> None:
    assert shown("a\x00\u202eb\ud800\n") == "a\ufffd\ufffdb\ufffd\n"
