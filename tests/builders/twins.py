"""The statements of the docs, written with builders: `TWINS[page]` has a function for each statement, in their order.

None stands for a statement that a DataFrame takes the place of: rows in VALUES."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from sqlext import functions as fx
from sqlext.builders import Query, Source

Table = Callable[[Source], Query]
Twin = Callable[[Table], Query]
Twins = Sequence[Twin | None]

HOUR = timedelta(hours=1)
VIEWED = fx.period("v.ts", "v.ts + INTERVAL 10 MINUTES")
ORDERED = fx.period("o.ts", "o.ts + INTERVAL 10 MINUTES")
RELATION = fx.allen_relation(VIEWED, ORDERED)


def of(table: Table, name: str, alias: str) -> Query:
    return table(name).alias(alias)


def visits(table: Table, alias: str = "v") -> Query:
    return of(table, "visits", alias)


def offers(table: Table) -> Query:
    return of(table, "offers", "o")


def views(table: Table) -> Query:
    return of(table, "views", "v")


def orders(table: Table) -> Query:
    return of(table, "orders", "o")


WINDOWS: Sequence[Twin] = (
    lambda table: (
        table("views")
        .window_union("orders", partition_by="user_id", order_by="ts", rows_range=("1d", 0), maxsize=100)
        .select("user_id", "ts", spent=fx.sum("price"), n=fx.count())
    ),
    lambda table: table("views").select(
        "user_id",
        fx.distinct_count("item").over(fx.window("user_id", "ts").rows(-9, 0)).alias("kinds"),
        "row_number() OVER (PARTITION BY user_id ORDER BY ts) AS place",
    ),
    lambda table: (
        table("views")
        .select(id="user_id", ts="ts", amount="CAST(NULL AS DOUBLE)")
        .window_union(
            table("orders").select(id="user_id", ts="ts", amount="price"),
            partition_by="id",
            order_by="ts",
            rows_range=(timedelta(days=7), 0),
        )
        .select("id", total=fx.sum("amount"))
    ),
    lambda table: (
        table("views")
        .select("user_id", "ts", "item")
        .window_union(
            table("orders").select(fx.lit("order").alias("kind"), "price", "ts", "user_id"),
            by_name=True,
            partition_by="user_id",
            order_by="ts",
            rows_range=("1w", 0),
        )
        .select("user_id", "ts", spent=fx.sum("price"), orders=fx.count_where("*", "kind = 'order'"))
    ),
    lambda table: (
        table("views")
        .window_union("orders", partition_by="user_id", order_by=fx.desc("ts"), rows_range=("1h", 0))
        .select(fx.sum("price"))
    ),
    lambda table: (
        table("views")
        .window_union("orders", partition_by="user_id", order_by="ts", rows_range=("2h", 0))
        .select(
            "user_id",
            mean_of_double=fx.expr("round({} / greatest({}, 1), 2)", fx.sum("price * 2"), fx.count("price")),
            ones=fx.count_where("*", "item = 'item-1' AND price > 10"),
            before=fx.lag("price", 1),
        )
    ),
    lambda table: (
        table("views")
        .window_union("orders", partition_by="user_id", order_by="ts", rows_range=("2h", 0))
        .select(
            "user_id",
            dear=fx.expr("count(*) FILTER (WHERE price > 10) OVER w"),
            items=fx.expr("count(DISTINCT item) OVER w"),
            prices=fx.expr("sum(DISTINCT price) OVER w"),
            last=fx.expr("last_value(price) IGNORE NULLS OVER w"),
            before=fx.expr("lag(price, 1, 0) IGNORE NULLS OVER w"),
            next=fx.lead("item"),
            place=fx.expr("row_number() OVER w"),
        )
    ),
    lambda table: (
        table("orders")
        .group_by("user_id")
        .agg(
            spent_by_item=fx.sum_cate("price", "item"),
            dearest=fx.top("price", 3),
            n=fx.count(),
            mean=fx.expr("round({}, 2)", fx.avg("price")),
        )
        .having(fx.count_where("*", "price > 10") > 1)
        .order_by(fx.desc("n"), "user_id")
        .limit(5)
    ),
    lambda table: (
        table("views")
        .window_union("orders", partition_by="user_id", order_by="ts", rows_range=("30m", 0))
        .select("user_id", "ts", spent=fx.sum("price"))
    ),
    lambda table: table("spent").group_by("user_id").agg(most=fx.max("spent")).order_by("most DESC").limit(5),
    lambda table: table("views").select(fx.count().over(fx.window("user_id", "ts").union("orders").rows(-5, 0))),
)

LAST_JOIN: Twins = (
    lambda table: (
        views(table)
        .last_join(orders(table), on=["user_id", "o.ts <= v.ts"], order_by="o.ts")
        .select("v.user_id", "v.ts", ordered="o.ts", price="o.price")
    ),
    lambda table: (
        views(table)
        .last_join(
            orders(table),
            on=["o.item = v.item", "o.ts BETWEEN v.ts - INTERVAL 1 DAY AND v.ts", "o.price > v.price"],
            order_by="o.ts",
        )
        .select("v.item", "v.ts", "o.price")
    ),
    lambda table: (
        views(table).asof_join(orders(table), match="v.ts >= o.ts", on="user_id").select("v.user_id", "v.ts", "o.price")
    ),
    lambda table: (
        views(table)
        .asof_join(
            orders(table),
            match=["v.ts >= o.ts", "v.ts <= o.ts + INTERVAL 1 HOUR"],
            on=["user_id", "o.price > 10"],
            how="left",
        )
        .select("v.user_id", "v.ts", "o.price")
    ),
    lambda table: views(table).asof_join(orders(table), "v.ts >= o.ts", "user_id").select("v.ts", "o.price"),
    lambda table: (
        views(table)
        .asof_join(orders(table), "o.ts BETWEEN v.ts - INTERVAL 1 DAY AND v.ts", "user_id")
        .select("v.ts", "o.price")
    ),
    lambda table: (
        views(table)
        .last_join(of(table, "orders", "newest"), on=["user_id", "newest.ts <= v.ts"], order_by="newest.ts")
        .last_join(of(table, "orders", "oldest"), on="user_id", order_by=fx.desc("oldest.ts"))
        .last_join(of(table, "orders", "item"), on="item", order_by="item.ts")
        .join(
            table("orders").group_by("item").agg(dearest=fx.max("price")).alias("m"),
            on="m.item = v.item",
            how="left",
        )
        .select("v.user_id", "v.ts", newest="newest.price", oldest="oldest.price", item_price="item.price")
    ),
    lambda table: (
        views(table)
        .last_join(
            table("orders")
            .select("user_id", "ts", spent=fx.sum("price").over(fx.window("user_id", "ts").rows_range("7d", 0)))
            .alias("f"),
            on=["user_id", "f.ts < v.ts"],
            order_by="f.ts",
        )
        .select("v.user_id", "v.ts", "f.spent")
    ),
    lambda table: (
        views(table)
        .last_join(orders(table), on=["item", "o.ts <= v.ts"], order_by="o.ts")
        .window_union("orders", partition_by="v.user_id", order_by="v.ts", rows_range=("1h", "current row"))
        .select("v.user_id", "v.ts", spent=fx.sum("v.price"), with_order=fx.count("o.price"))
    ),
    lambda table: views(table).last_join(orders(table), on="user_id", order_by="v.ts").select("v.ts", "o.price"),
    lambda table: (
        views(table).asof_join(orders(table), ["v.ts >= o.ts", "v.price > o.price"]).select("v.ts", "o.price")
    ),
)

V, W = fx.period("v.ts", "v.te"), fx.period("o.since", "o.until")
A, B = fx.period("a.ts", "a.te"), fx.period("b.ts", "b.te")

INTERVAL_JOINS: Sequence[Twin] = (
    lambda table: table("views").select("user_id", "item", "ts", te="ts + INTERVAL 10 MINUTES"),
    lambda table: table("orders").select(
        "item", "price", since="ts", until="CASE WHEN price < 90 THEN ts + INTERVAL 2 HOURS END"
    ),
    *[
        lambda table: (
            visits(table).interval_join(offers(table), on=["item", fx.overlaps(V, W)]).select("v.user_id", "o.price")
        )
    ]
    * 2,
    lambda table: (
        visits(table, "a")
        .interval_join(visits(table, "b"), on=["user_id", fx.before(A, B, delta="30 minutes")])
        .select("a.user_id", "a.ts", next_visit="b.ts")
    ),
    lambda table: (
        visits(table, "a")
        .interval_join(
            visits(table, "b"),
            on=[fx.left_overlap(A, B, delta="5m", epsilon=timedelta(minutes=10)), "a.item = b.item"],
        )
        .agg(n=fx.count())
    ),
    lambda table: (
        visits(table, "a")
        .join(visits(table, "b"), how="cross")
        .where("a.user_id = b.user_id", fx.allen_relation(A, B).isin("overlaps", "meets"))
        .agg(n=fx.count())
    ),
    lambda table: (
        orders(table)
        .interval_join(visits(table), on=["user_id", fx.contains(V, "o.ts")])
        .group_by("o.item")
        .agg(orders_in_visits=fx.count())
    ),
    lambda table: (
        offers(table)
        .where(
            ~fx.exists(
                visits(table)
                .where("v.item = o.item", fx.contains(fx.period("o.since", "o.until", open=True), "v.ts"))
                .select("1")
            )
        )
        .select("o.item", "o.since")
    ),
    lambda table: (
        visits(table)
        .interval_join(offers(table), on=["item", fx.meets(V, W) | fx.meets(W, V)])
        .select("v.user_id", "o.price")
    ),
    lambda table: (
        visits(table, "a")
        .interval_join(visits(table, "b"), on=["user_id", ~(fx.precedes(A, B) | fx.succeeds(A, B))])
        .agg(n=fx.count())
    ),
    lambda table: (
        visits(table)
        .where(~fx.overlaps(("v.ts", "v.te"), ("TIMESTAMP '2024-05-01 00:00:00'", "TIMESTAMP '2024-05-01 06:00:00'")))
        .select(
            "v.user_id",
            "v.ts",
            at=fx.expr("CASE WHEN {} THEN 'noon' ELSE 'other' END", fx.contains(V, "TIMESTAMP '2024-05-01 12:00:00'")),
        )
    ),
    lambda table: (
        visits(table)
        .interval_join(offers(table), on=["item", "v.ts < o.until", "o.since < v.te"])
        .select("v.user_id", "o.price")
    ),
    lambda table: (
        visits(table)
        .interval_join(offers(table), on=["item", "v.ts >= o.since", "v.ts < o.until OR o.until IS NULL"])
        .select("v.user_id", "o.price")
    ),
    lambda table: (
        visits(table)
        .interval_join(orders(table), on="o.ts BETWEEN v.ts - INTERVAL 5 MINUTES AND v.ts + INTERVAL 5 MINUTES")
        .group_by("v.user_id")
        .agg(near=fx.count())
    ),
    lambda table: (
        visits(table, "a")
        .interval_join(visits(table, "b"), on=fx.overlaps(A, B))
        .group_by("a.user_id")
        .agg(n=fx.count())
    ),
    lambda table: (
        visits(table)
        .interval_join(
            offers(table),
            on=["item", "v.ts < o.until", "o.since < v.te", "(o.price < 50 OR v.user_id % 2 = 0)"],
            how="left",
        )
        .select("v.user_id", "v.ts", "o.price")
    ),
    lambda table: (
        visits(table)
        .where(
            ~fx.exists(
                visits(table, "w")
                .where("w.user_id = v.user_id", "w.ts < v.te", "v.ts < w.te", "w.item <> v.item")
                .select("1")
            )
        )
        .select("v.user_id", "v.ts")
    ),
    lambda table: (
        table("visits")
        .select("item", during="struct(ts, te)")
        .alias("v")
        .interval_join(
            table("offers").select("item", valid="struct(since, until)").alias("o"),
            on=["item", fx.overlaps("v.during", "o.valid")],
        )
        .agg(n=fx.count())
    ),
    lambda table: (
        visits(table, "a")
        .interval_join(visits(table, "b"), on=fx.before(A, B, delta="INTERVAL 1 MONTH"))
        .agg(n=fx.count())
    ),
)


def three(table: Table, merge: bool | None = None) -> Query:
    return fx.multiway_join(
        views(table), orders(table), of(table, "views", "w"), on=["v.item = o.item", "o.item = w.item"], merge=merge
    )


UMJOIN: Sequence[Twin] = (
    lambda table: three(table).where("o.price > 50").group_by("v.item").agg(n=fx.count(), price=fx.sum("o.price")),
    lambda table: (
        views(table)
        .join(orders(table), on=["user_id", "v.item = o.item"])
        .where(
            fx.expr("o.price")
            > fx.expr("({})", of(table, "orders", "b").where("b.item = v.item").agg(fx.avg("price"))),
            fx.expr("v.user_id NOT IN ({})", table("orders").where("price > 99").select("user_id")),
        )
        .select("v.user_id", "v.item")
    ),
    lambda table: three(table, merge=True).agg(n=fx.count()),
    lambda table: three(table, merge=False).agg(n=fx.count()),
)

SIX_HOURS = "window(ts, '6 hours')"

EARLY_ANSWERS: Sequence[Twin] = (
    lambda table: (
        table("views")
        .select("*", w=SIX_HOURS)
        .alias("v")
        .join(table("orders").select("*", w=SIX_HOURS).alias("o"), on=["user_id", "w"])
        .group_by("v.w")
        .select("v.w.start", pairs=fx.count())
    ),
)


def hour(time: str) -> fx.Window:
    return fx.window("user_id", time, name="last_hour").rows_range("1h")


def bought(table: Table) -> Query:
    return (
        views(table)
        .join(orders(table), on=["o.user_id = v.user_id", "o.ts BETWEEN v.ts AND v.ts + INTERVAL 30 MINUTES"])
        .join(
            of(table, "payments", "p"),
            on=["p.user_id = o.user_id", "p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES"],
        )
        .select("v.user_id", viewed="v.ts", ordered="o.ts", paid="p.ts")
    )


#: The statements in the Python blocks of docs/streams.md.
STREAMS: Twins = (
    lambda table: (
        table("views")
        .window_union(
            "orders",
            partition_by="user_id",
            order_by="ts",
            rows_range=("1h", 0),
            exclude_current_row=True,
            instance_not_in_window=True,
            name="last_hour",
        )
        .select("user_id", "ts", orders_1h=fx.count("price"), spent_1h=fx.sum("price"))
    ),
    None,  # a window of standard SQL, which PySpark's own functions make
    bought,
    lambda table: (
        of(table, "bookings", "b")
        .interval_join(
            of(table, "repairs", "r"), on=["room", fx.overlaps(("b.ts", "b.te"), ("r.ts", "r.te"))], how="left"
        )
        .select("b.room", "b.ts", repair="r.ts")
    ),
    lambda table: (
        of(table, "stays", "s")
        .interval_join(
            of(table, "alarms", "a"),
            on=["room", fx.overlaps(fx.period("s.ts", "s.te", open=True), fx.period("a.ts", "a.te", open=True))],
        )
        .select("s.room", "s.te", alarm="a.ts", cleared="a.te")
    ),
    lambda table: (
        views(table)
        .last_join(of(table, "grades", "g"), on=["user_id", "g.since <= v.ts"], order_by="g.since")
        .select("v.user_id", "v.ts", "g.grade")
    ),
    lambda table: bought(table).select("user_id", "viewed", payments=fx.count("paid").over(hour("viewed"))),
)

#: The statements in the Python blocks of docs/early-answers.md.
EMITS: Sequence[Twin] = (
    lambda table: (
        table("asks")
        .join("bids", on=["item", "window(asks.ts, '10 seconds') = window(bids.ts, '10 seconds')"])
        .group_by("window(asks.ts, '10 seconds')")
        .select("window.start", pairs=fx.count(), price=fx.avg("asks.price"))
        .emit_after("7 seconds", using="shrink", confidence=0.95)
    ),
    lambda table: (
        table("clicks")
        .window("w", fx.window("user", "ts").rows_range("10s"))
        .select("user", "ts", clicks=fx.count().over("w"), spent="sum(amount) OVER w")
        .emit_after(timedelta(seconds=1))
    ),
)

PREDICATES: Sequence[Twin] = (
    lambda table: (
        views(table)
        .interval_join(orders(table), on=["user_id", fx.contains(VIEWED, "o.ts")])
        .select("v.user_id", "v.ts", ordered="o.ts")
    ),
    lambda table: (
        views(table)
        .join(orders(table), on=["user_id", "v.user_id < 20"])
        .agg(
            shown=fx.expr(
                "count_if({})",
                fx.overlaps(
                    fx.period("CAST(v.ts AS DATE)", "CAST(v.ts AS DATE)", closed=True),
                    ("DATE '2024-01-01'", "DATE '2025-01-01'"),
                ),
            ),
            soon=fx.expr("count_if({})", fx.before(minute("v"), minute("o"), delta=timedelta(minutes=5))),
            soon_too=fx.expr("count_if({})", fx.before(minute("v"), minute("o"), delta="5 MINUTES")),
        )
    ),
    lambda table: (
        of(table, "views", "a")
        .interval_join(
            of(table, "views", "b"),
            on=["user_id", fx.left_overlap(ten("a"), ten("b"), delta="5 MINUTES", epsilon="1h")],
        )
        .agg(pairs=fx.count())
    ),
    lambda table: (
        views(table)
        .interval_join(
            orders(table), on=["user_id", fx.allen_relation(VIEWED, ORDERED).isin("overlaps", "meets", "starts")]
        )
        .group_by(fx.allen_relation(VIEWED, ORDERED).alias("how"))
        .agg(n=fx.count())
    ),
)


def minute(name: str) -> fx.Expr:
    return fx.period(f"{name}.ts", f"{name}.ts + INTERVAL 1 MINUTE")


def ten(name: str) -> fx.Expr:
    return fx.period(f"{name}.ts", f"{name}.ts + INTERVAL 10 MINUTES")


SHIFT = ("ts", "te")
SHIFT_A, SHIFT_B = ("a.ts", "a.te"), ("b.ts", "b.te")


def lasting(table: Table, name: str, column: str, length: str) -> Query:
    return table(name).select("item", fx.expr(f"struct(ts, ts + INTERVAL {length})").alias(column))


PERIOD_ALGEBRA: Twins = (
    None,
    lambda table: (
        table("shifts")
        .normalize(partition_by=["site", "emp"], period=SHIFT)
        .select("site", "emp", "ts", "te")
        .order_by("ALL")
    ),
    lambda table: (
        lasting(table, "views", "visit", "10 MINUTES")
        .alias("v")
        .interval_join(
            lasting(table, "orders", "offer", "2 HOURS").alias("o"), on=["item", fx.overlaps("visit", "offer")]
        )
        .group_by("o.item")
        .agg(visits=fx.count(), watched=fx.sum(fx.period_length(fx.period_intersect("visit", "offer"))))
    ),
    lambda table: table("shifts").gaps(partition_by="emp", period=SHIFT).select("emp", off_from="ts", off_until="te"),
    lambda table: (
        table("shifts")
        .concurrent(partition_by="site", period=SHIFT)
        .group_by("site")
        .agg(most=fx.max("concurrent"), since="max_by(struct(ts, te), concurrent)")
    ),
    lambda table: table("shifts").difference(
        table("shifts").select("site", "emp", a="12", b="13").distinct(),
        partition_by=["site", "emp"],
        period=SHIFT,
        other_period=("a", "b"),
    ),
    lambda table: (
        table("shifts")
        .select("emp", since="0", until="24")
        .distinct()
        .difference("shifts", partition_by="emp", period=("since", "until"), other_period=SHIFT)
        .alias("free")
        .where("emp = 3")
    ),
    lambda table: (
        of(table, "shifts", "a")
        .interval_join(of(table, "shifts", "b"), on=["site", "a.emp < b.emp", fx.overlaps(SHIFT_A, SHIFT_B)])
        .select("a.site", both=fx.period_intersect(SHIFT_A, SHIFT_B))
        .normalize(partition_by="site", period="both")
    ),
    lambda table: table("shifts").gaps(partition_by="emp + 1", period=SHIFT),
)

TWINS: Mapping[str, Twins] = {
    "docs/windows.md": WINDOWS,
    "docs/last-join.md": LAST_JOIN,
    "docs/interval-joins.md": INTERVAL_JOINS,
    "docs/umjoin.md": UMJOIN,
    "docs/early-answers.md": EARLY_ANSWERS,
    "docs/predicates.md": PREDICATES,
    "docs/period-algebra.md": PERIOD_ALGEBRA,
}

#: As `TWINS`, for the statements in Python blocks.
STREAM_TWINS: Mapping[str, Twins] = {"docs/streams.md": STREAMS, "docs/early-answers.md": EMITS}
