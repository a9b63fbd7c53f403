"""OpenMLDB's REST API, with the requests of its documentation (the page "REST APIs" of its quick start)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.catalog.ddl import read_ddl
from sqlext.serving.deployment import Deployment
from tests.serving.servers import Client, served

SCRIPT = """CREATE TABLE demo_table1(c1 string, c2 int, c3 bigint, c4 float, c5 double, c6 timestamp, c7 date,
    INDEX(KEY=c1, TS=c6));
DEPLOY demo_db.demo_data_service SELECT c1, c2, sum(c3) OVER w1 AS w1_c3_sum, max(c6) OVER w1 AS last, c7, c5
FROM demo_table1 WINDOW w1 AS (PARTITION BY c1 ORDER BY c6 ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"""
SERVICE = "/dbs/demo_db/deployments/demo_data_service"
TABLE = "/dbs/demo_db/tables/demo_table1"
ROW = ["aaa", 11, 22, 1.2, 1.3, 1635247427000, "2021-05-20"]


@pytest.fixture
def client() -> Iterator[Client]:
    deployment = Deployment(
        SCRIPT,
        DictCatalog(read_ddl(SCRIPT)),
        settings=ServingSettings(ansi=True, time_zone="UTC"),
        name="demo_data_service",
        compat="openmldb",
    )
    with served(deployment) as client:
        yield client


def test_lists_are_answered_with_lists(client: Client) -> None:
    stored = client.send("PUT", TABLE, {"value": [["aaa", 1, 20, None, 2.5, 1635247426000, "2020-5-5"]]})
    assert (stored.status, stored.json) == (200, {"code": 0, "msg": "ok"})
    answered = client.send("POST", SERVICE, {"input": [ROW, ["b", *ROW[1:]]], "need_schema": False})
    assert answered.json == {
        "code": 0,
        "msg": "ok",
        "data": {
            "data": [
                ["aaa", 11, 42, 1635247427000, "2021-05-20", 1.3],
                ["b", 11, 22, 1635247427000, "2021-05-20", 1.3],
            ]
        },
    }


def test_objects_are_answered_with_objects(client: Client) -> None:
    row = dict(zip(["c1", "c2", "c3", "c4", "c5", "c6", "c7"], ROW, strict=True))
    answered = client.send("POST", SERVICE, {"input": [{**row, "foo": "bar"}]})
    assert answered.json["data"]["data"] == [
        {"c1": "aaa", "c2": 11, "w1_c3_sum": 22, "last": 1635247427000, "c7": "2021-05-20", "c5": 1.3}
    ]


def test_the_schema_of_an_answer(client: Client) -> None:
    answered = client.send("POST", SERVICE, {"input": [ROW], "need_schema": True})
    assert answered.json["data"]["schema"] == [
        {"name": "c1", "type": "string"},
        {"name": "c2", "type": "int32"},
        {"name": "w1_c3_sum", "type": "int64"},
        {"name": "last", "type": "timestamp"},
        {"name": "c7", "type": "date"},
        {"name": "c5", "type": "double"},
    ]


def test_numbers_that_are_none(client: Client) -> None:
    row = [*ROW[:4], "NaN", *ROW[5:]]
    values = [
        client.send("POST", SERVICE, {"input": [row], **more}).json["data"]["data"][0][-1]
        for more in ({}, {"write_nan_and_inf_null": True})
    ]
    assert values == ["NaN", None]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", SERVICE, {"input": []}, 400, "no list 'input'"),
        ("POST", SERVICE, {"input": ROW}, 400, "row 0 has not one value for each column"),
        ("POST", SERVICE, {"input": [ROW[:-1]]}, 400, "row 0 has not one value for each column"),
        ("POST", SERVICE, {"input": [["aaa", "x", *ROW[2:]]]}, 400, "no value of the column 'c2'"),
        ("POST", SERVICE, {"input": [{"c1": "a"}, ROW]}, 400, "row 1 is no object"),
        ("POST", "/dbs/demo_db/deployments/x", {"input": [ROW]}, 404, "no deployment 'x'"),
        ("PUT", TABLE, {"value": ROW}, 400, "row 0 has not one value"),
        ("PUT", TABLE, {"values": [ROW]}, 400, "no list 'value'"),
        ("PUT", TABLE, {"value": [[*ROW[:5], None, ROW[6]]]}, 400, "'c6' is NULL"),
        ("PUT", "/dbs/demo_db/tables/x", {"value": [ROW]}, 404, "no deployment reads a table 'x'"),
        ("GET", TABLE, None, 405, "not possible"),
    ],
)
def test_mistakes_have_both_forms(client: Client, method: str, path: str, body: Any, status: int, words: str) -> None:
    answered = client.send(method, path, body)
    assert answered.status == status
    told = answered.json
    assert told["code"] == -1
    assert words in told["msg"]
    assert told["error"]["message"] == told["msg"]
