"""Rewrite rules, and what runs batches of them over a plan, checks every step and keeps the trace for EXPLAIN.

A rule is a function of one node; the executor does the recursion. ``@rule(order=..., on=...)`` makes a rule:

- ``bottom_up`` and ``top_down`` rules see every node once a pass, children first or parents first;
- ``root`` rules see only the root. They are for rewrites that depend on what *all* parents of a node ask for
  (column pruning) or on the whole graph (join grouping); they must keep shared nodes shared themselves.

`on` are the class of the nodes that the rule looks at, and the classes of which there must be nodes below it. A rule is
not called for others: most rules have nothing to do in most plans.

A rule returns the new node, or None for "not mine"; it never returns an equal copy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlext_planner.errors import InternalError, SqlExtError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.logical_plan import LogicalPlan, refuse_left_over
from sqlext_planner.relational.nodes import Output

Order = Literal["bottom_up", "top_down", "root"]
Rewrite = Callable[[LogicalPlan], LogicalPlan | None]


@dataclass(frozen=True)
class Rule:
    """A named rewrite of one node with the order in which the executor visits nodes."""

    name: str
    order: Order
    on: frozenset[type[LogicalPlan]]
    rewrite: Rewrite

    def may_match(self, plan: LogicalPlan) -> bool:
        """Whether the plan holds what the rule looks for."""
        return self.on <= plan.node_types

    @property
    def doc(self) -> str:
        """What the rule does, its example and its legality argument."""
        return self.rewrite.__doc__ or ""

    def __call__(self, node: LogicalPlan) -> LogicalPlan | None:
        return self.rewrite(node)


def rule(*, order: Order, on: Collection[type[LogicalPlan]] = ()) -> Callable[[Rewrite], Rule]:
    """Decorator: turns a function of one node into a `Rule`."""

    def decorate(rewrite: Rewrite) -> Rule:
        return Rule(rewrite.__name__, order, frozenset(on), rewrite)

    return decorate


#: Rounds of a batch that runs one time; running it again must change nothing (checked under pytest).
ONCE = 1


@dataclass(frozen=True)
class Batch:
    """Rules that run together, in the order listed: again until nothing changes, for so many `rounds` at most."""

    name: str
    rounds: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Step:
    """One application of a rule to the whole plan that changed something; `doc` is what the rule says of itself."""

    batch: str
    rule: str
    before: LogicalPlan
    after: LogicalPlan
    seconds: float
    doc: str = ""


@dataclass(frozen=True)
class PlanTrace:
    """What the optimizer did, step by step."""

    initial: LogicalPlan
    final: LogicalPlan
    steps: tuple[Step, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules that changed the plan, each once, in order."""
        return tuple(dict.fromkeys(step.rule for step in self.steps))


class RuleExecutor:
    """Applies batches in order. After every rule that changed the plan it checks that

    - the rule did not return an equal copy (identity means "no change"),
    - the root's columns and types are the same,
    - every node reads only columns that its children give,
    - the batch has not had the plan before (a cycle).

    Under pytest (`strict`), batches that run once must be idempotent, and others must settle within their rounds.
    Every violation is an InternalError that names the rule.
    """

    def __init__(self, batches: Sequence[Batch], strict: bool | None = None) -> None:
        self.batches = tuple(batches)
        self.strict = "PYTEST_CURRENT_TEST" in os.environ if strict is None else strict

    def optimize(self, plan: LogicalPlan, outer: Collection[Column] = ()) -> PlanTrace:
        """Run all batches; `outer` are columns of enclosing queries that this one may read.

        Raises UnsupportedError for a subquery that only a join could run and that is left, InternalError for a rule
        that breaks an invariant.
        """
        run = _Run(plan, frozenset(outer))
        for batch in self.batches:
            run.batch(batch, self.strict)
        refuse_left_over(run.plan)
        return PlanTrace(plan, run.plan, tuple(run.steps))


