"""From SQL text to a physical plan, without Spark: parse, analyze, optimize, choose."""

from __future__ import annotations

import gc
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, Self, cast

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import Span, SqlExtError, UnsupportedError

from sqlext.syntax.sql_settings import DEFAULT, SqlSettings

if TYPE_CHECKING:
    from sqlext_planner.optimizer.executor import PlanTrace
    from sqlext_planner.periods.predicates import EmptyPeriods
    from sqlext_planner.relational.logical_plan import LogicalPlan
    from sqlext_planner.relational.physical_plan import PhysicalPlan

    from sqlext.explain.analyze import Measured
    from sqlext.syntax.parser import Statement

_EXPLAIN = re.compile(
    # possessive: a text with many leading comments is scanned once
    r"(?:\s|--[^\n]*\n|/\*(?>(?:[^*]|\*(?!/))*)\*/)*+EXPLAIN\s+"
    # EXPLAIN ANALYZE TABLE is Spark's: it explains the command ANALYZE TABLE
    r"(?:(?P<mode>LOGICAL|FORMATTED|EXTENDED|CODEGEN|COST|ANALYZE(?!\s+TABLES?\b))\s+)?",
    re.IGNORECASE | re.DOTALL,
)

_LOG = logging.getLogger("sqlext")


@dataclass(frozen=True)
class StagedPlan:
    """One statement at every stage of planning.

    `analyzed`, `trace` and `physical` are None for a statement that goes to Spark without a plan. `passthrough`
    means that the user's text goes to spark.sql unchanged; `extensions` names the nodes that prevent it.
    `refused` is our error about a statement that Spark analyzes all the same, and refuses later: a window over a
    stream; `of_stream_windows` says that we run such a window.
    `explain` is the mode of an EXPLAIN statement ("simple", "extended", "analyze", ...), else None. With a mode,
    everything else describes the explained statement. `measured` is what a run of it measured (explain/analyze.py).

    Printed, it is the text of `sqlext plan` for the stages "optimized" and "physical", or that of EXPLAIN ANALYZE if it
    was measured; a notebook shows these stages side by side.
    """

    sql: str
    statement: Statement
    analyzed: LogicalPlan | None
    trace: PlanTrace | None
    physical: PhysicalPlan | None
    extensions: tuple[str, ...]
    explain: str | None
    passthrough: bool
    measured: Measured | None = None
    refused: SqlExtError | None = None
    of_stream_windows: bool = False

    @property
    def ordinary(self) -> bool:
        """Whether Spark could run the statement as it is: our plan can then only be faster."""
        return not self.statement.uses_extension and self.explain is None

    @property
    def optimized(self) -> LogicalPlan | None:
        """The logical plan after all rules."""
        return None if self.trace is None else self.trace.final

    def with_details(self) -> Self:
        """The same plan, when Spark was asked what it says of tables: views of given frames go before it is printed."""
        for node in () if self.physical is None else self.physical.walk():
            node.details()
        return self

    def __str__(self) -> str:
        from sqlext.explain.pages import SHOWN, explain_text

        return explain_text(self, SHOWN if self.measured is None else ("physical",))

    __repr__ = __str__

    def html(self) -> str:
        """The page of `sqlext plan --format html`, complete and in one piece (docs/plan-pages.md)."""
        from sqlext.explain.pages import PAGE, render

        return render(self, PAGE, "html")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from sqlext.explain.pages import SHOWN, plan_html

        return plan_html(self, SHOWN)


_P = ParamSpec("_P")


