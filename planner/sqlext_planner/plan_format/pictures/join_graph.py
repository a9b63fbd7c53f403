"""The graph of a multi-way join: its inputs with their key columns, and the classes of columns that are equal.

Two columns, inputs left and classes right, and a line for every column: nothing is hidden however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sqlext_planner.plan_format.markup import Markup
from sqlext_planner.plan_format.pictures.picture import WIDTH, Picture, box, curve, dot, words
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.umjoin.nodes import UMJoin

_INPUT, _CLASS = 150, 112
_LINE, _GAP, _PILL = 17, 10, 30
#: So many classes are told apart by colour; every line also ends at its class's name.
_COLOURS = 6


@dataclass(frozen=True)
class _KeyPlace:
    """A key column of an input: its height in the picture, and its class."""

    y: float
    number: int


def join_graph(node: UMJoin) -> Picture:
    """The picture of a multi-way join."""
    inputs = tuple(map(relation_name, node.inputs))
    shapes: list[Markup] = []
    places: list[_KeyPlace] = []
    y = 4.0
    for child, kind, name in zip(node.inputs, node.kinds, inputs, strict=True):
        keys = [
            (column.name, number)
            for column in child.output_columns
            for number, key_class in enumerate(node.key_classes)
            if column in key_class
        ]
        height = _LINE * (1 + len(keys)) + 6
        shapes += [box(1, y, _INPUT, height, "table" if kind == "inner" else "table dashed")]
        shapes.append(words(9, y + 15, name if kind == "inner" else f"{kind} {name}", "strong", room=_INPUT - 12))
        for row, (column, number) in enumerate(keys, 1):
            middle = y + 15 + _LINE * row
            shapes += [
                words(14, middle, column, room=_INPUT - 30),
                dot(_INPUT + 1, middle - 4, _colour(number, "pin"), 3.5),
            ]
            places.append(_KeyPlace(middle - 4, number))
        y += height + _GAP
    heights, bottom = _spread(places, len(node.key_classes))
    shapes += _edges(places, heights)
    for number, key_class in enumerate(node.key_classes):
        shapes += _pill(heights[number], class_name([column.name for column in key_class]), number)
    return Picture("Join graph", _description(node, inputs), max(y, bottom), tuple(shapes), _caption(node))


def class_name(columns: Sequence[str]) -> str:
    """What the columns of a class have in common: `custkey` of c_custkey and o_custkey; else the first one's name."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*map(reversed, columns), strict=False))
    shared = "".join(letters[0] for letters in alike)[::-1]
    whole = shared.partition("_")[2] if shared not in columns else shared
    return whole or columns[0]


def _colour(number: int, kind: str) -> str:
    return f"{kind} k{number % _COLOURS}"


def _spread(places: Sequence[_KeyPlace], count: int) -> tuple[dict[int, float], float]:
    """The height of each class, near those of its columns, and where the last one ends."""
    means = {
        number: sum(heights) / len(heights)
        for number in range(count)
        if (heights := [place.y for place in places if place.number == number])
    }
    found: dict[int, float] = {}
    free = 4.0 + _PILL / 2
    for number in sorted(means, key=means.__getitem__):
        found[number] = max(free, means[number])
        free = found[number] + _PILL + _GAP
    return found, free - _PILL / 2


def _edges(places: Sequence[_KeyPlace], heights: dict[int, float]) -> Iterator[Markup]:
    start, end = _INPUT + 5, WIDTH - _CLASS - 1
    for place in places:
        yield curve(start, place.y, end, heights[place.number], _colour(place.number, "edge"))


def _pill(y: float, name: str, number: int) -> Iterator[Markup]:
    yield box(WIDTH - _CLASS, y - _PILL / 2, _CLASS - 1, _PILL, _colour(number, "pill"), round=_PILL / 2)
    yield words(WIDTH - _CLASS / 2, y + 4, name, "strong", "middle", _CLASS - 14)


def _description(node: UMJoin, inputs: Sequence[str]) -> str:
    classes = "; ".join(" = ".join(map(str, found)) for found in node.key_classes)
    members = [name if kind == "inner" else f"{kind} {name}" for name, kind in zip(inputs, node.kinds, strict=True)]
    told = f"{len(inputs)} inputs ({', '.join(members)}) meet in {len(node.key_classes)} key classes"
    return f"{told}: {classes or 'none'}"


def _caption(node: UMJoin) -> str:
    terms = ", ".join(map(str, node.residual))
    rest = f" Besides these, rows are compared by {terms}." if terms else ""
    return f"Each input with its key columns; columns whose lines meet are equal in every joined row.{rest}"
