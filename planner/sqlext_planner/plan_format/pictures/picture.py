"""Small pictures of what a node does, as SVG that needs nothing around it but the page's colours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlext_planner.plan_format.markup import Content, Markup, tag

#: Width of every picture in pixels at its natural size: what a phone of 375 px has room for.
WIDTH = 330
#: Width of a letter of the pictures' text, in pixels: 11 px of a monospaced font.
LETTER = 6.7


@dataclass(frozen=True)
class Picture:
    """A drawing with its title, what it shows in words (for those who do not see it), and the words below it."""

    title: str
    words: str
    height: float
    shapes: tuple[Markup, ...]
    caption: str = ""

    def svg(self) -> Markup:
        """The picture as one element; it has no ids, so that it may stand in a page twice."""
        told = [tag("title", self.title), tag("desc", self.words)]
        return self._drawn(told, role="img", aria_label=f"{self.title}: {self.words}")

    def glance(self) -> Markup:
        """The picture without its words, for a place beside those that say the same."""
        return self._drawn(None, aria_hidden="true")

    def _drawn(self, description: Content, **attributes: str) -> Markup:
        size: dict[str, str | float] = {
            "viewBox": f"0 0 {WIDTH} {self.height:g}",
            "width": WIDTH,
            "height": self.height,
        }
        return tag("svg", description, self.shapes, **size, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=f"line {kind}".rstrip())


def box(x: float, y: float, width: float, height: float, kind: str, round: float = 3) -> Markup:
    """A rectangle."""
    return tag("rect", x=x, y=y, width=max(width, 0.5), height=height, rx=round, class_=kind)


def dot(x: float, y: float, kind: str, radius: float = 4) -> Markup:
    """A circle."""
    return tag("circle", cx=x, cy=y, r=radius, class_=kind)


def path(points: Iterable[tuple[float, float]], kind: str, closed: bool = False) -> Markup:
    """A line through points, or the shape that they enclose."""
    places = " L".join(f"{x:g} {y:g}" for x, y in points)
    return tag("path", d=f"M{places}{' Z' if closed else ''}", class_=kind)


def curve(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A line from left to right that leaves and arrives level."""
    bend = (x2 - x1) / 2
    places = f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    return tag("path", d=places, class_=kind)


def arrow(x: float, y: float, towards: int) -> Markup:
    """The head of an arrow that ends at (x, y), to the right (1) or to the left (-1)."""
    return path([(x, y), (x - 6 * towards, y - 4), (x - 6 * towards, y + 4)], "head", closed=True)


def words(x: float, y: float, content: str, kind: str = "", anchor: str = "start", room: float | None = None) -> Markup:
    """A line of text whose baseline is at y, cut to `room` pixels."""
    return tag("text", fitting(content, room), x=x, y=y, class_=f"words {kind}".rstrip(), text_anchor=anchor)


def fitting(content: str, room: float | None) -> str:
    """The text, cut to so many pixels."""
    letters = len(content) if room is None else max(2, int(room / LETTER))
    return content if len(content) <= letters else content[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"
