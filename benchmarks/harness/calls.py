"""Calls from Python to Spark's Java: how many a statement needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j import protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RELEASE = protocol.MEMORY_COMMAND_NAME + protocol.MEMORY_DEL_SUBCOMMAND_NAME


@dataclass
class Calls:
    """How many calls to the JVM there were."""

    count: int = 0


@contextmanager
def calls_counted(spark: "SparkSession") -> Iterator[Calls]:
    """Counts the calls that this process makes to the JVM inside; none under Connect.

    Python's garbage collector tells the JVM which objects nobody holds any more. It does so when it likes, about
    objects of before too, so these messages are not counted.
    """
    calls = Calls()
    gateway = getattr(getattr(spark, "_jvm", None), "_gateway_client", None)
    if gateway is None:
        yield calls
        return
    send = gateway.send_command

    def counted(command: str, *args: Any, **kwargs: Any) -> Any:
        calls.count += not command.startswith(_RELEASE)
        return send(command, *args, **kwargs)

    gateway.send_command = counted
    try:
        yield calls
    finally:
        del gateway.send_command
