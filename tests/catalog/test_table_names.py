"""Names of tables that stand in backticks, without Spark; a bad file stops only those who name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import DictCatalog, FileCatalog
from sqlext.run.pipeline import stage


@pytest.mark.parametrize("name", ["orders-2024", "a b", "2024", "v1.2", "tick`s", "größe", "select"])
def test_names_that_stand_in_backticks(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.csv").write_text("k,v\n1,2\n", encoding="utf-8")
    quoted = "`" + name.replace("`", "``") + "`"
    for catalog in (FileCatalog(tmp_path), DictCatalog({name: {"k": "int", "v": "int"}})):
        for full in (quoted, f"db.{quoted}"):
            plan = stage(f"SELECT a.v, b.v FROM {full} a LAST JOIN {quoted} b ON a.k = b.k", catalog, Config())
            assert plan.extensions == ("LastJoinExec",)


def test_a_bad_file_is_named_and_stops_only_those_who_name_it(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("k,v,K\n1,2,3\n", encoding="utf-8")
    (tmp_path / "good.csv").write_text("k,v\n1,2\n", encoding="utf-8")
    catalog = FileCatalog(tmp_path)
    assert stage("SELECT bad.k FROM good AS bad", catalog, Config()).analyzed is not None
    with pytest.raises(ConfigurationError, match=r"header of '.*bad\.csv' names column 'K' twice"):
        stage("SELECT * FROM bad", catalog, Config())
