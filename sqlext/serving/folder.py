"""A deployment as a folder of text: what `sqlext deploy` writes and `sqlext serve` reads.

deployment.json  name, settings, the fingerprint, the format's version, the digests of the other files
query.sql        the statement as it was written
tables.json      the columns of its tables with their Spark types, in the form of `--schema`
plan.txt         what is kept and what is computed, for people
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sqlext_planner import __version__
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.serving.lowering import ServingSettings

#: The form of the folder. A reader takes its own form and all before it.
FORMAT = 1
MANIFEST, TEXT, TABLES, PLAN = "deployment.json", "query.sql", "tables.json", "plan.txt"
#: What may stand in an address and be the name of a folder.
_NAME = re.compile(r"\w[\w.-]{0,99}")

_folder_error = partial(ConfigurationError, condition="deployment-folder")
_AGAIN = "deploy the statement again: sqlext deploy FILE.sql -o DIR"


def checked_name(name: str) -> str:
    """The name. Raises ConfigurationError for one that cannot be part of an address."""
    if _NAME.fullmatch(name) is None:
        raise _folder_error(
            f"'{name[:120]}' cannot be the name of a deployment",
            help="a name has letters, digits and _ . -, 100 at most, and begins with a letter, a digit or _",
        )
    return name


@dataclass(frozen=True)
class SavedDeployment:
    """What a folder has of a deployment: all that its answers depend on, and its name."""

    name: str
    sql: str
    tables: Mapping[str, Mapping[str, str]]
    request: str
    settings: ServingSettings
    lateness: int | None
    compat: str | None

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digits of what the answers depend on: text, columns, settings, and the form of the folder."""
        tables = sorted((table, list(columns.items())) for table, columns in self.tables.items())
        return _digest(json.dumps([FORMAT, self.sql, tables, sorted(self.options.items())]))[:32]

    @property
    def options(self) -> dict[str, Any]:
        """What else than text and columns they depend on."""
        return {
            "request": self.request,
            "lateness": self.lateness,
            "compat": self.compat,
            "ansi": self.settings.ansi,
            "time_zone": self.settings.time_zone,
            "future": self.settings.future,
            "future_bound": self.settings.future_bound,
        }


def write(deployment: SavedDeployment, plan: str, folder: Path) -> None:
    """Write a deployment, with a plan for people; another one in the folder is replaced. Raises ConfigurationError."""
    checked_name(deployment.name)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise _folder_error(f"{folder} holds something else than a deployment", help="give an empty or a new folder")
    tables = {table: dict(columns) for table, columns in deployment.tables.items()}
    texts = {TEXT: deployment.sql, TABLES: json.dumps(tables, indent=2, ensure_ascii=False) + "\n", PLAN: plan}
    manifest = {
        "format": FORMAT,
        "name": deployment.name,
        "fingerprint": deployment.fingerprint,
        "settings": deployment.options,
        "files": {name: _digest(text) for name, text in texts.items()},
        "written_by": __version__,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)  # a folder that was written in part is none
        for name, text in {**texts, MANIFEST: json.dumps(manifest, indent=2) + "\n"}.items():
            beside = folder / f".{name}.new"
            beside.write_bytes(text.encode())
            beside.replace(folder / name)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written: {error.strerror}", condition="file-access", help="check the path"
        ) from error


def read(folder: Path) -> SavedDeployment:
    """What a folder has. Raises ConfigurationError for one that was changed, that a newer version wrote, or that is
    none."""
    manifest = _manifest(folder)
    texts = {name: _read(folder / name) for name in (TEXT, TABLES, PLAN)}
    for name, text in texts.items():
        if _digest(text) != manifest["files"].get(name):
            raise _folder_error(f"{folder / name} was changed after it was deployed", help=_AGAIN)
    options = manifest["settings"]
    try:
        deployment = SavedDeployment(
            checked_name(manifest["name"]),
            texts[TEXT],
            json.loads(texts[TABLES]),
            options["request"],
            ServingSettings(options["ansi"], options["time_zone"], options["future"], options["future_bound"]),
            options["lateness"],
            options["compat"],
        )
        is_same = deployment.fingerprint == manifest["fingerprint"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _folder_error(f"{folder / MANIFEST} lacks what a deployment needs", help=_AGAIN) from error
    if not is_same:
        raise _folder_error(f"{folder / MANIFEST} was changed: its fingerprint is of another deployment", help=_AGAIN)
    return deployment


def _manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise _folder_error(f"{folder} is no deployment: it has no {MANIFEST}", help=_AGAIN)
    try:
        manifest = json.loads(_read(path))
        version = manifest["format"]
        whole = isinstance(manifest["files"], dict) and isinstance(manifest["settings"], dict)
        whole = whole and all(isinstance(manifest[name], str) for name in ("name", "fingerprint"))
    except (ValueError, KeyError, TypeError, RecursionError):
        version, whole = 0, False
    if isinstance(version, int) and version > FORMAT:
        raise _folder_error(
            f"{folder} was written by a newer version: its format is {version}, and this one reads {FORMAT}",
            help="upgrade this package, or deploy the statement again with it",
        )
    if not whole or version != FORMAT:
        raise _folder_error(f"{path} is damaged", help=_AGAIN)
    return dict(manifest)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise _folder_error(f"{path} cannot be read: {error.strerror}", help=_AGAIN) from error
    except UnicodeDecodeError:
        raise _folder_error(f"{path} was changed after it was deployed", help=_AGAIN) from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
