"""The multi-way joins of the suite `stream`: what is joined, and the statement in each dialect."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext.bench.stream.sql import StreamQuery, joined_items, joined_values

#: How late a row may be where times bound the join.
LATENESS_MS = 1_000


@dataclass(frozen=True)
class JoinWorkload:
    """Streams a, b, c, ... and their join.

    `on` has the condition of each stream but the first, whose columns come from streams before it. `keys` are the key
    columns that every stream has, whether it is joined by them or not. With `tenants` the first of them has as many
    values, and the others tell the rows of a tenant apart. With `within_s` two times match if they are that many
    seconds apart or less; `{low}` and `{high}` in `on` stand for the bounds then. Without it no time bounds the join,
    and its state only grows.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    on: tuple[str, ...]
    tenants: int | None = None
    within_s: int | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple("abcdefgh"[: len(self.on) + 1])


#: A join on one key, as the seed's query over four tables of TPC-DS (Hu and Qiu 2024, section 4.1); joins on three
#: keys; joins that share a key of few values, whose rows Flink's multi-join reads one by one; a join near in time.
JOINS = {
    join.name: join
    for join in (
        JoinWorkload("shared", "shared key", ("k",), ("a.k = b.k", "a.k = c.k", "a.k = d.k")),
        JoinWorkload("chain", "chain", ("x", "y", "z"), ("a.x = b.x", "b.y = c.y", "c.z = d.z")),
        JoinWorkload(
            "second",
            "second keys",
            ("t", "x", "y"),
            ("a.t = b.t AND a.x = b.x", "b.t = c.t AND b.y = c.y"),
            tenants=100,
        ),
        JoinWorkload(
            "near",
            "near in time",
            ("k",),
            tuple(f"a.k = {name}.k AND {name}.ts BETWEEN {{low}} AND {{high}}" for name in "bcd"),
            within_s=20,
        ),
    )
}


def join_query(join: JoinWorkload) -> StreamQuery:
    """The join in each dialect. Spark joins two streams at a time anyway; it refuses a chain whose parts have two event
    times each, so where times bound the join, it gets a statement that drops the second one before the next join."""
    plain = _flat(join, "INTERVAL {seconds} SECOND")
    spark = plain if join.within_s is None else _nested(join)
    sums = {name: f"sum({value})" for name, value in joined_values(join.streams).items()}
    times = [] if join.within_s is None else ["ts"]
    flink = {
        "streams": list(join.streams),
        "keys": list(join.keys),
        "columns": ["id", *join.keys, "v", *times],
        "query": _flat(join, "INTERVAL '{seconds}' SECOND({digits})").format(**{name: name for name in join.streams}),
        "lateness_ms": LATENESS_MS,
    }
    ours = plain.replace("SELECT", "SELECT /*+ UMJOIN */", 1)
    return StreamQuery(ours, spark, plain, {"spark": sums, "duckdb": sums}, flink)


def _flat(join: JoinWorkload, interval: str) -> str:
    joins = (
        f"JOIN {{{name}}} {name} ON {_bounded(on, 'a.ts', join, interval)}"
        for name, on in zip(join.streams[1:], join.on, strict=True)
    )
    return f"SELECT {joined_items(join.streams)}\nFROM {{a}} a\n" + "\n".join(joins)


def _nested(join: JoinWorkload) -> str:
    """Each join is a subquery with the ids so far, the keys and the time of a."""
    columns = ", ".join(f"a.{name}" for name in (*join.keys, "ts"))
    text = f"SELECT a.id AS a, {columns}, a.v AS total FROM {{a}} a"
    for place, name in enumerate(join.streams[1:], 1):
        ids = ", ".join(f"a.{before}" for before in join.streams[:place])
        condition = _bounded(join.on[place - 1], "a.ts", join, "INTERVAL {seconds} SECOND")
        text = (
            f"SELECT {ids}, {name}.id AS {name}, {columns}, a.total + {name}.v AS total\n"
            f"FROM ({text}) a JOIN {{{name}}} {name} ON {condition}"
        )
    return text


def _bounded(on: str, time: str, join: JoinWorkload, interval: str) -> str:
    """A condition with its bounds as text."""
    width = interval.format(seconds=join.within_s, digits=len(str(join.within_s)))
    return on.format(low=f"{time} - {width}", high=f"{time} + {width}")
