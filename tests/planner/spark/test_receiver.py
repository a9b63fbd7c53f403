"""Who else connects to the receiver of a result: nobody delays the rows, and none of them is lost. Without Spark."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from sqlext_operators.results.text import LENGTH
from sqlext_planner.spark import results

PARTITIONS = 5
EXPECTED = b"".join(b"partition %d\n" % number for number in range(PARTITIONS))
Address = tuple[str, int]


def send(address: Address, token: bytes, partition: int) -> None:
    """What a task does."""
    with socket.create_connection(address) as connection:
        text = b"partition %d\n" % partition
        connection.sendall(token + LENGTH.pack(partition) + LENGTH.pack(len(text)) + text + LENGTH.pack(0))


class Job(threading.Thread):
    """In place of the job: sends the partitions, the last one first; `late` are sent when it is over."""

    late: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()

    def __init__(self, frame: Any, task: tuple[Address, bytes], bell: socket.socket) -> None:
        super().__init__(daemon=True)
        self.error, self.is_over, self.partitions = None, False, PARTITIONS
        self._task, self._bell = task, bell
        self.late, self.lost = Job.late, Job.lost

    def run(self) -> None:
        for partition in reversed(range(PARTITIONS)):
            if partition not in (*self.late, *self.lost):
                send(*self._task, partition)
        self.is_over = True
        self._bell.close()
        time.sleep(0.2)
        for partition in self.late:
            send(*self._task, partition)

    def cancel(self) -> None:
        pass


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    """``received(before=..., late=..., lost=...)``: all text; `before` is called with the address and the token."""
    monkeypatch.setattr(results, "_Job", Job)
    monkeypatch.setattr(results, "_task", lambda frame, layout, address, token: (address, token))
    frame: Any = SimpleNamespace(sparkSession=SimpleNamespace(conf={}))

    def run(
        before: Callable[[Address, bytes], Any] = lambda address, token: None,
        late: tuple[int, ...] = (),
        lost: tuple[int, ...] = (),
    ) -> bytes:
        monkeypatch.setattr(Job, "late", late)
        monkeypatch.setattr(Job, "lost", lost)
        receiver = results._Receiver(frame, "csv", 1 << 20)
        kept = before(*receiver._job._task)
        try:
            with receiver:
                return b"".join(receiver.pieces())
        finally:
            for connection in kept or ():
                connection.close()

    return run


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds


@pytest.mark.parametrize("count", [1, 3, 100])
def test_silent_connections_delay_nothing(received: Callable[..., bytes], count: int) -> None:
    def silent(address: Address, token: bytes) -> list[socket.socket]:
        return [socket.create_connection(address) for _ in range(count)]

    with within(10):
        assert received(silent) == EXPECTED


def test_dripping_bytes_delay_nothing(received: Callable[..., bytes]) -> None:
    """The token itself, a byte from time to time, and the start of a token that then ends."""

    def dripping(address: Address, token: bytes) -> list[socket.socket]:
        slow, half = socket.create_connection(address), socket.create_connection(address)

        def drip() -> None:
            try:
                for byte in (token + LENGTH.pack(0)) * 3:
                    slow.sendall(bytes([byte]))
                    time.sleep(0.5)
            except OSError:  # the receiver has gone
                pass

        threading.Thread(target=drip, daemon=True).start()
        half.sendall(token[:7])
        half.close()
        return [slow]

    with within(10):
        assert received(dripping) == EXPECTED


def test_strangers_add_no_rows(received: Callable[..., bytes]) -> None:
    def strange(address: Address, token: bytes) -> list[socket.socket]:
        found = [socket.create_connection(address) for _ in range(2)]
        found[0].sendall(b"x" * len(token) + LENGTH.pack(0) + LENGTH.pack(5) + b"evil\n" + LENGTH.pack(0))
        found[1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        return found

    assert received(strange) == EXPECTED


@pytest.mark.parametrize("late", [(2,), (0, 4), tuple(range(PARTITIONS))])
def test_text_that_arrives_after_the_job_is_not_lost(received: Callable[..., bytes], late: tuple[int, ...]) -> None:
    with within(10):
        assert received(late=late) == EXPECTED


def test_text_that_never_arrives_is_an_error(received: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_ARRIVAL_SECONDS", 0.3)
    with pytest.raises(ConnectionError, match="1 of 5 partitions of the result did not arrive"):
        received(lost=(3,))


def test_more_guests_than_are_kept(received: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go, and the tasks get in."""
    monkeypatch.setattr(results, "_MOST_GUESTS", 4)

    def silent(address: Address, token: bytes) -> list[socket.socket]:
        return [socket.create_connection(address) for _ in range(20)]

    with within(10):
        assert received(silent) == EXPECTED
