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
#: What the image of a platform may have: `pip install` of the wheel leaves it as it is.
PLATFORM = {
    "pyspark": "3.5.9",
    "pandas": "1.5.3",
    "pyarrow": "15.0.2",
    "numpy": "1.26.4",
    "protobuf": "4.24.1",
    "packaging": "23.2",
    "pydantic": "1.10.26",
    "pygments": "2.15.1",
    "prompt-toolkit": "3.0.36",
}
#: What its Spark runs on.
JAVA = Path("/usr/lib/jvm/openjdk-17")
#: What test_docs.py gives each page; an installed user has `Session()` for it.
START = "from sqlext import Session\nspark = Session(config={'spark.sql.shuffle.partitions': '4'}).spark\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel, a Spark and what they require, from the package index."""
    folder = tmp_path_factory.mktemp("installed")
    pip_install(folder, "--constraint", str(ROOT / "requirements.lock"), f"{wheel_in(folder)}[spark]")
    return folder


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that had Spark 3.5 and older packages before the wheel came."""
    folder = tmp_path_factory.mktemp("platform")
    pip_install(folder, *(f"{name}=={version}" for name, version in PLATFORM.items()))
    pip_install(folder, str(wheel_in(folder)))
    return folder


def wheel_in(folder: Path) -> Path:
    """The wheel of the checkout, built into the folder."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def pip_install(folder: Path, *words: str) -> None:
    """`pip install` into the folder's environment, which is made if there is none."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, capture_output=True, timeout=300)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *words], check=True, cwd=folder, env=plain(), timeout=1_200)


def plain() -> dict[str, str]:
    """An environment in which nothing leads to the checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))}


def run(environment: Path, *words: str, **variables: str) -> str:
    """The output of a command of the environment, run in its folder."""
    command, given = [environment / "venv" / "bin" / words[0], *words[1:]], {**plain(), **variables}
    done = subprocess.run(command, cwd=environment, env=given, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return done.stdout


@pytest.mark.slow
def test_the_wheel_is_what_runs(environment: Path) -> None:
    code = "import sqlext, sqlext_planner.errors as p; print(sqlext.__file__, sqlext.__version__, p.page('cluster.md'))"
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


@pytest.mark.slow
@pytest.mark.skipif(not JAVA.exists(), reason=f"Spark 3.5 does not run on every Java, and {JAVA} is not there")
def test_a_platforms_packages_stay(platform: Path) -> None:
    code = f"from importlib.metadata import version; print(*map(version, {list(PLATFORM)}))"
    assert run(platform, "python", "-c", code).split() == list(PLATFORM.values())
    assert "orders_1h" in run(platform, "sqlext", "demo", "--rows", "3000", JAVA_HOME=str(JAVA))
