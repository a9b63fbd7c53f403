"""FROMs of three or more relations, counted in the syntax tree."""

from __future__ import annotations

import pytest

from tests.tpc.froms import multiway_froms


def names(sql: str) -> list[tuple[str, ...]]:
    return [clause.relations for clause in multiway_froms(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM a, b", []),
        ("SELECT * FROM a, b x, (SELECT 1) y", [("a", "x", "y")]),
        ("SELECT * FROM a LEFT JOIN b ON 1 = 1 LEFT SEMI JOIN c ON 1 = 1", [("a", "b", "c")]),
        ("SELECT * FROM (a JOIN b USING (i)) CROSS JOIN c", [("a", "b", "c")]),
        ("SELECT * FROM a JOIN (b JOIN c USING (i)) USING (i)", [("a", "b", "c")]),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM a, b, c)", [("a", "b", "c")]),
        ("WITH w AS (SELECT 1 FROM a, b, c) SELECT * FROM w, d", [("a", "b", "c")]),
        ("SELECT 1 FROM a, b, c UNION ALL SELECT 1 FROM d, e, f", [("a", "b", "c"), ("d", "e", "f")]),
    ],
)
def test_counted(sql: str, expected: list[tuple[str, ...]]) -> None:
    assert sorted(names(sql)) == expected


def test_what_a_relation_stands_for() -> None:
    (clause,) = multiway_froms("WITH w AS (SELECT 1 FROM w, b) SELECT 1 FROM w, (SELECT 1 FROM c) x, d")
    below = {name: inner.relations for name, inner in clause.derived}
    assert below == {"w": ("w", "b"), "x": ("c",)}
    assert dict(clause.derived)["w"].derived == ()
