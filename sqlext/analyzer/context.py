"""What an analysis carries with it: the text, the catalog, unique names, the visible CTEs, and the scope.

The scope says which columns a part of a statement can see, and what a name in it means.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.periods.predicates import EmptyPeriods
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.syntax.spans import mistake
from sqlext.syntax.sql_settings import DEFAULT, SqlSettings

if TYPE_CHECKING:
    from sqlext.analyzer.edits import Edit
    from sqlext.analyzer.expressions import ExpressionBuilder


@dataclass(frozen=True)
class Visible:
    """A column as the statement sees it.

    `qualifier` is what may come before the name, outermost first: ("sales", "orders"), ("o",) or ().
    `qualified_only` columns can only be written ``o.k`` or ``o.*`` (the sides of USING (k)).
    `database` is the current one, which may come before an alias or a table written without it (OpenMLDB mode);
    `foreign` columns belong to a table of another database, which has to be named (``db2.o.k``).
    """

    qualifier: tuple[str, ...]
    name: str
    column: Column
    dtype: str | None = None
    qualified_only: bool = False
    database: str = ""
    foreign: bool = False

    @property
    def may_have_fields(self) -> bool:
        """Whether a field of the column may be named: its type is nested or unknown."""
        return self.dtype is None or self.dtype.startswith(("struct<", "array<", "map<", "variant"))

    def answers(self, qualifier: tuple[str, ...], fold: Callable[[str], str]) -> bool:
        """Whether `qualifier`, folded, names this column's table, fully or by its last parts."""
        mine = tuple(map(fold, self.qualifier))
        if self.foreign:
            return qualifier == mine
        if self.database and len(mine) == 1:
            mine = (fold(self.database), *mine)
        return bool(qualifier) and mine[-len(qualifier) :] == qualifier


@dataclass(frozen=True)
class Match:
    """What a dotted name means: a column, and how many of the name's parts name it; the rest are struct fields."""

    visible: Visible
    parts: int


@dataclass(frozen=True)
class Scope:
    """The visible columns, in the order of ``*``.

    `prefixes` are widths: that many first columns of ``*`` are a relation to which a LAST JOIN added the others. A
    source of a window's UNION may have only these. `exact`: names that differ in case are different names.
    """

    columns: tuple[Visible, ...] = ()
    prefixes: tuple[int, ...] = ()
    exact: bool = False

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.columns + other.columns, self.prefixes, self.exact or other.exact)

    def fold(self, name: str) -> str:
        """A name in the form in which it is compared with others."""
        return name if self.exact else name.lower()

    def star(self, qualifier: tuple[str, ...] = ()) -> tuple[Visible, ...]:
        """The columns of ``*`` or ``qualifier.*``."""
        if not qualifier:
            return tuple(item for item in self.columns if not item.qualified_only)
        wanted = tuple(map(self.fold, qualifier))
        return tuple(item for item in self.columns if item.answers(wanted, self.fold))

    def find(self, parts: tuple[str, ...], span: Span | None = None) -> Match | None:
        """What the dotted name `parts` means, as Spark resolves it; None if nothing.

        Longer qualifiers win: in ``a.b.c`` a table `a.b` before a table `a` before a column `a`. A column whose type
        has no fields does not match a name with a field.
        Raises AnalysisError for an ambiguous name.
        """
        folded = tuple(map(self.fold, parts))
        for size in range(min(len(parts) - 1, 3), -1, -1):
            qualifier, name = folded[:size], folded[size]
            candidates = [
                item
                for item in self._by_name.get(name, ())
                if (item.answers(qualifier, self.fold) if size else not item.qualified_only)
                and (size + 1 == len(parts) or item.may_have_fields)
            ]
            distinct = {item.column for item in candidates}
            if len(distinct) > 1:
                raise mistake(
                    "ambiguous-name",
                    span,
                    f"column '{'.'.join(parts)}' is ambiguous",
                    _ways_out(candidates, parts[size + 1 :]),
                )
            if candidates:
                return Match(candidates[0], size + 1)
        return None

    @cached_property
    def _by_name(self) -> dict[str, list[Visible]]:
        found: dict[str, list[Visible]] = {}
        for item in self.columns:
            found.setdefault(self.fold(item.name), []).append(item)
        return found

    def unknown(self, parts: tuple[str, ...], span: Span | None) -> AnalysisError:
        """The error for a name that `find` does not find."""
        name = ".".join(parts)
        if len(parts) > 1:
            tables = {".".join(item.qualifier): None for item in self.columns if item.qualifier}
            own = self.star(parts[:-1])
            if own:
                table = ".".join(parts[:-1])
                nearest = suggest(parts[-1], (item.name for item in own))
                hint = f"did you mean '{table}.{nearest}'?" if nearest else _listing(item.name for item in own)
                return mistake("unknown-column", span, f"column '{parts[-1]}' not found in '{table}'", hint)
            if tables:
                nearest = suggest(".".join(parts[:-1]), (table.split(".")[-1] for table in tables))
                hint = f"did you mean '{nearest}.{parts[-1]}'?" if nearest else f"tables here: {', '.join(tables)}"
                word = parts[-2].upper()
                note = f"{word} directly before JOIN is {word} JOIN; for an alias write FROM t AS {word.lower()} JOIN u"
                message = f"table '{'.'.join(parts[:-1])}' not found in FROM"
                return mistake("unknown-table", span, message, hint, (note,) if word in ("LAST", "ASOF") else ())
        names = (item.name for item in self.columns)
        hint = did_you_mean(parts[-1], names, _listing(item.name for item in self.star()))
        return mistake("unknown-column", span, f"column '{name}' not found", hint)

    def left_first(self) -> Scope:
        """The scope in which a bare name means the left side's column of LAST JOINs if it has one, whatever the right
        sides have: this is how OpenMLDB reads the keys of a window."""
        width = self.prefixes[0] if self.prefixes else len(self.columns)
        left = self.star()[:width]
        names, columns = {self.fold(item.name) for item in left}, {item.column for item in left}
        hidden = (self.fold(item.name) in names and item.column not in columns for item in self.columns)
        pairs = zip(self.columns, hidden, strict=True)
        return replace(
            self, columns=tuple(replace(item, qualified_only=True) if hide else item for item, hide in pairs)
        )

    def in_database(self, current: str) -> Scope:
        """The same columns, with the names that a statement in the database `current` may use in OpenMLDB mode."""

        def placed(item: Visible) -> Visible:
            if len(item.qualifier) == 1:
                return replace(item, database=current)
            return replace(
                item, foreign=len(item.qualifier) == 2 and self.fold(item.qualifier[0]) != self.fold(current)
            )

        return replace(self, columns=tuple(placed(item) for item in self.columns))

    def with_qualifier(self, qualifier: tuple[str, ...]) -> Scope:
        """The same columns under another table name."""
        return replace(self, columns=tuple(replace(item, qualifier=qualifier) for item in self.columns))


