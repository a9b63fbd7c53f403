"""Types where the analyzer can be certain of them; None everywhere else. Spark decides in the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, MOST_DIGITS, decimal_type
from sqlext_planner.expressions.types import map_types, normalize, struct_fields
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer.items import unwrapped
from sqlext.syntax.calls import WRITTEN, is_period_call, is_period_function
from sqlext.syntax.nodes import ALLEN_RELATION
from sqlext.syntax.spans import NoPlaceError

_SAME_NAMES = "boolean tinyint smallint int bigint float double date timestamp binary".split()  # noqa: SIM905
_SIMPLE = {
    **{exp.DType[name.upper()]: name for name in _SAME_NAMES},
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR), "string"),
    **dict.fromkeys((exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), "timestamp"),
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.VARBINARY: "binary",
}
#: Functions whose result type does not depend on their arguments, those that are casts among them, by that type.
_BY_TYPE = {
    "boolean": "boolean bool is_null isnull isnotnull",
    "tinyint": "tinyint",
    "smallint": "smallint int16",
    "int": "int int32 row_number rank dense_rank ntile length char_length year month day hour minute",
    "bigint": "bigint int64 count unix_millis unix_micros unix_seconds monotonically_increasing_id",
    "float": "float",
    "double": "double",
    "string": "string lower upper trim concat_ws",
    "date": "date to_date current_date",
    "timestamp": "timestamp timestamp_millis timestamp_micros timestamp_seconds current_timestamp now",
}
_FIXED = {name: dtype for dtype, names in _BY_TYPE.items() for name in names.split()}
_FIRST_ARGUMENT = {"min", "max", "first", "last", "first_value", "last_value", "any_value", "identity"}
_NUMERIC_ORDER = (*INTEGERS, *FLOATS)


def written(node: exp.DataType, text: Callable[[exp.Expr], str]) -> str:
    """The user's text of a type; a literal's suffix (1.5BD) has none."""
    try:
        return text(node)
    except NoPlaceError:
        return node.sql(dialect="spark")


def type_name(node: exp.DataType, text: str) -> str:
    """Spark's simple string for a type written in SQL; `text` is what the user wrote."""
    simple = _SIMPLE.get(node.this)
    if simple is not None and not (node.expressions and simple != "string"):
        return simple
    if node.this == exp.DType.DECIMAL:
        sizes = [item.name for item in node.expressions]
        return f"decimal({sizes[0] if sizes else 10},{sizes[1] if len(sizes) > 1 else 0})"
    try:
        return normalize(text)
    except UnsupportedError:  # a type of another engine, or of a later Spark
        return "".join(text.lower().split())


def literal_type(
    node: exp.Expr, *, decimals_are_double: bool = False, exponent_is_decimal: bool = False, negative: bool = False
) -> str | None:
    """The type of a literal without a suffix, after a minus sign if `negative`."""
    if isinstance(node, exp.Null):
        return "void"
    if isinstance(node, exp.Boolean):
        return "boolean"
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return "string"
    text = node.name
    if "e" in text.lower():
        return _decimal_type(text) if exponent_is_decimal else "double"
    if "." in text:
        return "double" if decimals_are_double else _decimal_type(text)
    if len(text) > MOST_DIGITS:
        return None
    number = int(text) - negative
    return "int" if number < 2**31 else "bigint" if number < 2**63 else _decimal_type(text)


def _decimal_type(text: str) -> str | None:
    """The type of a decimal literal; None if it has too many digits."""
    value = Decimal(text).as_tuple()
    scale = max(0, -int(value.exponent))
    precision = max(len(value.digits) + max(0, int(value.exponent)), scale)
    return decimal_type(precision, scale)


