"""What executors need, packed: the operators as a zip, or a whole Python environment with them as an archive.

Both are made from what is installed beside this module, in a checkout or from a wheel, and nothing is downloaded: the
executors get exactly the driver's versions. The same packages give the same bytes: names are sorted, times fixed.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import sqlext_operators

from sqlext_planner.errors import ConfigurationError

#: The distributions that tasks import; what these need themselves comes along. protobuf: Spark's state of streams.
_DISTRIBUTIONS = ("numba", "numpy", "pandas", "protobuf", "pyarrow")
#: Folders of other packages that no task reads: a third of an archive.
_LEFT_OUT = {"tests", "__pycache__"}
#: The earliest time that a zip can tell.
_TIME = (1980, 1, 1, 0, 0, 0)
_TIME_SECONDS = 315_532_800


def zip_name() -> str:
    """The zip's name, which tells its version."""
    return f"sqlext_operators-{sqlext_operators.__version__}.zip"


def environment_name() -> str:
    """The archive's name: the version, the Python and the machine that it is for."""
    machine = sysconfig.get_platform().replace("-", "_")
    return f"sqlext_environment-{sqlext_operators.__version__}-py{_python_version()}-{machine}.tar.gz"


def write_zip(path: Path) -> None:
    """Write `sqlext_operators` as a zip for `addPyFile` and `--py-files`. Raises OSError."""
    with _whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, source in _operators():
            entry = zipfile.ZipInfo(str(name), _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, source.read_bytes())


def write_environment(path: Path, python: Path | None = None) -> None:
    """Write a Python environment with the operators and all that they import, as a tar.gz for `spark.archives`.

    python  where the executors' machines have this Python (major and minor version as here); None: where it is here.

    Raises OSError, and ConfigurationError if a package is missing here or its files are not known.
    """
    base = python or Path(getattr(sys, "_base_executable", sys.executable))
    packages = PurePosixPath("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    files = {packages / name: source for name, source in (*_operators(), *_installed(_DISTRIBUTIONS))}
    config = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {_python_version(full=True)}\n"
    # Level 1: 6 takes three times as long for an archive that is a tenth smaller.
    with (
        _whole(path) as file,
        gzip.GzipFile("", "wb", 1, file, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.addfile(_link("bin/python", str(base)))
        archive.addfile(_link("bin/python3", "python"))
        archive.addfile(_file("pyvenv.cfg", len(config)), io.BytesIO(config.encode()))
        for name in sorted(files):
            with files[name].open("rb") as content:
                archive.addfile(_file(str(name), files[name].stat().st_size), content)


def with_required(names: Sequence[str]) -> list[Distribution]:
    """The distributions and, as far as they are installed, those that they require without extras; by name.

    Raises ConfigurationError if one of `names` is not installed.
    """
    distributions: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in distributions:
            continue
        try:
            distributions[name] = distribution(name)
        except PackageNotFoundError:
            if name in names:
                raise ConfigurationError(
                    f"the package {name} is not installed here, and executors need it",
                    condition="missing-package",
                    help=f"pip install {name}",
                ) from None
            continue  # for other machines or versions of Python
        for line in distributions[name].requires or ():
            required = re.match(r"[\w.-]+", line)
            if required is not None and not re.search(r"\bextra\s*==", line):
                waiting.append(required[0])
    return [distributions[name] for name in sorted(distributions)]


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when all is written: executors never fetch half of one."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _operators() -> Iterator[tuple[PurePosixPath, Path]]:
    """The package's modules, sorted."""
    root = Path(sqlext_operators.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield PurePosixPath(path.relative_to(root.parent)), path


def _installed(names: tuple[str, ...]) -> Iterator[tuple[PurePosixPath, Path]]:
    """The files of distributions and of those that they require, by their names in site-packages."""
    for package in with_required(names):
        if package.files is None:
            raise ConfigurationError(
                f"the files of the package {package.name} are not known: it was installed without a record",
                condition="missing-package",
                help="install it with pip into the environment that runs `sqlext bundle`",
            )
        for file in package.files:
            name = PurePosixPath(file)
            if ".." not in name.parts and not _LEFT_OUT & set(name.parts):
                yield name, Path(str(file.locate()))


def _file(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o644, _TIME_SECONDS
    return entry


def _link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mtime = tarfile.SYMTYPE, target, _TIME_SECONDS
    return entry


def _python_version(full: bool = False) -> str:
    return ".".join(map(str, sys.version_info[:3])) if full else f"{sys.version_info[0]}{sys.version_info[1]}"
