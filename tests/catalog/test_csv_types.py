"""Types of columns of text: Spark's own inference, or wider, and never one that makes one of two values."""

from __future__ import annotations

import csv
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import read_files, table_info
from sqlext.catalog.inferred_types import ColumnValues
from sqlext.catalog.options import FolderOptions, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def column_type(*values: str) -> str:
    column = ColumnValues()
    column.add(pa.array(values))
    return column.spark_type(lambda: [pa.array(values)])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (("12345678901234567890", "12345678901234567891"), "decimal(20,0)"),
        (("1", "12345678901234567890"), "decimal(20,0)"),
        (("1" * 38, "0"), "decimal(38,0)"),
        (("1" * 39, "1" * 38 + "2"), "string"),
        (("00000000000000000000001",), "int"),
        (("-007", "+12"), "int"),
        (("2147483648",), "bigint"),
        (("1.5", "9007199254740992", "9007199254740993"), "decimal(17,1)"),
        (("1.5", "12345678901234567890"), "decimal(21,1)"),
        (("0.1", "0.10000000000000001"), "decimal(17,17)"),
        (("0.12345678901234567890",), "decimal(20,20)"),
        (("0.30000000000000004", "0.1"), "double"),
        (("5.684341886080801E-14", "1.5"), "double"),  # as Java 17 prints 2^-44
        (("1.000000000000000056e-01", "5.000000000000000000e-01"), "double"),  # as numpy.savetxt prints 0.1
        (("1e400", "1e401"), "string"),
        (("1e-400", "0.0"), "string"),
        (("1e99999999999999999999", "1"), "string"),
        (("NaN", "-Infinity", "1"), "double"),
        (("NaN", "1.2345678901234567891"), "string"),
        (("2020-02-29", "2020-02-30"), "string"),
        (("2020-02-29 23:59:59", "2020-02-29"), "timestamp"),
        (("2020-02-29 24:00:00",), "string"),
        (("2020-02-29 23:59+08:00",), "string"),
        (("true", "FALSE"), "boolean"),
        (("true", "1"), "string"),
    ],
)
def test_types(values: tuple[str, ...], found: str) -> None:
    assert column_type(*values) == found
    assert column_type(*reversed(values)) == found


def random_value(random: random.Random, kind: str) -> str:
    digits = "".join(random.choices("0123456789", k=random.randint(1, 40)))
    sign = random.choice(["", "", "", "-", "+"])
    day = f"{random.randint(1, 9999):04d}-{random.randint(1, 12):02d}-{random.randint(1, 31):02d}"
    clock = f"{random.randint(0, 24):02d}:{random.randint(0, 59):02d}"
    match kind:
        case "integer":
            return sign + digits[: random.choice([2, 9, 10, 18, 19, 20, 40])]
        case "zeros":
            return "0" * random.randint(1, 9) + digits[:3]
        case "decimal":
            return sign + digits[: random.randint(0, 20)] + "." + digits[20:] + random.choice(["", "0", "5"])
        case "double":
            return repr(random.uniform(-1, 1) * 10 ** random.randint(-9, 9))
        case "exponent":
            return f"{sign}{digits[:9]}.{digits[9:12]}{random.choice('eE')}{random.randint(-30, 30)}"
        case "special":
            return random.choice(["NaN", "Infinity", "-Infinity"])
        case "other special":
            return random.choice(["Inf", "-Inf", "nan", "+Infinity", "1d", "1.5f", "0x1F", "1_0", "1,5", "--1", "."])
        case "date":
            return day
        case "timestamp":
            seconds = random.choice(["", ":00", ":59", ":59.5", ":01.123456", ":01.1234567"])
            zone = random.choice(["", "", "Z", "+08:00", "-18:00", "+18:30", "+0800", " Europe/Berlin"])
            return day + random.choice(" T") + clock + seconds + zone
        case "other time":
            return random.choice(
                [clock, day[:7], day[:4], day + "T", f" {day}", f"{day} {clock}:5", "epoch", "1/2/2020"]
            )
        case "boolean":
            return random.choice(["true", "false", "TRUE", "False"])
        case "NULL":
            return random.choice(["NULL", "null", "NA", "\\N"])
        case _:
            return random.choice(["x", "é", 'a "quoted" word', " 1", "1 ", "t"])


#: Kinds of values of a column: alone, or mixed as they are in one.
ALONE = (
    *("integer", "zeros", "decimal", "double", "exponent", "special", "other special"),
    *("date", "timestamp", "other time", "boolean", "NULL", "text"),
)
MIXED = (
    ("integer", "decimal"),
    ("integer", "double"),
    ("zeros", "integer"),
    ("integer", "exponent"),
    ("integer", "boolean"),
    ("double", "special"),
    ("date", "timestamp"),
    ("date", "integer"),
    ("timestamp", "other time"),
    ("double", "decimal", "exponent"),
    ("boolean", "NULL"),
)


