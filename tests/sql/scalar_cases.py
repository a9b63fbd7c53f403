"""Expressions for the comparison of scalar functions with Spark, over the columns of `scalar_values`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext_planner.expressions.scalars.coercion import cast_table

_NUMBER_PAIRS = (
    "tt",
    "ti",
    "hh",
    "ii",
    "il",
    "ll",
    "lf",
    "ff",
    "fd",
    "dd",
    "im",
    "mm",
    "mk",
    "mn",
    "nn",
    "kk",
    "nk",
    "md",
    "lk",
    "tm",
)


def operators() -> Iterator[str]:
    """Expressions of operators and casts."""
    for left, right in _NUMBER_PAIRS:
        for sign in "+-*/%":
            yield f"a.{left}1 {sign} a.{right}2"
    for left, right in ("ti", "ii", "ll", "il", "mm", "mk", "nn", "im", "kl"):
        yield f"a.{left}1 DIV a.{right}2"
    for name in "thilfdmnk":
        yield f"- a.{name}1"
        yield f"a.{name}1 + 1"
        yield f"2 * a.{name}1 - 3"
    yield "a.m1 * 1.005 + a.m2 / 3"
    yield "a.i1 + a.l1 * 2 - a.t1"
    yield "1 + a.d1 / 2.5"
    for pair in (
        "tt",
        "th",
        "il",
        "lf",
        "id",
        "fd",
        "im",
        "mn",
        "md",
        "kl",
        "yz",
        "yw",
        "zw",
        "oo",
        "su",
        "yy",
        "zz",
        "ww",
        "ff",
        "dd",
        "nn",
    ):
        for op in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
            yield f"a.{pair[0]}1 {op} a.{pair[1]}2"
    yield from ("a.x1 = a.i1", "a.x1 < a.d1", "a.q1 = a.y1", "a.q1 < a.z1", "a.x1 = a.m1", "a.x1 > 1", "a.q1 > a.w1")
    yield "a.o1 AND a.o2"
    yield "a.o1 OR NOT a.o2 AND a.i1 > 0"
    yield "!a.o1"
    yield "a.i1 IS NULL"
    yield "a.s1 IS NOT NULL"
    yield "a.o1 IS NOT TRUE"
    yield "(a.i1 > 0) IS FALSE"
    yield "a.i1 BETWEEN a.c1 AND 100"
    yield "if(a.d1 NOT BETWEEN 0 AND 1, 1, 2)"
    yield "a.i1 IN (1, 2, a.c1)"
    yield "a.s1 NOT IN ('a', 'ab', a.s2)"
    yield "a.m1 IN (1, 0.01, NULL)"
    yield "a.l1 IN (a.d1, 3)"
    yield "a.y1 IN (DATE '2024-01-01', a.y2)"
    yield "CASE WHEN a.i1 > 0 THEN a.i1 WHEN a.i1 < -5 THEN a.l1 ELSE a.t1 END"
    yield "CASE a.c1 WHEN 1 THEN 'one' WHEN 2L THEN a.s1 END"
    yield "CASE WHEN a.o1 THEN a.m1 ELSE a.n1 END"
    yield "CASE WHEN a.o1 THEN a.i1 ELSE a.d1 END"
    yield "CASE WHEN a.o1 THEN a.f1 ELSE a.l1 END"
    yield "CASE WHEN a.o1 THEN a.y1 ELSE a.z1 END"
    yield "CASE WHEN a.o1 THEN a.m1 END"
    yield "CASE WHEN a.i1 <> 0 THEN 100 / a.i1 ELSE 0 END"
    yield "a.s1 || '-' || a.i1"
    yield "a.s1 LIKE 'a%'"
    yield "a.s1 LIKE '%_b'"
    yield "a.s1 NOT LIKE 'a\\\\%%'"
    yield "a.u1 LIKE '_%ß'"
    yield "a.s1 LIKE concat(replace(a.s2, '\\\\', ''), '%')"
    yield "a.s1 RLIKE '^a+[bX-Z]?'"
    yield "a.s1 RLIKE '\\\\d|(a|b){2,}.'"
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "MILLISECOND"):
        for moment in "zw":
            yield f"a.{moment}1 + INTERVAL 3 {unit}"
            yield f"a.{moment}1 - INTERVAL 1 {unit}"
    yield "INTERVAL 2 HOURS + a.z1"
    yield "a.z1 + INTERVAL 400 DAYS"
    yield "a.z1 - INTERVAL 25 HOURS"
    yield "a.y1 + INTERVAL 3 DAY"
    yield "a.y1 - INTERVAL 30 DAY"
    yield "a.y1 + INTERVAL 5 HOUR"
    yield "a.z1 > TIMESTAMP '2024-01-01 00:00:00'"
    yield "a.y1 < DATE '2024-01-01'"
    yield "a.y1 = '2024-02-29'"


def casts() -> Iterator[str]:
    """Every cast of the table between the types, with TRY_ and without."""
    names = {
        "whole": "thile",
        "float": "fd",
        "decimal": "mnk",
        "boolean": "o",
        "string": "sxq",
        "date": "y",
        "timestamp": "z",
        "timestamp_ntz": "w",
    }
    targets = {
        "whole": ("tinyint", "smallint", "int", "bigint"),
        "float": ("float", "double"),
        "decimal": ("decimal(7,2)", "decimal(38,10)", "decimal(20,0)", "decimal(5,5)"),
    }
    for source, kinds in cast_table().items():
        for kind in kinds:
            for target in targets.get(kind, (kind,)):
                for name in names[source]:
                    yield f"CAST(a.{name}1 AS {target})"
                    if not (source in ("whole", "float") and kind == "timestamp"):
                        yield f"TRY_CAST(a.{name}2 AS {target})"
    yield "double(a.x1)"
    yield "bigint(a.d1)"


#: Calls by the names of functions in the table: at least one for each.
CALLS: dict[str, tuple[str, ...]] = {
    "coalesce": ("coalesce(a.i1, a.l1, 0)", "coalesce(a.s1, a.s2)", "coalesce(a.m1, 1.5)", "coalesce(a.y1, a.z1)"),
    "ifnull": ("ifnull(a.d1, 0)",),
    "nvl": ("nvl(a.s1, 'none')",),
    "if": ("if(a.o1, a.i1, a.d1)", "if(a.i1 > 0, a.s1, NULL)"),
    "nvl2": ("nvl2(a.i1, a.s1, a.s2)",),
    "nullif": ("nullif(a.i1, 0)", "nullif(a.d1, a.i1)", "nullif(a.s1, '')"),
    "isnull": ("isnull(a.s1)",),
    "isnotnull": ("isnotnull(a.m1)",),
    "greatest": (
        "greatest(a.i1, a.l2, 3)",
        "greatest(a.d1, a.d2, a.b1)",
        "greatest(a.s1, a.s2)",
        "greatest(a.m1, a.n1)",
        "greatest(a.z1, a.z2)",
    ),
    "least": ("least(a.d1, a.d2, a.f1)", "least(a.y1, a.y2)", "least(a.t1, a.i1, NULL)"),
    "abs": tuple(f"abs(a.{name}1)" for name in "thilfdmnk"),
    "negative": tuple(f"negative(a.{name}1)" for name in "ildm"),
    "positive": ("positive(a.d1)",),
    "floor": tuple(f"floor(a.{name}1)" for name in "ildmnkfb"),
    "ceil": tuple(f"ceil(a.{name}1)" for name in "ildmnkfb"),
    "ceiling": ("ceiling(a.d1)",),
    "round": (
        "round(a.d1)",
        "round(a.d1, 2)",
        "round(a.b1, 1)",
        "round(a.m1)",
        "round(a.m1, 1)",
        "round(a.n1, 3)",
        "round(a.i1, 2)",
        "round(a.k1)",
        "round(a.d1, -2)",
    ),
    "sqrt": ("sqrt(a.d1)", "sqrt(a.b1)", "sqrt(a.i1)", "sqrt(a.m1)"),
    "exp": ("exp(a.d1)", "exp(a.b1)", "exp(a.c1)"),
    "ln": ("ln(a.d1)", "ln(a.b1)"),
    "log": ("log(a.d1)", "log(a.i1)", "log(2, a.b1)", "log(a.b1, a.b2)", "log(a.b1)"),
    "log2": ("log2(a.d1)", "log2(a.b1)"),
    "log10": ("log10(a.d1)", "log10(a.b1)", "log10(a.l1)"),
    "pow": ("pow(a.d1, a.d2)", "pow(a.b1, a.b2)", "pow(a.b1, a.c1)", "pow(a.d1, 3)", "pow(a.i1, 0.5)"),
    "power": ("power(2, a.b1)", "power(a.b2, 1.7)"),
    "concat": ("concat(a.s1, '-', a.s2)", "concat(a.i1, a.m1, a.o1)", "concat(a.y1, a.z1)"),
    "concat_ws": ("concat_ws(',', a.s1, a.s2, a.i1)", "concat_ws(a.s1, 'x', a.s2)"),
    "length": ("length(a.s1)", "length(a.u1)", "length(a.i1)"),
    "char_length": ("char_length(a.u1)",),
    "character_length": ("character_length(a.s1)",),
    "len": ("len(a.s1)",),
    "upper": ("upper(a.s1)", "upper(a.u1)"),
    "ucase": ("ucase(a.s2)",),
    "lower": ("lower(a.s1)", "lower(a.u1)"),
    "lcase": ("lcase(a.s2)",),
    "substring": (
        "substring(a.s1, 2)",
        "substring(a.s1, a.c1)",
        "substring(a.s1, a.c1, a.c2)",
        "substring(a.u1, -2, 1)",
    ),
    "substr": ("substr(a.s1, 1, 3)", "substr(a.i1, 2)"),
    "left": ("left(a.s1, 2)", "left(a.s1, a.c1)"),
    "right": ("right(a.s1, 2)", "right(a.u1, a.c1)"),
    "trim": ("trim(a.s1)", "trim(a.x1)"),
    "btrim": ("btrim(a.x1)", "btrim(a.s1, 'ab ')", "btrim(a.s1, a.s2)"),
    "ltrim": ("ltrim(a.s1)",),
    "rtrim": ("rtrim(a.x1)",),
    "replace": ("replace(a.s1, 'a', 'xy')", "replace(a.s1, a.s2, '-')", "replace(a.s1, 'b')"),
    "startswith": ("startswith(a.s1, 'a')", "startswith(a.s1, a.s2)"),
    "endswith": ("endswith(a.s1, a.s2)",),
    "contains": ("contains(a.s1, a.s2)",),
    "like": ("like(a.s1, 'a%')",),
    "rlike": ("rlike(a.s1, 'a.b')",),
    "regexp": ("regexp(a.s1, '^[^a]')",),
    "regexp_like": ("regexp_like(a.s1, 'Z|\\\\s')",),
    "split": ("split(a.s1, ',')", "split(a.s1, '\\\\|')", "split(a.s1, 'ab')"),
    "instr": ("instr(a.s1, 'a')", "instr(a.s1, a.s2)"),
    "repeat": ("repeat(a.s1, 3)", "repeat('ab', a.i1 % 5)"),
    "lpad": ("lpad(a.s1, 5, 'xy')", "lpad(a.s1, a.i1 % 9, a.s2)"),
    "rpad": ("rpad(a.s1, 5, 'xy')", "rpad(a.u1, 3, a.s2)"),
    "reverse": ("reverse(a.s1)", "reverse(a.u1)"),
    "ascii": ("ascii(a.s1)", "ascii(a.u1)"),
    **{
        name: (f"{name}(a.y1)", f"{name}(a.z1)", f"{name}(a.w1)")
        for name in "year quarter month day dayofmonth dayofyear dayofweek weekday weekofyear last_day".split()  # noqa: SIM905
    },
    **{name: (f"{name}(a.z1)", f"{name}(a.w1)", f"{name}(a.y1)") for name in ("hour", "minute", "second")},
    "date_add": ("date_add(a.y1, 3)", "date_add(a.y1, a.c1 % 100)", "date_add(a.z1, -3)"),
    "dateadd": ("dateadd(a.y1, 5)",),
    "date_sub": ("date_sub(a.y1, a.t1)",),
    "datediff": ("datediff(a.y1, a.y2)", "datediff(a.z1, a.y2)"),
    "date_diff": ("date_diff(a.y1, a.z2)",),
    "add_months": ("add_months(a.y1, 1)", "add_months(a.y1, a.c1 % 30)"),
    "trunc": ("trunc(a.y1, 'MM')", "trunc(a.y1, 'year')", "trunc(a.y1, 'week')", "trunc(a.y1, 'quarter')"),
    "date_trunc": tuple(
        f"date_trunc('{unit}', a.z1)"
        for unit in "YEAR quarter MON week day DD hour minute second millisecond microsecond".split()  # noqa: SIM905
    ),
    "date_format": (
        "date_format(a.z1, 'yyyy-MM-dd HH:mm:ss.SSS')",
        "date_format(a.y1, 'yyyyMMdd')",
        "date_format(a.z1, 'EEE, d MMM yy h:mm a')",
        "date_format(a.w1, \"EEEE ''dd'' MMMM, y DDD\")",
        "date_format(a.z1, 'SSSSSS')",
        "date_format(a.z1, 'H:m:s')",
    ),
    "to_date": (
        "to_date(a.q1)",
        "to_date(a.z1)",
        "to_date(substring(a.q1, 1, 10), 'yyyy-MM-dd')",
        "to_date(date_format(a.z1, 'yyyyMMdd'), 'yyyyMMdd')",
    ),
    "to_timestamp": (
        "to_timestamp(a.q1)",
        "to_timestamp(a.y1)",
        "to_timestamp(a.q1, 'yyyy-MM-dd HH:mm:ss')",
        "to_timestamp(a.q1, 'yyyy-M-d')",
        "to_timestamp(date_format(a.z1, 'dd/MM/yyyy HH:mm:ss.SSSSSS'), 'dd/MM/yyyy HH:mm:ss.SSSSSS')",
    ),
    "unix_timestamp": (
        "unix_timestamp(a.z1)",
        "unix_timestamp(a.y1)",
        "unix_timestamp(a.q1)",
        "unix_timestamp(a.q1, 'yyyy-MM-dd')",
    ),
    "to_unix_timestamp": ("to_unix_timestamp(a.z1)", "to_unix_timestamp(a.q1, 'yyyy-MM-dd HH:mm')"),
    "from_unixtime": ("from_unixtime(a.i1)", "from_unixtime(a.e1 % 253402200000)", "from_unixtime(a.i1, 'yyyy/MM/dd')"),
    "unix_seconds": ("unix_seconds(a.z1)",),
    "unix_millis": ("unix_millis(a.z1)",),
    "unix_micros": ("unix_micros(a.z1)",),
    "unix_date": ("unix_date(a.y1)",),
    "timestamp_seconds": ("timestamp_seconds(a.i1)", "timestamp_seconds(a.e1)"),
    "timestamp_millis": ("timestamp_millis(a.e1)",),
    "timestamp_micros": ("timestamp_micros(a.e1)",),
}