def _ways_out(candidates: Sequence[Visible], fields: tuple[str, ...]) -> str:
    """What to write instead of a name that means several columns; `fields` come behind it."""
    forms: dict[str, set[Column]] = {}
    for item in candidates:
        forms.setdefault(".".join((*item.qualifier, item.name, *fields)) if item.qualifier else "", set()).add(
            item.column
        )
    clear = sorted(form for form, columns in forms.items() if form and len(columns) == 1)
    ways = [f"write one of {', '.join(clear)}" if len(clear) > 1 else f"write {clear[0]}"] if clear else []
    name, unclear = candidates[0].name, [forms[form] for form in forms if form not in clear]
    if any(len({column.relation for column in columns}) == len(columns) for columns in unclear):
        ways.append(
            f"give each table and subquery of FROM a name of its own, as in (SELECT ...) AS x, and write x.{name}"
        )
    else:
        ways += [f"give one of the two columns another name in the subquery: {name} AS {name}_2"] if unclear else []
    return "; or ".join(ways)


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to a misspelt name, if any is close."""
    known = {candidate.lower(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return known[near[0]] if near else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """A hint at the candidate that was meant; `otherwise` if none is close."""
    nearest = suggest(name, candidates)
    return f"did you mean '{nearest}'?" if nearest else otherwise


def suggestions(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates closest to a misspelt name, if any is close: the nearest first, and those nearly as near."""
    found = difflib.get_close_matches(name.lower(), dict.fromkeys(candidates), n=3, cutoff=0.6)
    ratios = [difflib.SequenceMatcher(None, candidate, name.lower()).ratio() for candidate in found]
    return [candidate for candidate, ratio in zip(found, ratios, strict=True) if ratio >= ratios[0] - 0.05]


def _listing(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    shown = ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "")
    return f"columns here: {shown}" if listed else "there is no FROM to take columns from"


#: The plan of an item in FROM, and the names that it makes visible.
Relation = tuple[LogicalPlan, Scope]


@dataclass(frozen=True)
class AnalyzerOptions:
    """`compat` "openmldb" makes every window OpenMLDB's, with its dialect and what it refuses. `empty` is what an empty
    or reversed period does in a period predicate. `settings` are Spark's, for reading SQL text. `late_rows`: windows
    over streams give out late rows too, and have a column that tells them from the others. `plain_windows`: windows of
    standard SQL over streams are ours."""

    compat: str | None = None
    empty: EmptyPeriods = "drop"
    settings: SqlSettings = DEFAULT
    late_rows: bool = False
    plain_windows: bool = False
    deploys: bool = False


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


def free_name(base: str, taken: set[str]) -> str:
    """`base`, or the first of base_2, base_3, ... that is not `taken`, ignoring case; it is from now on."""
    name, count = base, 1
    while name.lower() in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name.lower())
    return name


@dataclass
class Names:
    """Relation names, each given once: a second `orders` becomes `orders_2`."""

    taken: set[str] = field(default_factory=set)

    def unique(self, base: str) -> str:
        """`base`, or the first free of base_2, base_3, ...; changed first by `inner_name`."""
        return free_name(inner_name(base), self.taken)


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

    def of_item(self, name: str, expression: Expression, taken: Collection[Column]) -> Column:
        """The column of a select item: a plain column is its own if it has the item's name and is not `taken`."""
        if isinstance(expression, Column) and expression.name == name and expression not in taken:
            return expression
        return self.column(name)

    def reserve(self, plan: LogicalPlan) -> None:
        """Keep the names of a plan's computed columns from being used again."""
        self._taken.taken |= {column.name.lower() for column in plan.output_columns if not column.relation}


_SCHEMAS = (("session",), ("system", "session"))


def session_variable(context: Context, parts: tuple[str, ...], span: Span) -> SparkExpr | None:
    """The variable that a dotted name means, alone or behind ``session.``; None if there is none. Spark knows it."""
    if len(parts) > 1 and tuple(part.lower() for part in parts[:-1]) not in _SCHEMAS:
        return None
    text = f"system.session.{quoted(parts[-1])}"
    columns = context.catalog.query_columns(f"SELECT {text}")
    return None if columns is None or len(columns) != 1 else SparkExpr((text,), dtype=columns[0][1], span=span)


def dotted(parts: Sequence[str]) -> str:
    """A table's name as a catalog expects it: in backticks only if a part holds a dot or a backtick."""
    if any("." in part or "`" in part for part in parts):
        return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    return ".".join(parts)
