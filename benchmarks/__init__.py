"""Side-by-side measurements: one harness, and a folder or a file for each suite.

A suite consists of options, cases, contestants and checks (`harness.suite.Suite`); `harness.runner.run` measures it,
`harness.report` prints and stores the outcome, `cli.app` is the command line. A new suite adds its own folder and one
entry in `cli.SUITES`.
"""

from benchmarks.harness.results import CaseResult, Measurement, Report, Run
from benchmarks.harness.runner import Limits, run
from benchmarks.harness.suite import Answer, Case, Check, Contestant, Suite

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
