"""How many places of each key class a hypercube has: the Shares of Afrati & Ullman (EDBT 2010)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence


def choose_shares(
    sizes: Sequence[float], classes: Sequence[Sequence[int]], number_of_classes: int, cells: int
) -> tuple[int, ...]:
    """The shares of all classes, with the product `cells`, that move the fewest bytes.

    `sizes[i]` are the bytes of input i, `classes[i]` the key classes that it has. An input is sent once to every
    place of the classes that it lacks, so the bytes moved are the sum of ``sizes[i] * product(shares[c] for c not in
    classes[i])``. A dominated class (another one is in all inputs that it is in) has the share 1: its places would be
    worth more in the other class. Among equal choices the first classes have the largest shares.

    Branch and bound over the factorisations of `cells`: shares of 1 for the remaining classes give a lower bound. 64
    cells of a triangle: 0.3 ms. Raises ValueError for less than one cell, and for several cells without a class.
    """
    if cells < 1 or (cells > 1 and number_of_classes == 0):
        raise ValueError(f"{cells} cells of {number_of_classes} key classes")
    free = [place for place in range(number_of_classes) if not _is_dominated(place, classes, number_of_classes)]
    found = _Search(sizes, classes, number_of_classes, free)
    found.search(0, cells)
    return found.best


def moved(sizes: Sequence[float], classes: Sequence[Sequence[int]], shares: Sequence[int]) -> float:
    """The bytes of inputs with these sizes and classes after replication."""
    cells = math.prod(shares)
    return sum(
        size * (cells // math.prod(shares[place] for place in own))
        for size, own in zip(sizes, map(set, classes), strict=True)
    )


def _is_dominated(place: int, classes: Sequence[Sequence[int]], number_of_classes: int) -> bool:
    """Whether another class is in all inputs that have this one; of two in the same inputs, the later is dominated."""
    own = {i for i, item in enumerate(classes) if place in item}
    for other in range(number_of_classes):
        inputs = {i for i, item in enumerate(classes) if other in item}
        if other != place and own <= inputs and (own != inputs or other < place):
            return True
    return False


class _Search:
    """The best shares so far of the classes in `free`; the others have 1."""

    def __init__(
        self, sizes: Sequence[float], classes: Sequence[Sequence[int]], number_of_classes: int, free: Sequence[int]
    ) -> None:
        self._sizes, self._classes, self._free = sizes, classes, free
        self._shares = [1] * number_of_classes
        self._least = math.inf
        self.best: tuple[int, ...] = tuple(self._shares)

    def search(self, depth: int, cells: int) -> None:
        """Try all shares of the classes from `depth` on with the product `cells`."""
        cost = moved(self._sizes, self._classes, self._shares)
        if cost >= self._least:
            return
        if depth == len(self._free):
            if cells == 1:
                self._least, self.best = cost, tuple(self._shares)
            return
        is_last = depth == len(self._free) - 1
        for share in (cells,) if is_last else _divisors(cells):
            self._shares[self._free[depth]] = share
            self.search(depth + 1, cells // share)
        self._shares[self._free[depth]] = 1


def _divisors(number: int) -> Iterator[int]:
    """All divisors, the largest first."""
    return (part for part in range(number, 0, -1) if number % part == 0)
