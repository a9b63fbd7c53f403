"""Aggregate functions that OpenMLDB has, as ours write them and as DuckDB computes them over the rows `e`."""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Call, mean_type, numbers_of, on_rows, total_type
from .scalars import INTEGERS, ORDERED, Scalars
from .texts import Col, settled_of

ZEROS = {"int": "0", "bigint": "0", "smallint": "0", "string": "''", "boolean": "FALSE", "double": "0.0"}


def window_call(scalars: Scalars, cols: Sequence[Col], *, alias: str = "", group: bool = False) -> Call:
    """A random call on columns; `alias` names their relation in our text. With `group`, for GROUP BY: only functions
    that ask for no order, and sum, avg, stddev and median are Spark's."""
    rng = scalars.rng
    prefix = f"{alias}." if alias else ""
    numbers = numbers_of(cols)
    plain = [c for c in numbers if not c.dtype.startswith("decimal")]
    integers = [c for c in cols if c.dtype in INTEGERS]
    anything = list(cols)
    comparable = [c for c in cols if c.dtype in ORDERED and c.role != "uniq"]
    settled = settled_of(cols)
    zeroed = [c for c in settled if c.dtype in ZEROS]
    short = [c for c in cols if c.dtype == "string" or c in integers]
    categories = [c for c in cols if c.dtype == "string" or (c in integers and c.role == "key")]

    def condition() -> tuple[str, str]:
        text = scalars.condition([(alias, c) for c in settled], 0)
        duck = on_rows(text.duck, alias)
        return text.ours, duck

    makers = []

    def add(weight: int, needed: Sequence[Col], maker: object) -> None:
        if needed:
            makers.append((weight, needed, maker))

    def named(c: Col) -> str:
        return prefix + c.name

    def count(c: Col) -> Call:
        if rng.random() < 0.5:
            return Call("count(*)", "count(e._i)", "bigint", "0")
        return Call(f"count({named(c)})", f"count(e.{c.name})", "bigint", "0")

    def total(c: Col) -> Call:
        dtype = total_type(c.dtype)
        if c.dtype in INTEGERS and c.dtype != "smallint" and not group and rng.random() < 0.2:
            return Call(f"sum({named(c)} + 1)", f"sum(e.{c.name} + 1)", dtype)
        return Call(f"sum({named(c)})", f"sum(e.{c.name})", dtype)

    def mean(c: Col) -> Call:
        return Call(f"avg({named(c)})", f"avg(e.{c.name})", mean_type(c.dtype))

    def extreme(c: Col) -> Call:
        name = rng.choice(["min", "max"])
        return Call(f"{name}({named(c)})", f"{name}(e.{c.name})", c.dtype)

    def distinct(c: Col) -> Call:
        value = f"coalesce(e.{c.name}, {ZEROS[c.dtype]})"
        return Call(f"distinct_count({named(c)})", f"count(DISTINCT {value}) FILTER (e._i IS NOT NULL)", "bigint", "0")

    def edge(c: Col) -> Call:
        name, ascending = rng.choice([("first_value", "ASC"), ("last_value", "DESC")])
        skip = rng.random() < 0.4
        only = f" FILTER (e.{c.name} IS NOT NULL)" if skip else ""
        duck = f"first(e.{c.name} ORDER BY e._i {ascending}){only}"
        return Call(f"{name}({named(c)}{', true' if skip else ''})", duck, c.dtype)

    def lag(c: Col) -> Call:
        places = rng.choice([0, 1, 1, 2, 3])
        duck = f"first(e.{c.name}) FILTER (e._d = -{places})"
        return Call(f"{rng.choice(['lag', 'at'])}({named(c)}, {places})", duck, c.dtype, history=places)

    def filtered(c: Col) -> Call:
        ours, duck = condition()
        only = f"FILTER (e._i IS NOT NULL AND ({duck}))"
        name = rng.choice(["count_where", "sum_where", "avg_where", "min_where", "max_where"])
        if name == "count_where" and rng.random() < 0.5:
            return Call(f"count_where(*, {ours})", f"count(e._i) {only}", "bigint", "0")
        function = name.removesuffix("_where")
        dtype = {"count": "bigint", "avg": mean_type(c.dtype), "sum": total_type(c.dtype)}.get(function, c.dtype)
        empty = "0" if function == "count" else "NULL"
        return Call(f"{name}({named(c)}, {ours})", f"{function}(e.{c.name}) {only}", dtype, empty)

    def nth(c: Col) -> Call:
        ours, duck = condition()
        n = rng.choice([1, 2, -1, -2, 3, 0])
        found = f"list(e.{c.name} ORDER BY e._i) FILTER (e._i IS NOT NULL AND ({duck}))"
        return Call(f"nth_value_where({named(c)}, {n}, {ours})", f"({found})[{n}]", c.dtype)

    def spread(c: Col) -> Call:
        name = rng.choice(["stddev", "stddev_samp", "stddev_pop", "var_samp", "variance", "var_pop", "median"])
        duck = {"stddev": "stddev_samp", "variance": "var_samp"}.get(name, name)
        return Call(f"{name}({named(c)})", f"{duck}(CAST(e.{c.name} AS DOUBLE))", "double")

    def entropy(c: Col) -> Call:
        value = f"e.{c.name}"
        duck = f"CASE WHEN count({value}) > 0 THEN entropy({value}) FILTER ({value} IS NOT NULL) END"
        return Call(f"entropy({named(c)})", duck, "double")

    def weighted(c: Col) -> Call:
        alpha = rng.choice(["0", "0.5", "0.25", "1"])
        values = f"list(CAST(e.{c.name} AS DOUBLE) ORDER BY e._i DESC) FILTER (e.{c.name} IS NOT NULL)"
        power = f"pow(1 - {alpha}, _li - 1)"
        duck = (
            f"list_sum(list_transform({values}, lambda _lv, _li: _lv * {power})) / "
            f"list_sum(list_transform({values}, lambda _lv, _li: {power}))"
        )
        return Call(f"ew_avg({named(c)}, {alpha})", duck, "double")

    def top(c: Col) -> Call:
        n = rng.randint(1, 4)
        values = f"list(e.{c.name}) FILTER (e.{c.name} IS NOT NULL)"
        duck = f"coalesce(array_to_string(list_slice(list_reverse_sort({values}), 1, {n}), ','), '')"
        return Call(f"top({named(c)}, {n})", duck, "string", "''")

    def frequent(c: Col) -> Call:
        values = f"list(e.{c.name}) FILTER (e.{c.name} IS NOT NULL)"
        counts = (
            f"list_sort(list_transform(list_distinct({values}), "
            f"lambda _lv: {{'n': -len(list_filter({values}, lambda _lw: _lw = _lv)), 'v': _lv}}))"
        )
        if rng.random() < 0.4:
            duck = f"coalesce(CAST(-({counts})[1].n AS DOUBLE) / count(e.{c.name}), 0)"
            return Call(f"top1_ratio({named(c)})", duck, "double", "0")
        n = rng.randint(1, 4)
        padded = f"list_resize(coalesce(list_transform({counts}, lambda _ls: CAST(_ls.v AS VARCHAR)), []), {n}, 'NULL')"
        duck = f"CASE WHEN count(e._i) = 0 THEN '' ELSE array_to_string({padded}, ',') END"
        return Call(f"topn_frequency({named(c)}, {n})", duck, "string", "''")

    def category(c: Col) -> Call:
        key = rng.choice(categories)
        name = rng.choice(["count", "sum", "min", "max"])
        present = f"e.{c.name} IS NOT NULL AND e.{key.name} IS NOT NULL"
        ours = f"{name}_cate({named(c)}, {named(key)})"
        if rng.random() < 0.4:
            text, duck = condition()
            ours = f"{name}_cate_where({named(c)}, {text}, {named(key)})"
            present += f" AND ({duck})"
        pairs = f"list({{'k': e.{key.name}, 'v': CAST(e.{c.name} AS BIGINT)}}) FILTER ({present})"
        inside = f"list_transform(list_filter({pairs}, lambda _lp: _lp.k = _lk), lambda _lp: _lp.v)"
        value = {"count": "len({})", "sum": "list_sum({})", "min": "list_min({})", "max": "list_max({})"}[name]
        keys = f"list_sort(list_distinct(list_transform({pairs}, lambda _lp: _lp.k)))"
        shown = f"lambda _lk: _lk || ':' || CAST({value.replace('{}', inside)} AS VARCHAR)"
        duck = f"coalesce(array_to_string(list_transform({keys}, {shown}), ','), '')"
        return Call(ours, duck, "string", "''")

    add(6, anything, count)
    add(6, numbers, total)
    add(3, numbers, mean)
    add(5, comparable, extreme)
    add(3, zeroed, distinct)
    add(4, numbers, filtered)
    add(2, plain, spread)
    add(1, [c for c in plain if c.role != "end" and c in settled], entropy)
    add(1, integers, top)
    add(2, short, frequent)
    if categories:
        add(2, integers, category)
    if not group:
        add(5, anything, edge)
        add(4, anything, lag)
        add(2, anything, nth)
        add(1, plain, weighted)
    [(_, needed, maker)] = rng.choices(makers, [weight for weight, _, _ in makers])
    return maker(rng.choice(needed))  # type: ignore[operator, no-any-return]
