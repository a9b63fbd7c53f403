"""The syntax node of OpenMLDB's LAST JOIN (docs/reference/last-join.md, section 1) and its text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp


class LastJoinClause(exp.Join):
    """``LAST JOIN b ORDER BY b.ts ON a.k = b.k``: a join of kind "LAST" whose `order` stands before its condition.

    `using` is parsed for the sake of the error message only.
    """

    arg_types: ClassVar[dict[str, bool]] = {**exp.Join.arg_types, "order": False}


def last_join_sql(generator: Any, join: LastJoinClause) -> str:
    """The clause as text."""
    words = [f"{generator.seg('LAST JOIN')} {generator.sql(join, 'this')}"]
    if join.args.get("order") is not None:
        words.append(generator.order_sql(join.args["order"], flat=True))
    if join.args.get("on") is not None:
        words.append(f"ON {generator.sql(join, 'on')}")
    if join.args.get("using"):
        words.append(f"USING ({generator.expressions(join, key='using', flat=True)})")
    return " ".join(words)
