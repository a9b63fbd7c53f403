"""The journal: nothing that was acknowledged is lost or stored twice, and what was damaged is told. Without Spark."""

from __future__ import annotations

import errno
import http.client
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.serving import records
from sqlext.serving.deployment import Deployment
from sqlext.serving.journal import Journal, Push
from sqlext.serving.service import Service
from tests.command_line import _ROOT
from tests.conftest import slow_too
from tests.serving.servers import Client, served, spent
from tests.told import bugs_noted

ASKED = {"user_id": 1, "ts": "2024-05-01T12:00:00", "price": 0}


def row(minute: int, user: int = 1, price: Any = 1) -> dict[str, Any]:
    return {"user_id": user, "ts": f"2024-05-01T11:{minute:02d}:00", "price": price}


def seen(client: Client, user: int = 1) -> tuple[str, int]:
    output = client.ask({**ASKED, "user_id": user}).json["output"]
    return output["spent"], output["n"] - 1


def pushes(count: int, first: int = 0) -> list[Push]:
    return [Push("orders", pa.record_batch({"n": [first + number]}), f"key{first + number}") for number in range(count)]


def written(folder: Path, count: int) -> Path:
    """A journal of so many pushes, each written alone; returns its file."""
    journal = Journal(folder)
    assert list(journal.pushes()) == []
    for push in pushes(count):
        journal.append([push])
    journal.close()
    (log,) = folder.glob("*.log")
    return log


def read(folder: Path) -> list[int]:
    journal = Journal(folder)
    try:
        return [push.rows["n"][0].as_py() for push in journal.pushes()]
    finally:
        journal.close()


def test_a_restart_gives_the_same_answers(tmp_path: Path) -> None:
    with served(journal=tmp_path) as client:
        client.push([row(10), row(20, price="2.50")], key="a")
        client.push([row(30, user=2)], "views")
        before = seen(client), seen(client, 2)
    with served(journal=tmp_path) as client:
        assert (seen(client), seen(client, 2)) == before == (("3.50", 2), ("1.00", 1))
        assert client.push([row(10), row(20, price="2.50")], key="a").json == {"stored": 2, "repeated": True}
        client.push([row(40)])
    with served(journal=tmp_path) as client:
        assert seen(client) == ("4.50", 3)


def test_snapshots_bound_the_journal(tmp_path: Path) -> None:
    with served(journal=tmp_path, snapshot_bytes=20_000) as client:
        for number in range(120):
            assert client.push([row(number % 60, user=number % 3)], key=f"k{number}").status == 200
        before = [seen(client, user) for user in range(3)]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split("-")[0] for name in names] == ["journal", "lock", "snapshot"]
    assert (tmp_path / names[0]).stat().st_size < 60_000
    with served(journal=tmp_path, snapshot_bytes=20_000) as client:
        assert [seen(client, user) for user in range(3)] == before
        assert client.push([row(0)], key="k7").status == 422
        assert client.push([row(7, user=1)], key="k7").json == {"stored": 1, "repeated": True}
        assert [seen(client, user) for user in range(3)] == before


def test_a_snapshot_remembers_what_is_gone(tmp_path: Path) -> None:
    """Rows before what is kept stay gone after a restart, though the newest row is in the snapshot alone."""
    day = [{"user_id": 5, "ts": f"2024-05-02T{hour:02d}:00:00", "price": 1} for hour in range(24)]
    with served(journal=tmp_path, snapshot_bytes=1) as client:
        for one in day:
            client.push([one])
        kept = client.get("/deployments/spent").json["kept"]["rows"]
    with served(journal=tmp_path, snapshot_bytes=1 << 30) as client:
        assert client.get("/deployments/spent").json["kept"]["rows"] <= kept