def _logged(plan: Callable[_P, StagedPlan]) -> Callable[_P, StagedPlan]:
    """A function that plans a statement, with a line in the log, and without Python's garbage collector. A statement's
    trees only grow: it would visit them again and again and find nothing (measured over TPC-DS: a tenth of the planning
    time at the median, a fifth at p95)."""

    @wraps(plan)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> StagedPlan:
        start = time.perf_counter()
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            staged = plan(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("planned in %.1f ms: %s", 1000 * (time.perf_counter() - start), _summary(staged))
        return staged

    return run


def _summary(plan: StagedPlan) -> str:
    """What became of a statement, for the log."""
    if plan.physical is None or plan.trace is None:
        return "goes to Spark as it is"
    rules = ", ".join(plan.trace.rules) or "none"
    how = "goes to Spark as it is" if plan.passthrough else ", ".join(plan.extensions) or "lowered"
    return f"{how}; rules: {rules}"


@_logged
def stage(
    sql: str,
    catalog: Catalog,
    config: Config,
    compat: str | None = None,
    *,
    lenient: bool = False,
    settings: SqlSettings = DEFAULT,
    analyze: bool = False,
) -> StagedPlan:
    """Plan one statement as far as possible; starts no JVM unless the catalog does. With `analyze` it is planned as
    behind EXPLAIN ANALYZE: a query, which our plan runs whatever it holds.

    Raises SqlExtError, with the text and mostly a span, for a user's mistake. With `lenient`, a statement without
    extension syntax passes through whatever fails: Spark may understand it, or reports its own error. Only an error
    about one of our hints is still raised then.
    """
    from sqlext.run.unplanned import LARGE, has_window_of_stream, joins_nothing, may_be_ours
    from sqlext.syntax.parser import Statement, parse

    explain = _EXPLAIN.match(sql)
    # The words are blanked, not cut off, so that offsets in the text stay the same.
    text = " " * explain.end() + sql[explain.end() :] if explain else sql
    mode = "analyze" if analyze else (explain["mode"] or "simple").lower() if explain else None
    plain = lenient and not (compat is not None or mode == "analyze")
    if plain and not config.always_lower and len(text) > LARGE and not may_be_ours(text):
        return StagedPlan(sql, Statement(text, "spark", text), None, None, None, (), mode, passthrough=True)
    statement = parse(text, compat=compat, is_user_function=catalog.has_function, settings=settings)
    if mode == "analyze" and statement.kind != "query":
        start = explain.end() if explain is not None else 0
        raise UnsupportedError(
            "EXPLAIN ANALYZE runs a query, and this is not a query",
            condition="unsupported-clause",
            span=Span(min(start, len(sql.rstrip()) - 1), len(sql.rstrip())),
            help="use EXPLAIN without ANALYZE: it shows the plan and runs nothing",
        )
    refusal = settings.refusal(statement.query) if statement.query is not None else None
    if refusal is not None and (statement.uses_extension or mode == "analyze"):
        raise refusal.with_sql(statement.sql)
    passed = StagedPlan(sql, statement, None, None, None, (), mode, passthrough=True)
    if statement.kind == "spark" and not lenient and compat is None:
        from sqlext.syntax.typos import misspelt

        typo = misspelt(text, settings)
        if typo is not None:
            raise typo
    if statement.kind == "spark" or refusal is not None:
        return passed
    may_pass = plain and not statement.uses_extension
    unplanned = may_pass and mode is None and not config.always_lower and joins_nothing(statement)
    if unplanned and not (config.streams != "spark" and has_window_of_stream(statement, catalog)):
        return passed
    try:
        return _planned(passed, catalog, config, settings)
    except SqlExtError as error:
        if may_pass and error.of_window and statement.kind == "query" and mode is None:
            return replace(passed, refused=error.with_sql(statement.sql))
        if may_pass and not (error.of_hint or error.of_window):
            if config.always_lower:
                _LOG.info("left to Spark: %s", error.message)
            return passed
        raise error.with_sql(statement.sql) from error.__cause__
    except Exception as error:
        if not may_pass and isinstance(error, RecursionError):
            raise too_deep(statement) from None
        if not may_pass:
            raise
        left_to_spark(error)
        return passed


def left_to_spark(error: Exception) -> None:
    """Log that our planning failed for an ordinary statement, which still goes to Spark.

    One line for users; the tests turn it into an error. If Spark itself failed, the statement will report it.
    """
    expected = isinstance(error, (SqlExtError, RecursionError, MemoryError))
    if not expected and not type(error).__module__.startswith(("py4j", "pyspark")):
        _LOG.warning("planning failed, the statement goes to Spark as it is (%s: %s)", type(error).__name__, error)
    _LOG.debug("planning failed", exc_info=error)


def _planned(start: StagedPlan, catalog: Catalog, config: Config, settings: SqlSettings) -> StagedPlan:
    """The statement with all stages after parsing."""
    from sqlext_planner.batches import BATCHES
    from sqlext_planner.interval_join.rules import refuse_unfollowed
    from sqlext_planner.optimizer.executor import RuleExecutor
    from sqlext_planner.relational.streams import (
        check_hidden,
        hidden_stream,
        is_streaming,
        operators_asked_for,
        refuse_streams,
    )
    from sqlext_planner.strategies import contains_extension, plan_physical, stream_refusal
    from sqlext_planner.window.nodes import WindowUnion

    from sqlext.analyzer.context import AnalyzerOptions
    from sqlext.analyzer.queries import analyze

    statement, mode = start.statement, start.explain
    empty, late_rows = cast("EmptyPeriods", config.interval_empty), config.stream_late == "rows"
    plain_windows = config.streams != "spark"
    options = AnalyzerOptions(statement.compat, empty, settings, late_rows, plain_windows)
    analyzed = analyze(statement, catalog, options)
    hidden = None if statement.uses_extension or mode == "analyze" else hidden_stream(analyzed)
    refused = None
    if hidden is not None:  # no setting may promise an operator
        check_hidden(analyzed, hidden)
        config = replace(config, umjoin_strategy="cascade")
        refused = "Spark refuses a stream in a subquery of an expression"
    trace = RuleExecutor(BATCHES).optimize(analyzed)
    asked_for = operators_asked_for(analyzed)
    try:
        refuse_streams(trace.final, stream_refusal)
        if asked_for:
            refuse_unfollowed(trace.final)
    except UnsupportedError as error:  # without our syntax, one of our hints has asked for the operator
        raise (error if error.of_window else error.about_hint()) from None
    physical = plan_physical(trace.final, config, catalog, refused)
    extensions = tuple(contains_extension(physical))
    # Neither passes: a rule may have pruned the window away, and compat's words mean something else to Spark.
    asked = (config.always_lower and mode is None) or mode == "analyze"  # Spark has no EXPLAIN ANALYZE
    plain = any(node.is_plain for node in analyzed.collect(WindowUnion))  # Spark would refuse one that is pruned, too
    lowered = statement.uses_extension or plain or (asked and statement.kind == "query")
    # Only Spark knows what a stream allows: without our syntax, hints or operators, its statement is left as it is.
    ours = statement.uses_extension or extensions or asked_for or plain
    if mode == "analyze" and not ours:
        _refuse_endless(analyzed)
    # Spark has no EXPLAIN of a stream's plan.
    is_told = mode is not None and is_streaming(analyzed)
    left = (not extensions and not lowered) or (not ours and is_streaming(analyzed))
    passthrough = hidden is not None or (left and not is_told)
    return StagedPlan(
        start.sql,
        statement,
        analyzed,
        trace,
        physical,
        extensions,
        mode,
        passthrough,
        of_stream_windows=plain,
    )


def _refuse_endless(plan: LogicalPlan) -> None:
    """Raises UnsupportedError for EXPLAIN ANALYZE of a query over a stream that none of our operators reads."""
    from sqlext_planner.relational.streams import streams_of

    stream = next(streams_of(plan), None)
    if stream is not None:
        from sqlext.explain.stream_plan import endless

        raise endless(stream, "over a stream nothing of this one is ours")


def too_deep(statement: Statement) -> SqlExtError:
    """The error for a statement too deep for Python's stack, at the innermost place of its text."""
    from sqlext.syntax.spans import deepest_span

    span = None if statement.query is None else deepest_span(statement.query)
    help = "split it: store a part of it as a table, or compute a part of it in a separate statement"
    return UnsupportedError(
        "the statement is nested too deeply", condition="nested-too-deeply", span=span, help=help, sql=statement.sql
    )
