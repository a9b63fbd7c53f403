"""Packages of Spark that a user names (`spark.jars.packages`): Spark downloads them when it starts, and nothing else is
ever downloaded. Here they are checked first, and get what each of them needs beside itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import pyspark_version, spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = "spark.jars.packages"
_EXCLUDES, _EXTENSIONS = "spark.jars.excludes", "spark.sql.extensions"
_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
#: What is at the end of an artifact's name: the Spark that it is for, if it says so, and Scala.
_MADE_FOR = re.compile(r"(?:[-_](?P<spark>\d+\.\d+))?_(?P<scala>2\.\d+)$")
#: Parts of Spark that connectors name and PySpark has; the registries lack some. An exclusion holds for what is asked
#: for too, so that no pattern fits all of Spark.
_PARTS = ("sql", "sql-api", "core", "catalyst", "tags", "common-utils")
#: Groups of which PySpark has all that connectors name.
_BROUGHT = ("org.slf4j", "org.apache.logging.log4j", "com.fasterxml.jackson.core")
#: Settings without which a package does nothing, by the beginning of its coordinates.
_SETTINGS: dict[str, dict[str, str]] = {
    "io.delta:delta-spark_": {
        _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "org.apache.iceberg:iceberg-spark-runtime-": {
        _EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    },
}
_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_"


def packages_of(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The packages that settings name."""
    return tuple(filter(None, (name.strip() for name in settings.get(PACKAGES, "").split(","))))


def with_packages(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a Spark that is to start, with what the packages among them need; what is given stays.

    Raises ConfigurationError for a package that is not for this Spark.
    """
    named = packages_of(settings)
    if not named:
        return dict(settings)
    for package in named:
        _check(package)
    beside = {package: [item for item in _beside(package) if item not in named] for package in named}
    needed = dict.fromkeys(item for package in named for item in (package, *beside[package]))
    made = {**settings, PACKAGES: ",".join(needed)}
    made.setdefault(_EXCLUDES, ",".join(_excluded(named)))
    for beginning, own in _SETTINGS.items():
        if any(package.startswith(beginning) for package in named):
            for key, value in own.items():
                _add(made, key, value)
    return made


def check_running(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Raises ConfigurationError for packages that a running Spark was started without."""
    named = packages_of(settings)
    has = packages_of({PACKAGES: spark.conf.get(PACKAGES, "") or ""}) if named else ()
    lacking = [package for package in named if package not in has]
    if lacking:
        raise ConfigurationError(
            f"Spark runs without {', '.join(lacking)}, and gets packages only when it starts",
            condition="fixed-setting",
            help="name them where this Spark is started, or stop it first: spark.stop()",
        )


def _check(package: str) -> None:
    """Raises ConfigurationError."""
    if not _COORDINATES.fullmatch(package):
        raise _wrong(package, "is not group:artifact:version", "write io.delta:delta-spark_2.13:4.2.0, for example")
    group, artifact, version = package.split(":")
    made_for = _MADE_FOR.search(artifact)
    line = ".".join(map(str, spark_version()))
    scala = "2.12" if spark_version() < (4, 0) else "2.13"
    if made_for is not None and made_for["scala"] != scala:
        raise _wrong(package, f"is for Scala {made_for['scala']}, and Spark {line} has {scala}", f"take ..._{scala}")
    if made_for is not None and made_for["spark"] not in (None, line):
        raise _wrong(package, f"is for Spark {made_for['spark']}, and this is {line}", f"take ...{line}_{scala}")
    if group == "org.apache.spark" and version != pyspark_version():
        remedy = f"take {group}:{artifact}:{pyspark_version()}"
        raise _wrong(package, f"is a part of Spark {version}, and this is {pyspark_version()}", remedy)


def _wrong(package: str, what: str, help: str) -> ConfigurationError:
    return ConfigurationError(f"package '{package}' {what}", condition="setting-value", help=help)


def _beside(package: str) -> Iterator[str]:
    """What a package needs and does not bring, as parts of Spark are left out."""
    if package.startswith(_KAFKA):
        yield package.replace("spark-sql-kafka", "spark-token-provider-kafka")


def _excluded(named: Sequence[str]) -> Iterator[str]:
    scala = "2.12" if spark_version() < (4, 0) else "2.13"
    asked = {tuple(package.split(":")[:2]) for package in named}
    for part in _PARTS:
        if ("org.apache.spark", f"spark-{part}_{scala}") not in asked:
            yield f"org.apache.spark:spark-{part}_{scala}"
    for group in _BROUGHT:
        if group not in {name for name, _ in asked}:
            yield f"{group}:*"


def _add(settings: dict[str, str], key: str, value: str) -> None:
    """Give a setting its value if it has none; extensions come behind those that are given."""
    given = settings.get(key)
    if given is None:
        settings[key] = value
    elif key == _EXTENSIONS and value not in given.split(","):
        settings[key] = f"{given},{value}"
