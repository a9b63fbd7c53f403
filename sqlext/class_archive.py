"""The class-data archive that an embedded Spark's Java starts from: Spark's classes as Java has them in memory.

A Java that starts Spark reads, checks and links its classes from more than 200 jars, which takes half of the start.
When it ends, Java can write down what it made of them (class-data sharing, JEP 350; from 25 on its AOT cache, JEP 514),
and map that file at the next start. The file is in the user's cache, named after the Java and the jars that it was made
with; and Java itself compares the jars, so a wrong one is never used: the start is then as without.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

#: The setting: an environment variable, since Java starts before there are any others. `off`: none is made or used.
SWITCH = "SQLEXT_CLASS_ARCHIVE"
#: The first Java that adds an application's classes to its own archive when it ends, and the first with an AOT cache.
_FIRST, _FIRST_AOT = 13, 25
#: Archives of this many Javas and Sparks are kept: those used last.
_KEPT = 3
#: Part of the names: another one where files of before should not be used.
_FORM = "1"


@dataclass(frozen=True)
class ClassArchive:
    """Where the archive of a Java and a Spark is, if it is there.

    `path` is the file; `version` is Java's major version.
    """

    path: Path
    version: int

    @property
    def is_there(self) -> bool:
        """Whether it was made."""
        return self.path.is_file()

    @property
    def failure(self) -> str | None:
        """Why none can be made, if that was tried."""
        with suppress(OSError):
            return self._note.read_text(encoding="utf-8")
        return None

    def described(self) -> str:
        """Its size and its place, or why there is none."""
        if self.is_there:
            return f"{self.path.stat().st_size / 1e6:.0f} MB in {self.path}"
        return f"none: {self.failure or 'it was not made yet'}"

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".failed")

    def using(self) -> list[str]:
        """Arguments of a Java that starts from it; none if it is not there. Java says nothing if it does not fit."""
        if not self.is_there:
            return []
        with suppress(OSError):  # another user's
            os.utime(self.path)
        if self.version >= _FIRST_AOT:
            return [f"-XX:AOTCache={self.path}", "-Xlog:aot*=off"]
        return [f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds*=off"]

    def making(self, file: Path) -> list[str]:
        """Arguments of a Java that writes an archive to `file` when it ends."""
        if self.version >= _FIRST_AOT:
            return [f"-XX:AOTCacheOutput={file}", "-Xlog:aot*=off"]
        return [f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off"]

    @contextmanager
    def made(self) -> Iterator[Path | None]:
        """A file to write the archive to, which takes its place after the block; None while another process makes it.
        If the block leaves no file, that is noted, and nobody tries again by himself."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield None
                return
            self._remove_old()
            file = self.path.with_suffix(".new")
            file.unlink(missing_ok=True)
            try:
                yield file
                if file.is_file() and file.stat().st_size > 0:
                    file.replace(self.path)
                    self._note.unlink(missing_ok=True)
                else:
                    self._note.write_text(f"Java {self.version} made none", encoding="utf-8")
            finally:
                file.unlink(missing_ok=True)

    def _remove_old(self) -> None:
        """Leave room for one: archives are large, and those of former Sparks are not used again."""
        with suppress(OSError):
            others = sorted(self.path.parent.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
            for file in others[: max(0, len(others) + 1 - _KEPT)]:
                file.unlink(missing_ok=True)


def class_archive(executable: Path, version: int, environment: Mapping[str, str] | None = None) -> ClassArchive | str:
    """The archive for a Java and the Spark of this process; or why there is none, as a sentence without a full stop."""
    env = os.environ if environment is None else environment
    if env.get(SWITCH, "").lower() in ("off", "0", "false", "no"):
        return f"switched off ({SWITCH}={env[SWITCH]})"
    if version < _FIRST:
        return f"Java {version} keeps none of an application's classes"
    jars = _jars(env)
    if jars is None:
        return "Spark's jars are not in a folder of their own"
    home = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256("\n".join(_signs(executable, jars, env)).encode()).hexdigest()[:20]
    return ClassArchive(home / "sqlext" / "class-archives" / f"java{version}-{name}.jsa", version)


def _jars(env: Mapping[str, str]) -> Path | None:
    """The folder of Spark's jars, of SPARK_HOME or of the package PySpark."""
    spec = importlib.util.find_spec("pyspark")
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    homes = [env["SPARK_HOME"]] if env.get("SPARK_HOME") else places
    return next((Path(home, "jars") for home in homes if Path(home, "jars").is_dir()), None)


def _signs(executable: Path, jars: Path, env: Mapping[str, str]) -> Iterator[str]:
    """What an archive depends on: the Java, the jars, and what else may come onto Java's class path."""
    java = executable.resolve()
    yield from (
        _FORM,
        str(java),
        str(jars.resolve()),
        str(env.get("SPARK_CONF_DIR")),
        str(env.get("SPARK_DIST_CLASSPATH")),
    )
    for file in (java, java.parent.parent / "release", java.parent.parent / "lib" / "modules", *sorted(jars.iterdir())):
        with suppress(OSError):
            known = file.stat()
            yield f"{file.name} {known.st_size} {known.st_mtime_ns}"
