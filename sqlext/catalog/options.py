"""How files are to be read, where their names and a look at them do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from sqlext_planner.errors import ConfigurationError, SqlExtError

_wrong_option = partial(ConfigurationError, condition="table-files")

_KNOWN = "delimiter, header, multiline, types"
_TRUTH = {"true": True, "false": False}
_TABS = ("tab", "\\t")


@dataclass(frozen=True)
class ReadOptions:
    """What is said of the files of a table; None is found by looking at them.

    delimiter  the character between the values of a line of CSV
    header     whether the first line of each CSV file names its columns; without, they are _c0, _c1, ...
    multiline  whether a quoted value of CSV may hold line breaks
    types      names and Spark types of columns that are not to be inferred (CSV, JSON, names of partition folders)
    """

    delimiter: str | None = None
    header: bool | None = None
    multiline: bool | None = None
    types: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        delimiter: str | None = None,
        header: bool | None = None,
        multiline: bool | None = None,
        types: str | Mapping[str, str] | None = None,
    ) -> ReadOptions:
        """Checked options; `types` is `{"uid": "string"}` or `"uid string, price decimal(10,2)"`.

        Raises ConfigurationError.
        """
        if delimiter is not None:
            delimiter = "\t" if delimiter.lower() in _TABS else delimiter
            if len(delimiter) != 1 or delimiter in '"\r\n':
                raise _wrong_option(
                    f"the delimiter {delimiter!r} is not one character", help="give one such as ';' or '|', or tab"
                )
        return cls(delimiter, header, multiline, _types(types))

    def type_of(self, column: str) -> str | None:
        """The type that was given for a column."""
        return next((dtype for name, dtype in self.types if name.lower() == column.lower()), None)


NONE = ReadOptions()


@dataclass(frozen=True)
class DataFiles:
    """Where the files of a table are, and how to read them. `others` would be the same table."""

    path: str | Path
    options: ReadOptions = NONE
    others: tuple[str, ...] = ()

    def check(self, name: str) -> None:
        """Raises ConfigurationError if other files have the name of this table, too."""
        if self.others:
            shown = " and ".join(f"'{file}'" for file in (Path(self.path).name, *self.others))
            raise ConfigurationError(
                f"{shown} would {'both' if len(self.others) == 1 else 'all'} be table '{name}'",
                condition="duplicate-name",
                help="rename one of them",
            )


@dataclass(frozen=True)
class FolderOptions:
    """The options of the tables of a folder: those of one table (by its lowered name), over those of all."""

    of_all: ReadOptions = NONE
    of_one: tuple[tuple[str, ReadOptions], ...] = ()

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> FolderOptions:
        """From `delimiter=;` (all tables) and `orders.header=false` (one). Raises ConfigurationError."""
        given: dict[str, dict[str, str]] = {}
        for text in texts:
            key, sign, value = text.partition("=")
            table, _, name = key.rpartition(".")
            if not sign or name not in {field.name for field in fields(ReadOptions)}:
                raise _wrong_option(
                    f"--read {text}: not an option of the form [TABLE.]OPTION=VALUE",
                    help=f"options are {_KNOWN}: --read delimiter=';', --read 'orders.types=uid string'",
                )
            given.setdefault(table.lower(), {})[name] = value
        made = {
            table: ReadOptions.of(
                values.get("delimiter"), _truth("header", values), _truth("multiline", values), values.get("types")
            )
            for table, values in given.items()
        }
        return cls(made.pop("", NONE), tuple(made.items()))

    def of(self, table: str) -> ReadOptions:
        """The options of one table."""
        own = dict(self.of_one).get(table.lower(), NONE)
        given = {field.name: getattr(own, field.name) for field in fields(ReadOptions)}
        return replace(self.of_all, **{name: value for name, value in given.items() if value not in (None, ())})


NO_OPTIONS = FolderOptions()


def _truth(name: str, values: Mapping[str, str]) -> bool | None:
    text = values.get(name)
    if text is None:
        return None
    if text.lower() not in _TRUTH:
        raise _wrong_option(f"--read {name}={text}: neither true nor false", help=f"write {name}=true")
    return _TRUTH[text.lower()]


def _types(given: str | Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Names with types in Spark's simple form."""
    from sqlext_planner.expressions.types import normalize

    if not given:
        return ()
    pairs = given.items() if not isinstance(given, str) else _columns(given)
    try:
        return tuple((name, normalize(dtype)) for name, dtype in pairs)
    except SqlExtError as error:
        raise ConfigurationError(
            f"the types of a table: {error.message}", condition="unknown-type", help=error.help
        ) from None


def _columns(text: str) -> list[tuple[str, str]]:
    """`a int, b decimal(10,2)` as pairs."""
    from sqlext.catalog.ddl import read_ddl

    try:
        (columns,) = read_ddl(f"CREATE TABLE t ({text})").values()
    except SqlExtError as error:
        raise ConfigurationError(
            f"'{text}' is no list of columns with types: {error.message}",
            condition="unknown-type",
            help="write for example: uid string, price decimal(10,2)",
        ) from None
    return list(columns.items())
