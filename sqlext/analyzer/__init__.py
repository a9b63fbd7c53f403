"""From a parsed statement to a logical plan with every name resolved."""

from __future__ import annotations

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import InternalError, SqlExtError, UnsupportedError
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Output
from sqlglot import exp

from sqlext.analyzer.context import Analyzed, AnalyzerOptions, Context, Questions
from sqlext.syntax.parser import Statement
from sqlext.syntax.spans import NoPlaceError

#: How many blocks of a statement we ask Spark about: at 2-5 ms each, a third of a second at most.
_QUESTIONS = 64

__all__ = ["AnalyzerOptions", "analyze"]


def analyze(statement: Statement, catalog: Catalog, options: AnalyzerOptions | None = None) -> LogicalPlan:
    """The logical plan of a statement's query: an `Output` root over resolved nodes.

    A statement without extension syntax that the analyzer cannot follow becomes one SparkRelation, if the
    catalog knows its columns. Raises AnalysisError, UnsupportedError, with the place in the text.
    """
    from sqlext.analyzer import queries, relations

    if statement.query is None or statement.query_span is None:
        raise InternalError("a statement of Spark's own is not analysed")
    asks = Questions(_QUESTIONS if statement.uses_extension and statement.compat is None else 0)
    found, extended = options or AnalyzerOptions(statement.compat), statement.uses_extension
    context = Context(statement.text, catalog, found, queries.PARTS, questions=asks, extended=extended)
    try:
        query = _analyze(context, statement.query)
    except SqlExtError as error:
        refused = statement.uses_extension or error.of_hint
        columns = None if refused else catalog.query_columns(context.slice(statement.query_span))
        if columns is None:
            raise error.with_sql(statement.sql) from error.__cause__
        text = context.slice(statement.query_span)
        plan, _ = relations.spark_relation(context, text, columns, ("spark_query",), statement.query)
        query = Analyzed(plan, tuple(name for name, _ in columns))
    return Output(query.names, query.plan)


def _analyze(context: Context, query: exp.Query) -> Analyzed:
    from sqlext.analyzer import queries

    try:
        return queries.analyze_query(context, query, {})
    except NoPlaceError as error:
        raise UnsupportedError(
            f"the statement is written in a way that is left to Spark ({error})", condition="spark-block"
        ) from None
