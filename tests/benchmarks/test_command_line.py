"""The command line of all suites: what it refuses, its help, and the contestants in its README."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.interval.options import CONTESTANTS as INTERVAL
from benchmarks.serving.options import CONTESTANTS as SERVING
from benchmarks.stream.options import CONTESTANTS as STREAM
from benchmarks.umjoin.options import CONTESTANTS as UMJOIN
from tests.benchmarks.runs import bench

TEXT = (Path(__file__).resolve().parents[2] / "benchmarks" / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("window --contestants polars", "there is no contestant 'polars'"),
        ("window --rows 5M", "not a list of whole numbers"),
        ("window --lengths 0", "numbers start at 1"),
        ("features --scripts Q9", "there is no script 'Q9'"),
        ("features --contestants flink", "there is no contestant 'flink'"),
        ("interval --sets huge", "there is no set 'huge'\nhelp: choose from kernel, synthetic, nested"),
        ("interval --relations overlaps", "there is no relation 'overlaps'"),
        ("interval --queries full", "there is no query 'full'"),
        ("interval --contestants postgres", "there is no contestant 'postgres'"),
        ("umjoin --cases pentagon", "there is no set of cases 'pentagon'\nhelp: choose from seed, star, chain"),
        ("umjoin --contestants flink", "there is no contestant 'flink'"),
        ("stream --cases join", "there is no set of cases 'join'"),
        ("stream --workload E", "there is no workload 'E'\nhelp: choose from A, B, C, D, rising"),
        ("stream --contestants storm", "there is no contestant 'storm'"),
        ("stream --cases umjoin --workload A,B", "--cases umjoin has no workload A or B"),
        ("skew --contestants flink", "there is no contestant 'flink'"),
        ("skew --shapes 50:0.2", "not a list like 50:0.2:30"),
        ("skew --shapes a:b:c", "not a list like 50:0.2:30"),
        ("skew --shapes 50:0.9:10", "a skew above 0 and at most 0.5"),
        ("skew --shapes 0:0.2:10", "at least one key"),
        ("serving --cases fast", "there is no set of cases 'fast'\nhelp: choose from scripts, rivals, lookup, long"),
        ("serving --scripts Q9", "there is no script 'Q9'"),
        ("serving --functions mean", "there is no function 'mean'\nhelp: choose from all, count, sum"),
        ("serving --contestants flink", "there is no contestant 'flink'"),
        ("serving --rates 0.5", "not a list of whole numbers"),
        ("report missing.json", "cannot read missing.json"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(words: str, message: str) -> None:
    assert message in bench(*words.split(), code=2)[1]


@pytest.mark.parametrize(
    ("suite", "texts"),
    [
        ("interval", ["make peers", "--real data/intervals"]),
        ("umjoin", ["python -m benchmarks umjoin --cases triangle --contestants ours,spark"]),
        ("stream", ["python -m benchmarks stream --scale 0.1 --workload C --paced 0"]),
        ("window", ["Rows of each of the two tables; several sizes with commas. [default: 5000000]"]),
    ],
)
def test_help(suite: str, texts: list[str]) -> None:
    found = " ".join(bench(suite, "--help")[0].replace("│", " ").split())
    for text in texts:
        assert text in found


@pytest.mark.parametrize(
    ("suite", "contestants"),
    [("interval", INTERVAL), ("umjoin", UMJOIN), ("stream", STREAM), ("serving", SERVING)],
    ids=lambda x: str(x)[:8],
)
def test_contestants_are_documented(suite: str, contestants: Iterable[str]) -> None:
    section = TEXT.partition(f"## Suite `{suite}`")[2].partition("\n## ")[0]
    for name in contestants:
        assert f"| {name} |" in section, name
