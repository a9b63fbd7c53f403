"""Where a user says that data are: a path, a pattern of paths, or a URI; what names of files and tables say.

Also keeps what was read from files as long as the files stay the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from sqlext_planner.errors import ConfigurationError, masked

_file_error = partial(ConfigurationError, condition="file-access")

#: A scheme and a slash: `a:b.csv` is a file in this folder.
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*)", re.DOTALL)
_WILD = re.compile(r"[*?\[{]")
#: What Hadoop takes for a pattern; a backslash before one of them makes it a plain character.
_SPECIAL = re.compile(r"([\\*?\[\]{}])")
#: Names that a pattern with choices may stand for, steps to find them, and its length in characters.
_MOST, _MOST_STEPS, _LONGEST = 1_000, 4_000, 4_096
_SHOWN = 100
_THREE = "write file:///folder/name with three slashes, or the plain path"


@dataclass(frozen=True)
class LocalData:
    """Files and folders of this machine, as `text` names them.

    `base` is the folder from which the names of partition folders count, where that is not each of `roots`.
    """

    text: str
    roots: tuple[Path, ...]
    base: Path | None = None


@dataclass(frozen=True)
class RemoteData:
    """A URI that Spark reads through Hadoop; it may be a pattern."""

    uri: str
    scheme: str

    def __str__(self) -> str:
        return masked(self.uri)


def located(path: Path | str) -> LocalData | RemoteData:
    """What a path, a pattern (`2024-*.parquet`, `{a,b}/*.csv`) or a URI means. A path that exists is no pattern.

    Raises ConfigurationError for a path that a `Path` has spoilt, for a pattern that nothing matches, and for a `file:`
    URI with a host.
    """
    text = os.fspath(path)
    match = None if os.path.lexists(text) else _URI.fullmatch(text)
    if match is not None and match["scheme"].lower() == "file":
        return _local(_file_path(text, match["rest"]), text)
    return remote_data(text) or _local(text, text)


def written_at(text: str) -> Path | RemoteData:
    """Where something is to be written. Raises ConfigurationError as `located`."""
    match = _URI.fullmatch(text)
    if match is not None and match["scheme"].lower() == "file":
        return Path(_file_path(text, match["rest"]))
    return remote_data(text) or Path(text).expanduser()


def remote_data(text: str) -> RemoteData | None:
    """What a URI of another machine means; None for any other text, and for one that is a file here."""
    match = None if os.path.lexists(text) else _URI.fullmatch(text)
    if match is None:
        return None
    scheme, rest = match["scheme"].lower(), match["rest"]
    if not rest.startswith("//"):
        raise _file_error(
            f"'{text}' has one slash after '{scheme}:'",
            help=f"write {scheme}://...; give it as a string: a Path makes one slash of two",
        )
    return RemoteData(text, scheme)


def spark_path(path: Path) -> str:
    """One local path as a URI without patterns: a file of this machine whatever Spark's default file system is.
    (Hadoop's URIs are not percent-encoded.)"""
    return "file://" + _SPECIAL.sub(r"\\\1", str(path.absolute()))


def _file_path(text: str, rest: str) -> str:
    if not rest.startswith("//"):
        return rest
    host, slash, below = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise _file_error(f"'{text}' names a host, '{host}', but file: URIs are of this machine", help=_THREE)
    return slash + below


def _local(path: str, text: str) -> LocalData:
    if os.path.lexists(path) or not _WILD.search(path):
        return LocalData(path, (Path(path),))
    found = sorted({match for one in _alternatives(path) for match in _matching(one)}, key=str)
    if not found:
        raise _file_error(f"nothing matches '{shortened(text)}'", help="check the pattern: * ? [abc] {a,b}")
    return LocalData(path, tuple(found), _base(path))


def _matching(pattern: str) -> Iterator[Path]:
    parts = Path(pattern.replace("[^", "[!")).parts
    place = _first_wild(parts)
    if any("**" in part for part in parts):
        raise _file_error(
            f"'**' in the pattern '{shortened(pattern)}' is none of Spark's patterns",
            help="write a * for each level of folders, or the folder itself: its files are found at any depth",
        )
    if place == len(parts):
        found = [Path(pattern)] if os.path.lexists(pattern) else []
    else:
        found = list(Path(*parts[:place]).glob("/".join(parts[place:])))
    return (path for path in found if not is_hidden(path.name))


def _first_wild(parts: Sequence[str]) -> int:
    return next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))


def _base(pattern: str) -> Path | None:
    """Above a pattern for partition folders (`events/dt=2024-*`): the rows then have that column as in `events`."""
    parts = Path(pattern).parts
    place = _first_wild(parts)
    return Path(*parts[:place]) if "=" in parts[place] else None


