"""The window of the suite `skew` in plain Spark SQL, as people write it by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.harness.suite import Case
from benchmarks.interval.bins import SECONDS_A_CANDIDATE, SECONDS_A_ROW
from benchmarks.skew.data import MEAN_GAP_MS, SelfSimilarStreams
from benchmarks.window import SEGMENT_TREE

#: Adaptive execution splits partitions that are this much larger than the median: its defaults would never split here.
SKEW_JOIN = {
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1m",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_JOIN = """SELECT a.id, sum(b.v) AS s, count(b.v) AS c
FROM {a} a LEFT JOIN {b} b ON a.k = b.k
  AND b.ts BETWEEN a.ts - INTERVAL {seconds} SECONDS AND a.ts + INTERVAL {seconds} SECONDS
GROUP BY a.id"""

_BINS = """SELECT a.id, sum(b.v) AS s, count(b.v) AS c
FROM (SELECT *, explode(sequence((unix_micros(ts) - {seconds}000000) div {width},
                                 (unix_micros(ts) + {seconds}000000) div {width})) AS bin FROM {a}) a
LEFT JOIN (SELECT *, unix_micros(ts) div {width} AS bin FROM {b}) b ON a.k = b.k AND a.bin = b.bin
  AND b.ts BETWEEN a.ts - INTERVAL {seconds} SECONDS AND a.ts + INTERVAL {seconds} SECONDS
GROUP BY a.id"""

_WINDOW = """SELECT id, s, c
FROM (SELECT id, side, sum(v) OVER w AS s, count(v) OVER w AS c
      FROM (SELECT id, k, ts, CAST(NULL AS BIGINT) AS v, 0 AS side FROM {a}
            UNION ALL SELECT id, k, ts, v, 1 AS side FROM {b})
      WINDOW w AS (PARTITION BY k ORDER BY ts
        RANGE BETWEEN INTERVAL {seconds} SECONDS PRECEDING AND INTERVAL {seconds} SECONDS FOLLOWING))
WHERE side = 0"""


@dataclass(frozen=True)
class SparkText:
    """A statement with places for the tables, the seconds and the width of bins; the settings that it runs with."""

    what: str
    text: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def sql(self, a: str, b: str, case: Case) -> str:
        """The statement of a case."""
        return self.text.format(a=a, b=b, width=bin_width(case), **case.parameters)


#: By the names of the contestants.
SPARK_TEXTS = {
    "spark-join": SparkText(
        "Spark's join and aggregate, with adaptive execution's splitting of skewed partitions", _JOIN, SKEW_JOIN
    ),
    "spark-bins": SparkText("the same join, by bins of time as well as by key", _BINS, SKEW_JOIN),
    "spark-window": SparkText("Spark's RANGE frame over the union of both tables", _WINDOW, {SEGMENT_TREE: "false"}),
    "spark-segment-tree": SparkText("the same with Spark's segment tree", _WINDOW, {SEGMENT_TREE: "true"}),
}


def bin_width(case: Case) -> int:
    """Microseconds of a bin that make the estimated time of a join by bins least.

    Of an interval of length x a row has p = x * sum(share ** 2) / gap pairs on average. Bins of width w give it 1 + x/w
    copies, and p * (1 + w/x) rows to be compared with.
    """
    keys, skew, seconds = (float(case.parameters[name]) for name in ("keys", "skew", "seconds"))
    length = 2e6 * max(seconds, 1e-3)
    shares = SelfSimilarStreams(1, int(keys), skew).shares()
    pairs = length * float((shares**2).sum()) / (MEAN_GAP_MS * 1_000)
    return max(1, round(length * math.sqrt(SECONDS_A_ROW / (pairs * SECONDS_A_CANDIDATE))))
