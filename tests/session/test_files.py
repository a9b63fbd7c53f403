"""Files as tables: read when they are named, under any name, with the clock of the mode; their errors name them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_planner.errors import ConfigurationError, SqlExtError

from sqlext import Session
from sqlext.catalog import tables_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"
GOOD = {
    "files_semi.csv": "k;ts;v\n1;2;3\n1;3;4\n",
    "files_lines.csv": 'k,ts,v\n1,2,"a\nb"\n',
    "files_tabs.tsv": "k\tts\n1\t2\n",
    "files_bed.bed": "#made by hand\nchr1\t5\t9\n",
    "files_plain.csv": "1,2\n3,4\n",
}
BAD = {
    "files_twice.csv": "k,v,K\n1,2,3\n",
    "files_ragged.csv": "k,v\n1,2\n1,2,3\n",
    "files_broken.parquet": "no Parquet",
    "files_lines2.json": '{"a": 1}\n{"a":\n',
    "files_same.csv": "k\n1\n",
    "Files_Same.json": '{"k": 1}\n',
}


@pytest.mark.every_spark("files as tables")
def test_files_are_read_when_a_statement_names_them(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in {**GOOD, **BAD}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    session = Session(spark)
    tables = tables_at(tmp_path, lambda: spark)
    session.register_when_named(tables)
    before = set(session.tables_offered)
    assert {name.lower() for name in before} == {name.partition(".")[0].lower() for name in {**GOOD, **BAD}}
    rows = session.sql(f"SELECT v, sum(v) OVER w AS s FROM files_semi {WINDOW}").collect()
    assert sorted(map(tuple, rows)) == [(3, 3), (4, 7)]
    assert before - set(session.tables_offered) == {"files_semi"}
    assert session.sql("SELECT v FROM `files_lines`").collect()[0].v == "a\nb"
    query = "SELECT (SELECT count(*) FROM files_tabs) AS a, max(chromEnd) AS b FROM Files_BED"
    assert tuple(session.sql(query).collect()[0]) == (1, 9)
    assert session.sql("SELECT sum(_c1) AS s FROM files_plain").collect()[0].s == 6
    # the name of a bad file stands in the text, and means something else
    assert session.sql("WITH files_twice AS (SELECT 1 AS files_ragged) SELECT * FROM files_twice").count() == 1
    for name in BAD:
        table = name.partition(".")[0]
        for text in (f"SELECT * FROM {table}", f"SELECT 1 FROM {table} {WINDOW}", f"DESCRIBE TABLE {table}"):
            with pytest.raises(SqlExtError, match=name) as caught:
                session.sql(text)
            assert caught.value.help
    shown = {row.tableName for row in session.sql("SHOW TABLES").collect()}
    assert {name.partition(".")[0] for name in GOOD} <= shown
    (tmp_path / "files_twice.csv").write_text("k,v\n1,2\n", encoding="utf-8")
    assert session.sql("SELECT v FROM files_twice").collect()[0].v == 2
    for name in {**GOOD, **BAD}:
        spark.catalog.dropTempView(name.partition(".")[0])


NAMES = ("orders-2024", "a b", "2024", "v1.2", "tick`s", "größe", "select")


def test_names_that_stand_in_backticks(spark: SparkSession, tmp_path: Path) -> None:
    session = Session(spark)
    pq.write_table(pa.table({"k": [1, 1], "ts": [1, 2], "v": [3, 4]}), tmp_path / "t.parquet")
    for name in NAMES:
        quoted = "`" + name.replace("`", "``") + "`"
        session.register(name, tmp_path / "t.parquet")
        assert session.plan(f"SELECT * FROM {quoted}").analyzed is not None
        query = f"SELECT v, sum(v) OVER w AS s FROM {quoted} {WINDOW}"
        session.sql(f"CREATE OR REPLACE TEMP VIEW {quoted[:-1]} 2` AS {query}")
        session.sql(f"CACHE TABLE {quoted[:-1]} 3` AS {query}")
        for view in ("2", "3"):
            rows = session.sql(f"SELECT s FROM {quoted[:-1]} {view}` ORDER BY s").collect()
            assert [row.s for row in rows] == [3, 7]
        spark.sql(f"UNCACHE TABLE {quoted[:-1]} 3`")
        for view in (name, f"{name} 2", f"{name} 3"):
            assert spark.catalog.dropTempView(view)


def test_clock_times_of_files_are_in_utc_8(spark: SparkSession, tmp_path: Path) -> None:
    """In the mode of OpenMLDB, whatever the format, and whatever the zone of the Spark session."""
    at = dt.datetime(2017, 11, 8, 6, 30, 54)
    utc = at.replace(tzinfo=dt.UTC) - dt.timedelta(hours=8)
    pq.write_table(pa.table({"x": [at], "y": [utc], "n": [{"x": [at]}]}), tmp_path / "p.parquet")
    (tmp_path / "c.csv").write_text("x,y\n2017-11-08 06:30:54,2017-11-07T22:30:54Z\n", encoding="utf-8")
    (tmp_path / "j.json").write_text('{"x": "2017-11-08 06:30:54", "y": "2017-11-07T22:30:54Z"}\n', encoding="utf-8")
    folder = tmp_path / "f" / "x=2017-11-08 06%3A30%3A54"
    folder.mkdir(parents=True)
    (folder / "part.csv").write_text("y\n2017-11-07 22:30:54+00:00\n".replace("+00:00", "Z"), encoding="utf-8")
    session = Session(spark, compat="openmldb")
    for name, path in (("p", "p.parquet"), ("c", "c.csv"), ("j", "j.json"), ("f", "f")):
        types = "x timestamp, y timestamp" if name == "j" else None
        session.register(f"clock_{name}", tmp_path / path, types=types)
    text = "SELECT hour(timestamp(x)) AS h, dayofweek(timestamp(x)) AS d, x = y AS same, bigint(x) AS ms FROM clock_{}"
    millis = int(utc.timestamp() * 1000)
    for name in ("p", "c", "j", "f"):
        assert tuple(session.sql(text.format(name)).collect()[0]) == (6, 4, True, millis), name
    assert session.sql("SELECT hour(n.x[0]) AS h FROM clock_p").collect()[0].h == 6
    plain = Session(spark)
    plain.register("clock_c", tmp_path / "c.csv")
    row = plain.sql("SELECT hour(x) AS h, unix_millis(x) AS ms FROM clock_c").collect()[0]
    assert (row.h, row.ms == millis) == (6, False)
    for name in "pcjf":
        spark.catalog.dropTempView(f"clock_{name}")


def test_doubles_that_are_keys_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from sqlext_planner.config import Config

    from sqlext.catalog import FileCatalog
    from sqlext.catalog.options import FolderOptions
    from sqlext.run.pipeline import stage

    (tmp_path / "l.csv").write_text("uid,s,e\n1.5,1,2\n", encoding="utf-8")
    (tmp_path / "r.csv").write_text("uid,s,e,v\n1.5,1,2,2.5\n", encoding="utf-8")
    last = "SELECT a.u, r.v FROM (SELECT uid AS u FROM l) AS a LAST JOIN r ON a.u = r.uid"
    overlap = "SELECT l.uid, r.v FROM l JOIN r ON l.uid = r.uid AND PERIOD(l.s, l.e) OVERLAPS PERIOD(r.s, r.e)"
    caplog.set_level("INFO", logger="sqlext")
    for text in (last, overlap):
        caplog.clear()
        plan = stage(text, FileCatalog(tmp_path), Config())
        assert "DOUBLE type of key l.uid, r.uid was inferred" in str(plan)
        assert "types='uid string'" in caplog.text
        caplog.clear()
        options = FolderOptions.of_texts(["types=uid string"])
        assert "inferred" not in str(stage(text, FileCatalog(tmp_path, options), Config()))
        assert caplog.text == ""


def test_a_registered_file_that_is_wrong_is_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,v,K\n1,2,3\n", encoding="utf-8")
    session = Session(spark)
    with pytest.raises(ConfigurationError, match=r"t\.csv' names column 'K' twice"):
        session.register("files_t", tmp_path / "t.csv")
    with pytest.raises(ConfigurationError, match="there is no column 'uid'"):
        session.register("files_t", tmp_path / "t.csv", header=False, types="uid string")
    session.register("files_t", tmp_path / "t.csv", header=False)
    assert session.sql("SELECT count(_c0) AS n FROM files_t").collect()[0].n == 2
    spark.catalog.dropTempView("files_t")