def test_a_torn_last_record_is_dropped(tmp_path: Path) -> None:
    log = written(tmp_path / "whole", 3)
    whole = log.read_bytes()
    reader = records.RecordReader(log, b"sqlext journal 1\n")
    ends = [reader.end for _ in reader]
    for cut in [*range(0, len(whole), 37), *(end - 1 for end in ends)]:
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / log.name).write_bytes(whole[:cut])
        expected = list(range(sum(end <= cut for end in ends[1:])))
        assert read(folder) == expected, cut
        assert read(folder) == expected, "the torn part is gone"
        journal = Journal(folder)
        assert len(list(journal.pushes())) == len(expected)
        journal.append(pushes(1, first=len(expected)))
        journal.close()
        assert read(folder) == [*expected, len(expected)]
    zeros = tmp_path / "zeros"
    zeros.mkdir()
    (zeros / log.name).write_bytes(whole[: ends[-2]] + bytes(500))  # the length was on disk, the data was not
    assert read(zeros) == [0, 1]


def test_damage_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    log = written(tmp_path, 3)
    whole = log.read_bytes()
    for at in range(len(whole)):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ConfigurationError, match=r"is damaged at byte \d+") as caught:
            read(tmp_path)
        assert caught.value.condition == "journal-damaged"
    log.write_bytes(whole)
    assert read(tmp_path) == [0, 1, 2]


def test_a_damaged_snapshot_is_noticed(tmp_path: Path) -> None:
    with served(journal=tmp_path, snapshot_bytes=1) as client:
        for minute in range(5):
            client.push([row(minute)])
            time.sleep(0.05)
    (snapshot,) = tmp_path.glob("*.rows")
    whole = snapshot.read_bytes()
    places = [*range(0, len(whole), 101), len(whole) - 1]
    for content in [
        *(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in places),
        whole[:-40],
        b"",
    ]:
        snapshot.write_bytes(content)
        with pytest.raises(ConfigurationError, match="damaged"), served(journal=tmp_path):
            pass


def test_a_missing_file_is_noticed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    list(journal.pushes())
    for first in (0, 2, 4):
        journal.append(pushes(2, first))
        journal.begin_snapshot()
    journal.close()
    assert read(tmp_path) == [0, 1, 2, 3, 4, 5]
    sorted(tmp_path.glob("*.log"))[1].unlink()
    with pytest.raises(ConfigurationError, match="the pushes from 3 to 4 are missing"):
        read(tmp_path)


