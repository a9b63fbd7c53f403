"""Pages of plans in a browser: nothing to complain about at either width and in either colour scheme, and all of it
within reach of the keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.explain.plans import OVERLAP_JOIN, WINDOW_UNION, measured, page_of, planned, tpch

pytest.importorskip("playwright", reason="playwright is part of the extra `dev`")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PLANS = {
    "tpch-q3": lambda: tpch(3),
    "tpch-q5": lambda: tpch(5),
    "window-union": lambda: planned(WINDOW_UNION),
    "overlap-join": lambda: planned(OVERLAP_JOIN),
    "measured": measured,
}
#: Width and colour scheme: neither changes what the other decides.
LOOKS = ((1280, "light"), (375, "dark"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages as files, and one of a notebook with two plans."""
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in (*PLANS, "notebook")}
    plans = {name: make() for name, make in PLANS.items()}
    for name, plan in plans.items():
        found[name].write_text(page_of(plan), encoding="utf-8")
    cells = "".join(plans[name]._repr_html_() for name in ("window-union", "tpch-q3"))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>notebook</title>'
    notebook = f'<!DOCTYPE html><html lang="en">{head}<main><h1>Notebook</h1><h2>Cells</h2>{cells}</main></html>'
    found["notebook"].write_text(notebook, encoding="utf-8")
    return found


def opened(browser: Browser, path: Path, width: int, scheme: str, said: list[str]) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in PLANS), "notebook"])
def test_a_page_at_two_widths_and_in_two_schemes(browser: Browser, pages: dict[str, Path], name: str) -> None:
    backgrounds = set()
    for width, scheme in LOOKS:
        said: list[str] = []
        page = opened(browser, pages[name], width, scheme, said)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{width} px: the page scrolls sideways"
        backgrounds.add(page.evaluate("getComputedStyle(document.querySelector('.sqlext-plan')).backgroundColor"))
        page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "with all details open"
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        assert said == []
        page.close()
    assert len(backgrounds) == 2


def test_the_keyboard_reaches_and_works_everything(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["window-union"], 1280, "light", [])
    inside = "details:not([open]) > :not(summary) :is(a[href], summary, [tabindex])"
    count = "document.querySelectorAll(`{0}`).length"
    hidden = page.evaluate(count.format(inside))
    stops = page.evaluate(count.format('a[href], summary, [tabindex="0"]')) - hidden
    assert stops > 30
    for stop in range(stops):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") != "BODY", f"the walk ends at stop {stop} of {stops}"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.locator("a.mark").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#plan-op-1"
    page.wait_for_function("document.querySelector('#plan-op-1').getBoundingClientRect().top < 800", timeout=5000)
    step = page.locator(".steps summary").first
    step.focus()
    was = page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is not was
    page.close()


def test_a_page_needs_no_scripts(browser: Browser, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["tpch-q5"].as_uri())
    assert page.get_by_role("heading", level=1).is_visible()
    assert page.get_by_role("img", name="Join graph").is_visible()
    assert page.locator(".steps > li > details").count() == page.locator(".steps > li").count() > 2
    context.close()
