"""Calls from Python to Spark's Java: how many a statement needs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j import protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RELEASE = protocol.MEMORY_COMMAND_NAME + protocol.MEMORY_DEL_SUBCOMMAND_NAME


@dataclass
class Calls:
    """The calls to the JVM there were, as py4j's commands."""

    commands: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many there were."""
        return len(self.commands)


@contextmanager
def calls_counted(spark: "SparkSession") -> Iterator[Calls]:
    """Counts the calls to the JVM of what runs inside, in this thread and in those it starts; none under Connect.

    Threads that run already are somebody else's. Python's garbage collector tells the JVM which objects nobody holds
    any more. It does so when it likes, about objects of before too, so these messages are not counted.
    """
    calls = Calls()
    gateway = getattr(getattr(spark, "_jvm", None), "_gateway_client", None)
    if gateway is None:
        yield calls
        return
    send = gateway.send_command
    others = set(threading.enumerate()) - {threading.current_thread()}

    def counted(command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith(_RELEASE) and threading.current_thread() not in others:
            calls.commands.append(command)
        return send(command, *args, **kwargs)

    gateway.send_command = counted
    try:
        yield calls
    finally:
        del gateway.send_command