def _alternatives(pattern: str) -> list[str]:
    """The pattern for each choice of `{a,b}`, which may be nested. Raises ConfigurationError for too many."""
    done: list[str] = []
    waiting = [pattern] if len(pattern) <= _LONGEST else []
    steps = 0
    while waiting:
        one = waiting.pop()
        opening = one.find("{")
        closing = _closing(one, opening)
        if opening < 0 or closing is None:
            done.append(one)
        else:
            waiting += [one[:opening] + choice + one[closing + 1 :] for choice in _choices(one[opening + 1 : closing])]
        steps += 1
        if steps > _MOST_STEPS or len(waiting) + len(done) > _MOST:
            waiting, done = [], []
    if not done:
        raise _file_error(
            f"the pattern '{shortened(pattern)}' stands for more than {_MOST:,} names, or is nested too deeply",
            help="write * where the names differ, or register the folder",
        )
    return done


def _closing(pattern: str, opening: int) -> int | None:
    depth = 0
    for place in range(max(0, opening), len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if depth == 0:
            return place
    return None


def _choices(text: str) -> list[str]:
    choices, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            choices.append("")
        else:
            choices[-1] += letter
    return choices


def shortened(text: str) -> str:
    """A long text for a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def is_hidden(name: str) -> bool:
    """Whether Spark passes over files and folders of this name: `_SUCCESS` and `.crc`, but not the partition `_k=1`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def last_part(name: str) -> str:
    """The last part of a name whose parts are joined by dots, without its backticks."""
    found = re.search(r"`((?:[^`]|``)*)`$", name)
    return found[1].replace("``", "`") if found is not None else name.rpartition(".")[2]


#: Suffix -> format, as Spark calls it. JSON files hold one object a line.
FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".bed": "csv",
    ".orc": "orc",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".avro": "avro",
}
TITLES = {"parquet": "Parquet", "csv": "CSV", "orc": "ORC", "json": "JSON", "avro": "Avro"}
LAYOUT = "tables are NAME.parquet (.csv, .tsv, .bed, .orc, .json, .avro), or folders NAME/ of such files"
#: Suffixes that may follow those of text: Spark and pyarrow read the files as they are.
COMPRESSIONS = (".gz", ".bz2")
#: Formats of text, whose files do not say the types of their columns.
INFERRED = ("csv", "json")


def format_of(name: str) -> str | None:
    """The format of a file by its name; None for any other file."""
    return FORMATS.get(suffix_of(name).removesuffix(compression_of(name)))


def suffix_of(name: str) -> str:
    """`Orders.PARQUET` -> `.parquet`; `orders.csv.gz` -> `.csv.gz`."""
    stem, suffix = _split(name)
    inner = _split(stem)[1]
    return inner + suffix if suffix in COMPRESSIONS and FORMATS.get(inner) in INFERRED else suffix


def compression_of(name: str) -> str:
    """`orders.csv.gz` -> `.gz`; '' for a file that is not compressed as a whole."""
    suffix = suffix_of(name)
    return next((ending for ending in COMPRESSIONS if suffix.endswith(ending)), "")


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    return (stem, f".{suffix.lower()}") if dot and stem else (name, "")


def table_name(name: str) -> str:
    """The table that a file or folder of this name is."""
    return name[: -len(suffix_of(name))] if format_of(name) else name


def titles(formats: Collection[str]) -> str:
    """`CSV and Parquet`."""
    return " and ".join(sorted((TITLES[name] for name in formats), key=list(TITLES.values()).index))


Result = TypeVar("Result")
Args = TypeVarTuple("Args")
#: A file as it was: its path, device and inode, size, and when it was written (nanoseconds).
_Stamp = tuple[Path, int, int, int, int]


def kept_by_files(
    size: int,
) -> Callable[[Callable[[Sequence[Path], *Args], Result]], Callable[[Sequence[Path | str], *Args], Result]]:
    """A decorator for functions of files (and of hashable arguments) whose last `size` results are kept.

    A file that was written or replaced since is read again; one without readable metadata is left to the function.
    """

    def decorate(
        function: Callable[[Sequence[Path], *Args], Result],
    ) -> Callable[[Sequence[Path | str], *Args], Result]:
        @lru_cache(maxsize=size)
        def known(stamps: tuple[_Stamp, ...], args: tuple[Any, ...]) -> Result:
            return function([stamp[0] for stamp in stamps], *args)

        def read(files: Sequence[Path | str], *args: *Args) -> Result:
            paths = [Path(file) for file in files]
            try:
                stamps = tuple(map(_stamp, paths))
            except OSError:
                return function(paths, *args)
            return known(stamps, args)

        read.__doc__ = function.__doc__
        return read

    return decorate


def _stamp(file: Path) -> _Stamp:
    found = file.stat()
    return file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
