"""What a row of the table of window functions is."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sqlext_operators.window.functions.types import FunctionTypeError, TypeRule, sql_name
from sqlext_operators.window.spec import Scalar

if TYPE_CHECKING:
    from sqlext_operators.window.evaluators.base import Evaluator

#: Python classes of the literals of each kind.
_LITERALS: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a window function.

    `kind` is "value" (any expression), "condition" (a boolean expression), or the kind of a literal, passed in
    `Call.constants`: "integer", "boolean", "number" (integer or fraction) or "string"; a number lies between
    `minimum` and `maximum`, NULL is a literal too if `nullable`, and `default` replaces one that is left out.
    A `variadic` parameter, always the last one, takes one or more arguments.
    """

    name: str
    kind: Literal["value", "condition", "integer", "boolean", "number", "string"] = "value"
    optional: bool = False
    variadic: bool = False
    minimum: int | None = None
    maximum: int | None = None
    nullable: bool = False
    default: Scalar = None

    @property
    def is_constant(self) -> bool:
        """Whether the argument is a literal rather than a column."""
        return self.kind not in ("value", "condition")


@dataclass(frozen=True)
class CallSite:
    """What an evaluator is made from: one call, with its types and the window's nature.

    `types` are the types of `Call.args`, `constants` has one entry for each constant parameter (defaults filled
    in), `unbounded` says that the frame never loses a row (UNBOUNDED PRECEDING without MAXSIZE). Timestamps become
    text in `time_zone`. `openmldb` as in `Call`.
    """

    function: WindowFunction
    types: tuple[pa.DataType, ...]
    constants: tuple[Scalar, ...]
    result_type: pa.DataType
    unbounded: bool
    ansi: bool
    time_zone: str = "UTC"
    openmldb: bool = False

    @property
    def condition(self) -> int | None:
        """Which of the arguments is the condition; None if there is none."""
        return self.function.condition_place(len(self.types))


@dataclass(frozen=True)
class Evaluation:
    """A reference to an evaluator's class, or to a function that makes one, imported on first use: planning must not
    wait for numba (0.4 s). `options` are its arguments after the call, if several functions share it."""

    module: str
    factory: str
    options: Mapping[str, Scalar] = field(default_factory=dict, hash=False)

    def create(self, site: CallSite) -> Evaluator:
        """The evaluator of one call."""
        module = importlib.import_module(f"sqlext_operators.window.evaluators.{self.module}")
        evaluator: Evaluator = getattr(module, self.factory)(site, **self.options)
        return evaluator