class _Run:
    """The state of one optimization."""

    def __init__(self, plan: LogicalPlan, outer: frozenset[Column]) -> None:
        self.plan = plan
        self._outer = outer
        self.steps: list[Step] = []
        self._numbers = PlanNumbers()
        self._sound: dict[int, LogicalPlan] = {}
        self._shared: tuple[LogicalPlan, frozenset[int]] | None = None
        self._settled: dict[str, dict[int, LogicalPlan]] = {}

    def batch(self, batch: Batch, strict: bool) -> None:
        seen = {self._numbers.number(self.plan): len(self.steps)}
        for _ in range(batch.rounds):
            start = self.plan
            for rule in batch.rules:
                self._apply(batch, rule, seen)
            if self.plan is start:
                return
        if strict:
            self._check_at_rest(batch)

    def _check_at_rest(self, batch: Batch) -> None:
        for rule in batch.rules:
            if apply_rule(rule, self.plan) is not self.plan:
                late = f"does not come to rest in {batch.rounds} rounds"
                problem = "is not idempotent" if batch.rounds == ONCE else late
                raise InternalError(f"batch {batch.name} {problem}: rule {rule.name} still changes the plan")

    def _apply(self, batch: Batch, rule: Rule, seen: dict[int, int]) -> None:
        before, started = self.plan, time.perf_counter()
        try:
            after = self._rewritten(rule)
        except (SqlExtError, RecursionError, MemoryError):  # a plan that is too large is not a rule's fault
            raise
        except Exception as error:
            raise InternalError(f"rule {rule.name} failed: {error}") from error
        if after is before:
            return
        seconds = time.perf_counter() - started
        number = self._numbers.number(after)
        if number == self._numbers.number(before):
            raise InternalError(f"rule {rule.name} returned an equal copy of the plan instead of None")
        self._check_schema(rule, before, after)
        self._check_references(rule, after)
        if number in seen:
            names = {step.rule for step in self.steps[seen[number] :]} | {rule.name}
            raise InternalError(f"rules {' and '.join(sorted(names))} cycle: batch {batch.name} is back at an old plan")
        self.plan = after
        self.steps.append(Step(batch.name, rule.name, before, after, seconds, rule.doc))
        seen[number] = len(self.steps)

    def _rewritten(self, rule: Rule) -> LogicalPlan:
        """`apply_rule` on the current plan, which passes over what the rule has left as it is before."""
        plan = self.plan
        if rule.order == "root" or not rule.may_match(plan):
            return apply_rule(rule, plan)
        if self._shared is None or self._shared[0] is not plan:
            self._shared = (plan, shared_nodes(plan))
        return _Pass(rule, self._shared[1], self._settled.setdefault(rule.name, {})).whole(plan)

    @staticmethod
    def _check_schema(rule: Rule, before: LogicalPlan, after: LogicalPlan) -> None:
        names = [plan.names if isinstance(plan, Output) else () for plan in (before, after)]
        if before.output == after.output and names[0] == names[1]:
            return
        was, now = ([f"{f.column} {f.dtype}" for f in plan.output] for plan in (before, after))
        raise InternalError(f"rule {rule.name} changed the result's columns from {was} to {now}")

    def _check_references(self, rule: Rule, plan: LogicalPlan) -> None:
        stack = [plan]
        while stack:
            node = stack.pop()
            if id(node) in self._sound:  # and so are those below it
                continue
            stack.extend(node.children)
            missing = node.missing_references() - self._outer
            if missing:
                columns = ", ".join(sorted(map(str, missing)))
                raise InternalError(f"rule {rule.name} left {node.label()} reading {columns}, which no child gives")
            self._sound[id(node)] = node


class PlanNumbers:
    """Equal plans get equal numbers. Every node object is visited once, so that asking again costs nothing.

    (A plan's own hash would walk the whole tree each time, and a DAG once for every path through it.)
    """

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[LogicalPlan, int]] = {}
        self._by_value: dict[Any, int] = {}

    def number(self, node: LogicalPlan) -> int:
        known = self._by_id.get(id(node))
        if known is not None:
            return known[1]
        parts = [self._part(getattr(node, item.name)) for item in fields(node) if item.compare]
        number = self._by_value.setdefault((type(node), *parts), len(self._by_value))
        self._by_id[id(node)] = (node, number)
        return number

    def _part(self, value: Any) -> Any:
        if isinstance(value, LogicalPlan):
            return (LogicalPlan, self.number(value))
        if isinstance(value, tuple) and any(isinstance(item, LogicalPlan) for item in value):
            return tuple(self._part(item) for item in value)
        return value


def apply_rule(rule: Rule, plan: LogicalPlan) -> LogicalPlan:
    """The plan with one rule applied everywhere once; the same object if the rule changed nothing."""
    if rule.order == "root":
        new = rule(plan) if rule.may_match(plan) else None
        return plan if new is None else new
    return _Pass(rule, shared_nodes(plan), {}).whole(plan)


class _Pass:
    """One rule over one plan. A node with two parents is rewritten once and stays shared.

    Such a node (a CTE used twice) is also a barrier: a rewrite above it that would change it for only one of its
    parents is not done, because the node would then be computed twice. `settled` are nodes on which, with all that is
    below them, the rule has had nothing to do; they are passed over, and new ones are added.
    """

    def __init__(self, rule: Rule, shared: frozenset[int], settled: dict[int, LogicalPlan]) -> None:
        self._rule = rule
        self._shared = set(shared)
        self._settled = settled
        self._refused = False
        self._memo: dict[int, tuple[LogicalPlan, LogicalPlan]] = {}

    def whole(self, plan: LogicalPlan) -> LogicalPlan:
        new = self._run(plan)
        if not self._refused:  # another plan may not share the node that was in the way
            self._settled.update((key, node) for key, (node, result) in self._memo.items() if result is node)
        return new

    def _run(self, node: LogicalPlan) -> LogicalPlan:
        if id(node) in self._settled or not self._rule.may_match(node):
            return node
        known = self._memo.get(id(node))
        if known is not None:
            return known[1]
        if self._rule.order == "bottom_up":
            new = self._rewrite(node.map_children(self._run))
        else:
            new = self._rewrite(node).map_children(self._run)
        self._memo[id(node)] = (node, new)  # the node is kept so that its id stays taken
        if id(node) in self._shared:
            self._shared.add(id(new))
        return new

    def _rewrite(self, node: LogicalPlan) -> LogicalPlan:
        new = self._rule(node) if type(node) in self._rule.on or not self._rule.on else None
        if new is None:
            return node
        if new is node:
            raise InternalError("it returned the node that it was given instead of None")
        if self._shared and not self._shared_below(node) <= self._reachable(new):
            self._refused = True
            return node
        return new

    def _shared_below(self, node: LogicalPlan) -> set[int]:
        return (self._reachable(node) - {id(node)}) & self._shared

    @staticmethod
    def _reachable(node: LogicalPlan) -> set[int]:
        return {id(item) for item in node.walk()}


def shared_nodes(plan: LogicalPlan) -> frozenset[int]:
    """Ids of the nodes that more than one place holds."""
    seen: set[int] = set()
    shared: set[int] = set()
    stack = [plan]
    while stack:
        for child in stack.pop().children:
            if id(child) in seen:
                shared.add(id(child))
            else:
                seen.add(id(child))
                stack.append(child)
    return frozenset(shared)
