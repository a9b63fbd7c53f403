"""Packages of Spark that a user names: checked before Spark starts, with what they need beside themselves."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkFiles
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.session import leave_jars_to_java

from sqlext import packages
from sqlext.cli.health.findings import Machine, State
from sqlext.cli.health.machine import check_spark_packages
from sqlext.cli.options import settings_with
from sqlext.packages import PACKAGES, check_running, with_packages

DELTA = "io.delta:delta-spark_2.13:4.2.0"


@pytest.fixture(autouse=True)
def spark_4_1_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "pyspark_version", lambda: "4.1.1")
    monkeypatch.setattr(packages, "spark_version", lambda: (4, 1))


def test_settings_without_packages_stay() -> None:
    assert with_packages({"spark.driver.memory": "1g"}) == {"spark.driver.memory": "1g"}


def test_delta_gets_its_extension_and_its_catalog() -> None:
    made = with_packages({PACKAGES: DELTA})
    assert made[PACKAGES] == DELTA
    assert made["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert made["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert "org.apache.spark:spark-sql_2.13" in made["spark.jars.excludes"].split(",")


def test_what_is_given_stays() -> None:
    given = {
        PACKAGES: f"{DELTA}, org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "spark.sql.extensions": "com.example.Extension",
        "spark.sql.catalog.spark_catalog": "com.example.Catalog",
        "spark.jars.excludes": "a:b",
    }
    made = with_packages(given)
    assert made["spark.sql.extensions"].split(",") == [
        "com.example.Extension",
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ]
    assert made["spark.sql.catalog.spark_catalog"] == "com.example.Catalog"
    assert made["spark.jars.excludes"] == "a:b"


def test_kafka_gets_its_token_provider() -> None:
    kafka = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
    provider = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1"
    assert with_packages({PACKAGES: kafka})[PACKAGES].split(",") == [kafka, provider]
    assert with_packages({PACKAGES: f"{provider},{kafka}"})[PACKAGES].split(",") == [provider, kafka]


def test_what_a_user_names_is_not_excluded() -> None:
    made = with_packages({PACKAGES: "org.slf4j:slf4j-simple:2.0.1,org.apache.spark:spark-tags_2.13:4.1.1"})
    excluded = made["spark.jars.excludes"].split(",")
    assert "org.slf4j:*" not in excluded
    assert "org.apache.spark:spark-tags_2.13" not in excluded


@pytest.mark.parametrize(
    ("package", "sentence", "remedy"),
    [
        ("delta-spark", "is not group:artifact:version", "write io.delta:delta-spark_2.13:4.2.0, for example"),
        ("io.delta:delta-spark_2.12:3.3.0", "is for Scala 2.12, and Spark 4.1 has 2.13", "take ..._2.13"),
        (
            "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
            "is for Spark 4.0, and this is 4.1",
            "take ...4.1_2.13",
        ),
        ("io.delta:delta-spark_4.0_2.13:4.1.0", "is for Spark 4.0, and this is 4.1", "take ...4.1_2.13"),
        (
            "org.apache.spark:spark-avro_2.13:4.1.0",
            "is a part of Spark 4.1.0, and this is 4.1.1",
            "take org.apache.spark:spark-avro_2.13:4.1.1",
        ),
    ],
)
def test_a_package_for_another_spark_is_refused(package: str, sentence: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        with_packages({PACKAGES: package})
    assert refused.value.message == f"package '{package}' {sentence}"
    assert refused.value.help == remedy
    assert refused.value.condition == "setting-value"


def test_a_running_spark_lacks_packages() -> None:
    spark: Any = SimpleNamespace(conf={PACKAGES: f"x:y:2,{DELTA}"})
    check_running(spark, {PACKAGES: DELTA})
    check_running(SimpleNamespace(conf={}), {})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as refused:
        check_running(spark, {PACKAGES: f"{DELTA},a:b:1"})
    assert refused.value.condition == "fixed-setting"
    assert refused.value.message == "Spark runs without a:b:1, and gets packages only when it starts"


def test_jars_without_python_are_on_no_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, member in (("java.jar", "org/A.class"), ("both.jar", "delta/tables.py"), ("own.zip", "a.class")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, "")
    (tmp_path / "broken.jar").write_text("no archive")
    names = ["java.jar", "both.jar", "own.zip", "broken.jar"]
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr(sys, "path", ["", *(str(tmp_path / name) for name in names), "/usr/lib/java.jar"])
    context = SimpleNamespace(_python_includes=[*names])
    spark: Any = SimpleNamespace(sparkContext=context)
    leave_jars_to_java(spark)
    assert context._python_includes == names[1:]
    assert sys.path == ["", *(str(tmp_path / name) for name in names[1:]), "/usr/lib/java.jar"]


def test_the_command_line_joins_what_is_given_twice() -> None:
    assert settings_with(["x=1"], None) == ["x=1"]
    given = [f"{PACKAGES}={DELTA}", "x=1"]
    assert settings_with(given, ["a:b:1", "c:d:2"]) == [*given, f"{PACKAGES}={DELTA},a:b:1,c:d:2"]


def test_doctor_tells_of_packages() -> None:
    (good,) = check_spark_packages(Machine(settings={PACKAGES: DELTA}))
    assert good.state is State.OK
    assert good.text == f"{DELTA}; Spark downloads what it does not have yet when it starts"
    assert list(check_spark_packages(Machine(settings={}))) == []
    with pytest.raises(ConfigurationError):
        list(check_spark_packages(Machine(settings={PACKAGES: "delta"})))
