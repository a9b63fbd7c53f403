"""Random settings: every one of ours, and those of Spark's that change how a statement is planned or run."""

from __future__ import annotations

import random

#: setting -> values; the first is drawn in half of the cases
OURS: dict[str, tuple[str, ...]] = {
    "sqlext.planner.alwaysLower": ("false", "true"),
    "sqlext.exchange.arrowScan": ("true", "false"),
    "sqlext.exchange.targetPartitionBytes": ("128m", "2000", "64k"),
    "sqlext.exchange.partitions": ("1", "0", "2", "3"),
    "sqlext.exchange.partitioner": ("auto", "hash", "key", "broadcast", "hybrid", "dynamic", "time_range", "fragment"),
    "sqlext.exchange.blockBytes": ("4m", "1", "300", "4k"),
    "sqlext.exchange.maxPieceRows": ("4000000", "1", "3", "20"),
    "sqlext.lastJoin.strategy": ("auto", "exchange", "reduce", "pairs", "exchange"),
    "sqlext.lastJoin.broadcastBytes": ("10m", "1"),
    "sqlext.intervalJoin.strategy": ("auto", "exchange", "broadcast", "spark", "exchange", "broadcast"),
    "sqlext.intervalJoin.algorithm": ("slices", "join-by-s", "lazy-join-by-s"),
    "sqlext.intervalJoin.broadcastBytes": ("256m", "1"),
    "sqlext.intervalJoin.leastPairs": ("1", "20000000"),
    "sqlext.intervalJoin.tiles": ("0", "1", "2", "3"),
    # `error` stops a statement at the first reversed period: that is for tests of refusals
    "sqlext.interval.empty": ("drop", "drop", "point"),
    "sqlext.stream.late": ("drop", "fail", "rows"),
    "sqlext.stream.future": ("keep", "drop", "fail"),
    "sqlext.stream.futureBound": ("0", "3600"),
    "sqlext.stream.stateBytes": ("0", "1", "1g"),
    "sqlext.umjoin.strategy": ("auto", "operator", "factorised", "cascade", "operator", "factorised"),
    "sqlext.exchange.outputBatchRows": ("262144", "3", "50"),
    "sqlext.streams": ("auto", "ours", "spark"),
    "sqlext.fallback": ("silent", "warn"),
}
SPARK: dict[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.shuffle.partitions": ("1", "2", "3"),
    "spark.sql.adaptive.enabled": ("false", "false", "true"),
    "spark.sql.session.timeZone": ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"),
    "spark.sql.autoBroadcastJoinThreshold": ("10485760", "-1"),
    # generated code costs more time than tiny data
    "spark.sql.codegen.wholeStage": ("false", "false", "false", "false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "NO_CODEGEN", "NO_CODEGEN", "NO_CODEGEN", "FALLBACK"),
}
#: Settings of the parser, which change what a text means: with the switch `settings`.
PARSER: dict[str, tuple[str, ...]] = {
    "spark.sql.caseSensitive": ("false", "true"),
    "spark.sql.parser.escapedStringLiterals": ("false", "true"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false", "true"),
}


def random_settings(rng: random.Random, *, parser: bool = False) -> tuple[dict[str, str], dict[str, str]]:
    """Ours and Spark's, with `parser` those of Spark's parser too. Plain defaults in a tenth of the cases."""
    if parser:
        ours, spark = random_settings(rng)
        return ours, spark | {key: rng.choice(values) for key, values in PARSER.items()}
    if rng.random() < 0.1:
        return {"sqlext.exchange.partitions": "1"}, {key: values[0] for key, values in SPARK.items()}
    ours = {key: values[0] if rng.random() < 0.5 else rng.choice(values[1:]) for key, values in OURS.items()}
    if "0" in (ours["sqlext.exchange.partitions"], ours["sqlext.intervalJoin.tiles"]):
        # their number follows from the bytes, and hundreds of tasks take long
        ours["sqlext.exchange.targetPartitionBytes"] = rng.choice(["128m", "16k"])
    return ours, {key: values[0] if rng.random() < 0.5 else rng.choice(values[1:]) for key, values in SPARK.items()}
