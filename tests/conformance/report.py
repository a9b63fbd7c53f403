"""docs/conformance.md: what passes, and every case that does not, with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from .known import KNOWN
from .runner import Outcome
from .suite import REQUIRED_RATE, Suite, score

HEAD = """# Conformance with OpenMLDB's own cases

Written by `python -m tests.conformance FILE... --report docs/conformance.md` (FILE: `window_cases.json` and
`aggregate_cases.json`, OpenMLDB's cases, kept beside the project). `make test-all` runs the cases of the first file
(`tests/conformance/`; {rate:.0%} of the cases must pass, and every refusal must have its place in the text). Give other
files with `SQLEXT_CASES=FILE:FILE`.

Each statement runs as `Session(spark, compat="openmldb").sql(text)` with `spark.sql.ansi.enabled=false` and the
session time zone Asia/Shanghai. Rows are compared as multisets, floats to 1e-5, types with the declared ones.
This also holds for a LIMIT without ORDER BY: in one partition (small data), groups come in descending order of their
keys, as OpenMLDB's batch engine returns them.

LAST JOIN without ORDER BY takes the last row of the right side in input order; OpenMLDB's online engine takes the
newest one by the table's index. For cases that depend on this (`last_join_without_order` in the case file), the rows of
each table are loaded in time order of its first index; rows with the same time keep their order.
Cases with tables in several databases run on tables in databases of those names, all others on temporary views.
"""


def markdown(results: Sequence[tuple[Suite, Sequence[Outcome]]]) -> str:
    """The page over the outcomes of all suites."""
    lines = [HEAD.format(rate=REQUIRED_RATE)]
    lines += ["| file | selected | passed | rate | refusals expected | refused with a span |"]
    lines += ["|---|---|---|---|---|---|"]
    for suite, outcomes in results:
        counts = score(suite.cases, outcomes)
        lines.append(
            f"| {suite.path.name} | {counts.cases} | {counts.passed} | {counts.rate:.1%} "
            f"| {counts.refusals} | {counts.refused} |"
        )
    for suite, outcomes in results:
        lines += ["", f"## {suite.path.name}: cases that do not pass", ""]
        lines += _failures(suite, outcomes)
        lines += ["", f"## {suite.path.name}: cases outside this suite", ""]
        lines += [f"- {count}: {reason}" for reason, count in suite.left_out.most_common()] or ["None."]
    return "\n".join(lines) + "\n"


def _failures(suite: Suite, outcomes: Sequence[Outcome]) -> list[str]:
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if not failed:
        return ["None."]
    cases = {case.key: case for case in suite.cases}
    lines = []
    for outcome in failed:
        case = cases[outcome.key]
        lines.append(f"- `{outcome.key}` ({case.description}): {outcome.kind}: {outcome.detail}")
        lines.append(f"  Reason: {KNOWN.get(outcome.key, 'not explained yet')}")
    return lines
