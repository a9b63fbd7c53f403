"""Aggregates that Spark has for its own windows, over ours: FILTER, DISTINCT, IGNORE NULLS, defaults; and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .calls import Call, mean_type, numbers_of, on_rows, total_type
from .scalars import INTEGERS, ORDERED, Scalars
from .texts import Col, settled_of

#: Functions of two numbers that both languages have; those that divide by a variance are for tests against Spark.
_MOMENTS = ("covar_pop", "covar_samp", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy")
_SMALL = ("int", "smallint", "double")
_LISTED = (*INTEGERS, "string", "decimal(10,2)", "date", "boolean", "double")
#: A value of a type for the default of lag and lead.
_DEFAULTS = {"int": "7", "string": "'none'", "boolean": "TRUE"}


def spark_call(scalars: Scalars, cols: Sequence[Col], alias: str, *, ranked: bool) -> Call:
    """A random call on columns; `ranked` if the window has one key of ORDER BY, so that ranks are defined."""
    settled = settled_of(cols)
    calls = _Calls(scalars, f"{alias}." if alias else "", alias, settled)
    plain = [c for c in cols if c.dtype in _SMALL and c.role in ("value", "time")]
    integers = [c for c in cols if c.dtype in INTEGERS]
    comparable = [c for c in settled if c.dtype in ORDERED and c.role != "special"]
    values = [c for c in settled if c.dtype in _LISTED and c.role != "special"]
    makers: list[tuple[Sequence[Col], Callable[[Col], Call]]] = [
        (cols, calls.edge),
        (cols, calls.nth),
        (cols, calls.neighbour),
        (values, calls.listed),
        ([c for c in cols if c.dtype == "string"], calls.joined),
        (comparable, calls.extreme),
        ([c for c in comparable if c.role != "uniq"], calls.mode),
        (plain, calls.percentile),
        ([c for c in comparable if c.dtype in (*_SMALL, "bigint", "date")], calls.discrete),
        (comparable, calls.distinct),
        (settled, calls.counted),
        (settled, calls.truth),
        (integers, calls.bits),
        (plain, calls.product),
        (numbers_of(cols), calls.tried),
    ]
    if len(plain) > 1:
        makers.append((plain, lambda c: calls.moment(c, scalars.rng.choice(plain))))
    if comparable:
        makers.append((cols, lambda c: calls.by(c, scalars.rng.choice(comparable))))
    if ranked:
        makers.append((cols, calls.place))
    columns, make = scalars.rng.choice([(columns, make) for columns, make in makers if columns])
    return make(scalars.rng.choice(columns))


@dataclass
class _Calls:
    """Calls on a column; `before` stands before names in our text."""

    scalars: Scalars
    before: str
    alias: str
    settled: Sequence[Col]

    def named(self, c: Col) -> str:
        return self.before + c.name

    def condition(self) -> tuple[str, str]:
        """One on the columns of the rows; in our text and over the rows `e`."""
        text = self.scalars.condition([(self.alias, c) for c in self.settled], 0)
        return text.ours, on_rows(text.duck, self.alias)

    def filtered(self, call: str, duck: str, dtype: str | None, empty: str = "NULL", *, rows: str = "TRUE") -> Call:
        """A call, in half of the cases with FILTER; `rows` are those that DuckDB's looks at."""
        rng = self.scalars.rng
        if rng.random() < 0.5:
            ours, condition = self.condition()
            return Call(f"{call} FILTER (WHERE {ours})", f"{duck} FILTER ({rows} AND ({condition}))", dtype, empty)
        return Call(call, duck if rows == "TRUE" else f"{duck} FILTER ({rows})", dtype, empty)

    def edge(self, c: Col) -> Call:
        rng = self.scalars.rng
        name, order = rng.choice(
            [("first", "ASC"), ("any_value", "ASC"), ("last", "DESC"), ("first_value", "ASC"), ("last_value", "DESC")]
        )
        written, rows = rng.choice(
            [
                (f"{name}({self.named(c)})", "TRUE"),
                (f"{name}({self.named(c)}, true)", f"e.{c.name} IS NOT NULL"),
                *([(f"{name}({self.named(c)}) IGNORE NULLS", f"e.{c.name} IS NOT NULL")] if "_" in name[:-6] else []),
            ]
        )
        return self.filtered(written, f"first(e.{c.name} ORDER BY e._i {order})", c.dtype, rows=rows)

    def nth(self, c: Col) -> Call:
        n = self.scalars.rng.choice([1, 2, 3, 9])
        if self.scalars.rng.random() < 0.5:
            return Call(f"nth_value({self.named(c)}, {n})", f"(list(e.{c.name} ORDER BY e._i))[{n}]", c.dtype)
        values = f"list(e.{c.name} ORDER BY e._i) FILTER (e.{c.name} IS NOT NULL)"
        return Call(f"nth_value({self.named(c)}, {n}, true)", f"({values})[{n}]", c.dtype)

    def neighbour(self, c: Col) -> Call:
        """lag and lead, with defaults, and over values that are not NULL."""
        rng = self.scalars.rng
        name, sign, order = rng.choice([("lag", "-", "DESC"), ("lead", "", "ASC")])
        n = rng.choice([1, 1, 2, 3])
        default = _DEFAULTS.get(c.dtype, "NULL") if rng.random() < 0.6 else "NULL"
        more = f", {n}, {default}" if default != "NULL" else f", {n}" if n > 1 else ""
        if rng.random() < 0.4:
            side = f"e._d {'<' if sign else '>'} 0 AND e.{c.name} IS NOT NULL"
            found = f"(list(e.{c.name} ORDER BY e._i {order}) FILTER ({side}))[{n}]"
            ours = f"{name}({self.named(c)}{more}) IGNORE NULLS"
            return Call(ours, f"coalesce({found}, {default})", c.dtype, history=n)
        there = f"FILTER (e._d = {sign}{n})"
        duck = f"CASE WHEN count(e._i) {there} = 0 THEN {default} ELSE first(e.{c.name}) {there} END"
        return Call(f"{name}({self.named(c)}{more})", duck, c.dtype, history=n)

    def place(self, c: Col) -> Call:
        """Places in the partition; the column is of no account."""
        if self.scalars.rng.random() < 0.5:
            return Call("row_number()", "count(e._i) FILTER (e._d <= 0)", "int", history=0)
        earlier = "e._d < 0 AND e._o IS DISTINCT FROM e._co"
        return Call("rank()", f"count(e._i) FILTER ({earlier}) + 1", "int", history=0)

    def listed(self, c: Col) -> Call:
        name = self.scalars.rng.choice(["collect_list", "array_agg", "collect_set"])
        values, only = f"list(e.{c.name} ORDER BY e._i)", f"e.{c.name} IS NOT NULL"
        found = self.filtered(f"{name}({self.named(c)})", values, f"array<{c.dtype}>", "[]", rows=only)
        if name == "collect_set":  # in the order of the first ones
            firsts = "lambda _lv, _li: list_position({0}, _lv) = _li".replace("{0}", found.duck)
            return replace(found, duck=f"coalesce(list_filter({found.duck}, {firsts}), [])")
        return replace(found, duck=f"coalesce({found.duck}, [])")

    def joined(self, c: Col) -> Call:
        name = self.scalars.rng.choice(["listagg", "string_agg"])
        only = f"e.{c.name} IS NOT NULL"
        duck = f"string_agg(e.{c.name}, '-' ORDER BY e._i)"
        return self.filtered(f"{name}({self.named(c)}, '-')", duck, "string", rows=only)

    def extreme(self, c: Col) -> Call:
        name = self.scalars.rng.choice(["min", "max", "count"])
        distinct = self.scalars.rng.choice(["", "DISTINCT "])
        dtype, empty = ("bigint", "0") if name == "count" else (c.dtype, "NULL")
        return self.filtered(
            f"{name}({distinct}{self.named(c)})", f"{name}({distinct}e.{c.name})", dtype, empty, rows="e._i IS NOT NULL"
        )

    def mode(self, c: Col) -> Call:
        """The smallest of the most frequent values. DuckDB's `mode` counts each NaN alone, but those in structs."""
        oracle = f"mode(e.{c.name} ORDER BY e.{c.name})"
        if c.dtype in ("double", "float"):
            oracle = f"(mode(CASE WHEN e.{c.name} IS NOT NULL THEN {{'v': e.{c.name}}} END ORDER BY e.{c.name})).v"
        return Call(f"mode({self.named(c)})", oracle, c.dtype)

    def by(self, c: Col, key: Col) -> Call:
        """The newest of equal ones."""
        name, order = self.scalars.rng.choice([("max_by", "DESC"), ("min_by", "ASC")])
        duck = f"first(e.{c.name} ORDER BY e.{key.name} {order}, e._i DESC)"
        return self.filtered(
            f"{name}({self.named(c)}, {self.named(key)})", duck, c.dtype, rows=f"e.{key.name} IS NOT NULL"
        )

    def percentile(self, c: Col) -> Call:
        p = self.scalars.rng.choice(["0.5", "0.25", "0.9", "0", "1"])
        duck = f"quantile_cont(CAST(e.{c.name} AS DOUBLE), {p})"
        name = f"percentile_cont({p}) WITHIN GROUP (ORDER BY {self.named(c)})"
        if self.scalars.rng.random() < 0.7:
            name = f"percentile({self.named(c)}, {p})"
        elif p == "0.5":
            name = f"median({self.named(c)})"
        return Call(name, duck, "double")

    def discrete(self, c: Col) -> Call:
        p = self.scalars.rng.choice(["0.5", "0.25", "0.9", "0", "1"])
        name = self.scalars.rng.choice(["percentile_approx", "approx_percentile"])
        return Call(f"{name}({self.named(c)}, {p})", f"quantile_disc(e.{c.name}, {p})", c.dtype)

    def distinct(self, c: Col) -> Call:
        name = f"approx_count_distinct({self.named(c)})"
        return self.filtered(name, f"count(DISTINCT e.{c.name})", "bigint", "0", rows="e._i IS NOT NULL")

    def counted(self, _: Col) -> Call:
        ours, duck = self.condition()
        return Call(f"count_if({ours})", f"count(e._i) FILTER ({duck})", "bigint", "0")

    def truth(self, _: Col) -> Call:
        ours, duck = self.condition()
        name, theirs = self.scalars.rng.choice(
            [("bool_or", "bool_or"), ("bool_and", "bool_and"), ("some", "bool_or"), ("every", "bool_and")]
        )
        return Call(f"{name}({ours})", f"{theirs}({duck}) FILTER (e._i IS NOT NULL)", "boolean")

    def bits(self, c: Col) -> Call:
        name = self.scalars.rng.choice(["bit_and", "bit_or", "bit_xor"])
        rows = f"e.{c.name} IS NOT NULL"  # DuckDB's gives 0 for no values at all
        return self.filtered(f"{name}({self.named(c)})", f"{name}(e.{c.name})", c.dtype, rows=rows)

    def product(self, c: Col) -> Call:
        return Call(f"product({self.named(c)})", f"product(CAST(e.{c.name} AS DOUBLE))", "double")

    def tried(self, c: Col) -> Call:
        """Sums and means, of different values too."""
        rng = self.scalars.rng
        name = rng.choice(["try_sum", "sum", "try_avg", "mean", "avg"])
        theirs = "sum" if "sum" in name else "avg"
        distinct = rng.choice(["", "DISTINCT "]) if name in ("sum", "avg") else ""
        dtype = total_type(c.dtype) if theirs == "sum" else mean_type(c.dtype)
        return self.filtered(
            f"{name}({distinct}{self.named(c)})", f"{theirs}({distinct}e.{c.name})", dtype, rows="e._i IS NOT NULL"
        )

    def moment(self, c: Col, other: Col) -> Call:
        name = self.scalars.rng.choice(_MOMENTS)
        first, second = f"CAST(e.{c.name} AS DOUBLE)", f"CAST(e.{other.name} AS DOUBLE)"
        dtype, empty = ("bigint", "0") if name == "regr_count" else ("double", "NULL")
        return Call(f"{name}({self.named(c)}, {self.named(other)})", f"{name}({first}, {second})", dtype, empty)
