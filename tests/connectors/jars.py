"""Jars of connectors and servers that the tests need, got once into the user's cache, by version.

``spark_settings("delta", "iceberg")`` is what a Spark session needs of them, ``classpath("broker")`` what a Java
process does. Where the jars cannot be had for this PySpark, the test is skipped with one line.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.spark_versions import environments

_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"


class JarSet(NamedTuple):
    """Maven's coordinates by the PySpark that they are for ("" for any), and settings of a session that has them."""

    coordinates: dict[str, tuple[str, ...]]
    settings: dict[str, str]


def _kafka(spark: str, clients: str) -> tuple[str, ...]:
    # What the connector itself needs of org.apache.spark is left out with all of Spark: one part is not in PySpark.
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{spark}",
        f"org.apache.kafka:kafka-clients:{clients}",
        "org.apache.commons:commons-pool2:2.12.1",
    )


SETS = {
    "delta": JarSet(
        {"4.1": ("io.delta:delta-spark_2.13:4.2.0",)},
        {
            "spark.sql.extensions": _DELTA_EXTENSIONS,
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": JarSet(
        {"4.1": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)},
        {
            "spark.sql.extensions": _ICEBERG_EXTENSIONS,
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            # the warehouse is the test's: spark.sql.catalog.ice.warehouse
        },
    ),
    "kafka": JarSet({"4.1.1": _kafka("4.1.1", "3.9.2"), "4.2.0": _kafka("4.2.0", "3.9.2")}, {}),
    "avro": JarSet({spark: (f"org.apache.spark:spark-avro_2.13:{spark}",) for spark in ("4.1.1", "4.2.0")}, {}),
    "s3": JarSet({"4.1": ("org.apache.hadoop:hadoop-aws:3.4.2",)}, {}),
    "broker": JarSet({"": ("org.apache.kafka:kafka_2.13:4.3.1",)}, {}),
}

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>sqlext</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>"""
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>org.apache.spark</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


def spark_settings(*names: str) -> dict[str, str]:
    """Settings of a session with these sets: their jars, extensions and catalogs. Skips the test where they cannot be
    had."""
    settings: dict[str, str] = {}
    for name in names:
        for key, value in SETS[name].settings.items():
            joins = key == "spark.sql.extensions" and key in settings
            settings[key] = f"{settings[key]},{value}" if joins else value
    brought = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    needed = [jar for name in names for jar in _jars(name) if _artifact(jar) not in brought]
    return {**settings, "spark.jars": ",".join(map(str, dict.fromkeys(needed)))}


def classpath(name: str) -> str:
    """The classpath of a Java process with this set. Skips the test where it cannot be had."""
    return os.pathsep.join(map(str, _jars(name)))


def coordinates(name: str) -> tuple[str, ...]:
    """The coordinates of a set for this PySpark; none where there are none."""
    version = pyspark.__version__
    fitting = (
        found for of, found in SETS[name].coordinates.items() if f"{version}.".startswith(f"{of}." if of else "")
    )
    return next(fitting, ())


def has_jars(name: str) -> bool:
    """Whether there is such a set for this PySpark."""
    return bool(coordinates(name))


def install(names: tuple[str, ...] = tuple(SETS)) -> dict[str, str]:
    """Get the jars of sets; what is missing, and why."""
    return {name: got for name in names if isinstance(got := _got(name), str)}


def _artifact(jar: Path) -> str:
    """The name of a jar without its version and, as Spark's resolver names files, its group."""
    name = jar.stem
    if "." in name.partition("_")[0].partition("-")[0]:
        name = name.partition("_")[2]
    words = name.split("-")
    count = next(
        (place for place, word in enumerate(words) if place and word[:1].isdigit() and "." in word), len(words)
    )
    return "-".join(words[:count])


def _jars(name: str) -> tuple[Path, ...]:
    got = _got(name)
    if isinstance(got, str):
        pytest.skip(got)
    return got


@cache
def _got(name: str) -> tuple[Path, ...] | str:
    """The jars of a set, or why there are none."""
    wanted = coordinates(name)
    if not wanted:
        return f"there are no jars of {name} for PySpark {pyspark.__version__}"
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()[:10]
    folder = environments.cache() / "jars" / f"{name}-{wanted[0].rpartition(':')[2]}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            # Renamed once it is whole; in the same folder, so on the same disk.
            with tempfile.TemporaryDirectory(dir=folder.parent) as made:
                error = _fetch(wanted, Path(made), folder.parent)
                if error is not None:
                    return f"the jars of {name} ({', '.join(wanted)}) cannot be had: {error}"
                (Path(made) / "jars").rename(folder)
    return tuple(sorted(folder.glob("*.jar")))


def _fetch(wanted: tuple[str, ...], folder: Path, kept: Path) -> str | None:
    """Put jars and what they need into a folder `jars` of this folder; what went wrong, in a line. `kept` is for what
    the resolvers keep: the user's own ~/.m2 with Maven's half of an artifact makes Spark's resolver fail later."""
    fetch = _by_maven if shutil.which("mvn") else _by_spark
    command = fetch(wanted, folder, kept)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0 and any((folder / "jars").glob("*.jar")):
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "not found" in line]
    return next(iter(lines), f"{command[0]} ended with {done.returncode}").strip()


def _by_maven(wanted: tuple[str, ...], folder: Path, kept: Path) -> list[str]:
    pom = folder / "pom.xml"
    pom.write_text(_POM.format("".join(_DEPENDENCY.format(*item.split(":")) for item in wanted)))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'jars'}"]
    return ["mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={kept / 'm2'}", "--file", str(pom), *goal]


def _by_spark(wanted: tuple[str, ...], folder: Path, kept: Path) -> list[str]:
    """Spark's own resolver, as for `spark-submit --packages`: it runs before a script that does nothing."""
    script = folder / "nothing.py"
    script.write_text("")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {
        "spark.jars.ivy": str(folder),
        "spark.pyspark.python": sys.executable,
        "spark.driver.extraJavaOptions": f"-Duser.home={kept}",  # whose .m2 is empty
    }
    arguments = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [
        str(submit),
        *arguments,
        "--packages",
        ",".join(wanted),
        "--exclude-packages",
        ",".join(_SPARKS),
        str(script),
    ]


#: What connectors name and PySpark brings. Its resolver's exclusions hold for what is asked for too, so that no pattern
#: fits all of Spark.
_SPARKS = (
    *(f"org.apache.spark:spark-{part}_2.13" for part in ("sql", "sql-api", "core", "catalyst", "tags", "common-utils")),
    *(f"{group}:*" for group in ("org.slf4j", "org.apache.logging.log4j", "com.fasterxml.jackson.core")),
)
