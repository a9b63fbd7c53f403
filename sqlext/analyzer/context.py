"""What an analysis carries with it: the text, the catalog, unique names, the visible CTEs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import Span, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.periods.predicates import EmptyPeriods
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlglot import exp

from sqlext.analyzer.scope import Scope, Visible
from sqlext.syntax.sql_settings import DEFAULT, SqlSettings

if TYPE_CHECKING:
    from sqlext.analyzer.edits import Edit
    from sqlext.analyzer.expressions import ExpressionBuilder


#: The plan of an item in FROM, and the names that it makes visible.
Relation = tuple[LogicalPlan, Scope]


@dataclass(frozen=True)
class AnalyzerOptions:
    """`compat` "openmldb" makes every window OpenMLDB's, with its dialect and what it refuses. `empty` is what an empty
    or reversed period does in a period predicate. `settings` are Spark's, for reading SQL text. `late_rows`: windows
    over streams give out late rows too, and have a column that tells them from the others."""

    compat: str | None = None
    empty: EmptyPeriods = "drop"
    settings: SqlSettings = DEFAULT
    late_rows: bool = False


@dataclass(frozen=True)
class Analyzed:
    """A query's plan and the names of its result columns; the names may repeat, the plan's columns do not."""

    plan: LogicalPlan
    names: tuple[str, ...]


@dataclass(frozen=True)
class Cte:
    """A visible common table expression. `text` is its query as written, with `names` for ``c(x, y)``.

    `env` is what its own body could see. `extended`: it holds one of our windows or a LAST JOIN, which no Spark text
    can hold.
    """

    name: str
    query: Analyzed
    text: str
    tree: exp.Expr
    env: Mapping[str, Cte]
    extended: bool


Env = Mapping[str, Cte]


def inner_name(wanted: str) -> str:
    """A user's name as the name of a relation or a computed column in a plan, where a dot separates relation and column
    and our own names begin with __sqlext. The result still shows the user's own name."""
    name = wanted.replace(".", "_").replace("${", "$(")
    return name if not name.lower().startswith("__sqlext") else f"_{name}"


@dataclass
class Names:
    """Relation names, each given once: a second `orders` becomes `orders_2`."""

    taken: set[str] = field(default_factory=set)

    def unique(self, wanted: str) -> str:
        """`wanted`, or the first free of wanted_2, wanted_3, ...; changed first by `inner_name`."""
        wanted = inner_name(wanted)
        name, count = wanted, 1
        while name.lower() in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name.lower())
        return name


@dataclass
class Questions:
    """How many questions an analysis may still ask Spark; hundreds of blocks would take seconds."""

    left: int = 0


@dataclass(frozen=True)
class Parts:
    """Functions that analyze what may be inside a part of a query and holds parts of queries again. They come with the
    context, so that the module of a part imports nothing above it.

    query     the plan of a query
    subquery  the plan of a subquery of an expression, or LeftToSparkError
    ctes      the common table expressions visible inside a query
    joins     a relation with the joins after it
    edits     what has to change in the text of a subquery that stays text
    planned   the expression of a subquery that gets a plan; None for any other node
    """

    query: Callable[[Context, exp.Expr, Env], Analyzed]
    subquery: Callable[[Context, exp.Expr, Env], Analyzed]
    ctes: Callable[[Context, exp.Expr, Env], Env]
    joins: Callable[[Context, Relation, Sequence[exp.Join], Env], Relation]
    edits: Callable[[exp.Query, ExpressionBuilder], list[Edit]]
    planned: Callable[[exp.Expr, ExpressionBuilder], Expression | None]


@dataclass(frozen=True)
class Context:
    """One analysis. `text` is the statement with comments blanked.

    `outer` are the scopes of the queries around a subquery of an expression, innermost first, for names that mean
    nothing in it. `questions` is how often we may still ask a running Spark about a block. `looks_ahead`: only names
    and types are wanted, so subqueries of expressions need no plans. `extended`: the statement holds our syntax.
    `join_scopes` records what the conditions of joins and the queries after LATERAL see, by id(node).
    """

    text: str
    catalog: Catalog
    options: AnalyzerOptions
    parts: Parts
    names: Names = field(default_factory=Names)
    outer: tuple[Scope, ...] = ()
    looks_ahead: bool = False
    extended: bool = True
    join_scopes: dict[int, Scope] | None = None
    questions: Questions = field(default_factory=Questions)

    @property
    def openmldb(self) -> bool:
        return self.options.compat == "openmldb"

    @property
    def settings(self) -> SqlSettings:
        return self.options.settings

    def fold(self, name: str) -> str:
        """A name in the form in which it is compared with others."""
        return self.options.settings.fold(name)

    def scope(self, columns: Iterable[Visible]) -> Scope:
        """A scope that compares names as the settings require."""
        return Scope(tuple(columns), exact=self.options.settings.case_sensitive)

    def slice(self, span: Span) -> str:
        """The user's own text at `span`."""
        return self.text[span.start : span.end]

    def sandbox(self) -> Context:
        """A context for looking ahead: names used there stay free here."""
        names = Names(set(self.names.taken))
        return replace(self, names=names, outer=(), looks_ahead=True, join_scopes=None, questions=Questions())

    def recording(self) -> Context:
        """The same context with an empty `join_scopes`, for one FROM."""
        return replace(self, join_scopes={})

    def note(self, node: exp.Expr, scope: Scope) -> None:
        """Record what a part of FROM sees, if that is wanted."""
        if self.join_scopes is not None:
            self.join_scopes[id(node)] = scope

    def inside(self, *outer: Scope) -> Context:
        """The context of a query in an expression over `outer`; without `outer` it sees no other query's columns."""
        return self if self.outer == outer else replace(self, outer=outer)


class LeftToSparkError(UnsupportedError):
    """A construct that the analyzer has no node for. The block around it becomes text for Spark if it can."""

    def __init__(self, message: str, *, span: Span | None = None, help: str | None = None) -> None:
        super().__init__(message, condition="spark-block", span=span, help=help)


class ComputedNames:
    """Names of computed columns, unique in one block."""

    def __init__(self) -> None:
        self._taken = Names()

    def column(self, wanted: str) -> Column:
        """A new column called `wanted`, or the first free of wanted_2, ..."""
        return Column("", self._taken.unique(wanted))

    def reserve(self, name: str) -> None:
        """Keep a name from being used."""
        self._taken.taken.add(name.lower())


_SCHEMAS = (("session",), ("system", "session"))


def session_variable(context: Context, parts: tuple[str, ...], span: Span) -> SparkExpr | None:
    """The variable that a dotted name means, alone or behind ``session.``; None if there is none. Spark knows it."""
    if len(parts) > 1 and tuple(part.lower() for part in parts[:-1]) not in _SCHEMAS:
        return None
    name = "`" + parts[-1].replace("`", "``") + "`"
    text = f"system.session.{name}"
    columns = context.catalog.query_columns(f"SELECT {text}")
    return None if columns is None or len(columns) != 1 else SparkExpr((text,), dtype=columns[0][1], span=span)
