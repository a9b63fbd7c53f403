"""A real Kafka broker for tests: one process on loopback, in KRaft mode, with its files in a folder of the test's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from sqlext.embedded import find_java

#: Loads in three seconds on a slow machine; a log that has to be recovered after a kill takes longer.
_PATIENCE = 90.0
_HEAP = ("-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER = "c3FsZXh0LXRlc3RzLWthZg"
#: The files of a deleted topic are gone after a moment, not after a minute.
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
auto.create.topics.enable={makes_topics}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=100
log.cleaner.enable=false
broker.session.timeout.ms=3000
controlled.shutdown.enable=false
"""


class Broker:
    """A broker that is started, killed and started again over the same files, at the same address."""

    def __init__(self, folder: Path, classpath: str, port: int | None = None, makes_topics: bool = False) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._java = [str(find_java().executable), *_HEAP, f"-Dkafka.logs.dir={folder}", "-cp", classpath]
        free, controller = _free_ports(2)
        self._port = port or free
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(
                port=self._port, controller=controller, folder=folder, makes_topics=str(makes_topics).lower()
            )
        )
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        command = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)]
        done = subprocess.run([*self._java, *command], capture_output=True, text=True, timeout=_PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        assert self._process is None
        # It must not outlive a test process that is killed.
        setpriv = shutil.which("setpriv")
        tied = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*tied, *self._java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self._folder)},
            )
        end = time.monotonic() + _PATIENCE
        while not _takes_connections(self._port):
            told = self._log.read_text(errors="replace")[-4000:]
            assert self._process.poll() is None, f"the broker has ended:\n{told}"
            assert time.monotonic() < end, f"the broker does not start:\n{told}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as when its machine stops."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()


def _free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at."""
    with_ports = [socket.socket() for _ in range(count)]
    for one in with_ports:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in with_ports]
    for one in with_ports:
        one.close()
    return ports


def _takes_connections(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
