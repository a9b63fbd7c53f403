"""A deployment as a folder: it comes back as it was, and what was changed is noticed. Without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.serving.deployment import Deployment
from sqlext.serving.division import division
from sqlext.serving.journal import Journal
from sqlext.serving.service import Service
from sqlext.serving.workers import Divided
from tests.serving.servers import SPENT, TABLES, served, spent


def test_a_deployment_comes_back_as_it_was(tmp_path: Path) -> None:
    settings = ServingSettings(ansi=False, time_zone="+05:30")
    before = spent(settings=settings, name="a.b-c", lateness=None, request="VIEWS")
    before.save(tmp_path / "new" / "d")
    after = Deployment.open(tmp_path / "new" / "d")
    assert after.saved.fingerprint == before.saved.fingerprint
    assert (after.name, after.sql, after.request, after.lateness) == ("a.b-c", SPENT, "views", None)
    assert (after.settings, after.schemas, after.spec) == (settings, before.schemas, before.spec)
    assert sorted(path.name for path in (tmp_path / "new" / "d").iterdir()) == [
        "deployment.json", "plan.txt", "query.sql", "tables.json",
    ]  # fmt: skip
    assert "input 0: orders" in (tmp_path / "new" / "d" / "plan.txt").read_text()


def test_all_types_of_columns_come_back(tmp_path: Path) -> None:
    columns = {
        "k": "bigint", "ts": "timestamp", "a": "array<struct<x:int,y:decimal(5,2)>>", "b": "map<string,timestamp_ntz>",
        "c": "varchar(3)", "d": "binary", "e": "date",
    }  # fmt: skip
    sql = "SELECT t.k, u.a, u.b, u.c, u.d, u.e FROM t LAST JOIN u ORDER BY u.ts ON t.k = u.k"
    settings = ServingSettings(ansi=True, time_zone="UTC")
    before = Deployment(sql, DictCatalog({"t": columns, "u": columns}), settings=settings)
    before.save(tmp_path)
    assert Deployment.open(tmp_path).tables == before.tables == {"t": columns, "u": columns}


UNREAD = """SELECT v.user_id, sum(v.price) OVER w AS spent
FROM views v LAST JOIN items i ORDER BY i.ts ON v.user_id = i.user_id
WINDOW w AS (PARTITION BY v.user_id ORDER BY v.ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_table_that_the_text_names_and_no_answer_needs(tmp_path: Path, workers: int) -> None:
    """The text is analyzed again where the folder is opened, so the table is known there; its rows go nowhere."""
    settings = ServingSettings(ansi=True, time_zone="UTC")
    catalog = DictCatalog({"views": TABLES["views"], "items": TABLES["views"]})
    Deployment(UNREAD, catalog, settings=settings, name="spent").save(tmp_path / "d")
    deployment = Deployment.open(tmp_path / "d")
    assert list(deployment.spec.tables) == ["views"]
    assert sorted(deployment.tables) == ["items", "views"]
    row = {"user_id": 1, "ts": "2026-01-01T00:00:00Z", "item": "x", "price": 5}
    assert deployment.push("ITEMS", [{"user_id": 1, "item": "x"}]) == 1
    assert deployment.kept_rows == 0
    if workers > 1:
        divided = division(deployment.spec)
        assert divided is not None
        deployment = Divided(deployment.saved, divided, workers)
    with served(service=Service([deployment], Journal(tmp_path / "journal"))) as client:
        assert client.push([row], "items").json == {"stored": 1}
        assert client.push([row], "views").json == {"stored": 1}
        assert client.push([row], "orders").error["condition"] == "unknown-table"
        answer = client.ask(row).json
        assert answer["output"]["spent"] == "10.00"
    with served(Deployment.open(tmp_path / "d"), journal=tmp_path / "journal") as client:
        assert client.ask(row).json == answer


def test_the_fingerprint_is_of_all_that_answers_depend_on() -> None:
    wider = {**TABLES, "views": dict(reversed(TABLES["views"].items()))}
    settings = ServingSettings(ansi=True, time_zone="Europe/Berlin")
    by_name = SPENT.replace("orders", "orders BY NAME")
    others = [
        spent(),
        spent(lateness=1),
        spent(settings=ServingSettings(ansi=False, time_zone="Europe/Berlin")),
        spent(settings=ServingSettings(ansi=True, time_zone="UTC")),
        Deployment(f"{SPENT} ", DictCatalog(TABLES), settings=settings),
        Deployment(by_name, DictCatalog(TABLES), settings=settings),
        Deployment(by_name, DictCatalog(wider), settings=settings),
    ]
    assert len({one.saved.fingerprint for one in others}) == len(others)
    assert spent().saved.fingerprint == spent(name="other").saved.fingerprint


def manifest_with(folder: Path, **changes: Any) -> None:
    path = folder / "deployment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "query.sql").write_text(SPENT.replace("1h", "2h")), "query.sql was changed after"),
        (lambda folder: (folder / "tables.json").write_text("{}"), "tables.json was changed after"),
        (lambda folder: (folder / "plan.txt").write_bytes(b"\xff"), "plan.txt was changed after"),
        (lambda folder: (folder / "query.sql").unlink(), "query.sql cannot be read"),
        (lambda folder: (folder / "deployment.json").unlink(), "is no deployment"),
        (lambda folder: (folder / "deployment.json").write_text("{"), "is damaged"),
        (lambda folder: manifest_with(folder, format=2), "written by a newer version: its format is 2"),
        (lambda folder: manifest_with(folder, format="1"), "is damaged"),
        (lambda folder: manifest_with(folder, settings={}), "lacks what a deployment needs"),
        (lambda folder: manifest_with(folder, fingerprint="0"), "its fingerprint is of another deployment"),
        (lambda folder: manifest_with(folder, name="../x"), "cannot be the name"),
    ],
)
def test_a_changed_folder_is_one_clear_error(tmp_path: Path, change: Any, words: str) -> None:
    spent().save(tmp_path)
    change(tmp_path)
    with pytest.raises(ConfigurationError, match=words) as caught:
        Deployment.open(tmp_path)
    assert caught.value.condition == "deployment-folder"


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigurationError, match="something else"):
        spent().save(tmp_path)
    (tmp_path / "mine.txt").unlink()
    spent().save(tmp_path)
    spent(lateness=5).save(tmp_path)
    assert Deployment.open(tmp_path).lateness == 5
