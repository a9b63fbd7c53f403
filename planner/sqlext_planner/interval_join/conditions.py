"""Which terms of a join's condition an interval join understands, and in what role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from sqlext_operators.interval_join.conditions import MIRRORED
from sqlext_operators.interval_join.passes import Pass, passes_for

from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.typed import case
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.periods.predicates import Amount, EmptyPeriods, Period, PeriodPredicate
from sqlext_planner.periods.relations import Condition
from sqlext_planner.periods.shifts import shifted
from sqlext_planner.relational.logical_plan import LogicalPlan

#: Sets of relations multiply; a statement with more alternatives than this keeps the set in the residual.
_MOST_ALTERNATIVES = 64
_COMPARED = ("<", "<=", ">=", ">")


@dataclass
class IntervalTerms:
    """The parts of a condition as `IntervalJoin` has them; `residual` are the terms that it does not understand.

    `one_sided` are terms over the left (right) side alone, which ON keeps where that side's rows are kept.
    """

    left_keys: list[Expression] = field(default_factory=list)
    right_keys: list[Expression] = field(default_factory=list)
    null_safe: list[bool] = field(default_factory=list)
    left_values: list[Expression] = field(default_factory=list)
    right_values: list[Expression] = field(default_factory=list)
    alternatives: list[tuple[Condition, ...]] = field(default_factory=lambda: [()])
    left_periods: list[tuple[str, str]] = field(default_factory=list)
    right_periods: list[tuple[str, str]] = field(default_factory=list)
    amounts: list[tuple[str, Amount]] = field(default_factory=list)
    empty: EmptyPeriods | None = None
    left_only: list[Expression] = field(default_factory=list)
    right_only: list[Expression] = field(default_factory=list)
    residual: list[Expression] = field(default_factory=list)

    @property
    def named(self) -> bool:
        """Whether a period predicate is among the conditions."""
        return self.empty is not None

    def passes(self) -> tuple[Pass, ...]:
        """How the pairs are found, over all alternatives."""
        return tuple(
            item
            for conditions in self.alternatives
            for item in passes_for(conditions, _own(self.left_periods), _own(self.right_periods))
        )

    @property
    def bounds_windows(self) -> bool:
        """Whether every pass looks at a window that is bounded on both sides."""
        return all(self.alternatives) and all(item.lowers and item.uppers for item in self.passes())


def _own(periods: list[tuple[str, str]]) -> tuple[str, str] | None:
    return periods[0] if len(periods) == 1 else None


def read_condition(on: Expression, left: LogicalPlan, right: LogicalPlan) -> IntervalTerms:
    """The terms of ON between two sides. Terms that read neither side's columns count as the left side's."""
    reader = _Reader(IntervalTerms(), left.dtypes, right.dtypes)
    for term in conjuncts(on):
        reader.read(term)
    return reader.terms


def guard(terms: IntervalTerms) -> None:
    """Make one-sided terms part of the values: if one is not true, a value is NULL and the row matches nothing."""
    for side, conditions in (("left", terms.left_only), ("right", terms.right_only)):
        condition = conjunction(conditions)
        if condition is None:
            continue
        values = terms.left_values if side == "left" else terms.right_values
        done: set[str] = set()
        for alternative in terms.alternatives:
            names = [getattr(item, side) for item in alternative]
            if not done & set(names):
                place = int(names[0][1:])
                values[place] = case(condition, values[place])
                done.add(names[0])
        conditions.clear()


@dataclass
class _Reader:
    """Sorts terms into `terms`. `left` and `right` are the sides' columns with their types."""

    terms: IntervalTerms
    left: Mapping[Column, str | None]
    right: Mapping[Column, str | None]
    names: dict[tuple[str, Expression, bool], str] = field(default_factory=dict)

    def read(self, term: Expression) -> None:
        """Add one conjunct."""
        if not is_movable(term):
            self.terms.residual.append(term)
        elif term.references <= self.left.keys():
            self.terms.left_only.append(term)
        elif term.references <= self.right.keys():
            self.terms.right_only.append(term)
        elif not (self._predicate(term) if isinstance(term, PeriodPredicate) else self._comparison(term)):
            self.terms.residual.append(term)

    def _comparison(self, term: Expression) -> bool:
        if not isinstance(term, Compare):
            return False
        for one, other, op in ((term.left, term.right, term.op), (term.right, term.left, _mirrored(term.op))):
            if _reads(one, self.left) and _reads(other, self.right):
                if op in ("=", "<=>"):
                    self.terms.left_keys.append(one)
                    self.terms.right_keys.append(other)
                    self.terms.null_safe.append(op == "<=>")
                    return True
                if op in _COMPARED:
                    self._add_to_all(self._compared(one, op, other))
                    return True
        return False

    def _compared(self, left: Expression, op: str, right: Expression) -> Condition:
        """`left op right` with a shift where one side adds a constant exactly."""
        base, sign, amount = shifted(left, right, self.left, self.right)
        if amount is not None:
            return self._condition(base, op, right, (sign, self._amount("shift", amount)))
        base, sign, amount = shifted(right, left, self.right, self.left)
        if amount is not None:
            return self._condition(left, op, base, (-sign, self._amount("shift", amount)))
        return self._condition(left, op, right, 0)

    def _condition(self, left: Expression, op: str, right: Expression, shift: int | tuple[int, str]) -> Condition:
        plain = Condition(self._value("left", left), "<", self._value("right", right), shift)
        return replace(plain, operator=op)  # type: ignore[arg-type]

    def _add_to_all(self, *conditions: Condition) -> None:
        self.terms.alternatives = [(*known, *conditions) for known in self.terms.alternatives]

    def _amount(self, kind: str, amount: Amount) -> str:
        known = {name for name, _ in self.terms.amounts}
        name = next(found for i in range(len(known) + 1) if (found := f"{kind}{i or ''}") not in known)
        self.terms.amounts.append((name, amount))
        return name

    def _value(self, side: str, expression: Expression, point: bool = False) -> str:
        """The name of a value. The end of a period that may be one instant is a separate value, because it moves."""
        values = self.terms.left_values if side == "left" else self.terms.right_values
        key = (side, expression, point)
        if key not in self.names:
            self.names[key] = f"{side[0]}{len(values)}"
            values.append(expression)
        return self.names[key]

    def _predicate(self, term: PeriodPredicate) -> bool:
        forward = _reads(term.left, self.left) and _reads(term.right, self.right)
        backward = _reads(term.left, self.right) and _reads(term.right, self.left)
        count = len(self.terms.alternatives) * len(term.rows)
        if not (forward or backward) or count > _MOST_ALTERNATIVES or self.terms.empty not in (None, term.empty):
            return False
        self.terms.empty = term.empty
        sides = ("left", "right") if forward else ("right", "left")
        moves = term.empty == "point"
        ends = dict(zip("ab", self._ends(sides[0], term.left, moves), strict=True))
        ends |= zip("cd", self._ends(sides[1], term.right, moves and not term.point), strict=True)
        self._period(sides[0], (ends["a"], ends["b"]))
        if not term.point:
            self._period(sides[1], (ends["c"], ends["d"]))
        given = {"delta": term.delta, "epsilon": term.epsilon}
        named = {kind: self._amount(kind, amount) for kind, amount in given.items() if amount is not None}
        options = [
            tuple(_renamed(item, ends, named, forward) for item in term.terms(relation)) for relation in term.rows
        ]
        pairs = product(self.terms.alternatives, options)
        self.terms.alternatives = [(*known, *added) for known, added in pairs]
        return True

    def _ends(self, side: str, period: Period, moves: bool) -> tuple[str, str]:
        return self._value(side, period.start), self._value(side, period.end, moves)

    def _period(self, side: str, ends: tuple[str, str]) -> None:
        periods = self.terms.left_periods if side == "left" else self.terms.right_periods
        if ends not in periods:
            periods.append(ends)


