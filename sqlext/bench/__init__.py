"""Side-by-side measurements: one harness, one module for each suite.

A suite consists of data sets, contestants and checks (`suite.Suite`); `runner.run` measures it, `report` prints and
stores the outcome, `cli.app` is the command line. A new suite adds one module and one command.
"""

from sqlext.bench.harness.results import CaseResult, Measurement, Report, Run
from sqlext.bench.harness.runner import Limits, run
from sqlext.bench.harness.suite import Answer, Case, Check, Contestant, Suite

__all__ = [
    "Answer",
    "Case",
    "CaseResult",
    "Check",
    "Contestant",
    "Limits",
    "Measurement",
    "Report",
    "Run",
    "Suite",
    "run",
]
