"""The general rules.

In this order: several nodes become one, so that the patterns of later rules match however the text was nested;
conditions move towards the tables; columns that nobody reads are not carried; outer joins whose made-up NULL rows are
dropped above become inner ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    Literal,
    NamedExpr,
    conjunction,
    conjuncts,
    is_deterministic,
    is_generator,
    is_movable,
    reads_only,
)
from sqlext_planner.optimizer.executor import rule, shared_nodes
from sqlext_planner.optimizer.truth import Truth
from sqlext_planner.relational.joins import DROPS, Join, JoinKind, holds
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias, filtered


@rule(order="bottom_up", on=(SubqueryAlias, Project))
def merge_alias_into_project(node: LogicalPlan) -> LogicalPlan | None:
    """``SubqueryAlias d(Project(f(x) AS y, t))`` -> ``Project(f(x) AS d.y, t)``.

    ``SELECT d.y FROM (SELECT a + 1 AS y FROM t) AS d``::

        SubqueryAlias: d              Project: a + 1 AS d.y
          Project: a + 1 AS y   ->      Scan: t [a]
            Scan: t [a]

    Legal everywhere: an alias only renames columns, and the projection itself can do that too. Projections of nested
    subqueries can then merge. The executor makes one exception: it does not change a projection that two aliases share
    (a common table expression used twice), as ``WITH q AS (SELECT ...) SELECT * FROM q AS x, q AS y`` shows.
    """
    match node:
        case SubqueryAlias(relation, names, Project(items, child) as project):
            renamed = (
                NamedExpr(item.expression, Column(relation, name), span=item.span)
                for item, name in zip(items, names, strict=True)
            )
            return Project(tuple(renamed), child, span=project.span)
    return None


@rule(order="bottom_up", on=(Filter,))
def merge_filters(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p, Filter(q, x))`` -> ``Filter(q AND p, x)``, so that other rules see one list of conjuncts.

    ``SELECT * FROM (SELECT * FROM t WHERE a > 1) WHERE b < 2``, once the subquery's alias is out of the way::

        Filter: b < 2                 Filter: a > 1 AND b < 2
          Filter: a > 1       ->        Scan: t [a, b]
            Scan: t [a, b]

    Legal if both are deterministic: a row passes both or it does not, and q stays first. Not legal for
    ``... WHERE rand() < 0.5``: another rule may then move the conjuncts apart, and rand() would be drawn for
    other rows.
    """
    match node:
        case Filter(outer, Filter(inner, child)) if is_deterministic(outer) and is_deterministic(inner):
            condition = conjunction((inner, outer))
            assert condition is not None
            return Filter(condition, child, span=node.span)
    return None


@rule(order="bottom_up", on=(Project,))
def merge_projects(node: LogicalPlan) -> LogicalPlan | None:
    """``Project(f(y), Project(g(x) AS y, t))`` -> ``Project(f(g(x)), t)``.

    ``SELECT y + 1 AS z FROM (SELECT a * 2 AS y FROM t)``::

        Project: y + 1 AS z           Project: (a * 2) + 1 AS z
          Project: a * 2 AS y   ->      Scan: t [a]
            Scan: t [a]

    Legal if every inner item that is read is a column, a literal, or a movable expression that is read once.
    Not legal for ``SELECT r, r FROM (SELECT rand() AS r FROM t)``: two draws where there was one. Not wise for
    ``SELECT y, y FROM (SELECT slow(a) AS y FROM t)``: computed twice. Inner items that nothing reads vanish, unless
    one is a generator: ``SELECT a FROM (SELECT a, explode(b) FROM t)`` has a row for each element of b.
    """
    match node:
        case Project(outer, Project(inner, child)):
            uses = Counter(column for item in outer for column in _reads(item.expression))
            if any(is_generator(item.expression) for item in inner):
                return None
            computed = [item for item in inner if not isinstance(item.expression, Column | Literal)]
            if any(uses[i.column] > 1 or (uses[i.column] and not is_movable(i.expression)) for i in computed):
                return None
            mapping = {item.column: item.expression for item in inner}
            items = tuple(NamedExpr(i.expression.substitute(mapping), i.column, span=i.span) for i in outer)
            return Project(items, child, span=node.span)
    return None


