"""What a new user does with the wheel, outside the checkout: pip install, the demo, the README's Python blocks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlext_planner.bundle import write_zip

import sqlext

ROOT = Path(__file__).resolve().parent.parent
#: What test_docs.py gives each page; an installed user has `Session()` for it.
START = "from sqlext import Session\nspark = Session(config={'spark.sql.shuffle.partitions': '4'}).spark\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel and what it requires, from the package index."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, capture_output=True, timeout=300)
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--constraint", ROOT / "requirements.lock", wheel], check=True, cwd=folder, env=plain(), timeout=1_200
    )
    return folder


def plain() -> dict[str, str]:
    """An environment in which nothing leads to the checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))}


def run(environment: Path, *words: str) -> str:
    """The output of a command of the environment, run in its folder."""
    command = [environment / "venv" / "bin" / words[0], *words[1:]]
    done = subprocess.run(
        command, cwd=environment, env=plain(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return done.stdout


@pytest.mark.slow
def test_the_wheel_is_what_runs(environment: Path) -> None:
    code = "import sqlext, sqlext_planner.pages as p; print(sqlext.__file__, sqlext.__version__, p.page('cluster.md'))"
    file, version, page = run(environment, "python", "-c", code).split()
    assert Path(file).is_relative_to(environment / "venv")
    assert version == sqlext.__version__
    assert "# On a cluster" in Path(page).read_text()
    assert Path(page).is_relative_to(environment / "venv")


@pytest.mark.slow
def test_demo(environment: Path) -> None:
    shown = run(environment, "sqlext", "demo", "--rows", "3000")
    assert "WindowUnion" in shown
    assert "orders_1h" in shown


@pytest.mark.slow
def test_python_blocks_of_the_readme(environment: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    (environment / "readme.py").write_text("\n".join([START, *blocks, "print('all of it ran')"]))
    assert run(environment, "python", "readme.py").endswith("all of it ran\n")


@pytest.mark.slow
def test_bundle_of_an_installed_wheel(environment: Path) -> None:
    """The same zip as from the checkout, byte for byte."""
    made = run(environment, "sqlext", "bundle").strip()
    write_zip(environment / "own.zip")
    assert (environment / made).read_bytes() == (environment / "own.zip").read_bytes()
