"""Sums and least values by group, in one pass over rows in any order."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit


@jit
def add_integers(group: Int64s, values: Int64s, usable: Bools, totals: Int64s, counts: Int64s) -> None:
    """totals[g] += values modulo 2**64, counts[g] += 1, for the usable rows of each group."""
    for i in range(len(group)):
        if usable[i]:
            totals[group[i]] += values[i]
            counts[group[i]] += 1


@jit
def add_doubles(
    group: Int64s, values: Float64s, usable: Bools, totals: Float64s, errors: Float64s, counts: Int64s
) -> None:
    """totals[g] + errors[g] += values: `errors` adds up the rounding error of each addition (Knuth's two-sum)."""
    for i in range(len(group)):
        if usable[i]:
            g = group[i]
            value = values[i]
            total = totals[g]
            s = total + value
            b = s - total
            errors[g] += (total - (s - b)) + (value - b)
            totals[g] = s
            counts[g] += 1


@jit
def least_rows(group: Int64s, codes: Int64s, usable: Bools, rows: Int64s) -> None:
    """rows[g] = the first of the usable rows with the least code of each group; -1 stays where there is none."""
    for i in range(len(group)):
        if usable[i]:
            g = group[i]
            if rows[g] < 0 or codes[i] < codes[rows[g]]:
                rows[g] = i
