"""A set of codes kept sorted in an array, by a rank of each code and then by the code itself.

State: codes int32[c], of which the first `size` are in, ascending; ranks int64[c], all 0 for codes in their own order.
A code that is in must keep its rank. Finding a code takes O(log size); inserting or removing one moves the codes
after it: measured (random codes, a busy machine) 0.02 us among 10 codes, 0.35 us among 1,000, 30 us among 100,000.
"""

from __future__ import annotations

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit


@jit
def is_before(a: int, b: int, ranks: Int64s) -> bool:
    """Whether code `a` comes before code `b`."""
    return ranks[a] < ranks[b] or (ranks[a] == ranks[b] and a < b)


@jit
def place_of(code: int, codes: Int32s, size: int, ranks: Int64s) -> int:
    """How many codes of the set come before `code`."""
    low = 0
    high = size
    while low < high:
        middle = (low + high) // 2
        if is_before(codes[middle], code, ranks):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def put_in(code: int, codes: Int32s, size: int, ranks: Int64s) -> int:
    """Insert a code that is not in the set; returns the new size."""
    place = place_of(code, codes, size, ranks)
    for k in range(size, place, -1):
        codes[k] = codes[k - 1]
    codes[place] = code
    return size + 1


@jit
def take_out(code: int, codes: Int32s, size: int, ranks: Int64s) -> int:
    """Remove a code that is in the set; returns the new size."""
    for k in range(place_of(code, codes, size, ranks), size - 1):
        codes[k] = codes[k + 1]
    return size - 1


@jit
def sort_codes(codes: Int32s, size: int, ranks: Int64s) -> None:
    """Make a set of the first `size` codes, which are in any order: heapsort (numba's own sorts take 6 s to
    compile)."""
    for root in range(size // 2 - 1, -1, -1):
        _sink(root, codes, size, ranks)
    for end in range(size - 1, 0, -1):
        last = codes[0]
        codes[0] = codes[end]
        codes[end] = last
        _sink(0, codes, end, ranks)


@jit
def _sink(at: int, codes: Int32s, size: int, ranks: Int64s) -> None:
    """Move a code down in the heap codes[:size], the last of all codes at its root."""
    code = codes[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_before(codes[child], codes[child + 1], ranks):
            child += 1
        if not is_before(code, codes[child], ranks):
            break
        codes[at] = codes[child]
        at = child
    codes[at] = code