def random_columns(count: int) -> list[list[str]]:
    source = random.Random(20)
    columns = []
    for place in range(count):
        kinds = MIXED[place % len(MIXED)] if place % 3 == 0 else (ALONE[place % len(ALONE)],)
        values = [random_value(source, kinds[row % len(kinds)]) for row in range(4)]
        if source.random() < 0.3:
            values[source.randrange(4)] = ""
        columns.append(values)
    return columns


#: From a type of ours to those of Spark that it may stand for; string stands for every type.
WIDER = {"double": ("int", "bigint", "decimal"), "decimal": ("int", "bigint", "decimal", "double")}


def test_random_columns_have_sparks_types_or_wider_ones(spark: SparkSession, tmp_path: Path) -> None:
    columns = random_columns(600)
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{place}" for place in range(len(columns))])
        writer.writerows(zip(*columns, strict=True))
    inferred = spark.read.options(header="true", inferSchema="true", quote='"', escape='"').csv(str(path))
    frame = read_files(spark, path)
    rows = frame.select([frame[name].cast("string") for name in frame.columns]).collect()
    same = 0
    for place, (values, theirs, ours) in enumerate(zip(columns, inferred.schema, frame.schema, strict=True)):
        wanted, found = theirs.dataType.simpleString(), ours.dataType.simpleString()
        same += wanted == found
        may_be = WIDER.get(found.partition("(")[0], ())
        assert found in (wanted, "string") or wanted.partition("(")[0] in may_be, (values, wanted, found)
        read = [row[place] for row in rows]
        assert [value or None for value in values] == read or found != "string", (values, read)
        assert [value is None for value in read] == [value == "" for value in values], (values, found, read)
        if found in ("int", "bigint", "double") or found.startswith("decimal"):
            numbers = {Decimal(value) for value in values if value and "a" not in value and "I" not in value}
            assert len({Decimal(row) for row in read if row and "a" not in row and "I" not in row}) == len(numbers)
    assert same > 0.5 * len(columns), same


JSON = """{"id": 12345678901234567890, "v": 0.5, "w": 0.12345678901234567890, "n": [{"x": 9007199254740993.0}]}
{"id": 12345678901234567891, "v": 0.30000000000000004, "w": 0.12345678901234567891, "n": [{"x": 9007199254740992.0}]}
{"id": 1, "v": 1e5, "n": null, "e": 1e400}
"""


@pytest.mark.spark_since("4.0", "JSON's numbers as they are written")
def test_numbers_of_json_and_of_folders_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "j.json").write_text(JSON, encoding="utf-8")
    schema = read_files(spark, tmp_path / "j.json").schema.simpleString()
    assert schema == "struct<e:string,id:decimal(20,0),n:array<struct<x:string>>,v:double,w:string>"
    typed = read_files(spark, tmp_path / "j.json", ReadOptions.of(types="w decimal(30,20), v string"))
    assert [str(row.w) for row in typed.collect()[:2]] == ["0.12345678901234567890", "0.12345678901234567891"]
    for value in ("0.12345678901234567890", "0.12345678901234567891"):
        folder = tmp_path / "f" / f"p={value}" / "q=0.5"
        folder.mkdir(parents=True)
        (folder / "x.csv").write_text("a\n1\n", encoding="utf-8")
        pq_folder = tmp_path / "g" / f"p={value}" / "q=0.5"
        pq_folder.mkdir(parents=True)
        spark.range(1).toPandas().to_parquet(pq_folder / "x.parquet")
    for name in ("f", "g"):
        frame = read_files(spark, tmp_path / name)
        assert table_info(name, tmp_path / name).columns[1:] == (("p", "string"), ("q", "double"))
        assert sorted(row.p for row in frame.collect()) == ["0.12345678901234567890", "0.12345678901234567891"]


def test_given_types(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("uid,v\n1.5,2\n", encoding="utf-8")
    info = table_info("t", tmp_path / "t.csv")
    assert (info.columns, info.inferred_doubles) == ((("uid", "double"), ("v", "int")), ("uid",))
    info = table_info("t", tmp_path / "t.csv", ReadOptions.of(types={"UID": "STRING"}))
    assert (info.columns, info.inferred_doubles) == ((("uid", "string"), ("v", "int")), ())
    options = FolderOptions.of_texts(["types=uid decimal(30, 2)", "T.types=uid string, v bigint", "t.header=TRUE"])
    assert options.of("t") == ReadOptions(header=True, types=(("uid", "string"), ("v", "bigint")))
    assert options.of("u") == ReadOptions(types=(("uid", "decimal(30,2)"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types=uid", "no list of columns with types"),
        ("types=uid nope", "'nope' is not a column type"),
        ("delimiter=ab", "is not one character"),
        ("header=maybe", "neither true nor false"),
        ("colour=red", "not an option of the form"),
    ],
)
def test_options_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        FolderOptions.of_texts([text])
    assert caught.value.help
