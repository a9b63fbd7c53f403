"""The state that a checkpoint of a streaming query has, read by Spark's data source of states."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.checkpoints import CheckpointFiles, put_right
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.versions import as_sparks, check_streams, sentences_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


_LOG = logging.getLogger("sqlext.checkpoints")
#: Spark's name of a stateful operator in Python that takes rows.
_OPERATOR = "transformWithStateInPySpark"


class StoredState:
    """The state of the operators of a query in Python at the last micro-batch that its checkpoint has as a whole; the
    query may go on meanwhile.

    A checkpoint that was copied or moved is put right first, as a query would do that goes on with it. Raises
    ConfigurationError for a folder that is no checkpoint of a query with state, that has no micro-batch, or that cannot
    be read.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        check_streams()
        self._spark, self.location = spark, location
        with self._reading():
            if not is_remote(spark):
                for name in put_right(CheckpointFiles(spark, location)):
                    _LOG.info("the checkpoint %s was elsewhere before: %s has its place now", location, name)
            self._listed = self._metadata.collect()
        #: The number of the micro-batch.
        self.batch = self._last_batch()

    def operators(self, *variables: str) -> list[int]:
        """The numbers of the operators whose state has all these variables."""
        found = {}
        for row in self._listed:
            if str(row["operatorName"]).startswith(_OPERATOR):
                found[int(row["operatorId"])] = _variables(str(row["operatorProperties"]))
        return sorted(number for number, names in found.items() if set(variables) <= names)

    def rows(self, operator: int, variable: str) -> Iterator[Row]:
        """The rows of a variable of an operator's state, with those of a partition one after the other. Raises
        ConfigurationError for a checkpoint that cannot be read."""
        with self._reading():
            reader = self._spark.read.format("statestore").option("path", self.location)
            reader = reader.option("batchId", self.batch).option("operatorId", operator)
            yield from reader.option("stateVarName", variable).load().toLocalIterator()

    def _last_batch(self) -> int:
        last = max((int(row["maxBatchId"]) for row in self._listed), default=-1)
        if last < 0:
            raise ConfigurationError(
                f"the checkpoint {self.location} has no state of a micro-batch that is committed",
                condition="checkpoint-mismatch",
                help="name the checkpointLocation of a query with windows that has answered a micro-batch",
            )
        return last

    @cached_property
    def _metadata(self) -> DataFrame:
        return self._spark.read.format("state-metadata").option("path", self.location).load()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError) as error:
            known = as_sparks(error)
            told = sentences_of(known) if isinstance(known, PySparkException) else str(known).splitlines()[0]
            raise ConfigurationError(
                f"the checkpoint {self.location} cannot be read: {told}",
                condition="stream-state-damaged",
                help="name the checkpointLocation of a query; a copy of it has to be made as a whole",
            ) from error


def _variables(properties: str) -> set[str]:
    """The names of the variables of an operator's state, by Spark's description of it."""
    try:
        found: Any = json.loads(properties)
        variables = found.get("stateVariables", ()) if isinstance(found, Mapping) else ()
        return {str(item["stateName"]) for item in variables}
    except (ValueError, TypeError, KeyError):
        return set()
