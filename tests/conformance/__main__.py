"""``python -m tests.conformance [PATH...]``: run case files and print one line for each case."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from sqlext_planner.errors import SqlExtError

from .report import markdown
from .runner import Outcome, openmldb_settings, run_case
from .suite import Suite, case_files, function_names, score, select


def main(arguments: list[str] | None = None) -> int:
    """0 if every file reaches the required rate, 1 if not, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="case files; default: SQLEXT_CASES, else the project's own")
    parser.add_argument("--select", default="", help="only cases whose key or description holds this text")
    parser.add_argument("--all", action="store_true", help="also the cases that are no test of the window functions")
    parser.add_argument("--report", type=Path, help="write the page with the rest and its reasons here")
    options = parser.parse_args(arguments)
    try:
        results = [_run(path, options.select, options.all) for path in options.paths or case_files()]
    except (OSError, ValueError, KeyError, SqlExtError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if options.report is not None:
        options.report.write_text(markdown(results))
    return 0 if all(score(suite.cases, outcomes).enough for suite, outcomes in results) else 1


def _run(path: Path, text: str, everything: bool) -> tuple[Suite, list[Outcome]]:
    from sqlext.embedded import start_spark

    suite = select(path, None if everything else function_names())
    chosen = tuple(case for case in suite.cases if text in case.key or text in case.description)
    suite = Suite(suite.path, chosen, suite.left_out)
    warehouse = tempfile.mkdtemp(prefix="sqlext-conformance-")
    spark = start_spark("local[2]", {"spark.driver.memory": "2g", "spark.sql.warehouse.dir": warehouse})
    outcomes = []
    start = time.perf_counter()
    with openmldb_settings(spark):
        for case in suite.cases:
            outcome = run_case(spark, case)
            outcomes.append(outcome)
            print(f"{'pass' if outcome.passed else 'FAIL'}  {case.key}  {outcome.detail}".rstrip(), flush=True)
            if not outcome.passed:
                print(f"      {outcome.kind}; {' '.join(case.sql.split())}", flush=True)
    counts = score(suite.cases, outcomes)
    print(
        f"{path.name}: {counts.passed} of {counts.cases} pass ({counts.rate:.1%}), {counts.refused} of "
        f"{counts.refusals} refusals, {time.perf_counter() - start:.0f} s"
    )
    return suite, outcomes


if __name__ == "__main__":
    sys.exit(main())
