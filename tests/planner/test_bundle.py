"""What `sqlext bundle` packs: enough to run, always the same bytes, nothing half written."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from sqlext_planner import bundle
from sqlext_planner.errors import ConfigurationError

import sqlext

ROOT = Path(__file__).resolve().parents[2]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_zip_holds_every_module(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        bundle.write_zip(tmp_path / name)
    assert digest(tmp_path / "one.zip") == digest(tmp_path / "two.zip")
    names = zipfile.ZipFile(tmp_path / "one.zip").namelist()
    modules = {str(path.relative_to(ROOT / "operators")) for path in (ROOT / "operators").rglob("*.py")}
    assert names == sorted(names)
    assert set(names) == modules


def test_environment_runs_where_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_DISTRIBUTIONS", ("rich",))  # small; it requires a package that requires mdurl
    for name in ("one.tar.gz", "two.tar.gz"):
        bundle.write_environment(tmp_path / name)
    assert digest(tmp_path / "one.tar.gz") == digest(tmp_path / "two.tar.gz")
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        archive.extractall(tmp_path / "environment", filter="fully_trusted")
    code = "import rich, mdurl, sqlext_operators as s, sys; print(sys.prefix, mdurl.__file__, s.__version__)"
    python = tmp_path / "environment" / "bin" / "python"
    done = subprocess.run([python, "-c", code], env={}, capture_output=True, text=True, check=True, timeout=60)
    prefix, required, version = done.stdout.split()
    assert prefix == str(tmp_path / "environment")
    assert required.startswith(prefix)
    assert version == sqlext.__version__


def test_environment_takes_the_python_of_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_DISTRIBUTIONS", ())
    bundle.write_environment(tmp_path / "node.tar.gz", Path("/opt/python/bin/python3.11"))
    with tarfile.open(tmp_path / "node.tar.gz") as archive:
        assert archive.getmember("bin/python").linkname == "/opt/python/bin/python3.11"
        config = archive.extractfile("pyvenv.cfg")
        assert config is not None
        assert b"home = /opt/python/bin\n" in config.read()


def test_a_missing_package_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_DISTRIBUTIONS", ("no-such-package",))
    with pytest.raises(ConfigurationError, match="no-such-package is not installed here") as caught:
        bundle.write_environment(tmp_path / "x.tar.gz")
    assert caught.value.help == "pip install no-such-package"
    assert list(tmp_path.iterdir()) == []