def _renamed(term: Condition, ends: Mapping[str, str], amounts: Mapping[str, str], forward: bool) -> Condition:
    """A relation's term with the names of values; mirrored if the relation's left period is the right side's."""
    shift = (term.shift[0], amounts[term.shift[1]]) if isinstance(term.shift, tuple) else term.shift
    named = replace(term, shift=shift)
    return replace(named, left=ends[term.left], right=ends[term.right]) if forward else _turned(named, ends)


def _reads(expression: Expression, columns: Iterable[Column]) -> bool:
    return bool(expression.references) and expression.references <= set(columns)


def _mirrored(op: str) -> str:
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)


def mirrored_join(join: IntervalJoin) -> IntervalJoin:
    """An inner join with its sides swapped."""
    names = {f"l{i}": f"r{i}" for i in range(len(join.left_values))}
    names |= {f"r{i}": f"l{i}" for i in range(len(join.right_values))}
    return replace(
        join,
        left=join.right,
        right=join.left,
        left_keys=join.right_keys,
        right_keys=join.left_keys,
        left_values=join.right_values,
        right_values=join.left_values,
        alternatives=tuple(tuple(_turned(item, names) for item in terms) for terms in join.alternatives),
        left_periods=tuple((names[a], names[b]) for a, b in join.right_periods),
        right_periods=tuple((names[a], names[b]) for a, b in join.left_periods),
    )


def _turned(item: Condition, names: Mapping[str, str]) -> Condition:
    """``left + shift op right`` as ``right - shift mirrored-op left``, with the names that the values then have."""
    shift = item.shift
    turned = (-shift[0], shift[1]) if isinstance(shift, tuple) else -shift
    return Condition(names[item.right], MIRRORED[item.operator], names[item.left], turned)
