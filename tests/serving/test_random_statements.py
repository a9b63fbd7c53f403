"""Random statements with windows and LAST JOINs: each answer is the row of batch.

`SQLEXT_STATEMENTS=3000` tries more of them.
"""

from __future__ import annotations

import os
import random
import re

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext.serving.verify import same
from tests.serving.test_deployments import batch, deployed, drawn

COUNT = int(os.environ.get("SQLEXT_STATEMENTS") or 40)
#: Of one test: a failure names its seed.
EACH = 20

NUMBERS = ["v", "id", "v + 1", "id % 3", "CASE WHEN v > 3 THEN v END"]
TEXTS = ["c", "concat(c, 'x')", "CAST(k AS string)"]
CONDITIONS = ["v > 3", "c = 'a'", "c IS NULL", "v > 1 AND id < 3"]
#: Functions, and the kinds of their arguments: number, text, any, condition.
FUNCTIONS = [
    *((name, "n") for name in ("sum", "avg", "min", "max", "stddev", "median", "var_pop", "entropy")),
    *((name, "a") for name in ("count", "min", "max", "distinct_count", "first_value", "last_value")),
    *((f"{name}_where", "nc") for name in ("sum", "avg", "min", "max")),
    *((f"{name}_cate", "nt") for name in ("sum", "avg", "min", "max", "count")),
    *((f"{name}_cate_where", "nct") for name in ("sum", "avg", "count")),
    ("count_where", "ac"),
    ("topn_frequency", "t2"),
    ("top1_ratio", "t"),
    ("lag", "a1"),
    ("lag", "a2"),
    ("collect_list", "n"),
]
#: A source with fewer columns, which is taken by name.
FEWER = "(SELECT k, ts, v FROM sv_orders)"
SOURCES = [
    "sv_orders",
    "(SELECT * FROM sv_orders WHERE v > 2)",
    "(SELECT id, k, c, ts, v * 2 AS v FROM sv_orders)",
    "(SELECT * FROM sv_views WHERE c = 'b')",
    FEWER,
]


class Drawn:
    """One statement."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def sql(self) -> str:
        rng = self._rng
        joins = [self._join(number) for number in range(rng.choice([0, 0, 1, 2]))]
        windows = [(f"w{number}", self._window()) for number in range(rng.choice([1, 1, 2, 3]))]
        items = ["a.id AS id"]
        items += [f"n{number}.{rng.choice(['name', 'rank', 'seen'])} AS j{number}" for number in range(len(joins))]
        for number in range(rng.randint(1, 5)):
            name, text = rng.choice(windows)
            items.append(f"{self._call(text)} OVER {name} AS x{number}")
        if rng.random() < 0.3:
            items.append(f"{rng.choice(['a.v * 2', 'upper(a.c)', 'a.ts', 'a.v / 4 + a.id'])} AS plain")
        defined = ", ".join(f"{name} AS ({text})" for name, text in windows)
        return f"SELECT {', '.join(items)} FROM sv_views a {' '.join(joins)} WINDOW {defined}"

    def _call(self, window: str) -> str:
        rng = self._rng
        name, kinds = rng.choice([one for one in FUNCTIONS if one[0] != "lag" or "MAXSIZE" not in window])
        drawn = {"n": NUMBERS, "t": TEXTS, "a": [*NUMBERS, *TEXTS], "c": CONDITIONS, "1": ["1"], "2": ["2"]}
        args = [rng.choice(drawn[kind]) for kind in kinds]
        for word in ("v", "id", "c", "k"):
            args = [_qualified(arg, word) for arg in args]
        return f"{name}({', '.join(args)})"

    def _window(self) -> str:
        rng = self._rng
        sources = rng.sample(SOURCES, rng.choice([0, 1, 1, 2]))
        by_name = " BY NAME" if any(source == FEWER for source in sources) else ""
        union = f"UNION {', '.join(sources)}{by_name} " if sources else ""
        keys = "a.k" if by_name or rng.random() < 0.7 else "a.k, a.c"
        if rng.random() < 0.3:
            frame = f"ROWS BETWEEN {rng.randint(0, 5)} PRECEDING AND {rng.choice(['CURRENT ROW', '0 PRECEDING'])}"
        else:
            end = rng.choice(["CURRENT ROW", "0s PRECEDING", "5m PRECEDING", "10m FOLLOWING"])
            start = rng.choice(["20m PRECEDING", "40m OPEN PRECEDING", "5m PRECEDING", "90m PRECEDING"])
            frame = f"ROWS_RANGE BETWEEN {start} AND {end}"
            if rng.random() < 0.3:
                frame += f" MAXSIZE {rng.randint(1, 4)}"
        if rng.random() < 0.25:
            frame += f" EXCLUDE {rng.choice(['CURRENT_ROW', 'CURRENT_TIME'])}"
        if sources and rng.random() < 0.3:
            frame += " INSTANCE_NOT_IN_WINDOW"
        return f"{union}PARTITION BY {keys} ORDER BY a.ts {frame}"

    def _join(self, number: int) -> str:
        rng, name = self._rng, f"n{number}"
        order = f"ORDER BY {name}.seen{rng.choice(['', '', ' DESC'])} " if rng.random() < 0.7 else ""
        terms = [f"a.k = {name}.k"]
        if rng.random() < 0.6:
            terms.append(f"{name}.seen {rng.choice(['<', '<='])} a.ts")
        if rng.random() < 0.3:
            terms.append(rng.choice([f"{name}.rank > a.v", f"{name}.name <> 'n1'", "a.v > 1", f"{name}.rank <= 5"]))
        return f"LAST JOIN sv_names {name} {order}ON {' AND '.join(terms)}"


def _qualified(text: str, word: str) -> str:
    """The text with a column as the request table's."""
    return re.sub(rf"(?<![\w.']){word}(?![\w(.'])", f"a.{word}", text)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, EACH))
def test_a_random_statement_is_answered_as_batch(spark: SparkSession, first: int) -> None:
    refused = 0
    for seed in range(first, min(first + EACH, COUNT)):
        rng = random.Random(seed)
        sql = Drawn(rng).sql()
        data, requests = drawn(rng)
        try:
            deployment = deployed(spark, sql)
        except SqlExtError as error:
            if error.condition == "window-frame":
                with pytest.raises((SqlExtError, AnalysisException), match="Cannot specify window frame"):
                    batch(spark, sql, data)
            elif error.condition != "not-servable":
                raise
            refused += 1
            continue
        for name, rows in data.items():
            if name in deployment.spec.tables:
                deployment.push(name, rows)
        answers = {row["id"]: deployment.answer(row) for row in requests}
        together = deployment.answer_many(requests)
        assert list(map(repr, together)) == [repr(answers[row["id"]]) for row in requests], (seed, sql)
        wanted = batch(spark, sql, {**data, "sv_views": [*data["sv_views"], *requests]})
        assert answers.keys() == wanted.keys()
        for number, row in answers.items():
            assert same(row, wanted[number]), f"{seed}: {sql}\n{row}\n{wanted[number]}"
    assert refused < EACH // 2
