"""From SQL text to a physical plan, without Spark: parse, analyze, optimize, choose."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import Span, SqlExtError, UnsupportedError

if TYPE_CHECKING:
    from sqlext_planner.logical import LogicalPlan
    from sqlext_planner.optimizer import PlanTrace
    from sqlext_planner.periods import EmptyPeriods
    from sqlext_planner.physical.base import PhysicalPlan

    from sqlext.parser import Statement

_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\s+"
    # EXPLAIN ANALYZE TABLE is Spark's: it explains the command ANALYZE TABLE
    r"(?:(?P<mode>LOGICAL|FORMATTED|EXTENDED|CODEGEN|COST|ANALYZE(?!\s+TABLES?\b))\s+)?",
    re.IGNORECASE | re.DOTALL,
)

_log = logging.getLogger(__name__)

STAGES = ("parsed", "analyzed", "optimized", "physical")


@dataclass(frozen=True)
class StagedPlan:
    """One statement at every stage of planning.

    `analyzed`, `trace` and `physical` are None for a statement that is Spark's alone (kind "spark"). `passthrough`
    says that the user's text goes to spark.sql unchanged; `extensions` names the nodes that prevent it.
    `explain` is the mode of an EXPLAIN statement ("simple", "extended", "analyze", ...), else None; everything
    else then describes the statement that it explains.
    """

    sql: str
    statement: Statement
    analyzed: LogicalPlan | None
    trace: PlanTrace | None
    physical: PhysicalPlan | None
    extensions: tuple[str, ...]
    explain: str | None
    passthrough: bool

    @property
    def optimized(self) -> LogicalPlan | None:
        """The logical plan after all rules."""
        return None if self.trace is None else self.trace.final


def stage(
    sql: str, catalog: Catalog, config: Config, compat: str | None = None, *, lenient: bool = False
) -> StagedPlan:
    """Plan one statement as far as planning goes; starts no JVM unless the catalog does.

    Raises SqlExtError, with the text and mostly a span, for a mistake of the user. With `lenient`, a statement
    without extension syntax that cannot be analyzed passes through: Spark may know better, or tells its own error.
    """
    from sqlext_planner.optimizer import Optimizer
    from sqlext_planner.strategies import contains_extension, plan_physical

    from sqlext.analyzer import Options, analyze
    from sqlext.parser import parse

    explain = _EXPLAIN.match(sql)
    # The words are blanked, not cut off, so that places in the text stay where they are.
    text = " " * explain.end() + sql[explain.end() :] if explain else sql
    statement = parse(text, compat=compat, is_user_function=catalog.has_function)
    mode = (explain["mode"] or "simple").lower() if explain else None
    if explain is not None and mode == "analyze" and statement.kind != "query":
        raise UnsupportedError(
            "EXPLAIN ANALYZE runs a query, and this is none",
            span=Span(explain.end(), len(sql.rstrip())),
            help="EXPLAIN without ANALYZE shows a plan and runs nothing",
        )
    if statement.kind == "spark":
        return StagedPlan(sql, statement, None, None, None, (), mode, passthrough=True)
    try:
        options = Options(statement.compat, cast("EmptyPeriods", config.interval_empty))
        analyzed = analyze(statement, catalog, options)
    except SqlExtError as error:
        if not lenient or statement.uses_extension or mode == "analyze":
            raise
        if config.always_lower:
            _log.info("left to Spark: %s", str(error).split("\n", 1)[0])
        return StagedPlan(sql, statement, None, None, None, (), mode, passthrough=True)
    try:
        trace = Optimizer().optimize(analyzed)
    except SqlExtError as error:
        raise error.with_sql(statement.sql) from None
    physical = plan_physical(trace.final, config, catalog)
    extensions = tuple(contains_extension(physical))
    # A rule may have pruned the window away, and compat's words mean something else to Spark: neither passes.
    asked = (config.always_lower and mode is None) or mode == "analyze"  # Spark has no EXPLAIN ANALYZE
    lowered = statement.uses_extension or (asked and statement.kind == "query")
    passthrough = not extensions and not lowered
    return StagedPlan(sql, statement, analyzed, trace, physical, extensions, mode, passthrough)