@dataclass(frozen=True)
class WindowFunction:
    """One window function: how it is called, its types, its meaning, how it is evaluated.

    accepts_star  the first value may be ``*``: it is then left out of `Call.args`, and every row counts
    positional    the function looks at the partition's sequence, not at the frame (lag, at)
    needs_order   the function depends on the rows' order: it has no meaning with GROUP BY
    internal      made by the analyzer, not callable from SQL
    null_treatment  it may be called with IGNORE NULLS: by its parameter ignore_null, or else over rows without a NULL
    distinct_form  the function that computes it over distinct values (DISTINCT); None if there is none
    openmldb_rule  the types of the result in OpenMLDB, where they are not Spark's
    openmldb_refuses  first-argument types that OpenMLDB refuses though they make sense (compat="openmldb" refuses them)
    spark_names   what Spark calls it besides; only calls with OVER have these names
    of_spark      one of Spark's own aggregates, with Spark's meaning: without OVER it is Spark's, in every mode
    several       the function that takes all constants of an array in place of its second parameter; where there is a
                  third argument, that parameter's name follows its own: percentiles_frequency
    """

    name: str
    parameters: tuple[Parameter, ...]
    type_rule: TypeRule
    evaluation: Evaluation
    doc: str
    aliases: tuple[str, ...] = ()
    accepts_star: bool = False
    positional: bool = False
    needs_order: bool = False
    internal: bool = False
    null_treatment: bool = False
    distinct_form: str | None = None
    openmldb_rule: TypeRule | None = None
    openmldb_refuses: frozenset[pa.DataType] = frozenset()
    spark_names: tuple[str, ...] = ()
    of_spark: bool = False
    several: str | None = None

    @property
    def written(self) -> str:
        """What a statement calls it: an order WITHIN GROUP is no part of the name there."""
        return self.name.removesuffix("_within_group")

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it is called over a window."""
        return (self.name, *self.aliases, *self.spark_names)

    @property
    def group_names(self) -> tuple[str, ...]:
        """What it is called without OVER, over a group's rows."""
        return () if self.of_spark else (self.name, *self.aliases)

    @property
    def column_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that are passed in `Call.args`."""
        return tuple(parameter for parameter in self.parameters if not parameter.is_constant)

    @property
    def constant_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that are passed in `Call.constants`."""
        return tuple(parameter for parameter in self.parameters if parameter.is_constant)

    def condition_place(self, count: int) -> int | None:
        """Which of `count` arguments chooses the rows by being true; None if there is no condition."""
        columns = self.column_parameters
        places = [i for i, parameter in enumerate(columns) if parameter.kind == "condition"]
        left_out = 1 if self.accepts_star and count < len(columns) else 0  # the value of count_where(*, condition)
        return places[0] - left_out if places else None

    def result_type(self, arg_types: Sequence[pa.DataType], *, openmldb: bool = False) -> pa.DataType:
        """The type of the result for arguments of these types (`Call.args`: no literals, nothing for ``*``): Spark's
        for its functions, or OpenMLDB's.

        Raises FunctionTypeError for a wrong number of arguments or a type that the function does not take.
        """
        columns = self.column_parameters
        most = None if columns and columns[-1].variadic else len(columns)
        least = sum(not column.optional for column in columns) - (1 if self.accepts_star else 0)
        if len(arg_types) < least or (most is not None and len(arg_types) > most):
            raise FunctionTypeError(
                f"{self.name}() does not take {len(arg_types)} arguments", f"write {self.signature}"
            )
        rule = self.openmldb_rule if openmldb and self.openmldb_rule is not None else self.type_rule
        place = self.condition_place(len(arg_types))
        if place is None:
            return rule(self.written, arg_types)
        condition = arg_types[place]
        if not (pa.types.is_boolean(condition) or pa.types.is_null(condition)):
            message = f"the condition of {self.written}() must be boolean, not {sql_name(condition)}"
            raise FunctionTypeError(message, "write a comparison, for example x > 0", place)
        try:
            return rule(self.written, [*arg_types[:place], *arg_types[place + 1 :]])
        except FunctionTypeError as error:
            if error.argument is not None and error.argument >= place:
                error.argument += 1
            raise

    def complete_constants(self, constants: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The constants with the defaults of those left out. Raises FunctionTypeError for a bad one."""
        parameters = self.constant_parameters
        if parameters and parameters[-1].variadic:
            parameters = (*parameters, *parameters[-1:] * (len(constants) - len(parameters)))
        if len(constants) > len(parameters):
            raise FunctionTypeError(f"too many literal arguments for {self.name}()", f"write {self.signature}")
        for parameter, value in zip(parameters, constants, strict=False):
            self._check_constant(parameter, value)
        missing = parameters[len(constants) :]
        for parameter in missing:
            if not parameter.optional:
                raise FunctionTypeError(f"{self.name}() needs {parameter.name}", f"write {self.signature}")
        return (*constants, *(parameter.default for parameter in missing))

    def _check_constant(self, parameter: Parameter, value: Scalar) -> None:
        if value is None and parameter.nullable:
            return
        if not isinstance(value, _LITERALS[parameter.kind]) or isinstance(value, bool) != (parameter.kind == "boolean"):
            message = f"{parameter.name} of {self.name}() must be a literal {parameter.kind}, not {value!r}"
            raise FunctionTypeError(message, f"write {self.signature}")
        if value is None or isinstance(value, str):
            return
        if parameter.minimum is not None and not value >= parameter.minimum:
            message = f"{parameter.name} of {self.name}() must be at least {parameter.minimum}, not {value}"
            raise FunctionTypeError(message, f"write {self.signature}")
        if parameter.maximum is not None and not value <= parameter.maximum:
            message = f"{parameter.name} of {self.name}() must be at most {parameter.maximum}, not {value}"
            raise FunctionTypeError(message, f"write {self.signature}")

    @property
    def signature(self) -> str:
        """How the function is written: ``lag(x[, n])``."""
        text = ""
        for i, parameter in enumerate(self.parameters):
            name = f"{parameter.name} or *" if i == 0 and self.accepts_star else parameter.name
            name += ", ..." if parameter.variadic else ""
            separator = ", " if i else ""
            text += f"[{separator}{name}]" if parameter.optional else f"{separator}{name}"
        return f"{self.name}({text})"
