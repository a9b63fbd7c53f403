"""What the sweeps of the period algebra carry from one run of rows to the next."""

from __future__ import annotations

import numpy as np

#: Places in the state, an int64 array. A sweep has a group open or not (OPEN is 1 or 0); ROW is the payload row of the
#: group's latest row of input 0, -1 if that was in an earlier piece. FROM and TO are the period that may still grow,
#: NUMBER its count (0: there is none). AT is how far the group is swept; LEFT_END and RIGHT_END are the largest ends so
#: far of the two inputs, and HELD is how many periods are active.
OPEN, GROUP, ROW, FROM, TO, NUMBER, AT, LEFT_END, RIGHT_END, HELD = range(10)
SIZE = 10
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
