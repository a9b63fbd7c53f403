"""The options of a suite, written once: a dataclass whose fields are the flags of `python -m benchmarks SUITE`."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from sqlext_planner.errors import AnalysisError

from benchmarks.harness.engines import Engines
from benchmarks.harness.runner import Limits

#: Called with the name of each step while a suite's data are made.
Told = Callable[[str], None]


def untold(_: str) -> None:
    """For those who do not want to know."""


def option(default: Any, help: str, **words: Any) -> Any:
    """A field of options with its help. `words`: `flag`, if it is not the field's name; `min` and `max`; `scaled`, if
    --scale multiplies it; `read`, a function from the text and the flag to the value of a list, and `shown`, the text
    of the default."""
    return field(default=default, metadata={"help": help, **words})


def names(text: str, _: str = "") -> list[str]:
    """`a, b` -> ["a", "b"]."""
    return [name.strip() for name in text.split(",")]


def numbers(text: str, flag: str) -> list[int]:
    """`1000,10_000` -> [1000, 10000]. Raises BadParameter for anything else."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers", param_hint=flag) from error
    if any(number < 1 for number in found):
        raise typer.BadParameter("numbers start at 1", param_hint=flag)
    return found


#: Help of options that each suite has for itself.
WHO = "Who takes part."
_DATA = "Keep the generated data here; by default they are deleted after the run."


@dataclass(frozen=True, kw_only=True)
class Options:
    """What all suites can be told. Fields of a suite's own that `option` makes are flags before these."""

    cores: int = option(2, "Cores of each engine.", min=1)
    memory: str = option("8g", "Heap of Spark's JVM.")
    data: Path | None = option(None, _DATA)

    #: The suite's own defaults; None: it measures nothing that could be repeated.
    LIMITS: ClassVar[Limits | None] = Limits()

    def shown(self, *names: str) -> dict[str, object]:
        """Options that the report keeps, by their names."""
        found = {name: getattr(self, name) for name in names}
        return {name: list(value) if isinstance(value, list | tuple) else value for name, value in found.items()}


@dataclass(frozen=True, kw_only=True)
class ScaledOptions(Options):
    """Options of a suite that multiplies the numbers of rows itself."""

    scale: float = option(1.0, "Factor for the number of rows.", min=0.0)


def check(what: str, chosen: Sequence[str], known: Collection[str]) -> None:
    """Raise AnalysisError for the first name that is not known."""
    for name in chosen:
        if name not in known:
            raise AnalysisError(
                f"there is no {what} '{name}'", condition="command-line", help="choose from " + ", ".join(known)
            )


class Workplace:
    """The engines of a suite, and the folder of its data: the one of the options, or a temporary one."""

    def __init__(self, options: Options, engines: Engines | None = None) -> None:
        self.engines = engines or Engines(options.cores, options.memory)
        self.root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
        self._is_temporary = options.data is None

    def close(self) -> None:
        """Stop the engines, and remove a temporary folder."""
        self.engines.close()
        if self._is_temporary:
            shutil.rmtree(self.root, ignore_errors=True)


#: Flags that many suites have, in the order of the help.
_REPEAT = "Timed runs of each contestant, after warm-ups; more for cases that need them."
_CAP = "A contestant whose warm-up takes longer runs only once; the warm-up then counts."
_SHARED = ("cores", "memory", "scale", "data")


def command(
    options: type[Options], run: Callable[[Any, Limits, Path | None, Path | None], None]
) -> Callable[..., None]:
    """A function with a parameter for each flag, as typer reads them. It calls `run` with the options, the limits, and
    the files for the report and for the chart."""
    every = {item.name: item for item in fields(options) if item.metadata}
    scale_is_own = "scale" in every and not issubclass(options, ScaledOptions)
    own = [item for name, item in every.items() if name not in _SHARED or (name == "scale" and scale_is_own)]
    hints = get_type_hints(options)
    limits = options.LIMITS

    parameters = [_parameter(item, hints[item.name]) for item in own]
    if limits is not None:
        parameters += [
            _flag("repeat", int, limits.repeat, help=_REPEAT, min=1),
            _flag("cap_seconds", float | None, limits.cap_seconds, help=_CAP),
            _flag("limit_seconds", float, limits.limit_seconds, help="A run that takes longer is stopped.", min=1.0),
            *(_parameter(every[name], hints[name]) for name in ("cores", "memory")),
        ]
    if not scale_is_own:
        parameters.append(_parameter(ScaledOptions.__dataclass_fields__["scale"], float))
    chart = "Draw the chart to this file (.png, .svg); by default next to the JSON file."
    parameters += [
        _flag("json", Path | None, None, "--json", help="Write every run to this file."),
        _flag("chart", Path | None, None, help=chart),
        _parameter(every["data"], hints["data"]),
    ]

    def body(**given: Any) -> None:
        factor = 1.0 if "scale" in every else given["scale"]
        values = {
            name: _value(item, hints[name], given[_name(item)], factor)
            for name, item in every.items()
            if _name(item) in given
        }
        chosen = {name: given[name] for name in ("repeat", "cap_seconds", "limit_seconds") if name in given}
        run(options(**values), Limits(**chosen) if chosen else Limits(repeat=1), given["json"], given["chart"])

    body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    body.__annotations__ = {}
    return body


def _name(item: Field[Any]) -> str:
    return str(item.metadata.get("flag", item.name))


def _flag(name: str, kind: Any, default: Any, *words: str, **more: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(*words, **more)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameter(item: Field[Any], kind: Any) -> inspect.Parameter:
    """The flag of a field. Lists are texts with commas."""
    bounds = {word: item.metadata[word] for word in ("min", "max") if word in item.metadata}
    if _reader(item, kind) is None:
        return _flag(_name(item), kind, item.default, help=item.metadata["help"], **bounds)
    shown = item.metadata.get("shown") or ",".join(map(str, item.default))  # type: ignore[arg-type]
    return _flag(_name(item), str, shown, help=item.metadata["help"])


def _reader(item: Field[Any], kind: Any) -> Callable[[str, str], Any] | None:
    """What reads the text of a list; None for other options."""
    usual: dict[Any, Callable[[str, str], Any]] = {Sequence[str]: names, Sequence[int]: numbers}
    return item.metadata.get("read") or usual.get(kind)


def _value(item: Field[Any], kind: Any, given: Any, factor: float) -> Any:
    read = _reader(item, kind)
    value = given if read is None else read(given, "--" + _name(item))
    if not item.metadata.get("scaled"):
        return value
    return [_scaled(one, factor) for one in value] if read is not None else _scaled(value, factor)


def _scaled(rows: int, factor: float) -> int:
    return max(1, round(rows * factor))
