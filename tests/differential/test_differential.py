"""Random statements over all features at once, against DuckDB. `python -m tests.differential` runs thousands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.config import Config

from .checker import BLOCK, Checker, case_of, data_of, shown
from .compare import difference, plain
from .generator import FEATURES
from .settings import OURS

pytestmark = pytest.mark.tidied("file")

#: Statements in `make test`, and those of each feature among the slow tests.
FEW, MANY = 8, 40


@pytest.fixture(scope="module")
def checker(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    found = Checker(spark, tmp_path_factory.mktemp("differential"))
    yield found
    found.close()


def check(checker: Checker, seed: int, numbers: range, only: str | None = None) -> None:
    wrong = []
    for number in numbers:
        case, outcome = checker.run(seed, number, only=only)
        if outcome.kind not in ("ok", "refused"):
            wrong.append(shown(case, outcome))
    assert not wrong, f"{len(wrong)} of {len(numbers)}:\n" + "\n".join(wrong[:5])


def test_statements(checker: Checker) -> None:
    check(checker, 20, range(FEW))


@pytest.mark.slow
def test_more_statements(checker: Checker) -> None:
    check(checker, 20, range(FEW, 20))


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
def test_statements_of_a_feature(checker: Checker, feature: str) -> None:
    start = BLOCK * (100 + list(FEATURES).index(feature))
    check(checker, 21, range(start, start + MANY), feature)


def test_cases_are_the_same_every_time() -> None:
    cases = [case_of(3, number, data_of(3, number)) for number in (5, 44)]
    assert cases == [case_of(3, number, data_of(3, number)) for number in (5, 44)]


def test_every_setting_is_drawn() -> None:
    assert set(OURS) == {setting.key for setting in Config.described()}
    for key in OURS:
        for value in OURS[key]:
            Config.from_mapping({key: value})


def test_every_feature_is_drawn() -> None:
    data = data_of(1, 0)
    cases = [case_of(1, number, data).statement for number in range(600)]
    assert {case.feature for case in cases} == set(FEATURES)
    texts = "\n".join(case.sql for case in cases) + "\n".join(view for case in cases for _, view in case.views)
    for words in (
        *(
            "LAST JOIN",
            "UNION ALL",
            "INTERSECT",
            "WITH cte",
            "ROWS_RANGE",
            "MAXSIZE",
            "EXCLUDE CURRENT_TIME",
            "PERIOD(",
        ),
        *("INSTANCE_NOT_IN_WINDOW", "NOT EXISTS", "FULL JOIN", "LEFT ANTI JOIN", "HAVING", "LIMIT", ":p0", "SWEEP"),
        *("allen_relation", "WITHIN", "CONTAINS", "_cate", "GROUP BY", "FROM vw", "/*+ NO_UMJOIN", "OPEN PRECEDING"),
    ):
        assert words in texts, words


@pytest.mark.parametrize(
    ("got", "expected", "ordered", "same"),
    [
        ([(1,), (2,)], [(2,), (1,)], False, True),
        ([(1,), (2,)], [(2,), (1,)], True, False),
        ([(1,), (1,)], [(1,), (2,)], False, False),
        ([(1,)], [(1,), (1,)], False, False),
        ([(None,)], [(0,)], False, False),
        ([(plain(True),)], [(1,)], False, False),
        ([("NaN",)], [("NaN",)], False, True),
        ([(0.1 + 0.2, "a"), (0.3, "b")], [(0.3, "b"), (0.3, "a")], False, True),
        ([(1.0,)], [(1.0 + 1e-6,)], False, False),
    ],
)
def test_comparison(got: list[tuple[object]], expected: list[tuple[object]], ordered: bool, same: bool) -> None:
    assert (difference(got, expected, ordered=ordered) is None) == same
