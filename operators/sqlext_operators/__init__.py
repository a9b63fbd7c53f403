"""Arrays in, arrays out: all that an executor needs of SQL for time on Spark."""

from __future__ import annotations

#: The version of the whole distribution: workers compare theirs with the driver's.
__version__ = "0.1.0"
