"""The syntax node of EMIT AFTER, and how it is written back as text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

#: For help texts.
EMIT_FORM = "EMIT AFTER DELAY INTERVAL '7' SECONDS [COMPENSATE USING shrink] [CONFIDENCE 0.95]"


class EmitClause(exp.Expression):
    """`delay` is an interval, `compensate` the name of an estimator, `confidence` a number; the last two may be None.

    The analyzer says whether they mean something.
    """

    arg_types: ClassVar[dict[str, bool]] = {"delay": True, "compensate": False, "confidence": False}


def emit_clause_sql(generator: Any, node: EmitClause) -> str:
    """The clause as text."""
    words = [f"EMIT AFTER DELAY {generator.sql(node, 'delay')}"]
    if node.args.get("compensate") is not None:
        words.append(f"COMPENSATE USING {generator.sql(node, 'compensate')}")
    if node.args.get("confidence") is not None:
        words.append(f"CONFIDENCE {generator.sql(node, 'confidence')}")
    return " ".join(words)