def _reads(expression: Expression) -> list[Column]:
    """Columns the expression reads, once for each place where it reads them."""
    if isinstance(expression, Column):
        return [expression]
    return [column for child in expression.children for column in _reads(child)]


@rule(order="bottom_up", on=(Project,))
def remove_no_op_project(node: LogicalPlan) -> LogicalPlan | None:
    """``Project(c1, c2)`` over a child that outputs exactly c1, c2 -> the child.

    ``SELECT a, b FROM t`` where t has the columns a and b::

        Project: t.a, t.b       ->    Scan: t [a, b]
          Scan: t [a, b]

    Legal because columns, order and names are the same. ``SELECT b, a FROM t`` stays: Output and UNION read by
    position.
    """
    match node:
        case Project(items, child):
            same = len(items) == len(child.output) and all(
                item.expression == item.column == column
                for item, column in zip(items, child.output_columns, strict=True)
            )
            return child if same else None
    return None


@rule(order="bottom_up")
def normalize_conditions(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON NOT (a.s >= b.e OR a.e <= b.s)`` -> ``Join ON a.s < b.e AND a.e > b.s``, and filters likewise.

    ``SELECT * FROM a JOIN b ON a.p MEETS b.q OR b.q MEETS a.p``::

        Join: inner ON a.p MEETS b.q OR b.q MEETS a.p  ->  Join: inner ON a.p MEETS OR MET BY b.q
          Scan: a [p]                                        Scan: a [p]
          Scan: b [q]                                        Scan: b [q]

    NOT goes to the comparisons; ``IS TRUE``, ``= true`` and ``coalesce(..., false)`` go; ``greatest(x, y) < least(z,
    w)`` becomes comparisons of the values, and the predicates over the same two periods become one set of relations.

    Legal because these nodes ask only for which rows the condition is true, and each rewrite is true for the same rows
    (`optimizer/truth.py`).

    Counter-example: ``SELECT NOT (a.s < b.e) IS TRUE``: there false and NULL are different results. And
    ``(p OVERLAPS q) IS NOT FALSE`` stays: it is true where an end is NULL.
    """
    match node:
        case Filter(condition) | Join(condition=condition) if condition is not None:
            known = {column: dtype for child in node.children for column, dtype in child.dtypes.items()}
            found = Truth(known).simplified(condition)
            return None if found == condition else replace(node, condition=found)
    return None


@rule(order="top_down", on=(Filter,))
def push_filter(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p AND q, Node(x))`` -> ``Filter(q, Node(Filter(p, x)))`` where p may be checked before the node.

    ``SELECT * FROM (SELECT a + 1 AS y FROM t) WHERE y > 5``::

        Filter: y > 5                 Project: a + 1 AS y
          Project: a + 1 AS y   ->      Filter: (a + 1) > 5
            Scan: t [a]                   Scan: t [a]

    Legal for the movable conjuncts that the node lets pass: `filtered_below` of its class says which these are, what
    becomes of the node, and why. A class that says nothing lets none pass.

    Not legal, for example, over a window: ``(SELECT a, rank() OVER (ORDER BY b) AS r FROM t) WHERE a > 5`` ranks over
    all rows.
    """
    match node:
        case Filter(condition, child):
            terms = conjuncts(condition)
            movable = [term for term in terms if is_movable(term)]
            found = child.filtered_below(movable) if movable else None
            if found is None or not found[1]:
                return None
            below, passed = found
            return filtered([term for term in terms if not holds(passed, term)], below)
    return None


@rule(order="top_down", on=(Join,))
def push_join_condition(node: LogicalPlan) -> LogicalPlan | None:
    """``Join(x, y) ON p(x) AND r(x, y)`` -> ``Join(Filter(p, x), y) ON r``.

    ``SELECT * FROM t LEFT JOIN u ON t.a = u.x AND u.y > 3``::

        Join: left ON t.a = u.x AND u.y > 3         Join: left ON t.a = u.x
          Scan: t [a, b]                      ->      Scan: t [a, b]
          Scan: u [x, y]                              Filter: u.y > 3
                                                        Scan: u [x, y]

    | join  | left-only conjunct | right-only conjunct | why                                              |
    |-------|--------------------|---------------------|--------------------------------------------------|
    | inner | to left            | to right            | ON is WHERE                                      |
    | left  | stays              | to right            | a left row that fails ON is kept, with NULLs     |
    | right | to left            | stays               | mirrored                                         |
    | full  | stays              | stays               | rows of both sides are kept                      |
    | semi  | to left            | to right            | a left row that fails ON is dropped              |
    | anti  | stays              | to right            | a left row that fails ON is *kept*               |

    Counter-example: ``t LEFT JOIN u ON t.b > 0 AND t.a = u.x`` returns the rows with b <= 0 too.
    """
    match node:
        case Join(left, right, kind, on) if on is not None:
            left_drops, right_drops = DROPS[kind]
            to_left: list[Expression] = []
            to_right: list[Expression] = []
            rest: list[Expression] = []
            for term in conjuncts(on):
                if left_drops.on and is_movable(term) and reads_only(term, left.output_columns):
                    to_left.append(term)
                elif right_drops.on and is_movable(term) and reads_only(term, right.output_columns):
                    to_right.append(term)
                else:
                    rest.append(term)
            if not (to_left or to_right):
                return None
            sides = filtered(to_left, left), filtered(to_right, right)
            return replace(node, left=sides[0], right=sides[1], condition=conjunction(rest))
    return None


@rule(order="root")
def prune_columns(root: LogicalPlan) -> LogicalPlan | None:
    """Narrows scans, projections, aggregates, window unions and joins to the columns that the root needs.

    ``SELECT sum(v) OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ...)`` with wide tables::

        Project: s                                 Project: s
          WindowUnion: UNION 1 sources ...           WindowUnion: UNION 1 sources ... PAYLOAD []
            Scan: a [k, ts, v, note]          ->       Scan: a [k, ts, v]
            Scan: b [k, ts, v, note]                   Scan: b [k, ts, v]

    Each node says what it reads of its children (`LogicalPlan.child_needs`) and what is left of it (`narrowed`).
    A root rule, because a node shared by two parents must keep what either of them reads. It walks once from the root
    to collect what each node's parents read, and once from the leaves to rebuild.

    Legal because a column that no parent reads has no effect, with these exceptions: nodes that match by position (set
    operations, union sources) lose the same positions on both sides, through a Project where a side gives more; sets
    without ALL, and DISTINCT, compare whole rows and keep every column: ``SELECT count(*) FROM (SELECT DISTINCT a, b
    FROM t)`` needs both; generators stay, since they make rows; a window union without a needed call becomes its
    source, which has the same rows, and a group aggregate without one becomes Spark's; a LAST JOIN of which no right
    column is needed becomes its left side, since every left row is output exactly once; no node loses its last column,
    except the payload of a window union and of a count of matches.
    """
    order = _parents_first(root)
    needs: dict[int, set[Column]] = {id(node): set() for node in order}
    needs[id(root)].update(root.output_columns)
    for node in order:
        for child, columns in node.child_needs(needs[id(node)]):
            needs[id(child)].update(columns)
    built: dict[int, LogicalPlan] = {}
    for node in reversed(order):
        built[id(node)] = node.narrowed(needs[id(node)], lambda child: built[id(child)])
    new = built[id(root)]
    return None if new is root else new


def _parents_first(root: LogicalPlan) -> list[LogicalPlan]:
    """Every node once, each after all of its parents."""
    done: list[LogicalPlan] = []
    seen: set[int] = set()

    def visit(node: LogicalPlan) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.children:
                visit(child)
            done.append(node)

    visit(root)
    return done[::-1]


@rule(order="root", on=(Join,))
def simplify_outer_join(root: LogicalPlan) -> LogicalPlan | None:
    """``Filter(u.y > 3, t LEFT JOIN u)`` -> ``Filter(u.y > 3, t JOIN u)``: a NULL is not above 3.

    ``SELECT * FROM t LEFT JOIN u ON t.a = u.x JOIN v ON u.y = v.p``::

        Join: inner ON u.y = v.p                Join: inner ON u.y = v.p
          Join: left ON t.a = u.x       ->        Join: inner ON t.a = u.x
            Scan: t [a, b]                          Scan: t [a, b]
            Scan: u [x, y]                          Scan: u [x, y]
          Scan: v [p, q]                          Scan: v [p, q]

    A comparison other than ``<=>`` with a column as one side is not true where the column is NULL. The rule looks at
    terms of filters and of inner and semi joins above, and at ON of an outer join for the side that it does not keep.

    | join  | a column of the left side must not be NULL | of the right side | of both |
    |-------|--------------------------------------------|-------------------|---------|
    | left  | stays                                      | inner             | inner   |
    | right | inner                                      | stays             | inner   |
    | full  | left                                       | right             | inner   |

    Legal because every row that the join makes up has NULLs in all columns of one side, and a term above drops it.
    Counter-example: ``WHERE u.y IS NULL`` and ``coalesce(u.y, 0) = 0`` keep such rows.
    """
    new = _Simplifier(root).plan(root, frozenset())
    return None if new is root else new


class _Simplifier:
    """One walk from the root, with the columns in which a NULL is dropped above. A node that two others read is
    simplified for neither."""

    def __init__(self, root: LogicalPlan) -> None:
        self._memo: dict[int, tuple[LogicalPlan, LogicalPlan]] = {}
        self._shared = shared_nodes(root)

    def plan(self, node: LogicalPlan, rejecting: frozenset[Column]) -> LogicalPlan:
        """`node`, if its rows with a NULL in a column of `rejecting` are dropped above."""
        known = self._memo.get(id(node))
        if known is not None:
            return known[1]
        new = self._rewritten(node, frozenset() if id(node) in self._shared else rejecting)
        self._memo[id(node)] = (node, new)
        return new

    def _rewritten(self, node: LogicalPlan, rejecting: frozenset[Column]) -> LogicalPlan:
        match node:
            case Filter(condition, child):
                below = rejecting | rejecting_columns(conjuncts(condition))
                return node.map_children(lambda _: self.plan(child, below))
            case Project(items, child):
                columns = {item.expression for item in items if item.column in rejecting}
                below = frozenset(item for item in columns if isinstance(item, Column))
                return node.map_children(lambda _: self.plan(child, below))
            case SubqueryAlias(child=child):
                pairs = zip(node.output_columns, child.output_columns, strict=True)
                below = frozenset(theirs for ours, theirs in pairs if ours in rejecting)
                return node.map_children(lambda _: self.plan(child, below))
            case Join():
                return self._join(node, rejecting)
        return node.map_children(lambda child: self.plan(child, frozenset()))

    def _join(self, node: Join, rejecting: frozenset[Column]) -> LogicalPlan:
        kind = _kind(node, rejecting)
        on = rejecting_columns(conjuncts(node.condition))
        left, right = (
            (rejecting if drops.above else frozenset()) | (on if drops.on else frozenset()) for drops in DROPS[kind]
        )
        new = replace(node, kind=kind) if kind != node.kind else node
        sides = self.plan(node.left, left), self.plan(node.right, right)
        if sides[0] is node.left and sides[1] is node.right:
            return new
        return replace(new, left=sides[0], right=sides[1])


def _kind(node: Join, rejecting: frozenset[Column]) -> JoinKind:
    left, right = (bool(rejecting & set(side.output_columns)) for side in (node.left, node.right))
    match node.kind:
        case "left" if right:
            return "inner"
        case "right" if left:
            return "inner"
        case "full":
            if left and right:
                return "inner"
            return "left" if left else "right" if right else "full"
    return node.kind


def rejecting_columns(terms: Iterable[Expression]) -> frozenset[Column]:
    """Columns that are not NULL where all terms are true."""
    return frozenset(
        side
        for term in terms
        if isinstance(term, Compare) and term.op != "<=>"
        for side in (term.left, term.right)
        if isinstance(side, Column)
    )