def test_one_process_has_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(ConfigurationError, match="another process has the journal"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_deployments_of_a_snapshot(tmp_path: Path) -> None:
    with served(journal=tmp_path, snapshot_bytes=1) as client:
        client.push([row(1)])
        time.sleep(0.2)
        client.push([row(2)])
    changed = spent(lateness=7)
    with (
        pytest.raises(ConfigurationError, match="spent is new, was changed") as caught,
        served(changed, journal=tmp_path),
    ):
        pass
    assert caught.value.condition == "journal"
    with served(service=Service([changed], Journal(tmp_path), allow_gaps=True)) as client:
        assert client.get("/readyz").status == 200


def test_a_full_disk_is_told_and_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, is_full = os.write, False

    def full(file: int, data: Any) -> int:
        if is_full:
            write(file, bytes(data)[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    with bugs_noted(), served(journal=tmp_path) as client:
        monkeypatch.setattr(records.os, "write", full)
        assert client.push([row(1)], key="a").status == 200
        is_full = True
        refused = client.push([row(2)], key="b")
        assert (refused.status, refused.error["condition"]) == (503, "server-busy")
        assert "/" not in refused.error["message"]
        assert seen(client) == ("1.00", 1)
        is_full = False
        assert client.push([row(2)], key="b").json == {"stored": 1}
        assert seen(client) == ("2.00", 2)
    with served(journal=tmp_path) as client:
        assert seen(client) == ("2.00", 2)


def test_after_a_failed_sync_nothing_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with bugs_noted(), served(journal=tmp_path) as client:
        with monkeypatch.context() as patch:
            patch.setattr(records, "_sync", fails)
            assert client.push([row(1)]).status == 503
        assert client.push([row(1)]).status == 503, "the disk says that all is well again"
        assert client.ask(ASKED).status == 200


def test_pushes_that_wait_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, count = records._sync, 0

    def slow_sync(file: int) -> None:
        nonlocal count
        count += 1
        time.sleep(0.05)
        sync(file)

    with served(journal=tmp_path) as client:
        monkeypatch.setattr(records, "_sync", slow_sync)
        clients = [Client(client.port) for _ in range(16)]
        threads = [threading.Thread(target=one.push, args=([row(7)],)) for one in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in clients:
            one.close()
        assert seen(client) == ("16.00", 16)
        assert count <= 8


@contextmanager
def process(folder: Path, journal: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """`sqlext serve` in a process of its own, with small snapshots, once it answers."""
    path = os.pathsep.join(map(str, (_ROOT, _ROOT / "planner", _ROOT / "operators")))
    start = "import sqlext.serving.journal as j, sys; j.Journal.__init__.__defaults__ = (30_000,)\n"
    start += "from sqlext.cli import main; main(sys.argv[1:])"
    words = ["serve", str(folder), "--port", "0", "--journal", str(journal), "--no-log-requests", *more]
    running = subprocess.Popen(
        [sys.executable, "-c", start, *words], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        port = re.match(r"http://127\.0\.0\.1:(\d+)/ answers spent", line)
        assert port is not None, line
        client = Client(int(port[1]))
        while True:
            try:
                if client.get("/readyz").status == 200:
                    break
            except OSError:
                pass
            assert running.poll() is None
            time.sleep(0.02)
        yield running, client
        client.close()
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


class Pusher(threading.Thread):
    """Pushes rows of its own user until the server is gone; each with a key, some of them twice."""

    def __init__(self, port: int, user: int, first: int) -> None:
        super().__init__()
        self._client, self._user = Client(port), user
        self.acknowledged, self.next = first, first

    def run(self) -> None:
        """The number of rows that were acknowledged is `acknowledged`; the next one may be stored, too."""
        try:
            while True:
                one, key = row(self.next % 60, self._user), f"{self._user}-{self.next}"
                self.next += 1
                answered = self._client.push([one], key=key)
                assert answered.status in (200, 503), answered.body
                if answered.status == 200:
                    self.acknowledged = self.next
                    if self.next % 5 == 0:
                        assert self._client.push([one], key=key).json["repeated"]
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self._client.close()


def test_kills(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """SIGKILL at random moments: each row that was acknowledged is there, once, and no other one."""
    kills = 40 if slow_too(request.config) else 3
    spent().save(tmp_path / "d")
    users = 4
    sure = [0] * users
    chance = random.Random(7)
    for _ in range(kills):
        with process(tmp_path / "d", tmp_path / "journal") as (running, client):
            for user in range(users):
                stored = seen(client, user)[1]
                assert sure[user] <= stored <= sure[user] + 1
                # The client does not know whether its last row was stored: it comes again, with the same key.
                answered = client.push([row(sure[user] % 60, user)], key=f"{user}-{sure[user]}")
                assert answered.json.get("repeated", False) == (stored > sure[user])
                sure[user] += 1
            pushers = [Pusher(client.port, user, sure[user]) for user in range(users)]
            for pusher in pushers:
                pusher.start()
            time.sleep(chance.uniform(0.05, 1.5))
            running.send_signal(signal.SIGKILL)
            for pusher in pushers:
                pusher.join(60)
            sure = [pusher.acknowledged for pusher in pushers]
    assert len(list((tmp_path / "journal").glob("*.log"))) <= 2
    assert min(sure) > kills


def test_sigterm_ends_it_with_all_answered(tmp_path: Path) -> None:
    spent().save(tmp_path / "d")
    with process(tmp_path / "d", tmp_path / "journal") as (running, client):
        pushers = [Pusher(client.port, user, 0) for user in range(4)]
        for pusher in pushers:
            pusher.start()
        time.sleep(0.5)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 128 + signal.SIGTERM
        for pusher in pushers:
            pusher.join(30)
    with served(Deployment.open(tmp_path / "d"), journal=tmp_path / "journal") as client:
        assert [seen(client, user)[1] for user in range(4)] == [pusher.acknowledged for pusher in pushers]
