"""Requests that nobody means: each is answered, with no status of 5xx but 503, and without a trace or a path.

2,000 of them in `make test`, 100,000 among the slow tests; there schemathesis
takes the OpenAPI document at its word, too.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sqlext.serving.arrow_bodies import ARROW, arrow_stream
from sqlext.serving.bodies import batch_of_objects
from sqlext.serving.gate import ServerOptions
from sqlext.serving.values import zone_of
from tests.conftest import slow_too
from tests.serving.servers import Answered, Client, served, spent

#: Addresses, with the method that they take and the name of their rows.
ADDRESSES = {
    "/deployments/spent": ("POST", "input"),
    "/tables/orders": ("PUT", "rows"),
    "/tables/views": ("PUT", "rows"),
    "/dbs/d/deployments/spent": ("POST", "input"),
    "/dbs/d/tables/orders": ("PUT", "value"),
}
PATHS = (*ADDRESSES, "/deployments", "/healthz", "/readyz", "/metrics", "/openapi.json", "/")
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW")
COLUMNS = ("user_id", "ts", "item", "price", "USER_ID", "other", "")
#: What no client may see.
TOLD = re.compile(rb"Traceback|File \"|\.py\b|/usr/|/work/|/root/|/home/|site-packages|0x[0-9a-f]{8}")


SCHEMA = spent().schemas["views"]


class Requests:
    """Random requests."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        chance = self.chance
        numbers = (0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, 1e308, -0.0, 1714557600000)
        words = ("", "a", "NaN", "Infinity", "1.5", "99999999999", "2024-05-01T12:00:00", "2024-05-01", "9999-12-31",
                 "0001-01-01T00:00:00+14:00", "\ud800", "\x00", "💥" * 9, "%s{}'\"`;--", "../etc/passwd")  # fmt: skip
        choices: list[Any] = [None, True, False, chance.choice(numbers), chance.choice(words), chance.getrandbits(70)]
        if depth < 4:
            choices += [[self.value(depth + 1) for _ in range(chance.randrange(4))], self.row(depth + 1)]
        return chance.choice(choices)

    def row(self, depth: int = 0) -> dict[str, Any]:
        good = {"user_id": 1, "ts": "2024-05-01T12:00:00", "item": "a", "price": "1.5"}
        if self.chance.random() < 0.3:
            return good
        names = self.chance.sample(COLUMNS, self.chance.randrange(len(COLUMNS)))
        return {**(good if self.chance.random() < 0.5 else {}), **{name: self.value(depth + 1) for name in names}}

    def rows(self) -> Any:
        return [self.row() for _ in range(self.chance.randrange(4))]

    def list_row(self) -> list[Any]:
        good = [1, 1714557600000, "a", "1.5"]
        return [value if self.chance.random() < 0.8 else self.value() for value in good][
            : self.chance.choice((4, 4, 3))
        ]

    def content(self, name: str) -> Any:
        chance = self.chance
        lists = [self.list_row() for _ in range(chance.randrange(3))]
        name = name if chance.random() < 0.9 else "inputs"
        forms = [self.rows(), {name: self.rows()}, {name: self.row()}, {name: lists}, {name: lists}, self.value()]
        return chance.choice(forms)

    def body(self, name: str) -> bytes | None:
        chance = self.chance
        kind = chance.random()
        if kind < 0.05:
            return None
        if kind < 0.1:
            return chance.randbytes(chance.randrange(200))
        text = json.dumps(self.content(name)).encode()
        if kind < 0.25:  # a byte that is another one, is missing, or is there twice
            place = chance.randrange(len(text))
            text = chance.choice((
                text[:place], text[:place] + chance.randbytes(1) + text[place + 1 :], text[:place] + text[place - 1 :],
            ))  # fmt: skip
        return b" " * 3000 + text if kind > 0.99 else text

    def arrow(self) -> bytes:
        chance = self.chance
        schema = SCHEMA
        rows = [{"user_id": 1, "ts": "2024-05-01T12:00:00", "price": "1.5"}] * chance.randrange(4)
        stream = bytearray(arrow_stream(schema, [batch_of_objects(rows, schema, "views", zone_of("UTC"))]))
        for _ in range(chance.choice((0, 1, 1, 2, 9))):
            stream[chance.randrange(len(stream))] = chance.randrange(256)
        return bytes(stream[: chance.choice((len(stream), chance.randrange(len(stream))))])

    def send(self, client: Client) -> Answered:
        """One request."""
        chance = self.chance
        path = chance.choice(PATHS)
        method, name = ADDRESSES.get(path, ("GET", "input"))
        if chance.random() < 0.1:
            method = chance.choice(METHODS)
        if chance.random() < 0.1:
            junk = quote("".join(chance.choices(string.printable + "é💥\x00", k=chance.randrange(12))))
            path = chance.choice((f"{path}/{junk}", f"{path}?{junk}", f"/{junk}", f"/..{path}"))
        headers = {}
        if chance.random() < 0.1:
            headers["Idempotency-Key"] = chance.choice(("", "a", "b", "x" * 300, "\xff"))
        if chance.random() < 0.15:
            return client.send(method, path, self.arrow(), {**headers, "Content-Type": ARROW})
        if chance.random() < 0.1:
            headers["Content-Type"] = chance.choice(("text/plain", "", "application/json; charset=utf-16", ";;;"))
        return client.send(method, path, self.body(name), headers)


def test_random_requests(request: pytest.FixtureRequest) -> None:
    count = 100_000 if slow_too(request.config) else 2_000
    requests = Requests(count)
    statuses: dict[int, int] = {}
    with served(options=ServerOptions(max_body=3000)) as client:
        for number in range(count):
            state = requests.chance.getstate()
            try:
                answered = requests.send(client)
            except http.client.HTTPException as error:
                requests.chance.setstate(state)
                raise AssertionError(f"request {number} was not answered: {error}") from error
            statuses[answered.status] = statuses.get(answered.status, 0) + 1
            assert answered.status < 500, (number, answered)
            assert not TOLD.search(answered.body) or answered.status == 200, (number, answered)
            if answered.status >= 400 and answered.body:
                assert set(answered.error) == {"condition", "message", "help", "place"}, number
                assert len(answered.body) < 2000, answered.body
        row = {"user_id": 77, "ts": "2024-05-01T12:00:00", "price": "1.5"}
        assert client.ask(row).json["output"]["spent"] == "1.50"
    assert {200, 400, 404, 405} <= statuses.keys()
    assert min(statuses[200], statuses[400]) > count / 50


@pytest.mark.slow
def test_the_document_is_true(tmp_path: Path) -> None:
    import subprocess
    import sys

    with served() as client:
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{client.port}/openapi.json",
            "--checks", "all", "--exclude-checks", "positive_data_acceptance",  # a key may come again with other rows
            "--max-examples", "100", "--no-color", "--seed", "1",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
