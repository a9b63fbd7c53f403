"""Which terms of a join's condition an interval join understands, and in what role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from operator import or_
from typing import Any

from sqlext_operators.interval_join.conditions import MIRRORED, Condition
from sqlext_operators.interval_join.passes import Pass, Side, passes_for

from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, conjunction, conjuncts, is_movable
from sqlext_planner.expressions.typed import Is, Or, call, case, negation
from sqlext_planner.interval_join.alternatives import (
    MOST_ALTERNATIVES,
    Alternative,
    Compared,
    Guard,
    Term,
    either,
    finished,
)
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.periods.predicates import Amount, EmptyPeriods, Period, PeriodPredicate
from sqlext_planner.periods.types import shifted
from sqlext_planner.relational.logical_plan import LogicalPlan

_COMPARED = ("<", "<=", ">=", ">")


@dataclass
class IntervalTerms:
    """The parts of a condition as `IntervalJoin` has them; `residual` are the terms that it does not understand.

    `rare` says which alternatives are about rows with a NULL. `left_only` (`right_only`) are terms over the left
    (right) side alone, which ON keeps where that side's rows are kept.
    """

    left_keys: list[Expression] = field(default_factory=list)
    right_keys: list[Expression] = field(default_factory=list)
    null_safe: list[bool] = field(default_factory=list)
    left_values: list[Expression] = field(default_factory=list)
    right_values: list[Expression] = field(default_factory=list)
    alternatives: list[tuple[Condition, ...]] = field(default_factory=list)
    rare: list[bool] = field(default_factory=list)
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

    @property
    def bounds_windows(self) -> bool:
        """Whether every pass looks at a window that is bounded on both sides, but for rows with a NULL: those often say
        that a window has no end."""
        if not all(self.alternatives):
            return False
        periods = _only_period(self.left_periods), _only_period(self.right_periods)
        bounded = [_is_bounded(passes_for(conditions, *periods)) for conditions in self.alternatives]
        return any(bounded) and all(map(or_, bounded, self.rare))


def _is_bounded(passes: Iterable[Pass]) -> bool:
    return all(item.lowers and item.uppers for item in passes)


def _only_period(periods: list[tuple[str, str]]) -> tuple[str, str] | None:
    return periods[0] if len(periods) == 1 else None


def read_condition(on: Expression, left: LogicalPlan, right: LogicalPlan) -> IntervalTerms:
    """The terms of ON between two sides. Terms that read neither side's columns count as the left side's."""
    reader = _TermReader(IntervalTerms(), left.dtypes, right.dtypes)
    for term in conjuncts(on):
        reader.read(term)
    reader.finish()
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
class _TermReader:
    """Sorts terms into `terms`. `left` and `right` are the sides' columns with their types; `found` are the
    alternatives so far, `later` the ORs over both sides."""

    terms: IntervalTerms
    left: Mapping[Column, str | None]
    right: Mapping[Column, str | None]
    names: dict[tuple[str, Expression, bool], str] = field(default_factory=dict)
    found: list[Alternative] = field(default_factory=lambda: [Alternative()])
    later: list[Or] = field(default_factory=list)

    def read(self, term: Expression) -> None:
        """Add one conjunct."""
        if not is_movable(term):
            self.terms.residual.append(term)
        elif term.references <= self.left.keys():
            self.terms.left_only.append(term)
        elif term.references <= self.right.keys():
            self.terms.right_only.append(term)
        elif isinstance(term, Or):
            self.later.append(term)
        elif not (self._predicate(term) if isinstance(term, PeriodPredicate) else self._comparison(term)):
            self.terms.residual.append(term)

    def finish(self) -> None:
        """Read the ORs, unless the other terms find few pairs already, and give the alternatives their conditions."""
        for term in self.later:
            self.terms.alternatives = [tuple(one.condition for one in item.conditions) for item in self.found]
            self.terms.rare = [item.is_rare for item in self.found]
            if self.terms.bounds_windows or not self._either(term):
                self.terms.residual.append(term)
        moving = {name for (_, _, point), name in self.names.items() if point}
        self.terms.alternatives = finished(self.found, self._value, moving)
        self.terms.rare = [item.is_rare for item in self.found]

    def _either(self, term: Or) -> bool:
        """Add the terms of an OR as alternatives; False if one of them is none."""
        return self._add_either(lambda: self._options(term.operands))

    def _add_either(self, read: Callable[[], list[list[Term]] | None]) -> bool:
        """Add the options that `read` finds as alternatives; False, and nothing is kept, if none or too many."""
        lists: tuple[list[Any], ...] = (self.terms.left_values, self.terms.right_values, self.terms.amounts)
        names, lengths, empty = dict(self.names), [len(item) for item in lists], self.terms.empty
        options = read()
        alternatives = None if options is None else either(self.found, options)
        if alternatives is None:
            self.names, self.terms.empty = names, empty
            for item, length in zip(lists, lengths, strict=True):
                del item[length:]
            return False
        self.found = alternatives
        return True

    def _options(self, operands: Iterable[Expression]) -> list[list[Term]] | None:
        """The options of an OR, each a list of terms; None if one is neither a comparison nor a period predicate nor
        over one side."""
        all_options: list[list[Term]] = []
        for operand in operands:
            terms = [self._alternatives(term) for term in conjuncts(operand)]
            known = [options for options in terms if options is not None]
            if len(known) < len(terms):
                return None
            all_options += [[term for option in chosen for term in option] for chosen in product(*known)]
        return all_options

    def _alternatives(self, term: Expression) -> list[list[Term]] | None:
        """The options of one term, which exclude each other."""
        if term.references <= self.left.keys():
            return [[_guard("left", term)]]
        if term.references <= self.right.keys():
            return [[_guard("right", term)]]
        if isinstance(term, PeriodPredicate) and self.terms.empty in (None, term.empty):
            options = self._unregistered(term)
            self.terms.empty = term.empty if options is not None else self.terms.empty
            return options
        if isinstance(term, Compare):
            for one, other, op in ((found.left, found.right, found.op) for found in (term, term.mirrored)):
                if _reads(one, self.left) and _reads(other, self.right) and op in ("=", *_COMPARED):
                    return [[self._compared(one, op, other)]]
        return None

    def _comparison(self, term: Expression) -> bool:
        if not isinstance(term, Compare):
            return False
        for one, other, op in ((found.left, found.right, found.op) for found in (term, term.mirrored)):
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

    def _compared(self, left: Expression, op: str, right: Expression) -> Compared:
        """`left op right` with a shift where one side adds a constant exactly."""
        base, sign, amount = shifted(left, right, self.left, self.right)
        if amount is not None:
            return self._condition(base, op, right, (sign, self._amount("shift", amount)))
        base, sign, amount = shifted(right, left, self.right, self.left)
        if amount is not None:
            return self._condition(left, op, base, (-sign, self._amount("shift", amount)))
        return self._condition(left, op, right, 0)

    def _condition(self, left: Expression, op: str, right: Expression, shift: int | tuple[int, str]) -> Compared:
        plain = Condition(self._value("left", left), "<", self._value("right", right), shift)
        return Compared(replace(plain, operator=op), left, right)  # type: ignore[arg-type]

    def _add_to_all(self, term: Compared) -> None:
        self.found = [replace(known, conditions=(*known.conditions, term)) for known in self.found]

    def _amount(self, kind: str, amount: Amount) -> str:
        known = {name for name, _ in self.terms.amounts}
        name = next(found for i in range(len(known) + 1) if (found := f"{kind}{i or ''}") not in known)
        self.terms.amounts.append((name, amount))
        return name

    def _value(self, side: Side, expression: Expression, point: bool = False) -> str:
        """The name of a value. The end of a period that may be one instant is a separate value, because it moves."""
        values = self.terms.left_values if side == "left" else self.terms.right_values
        key = (side, expression, point)
        if key not in self.names:
            self.names[key] = f"{side[0]}{len(values)}"
            values.append(expression)
        return self.names[key]

    def _predicate(self, term: PeriodPredicate) -> bool:
        forward = self._direction(term)
        if forward is None or self.terms.empty not in (None, term.empty):
            return False
        if term.or_empty:
            return self._add_either(lambda: self._alternatives(term))
        if not 0 < len(self.found) * len(term.formulas) <= MOST_ALTERNATIVES:
            return False
        self.terms.empty = term.empty
        sides: tuple[Side, Side] = ("left", "right") if forward else ("right", "left")
        moves = term.empty == "point"
        ends = dict(zip("ab", self._ends(sides[0], term.left, moves), strict=True))
        ends |= zip("cd", self._ends(sides[1], term.right, moves and not term.point), strict=True)
        self._period(sides[0], (ends["a"], ends["b"]))
        if not term.point:
            self._period(sides[1], (ends["c"], ends["d"]))
        named = self._amounts(term)
        options = [[_renamed(item, ends, named, forward) for item in terms] for terms in term.formulas]
        self.found = [
            replace(known, conditions=(*known.conditions, *map(self._with_values, added)))
            for known, added in product(self.found, options)
        ]
        return True

    def _with_values(self, condition: Condition) -> Compared:
        left, right = int(condition.left[1:]), int(condition.right[1:])
        return Compared(condition, self.terms.left_values[left], self.terms.right_values[right])

    def _unregistered(self, term: PeriodPredicate) -> list[list[Term]] | None:
        """The options of a predicate in which empty periods are told by guards: its formulas between periods that are
        valid and, where it says so, all pairs of which one is not, but for NULL ends. None for ends that have no such
        guards."""
        forward = self._direction(term)
        if forward is None or term.empty != "drop" or term.dtype is None:
            return None
        sides: tuple[Side, Side] = ("left", "right") if forward else ("right", "left")
        first, second = (
            _validity(side, period, term.dtype) for side, period in zip(sides, (term.left, term.right), strict=True)
        )
        ends = dict(zip("ab", self._ends(sides[0], term.left, False), strict=True))
        ends |= zip("cd", self._ends(sides[1], term.right, False), strict=True)
        valid = [*first[0], *([] if term.point else second[0])]
        amounts = self._amounts(term)
        options: list[list[Term]] = [
            [*valid, *(self._with_values(_renamed(item, ends, amounts, forward)) for item in terms)]
            for terms in term.formulas
        ]
        return [*options, [*first[1], *second[2]], [*first[0], *second[1]]] if term.or_empty else options

    def _direction(self, term: PeriodPredicate) -> bool | None:
        """Whether the left period is the left side's; None where a period is not of one side alone."""
        if _reads(term.left, self.left) and _reads(term.right, self.right):
            return True
        return False if _reads(term.left, self.right) and _reads(term.right, self.left) else None

    def _amounts(self, term: PeriodPredicate) -> dict[str, str]:
        given = {"delta": term.delta, "epsilon": term.epsilon}
        return {kind: self._amount(kind, amount) for kind, amount in given.items() if amount is not None}

    def _ends(self, side: Side, period: Period, moves: bool) -> tuple[str, str]:
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


def _guard(side: Side, term: Expression) -> Guard:
    if isinstance(term, Is) and term.value == "null":
        return Guard(side, term.operands[0], "known" if term.negated else "null")
    return Guard(side, term)


def _validity(side: Side, period: Period, dtype: str) -> tuple[list[Guard], list[Guard], list[Guard]]:
    """That a side's period has start < end, that it has not, and that its ends are known."""
    known = [Guard(side, end, "known") for end in (period.start, period.end)]
    valid: Expression = Compare("<", period.start, period.end)
    if dtype in ("float", "double"):
        number = negation(call("isnan", period.end, dtype="boolean"))
        valid = And((valid, number))
    return [Guard(side, valid)], [*known, Guard(side, valid, "not true")], known


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