def is_suffixed(node: exp.Expr, text: Callable[[exp.Expr], str]) -> bool:
    """Whether a node is a number with a suffix, ``3L``, which sqlglot reads as a cast."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return False
    own, number = text(node), node.this.name
    return own.startswith(number) and own[len(number) :].isalpha()


def field_type(dtype: str | None, names: tuple[str, ...], fold: Callable[[str], str] = str.lower) -> str | None:
    """The type of a (nested) field of a struct, if certain; without `names` the type of the value itself."""
    for name in names:
        if dtype is None or not dtype.startswith("struct<"):
            return None
        found = [kind for field, kind in struct_fields(dtype) if fold(field) == fold(name)]
        dtype = found[0] if len(found) == 1 else None
    return dtype


def infer(
    node: exp.Expr,
    column: Callable[[exp.Column], str | None],
    text: Callable[[exp.Expr], str],
    *,
    compat: bool,
    exponents: bool = False,
) -> str | None:
    """The type of an expression, if certain. `column` returns a column's type, `text` a node's own text; with
    `exponents` 1E3 is a decimal."""

    def of(child: exp.Expr | None) -> str | None:
        return infer(child, column, text, compat=compat, exponents=exponents) if child is not None else None

    match node:
        case exp.Column():
            return column(node)
        case exp.Paren():
            return of(node.this)
        case exp.Neg(this=exp.Literal(is_string=False) as number):  # the sign belongs to the literal
            return literal_type(number, decimals_are_double=compat, exponent_is_decimal=exponents, negative=True)
        case exp.Neg():
            inner = of(node.this)
            return inner if inner in _NUMERIC_ORDER or (inner or "").startswith("decimal(") else None
        case exp.Cast(this=exp.Literal() as number) if is_suffixed(node, text) and node.to.this == exp.DType.DECIMAL:
            return _decimal_type(number.name)
        case exp.Cast():
            return type_name(node.to, written(node.to, text))
        case exp.Literal() | exp.Null() | exp.Boolean():
            return literal_type(node, decimals_are_double=compat, exponent_is_decimal=exponents)
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.Exists():
            return "boolean"
        case exp.Add() | exp.Sub() if compat and _is_moment(node, of(node.left), of(node.right)):
            return "timestamp"  # OpenMLDB's timestamp and a number of milliseconds
        case exp.Add() | exp.Sub() if isinstance(node.right, exp.Interval):
            return _moved(of(node.left), node.right)
        case exp.Add(left=exp.Interval() as interval, right=moment):
            return _moved(of(moment), interval)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _wider(of(node.left), of(node.right))
        case exp.Div():
            sides = {of(node.left), of(node.right)}
            return "double" if sides <= set(_NUMERIC_ORDER) else None
        case exp.Case():
            branches = [*(item.args["true"] for item in node.args["ifs"]), node.args.get("default")]
            return _common([of(item) for item in branches if item is not None])
        case exp.If():
            return _common([of(item) for item in (node.args.get("true"), node.args.get("false")) if item is not None])
        case exp.Substring() | exp.Trim():
            return "string"
        case exp.HexString():
            return "binary"
        case exp.Bracket() if len(node.expressions) == 1:
            return _element(of(node.this), node.expressions[0])
        case exp.Dot(expression=exp.Identifier() as name):
            return field_type(of(node.this), (name.name,))
        case exp.Subquery(this=exp.Query()) | exp.Star():
            return None
        case exp.Window(this=exp.Anonymous() as call) if _keeps_type(call):
            return of(call.expressions[0])
        case exp.Anonymous() if is_period_function(node):
            return None
        case exp.Anonymous() if is_period_call(node):
            return {ALLEN_RELATION: "string", WRITTEN: None}.get(node.name.lower(), "boolean")
        case exp.Anonymous():
            return _function_type(node, of)
    return None


def _is_moment(node: exp.Add | exp.Sub, left: str | None, right: str | None) -> bool:
    """Whether a number is added to a timestamp or subtracted from it."""
    is_turned = isinstance(node, exp.Add) and left in INTEGERS and right == "timestamp"
    return is_turned or (left == "timestamp" and right in INTEGERS)


def _moved(moment: str | None, interval: exp.Interval) -> str | None:
    """The type of a time plus an INTERVAL literal: a date remains one if the unit is days, months or years."""
    if moment in ("timestamp", "timestamp_ntz"):
        return moment
    unit = interval.args.get("unit")
    whole = isinstance(unit, exp.Var) and unit.name.upper().removesuffix("S") in ("DAY", "MONTH", "YEAR")
    return "date" if moment == "date" and whole else None


def _keeps_type(call: exp.Anonymous) -> bool:
    """Whether a call over a window returns one of its first argument's values."""
    name, count = call.name.lower(), len(call.expressions)
    return count > 0 and (name in _FIRST_ARGUMENT or (name in ("lag", "lead", "at") and count < 3))


def _function_type(node: exp.Anonymous, of: Callable[[exp.Expr | None], str | None]) -> str | None:
    name = node.name.lower()
    if name in _FIXED:
        return _FIXED[name]
    arguments = [item for item in node.expressions if not isinstance(item, (exp.Star, exp.Distinct))]
    if name in _FIRST_ARGUMENT and arguments:
        return of(arguments[0])
    if name in ("coalesce", "nvl", "ifnull"):
        return _common([of(item) for item in arguments])
    if name == "struct" and arguments:
        return _struct(arguments, of)
    if name == "named_struct" and arguments:
        return _named_struct(arguments, of)
    if name in ("if", "nvl2") and len(arguments) == 3:
        return _common([of(item) for item in arguments[1:]])
    if name in ("element_at", "try_element_at", "get") and len(arguments) == 2:
        return _element(of(arguments[0]), arguments[1])
    if name in ("date_add", "date_sub") and len(arguments) == 2:
        return "date"
    if name in ("sum", "avg") and arguments:
        inner = of(arguments[0])
        if inner in ("float", "double") or (name == "avg" and inner in _NUMERIC_ORDER):
            return "double"
        return "bigint" if inner in _NUMERIC_ORDER else None
    return None


def _struct(items: list[exp.Expr], of: Callable[[exp.Expr | None], str | None]) -> str | None:
    """``struct(a.x, y AS z, 1)`` has the fields x, z and col3."""
    fields = []
    for number, item in enumerate(items, 1):
        inner = unwrapped(item.unalias())
        name = item.alias if isinstance(item, exp.Alias) else inner.name if isinstance(inner, exp.Column) else ""
        dtype = of(inner)
        if dtype is None or isinstance(getattr(inner, "this", None), exp.Star):
            return None
        fields.append(f"{_field_name(name or f'col{number}')}:{dtype}")
    return f"struct<{','.join(fields)}>"


def _named_struct(items: list[exp.Expr], of: Callable[[exp.Expr | None], str | None]) -> str | None:
    """``named_struct('x', a.x, 'y', 1)``."""
    names, values = items[::2], [of(item) for item in items[1::2]]
    plain = all(isinstance(name, exp.Literal) and name.is_string for name in names)
    if not plain or None in values or len(names) != len(values):
        return None
    return f"struct<{','.join(f'{_field_name(name.name)}:{kind}' for name, kind in zip(names, values, strict=True))}>"


def _element(dtype: str | None, key: exp.Expr) -> str | None:
    """The type of an element of an array, a value of a map, or a named field of a struct."""
    if dtype is None:
        return None
    if dtype.startswith("array<"):
        return dtype[len("array<") : -1]
    if dtype.startswith("map<"):
        return map_types(dtype)[1]
    return field_type(dtype, (key.name,)) if isinstance(key, exp.Literal) and key.is_string else None


def _field_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else quoted(name)


def _wider(left: str | None, right: str | None) -> str | None:
    """Spark's type of arithmetic on two plain numbers."""
    if left not in _NUMERIC_ORDER or right not in _NUMERIC_ORDER:
        return None
    if {left, right} == {"bigint", "float"} or {left, right} == {"int", "float"}:
        return None  # depends on the ANSI mode
    return max(left, right, key=_NUMERIC_ORDER.index)


def _common(types: list[str | None]) -> str | None:
    known = {item for item in types if item != "void"}
    return known.pop() if len(known) == 1 else None
