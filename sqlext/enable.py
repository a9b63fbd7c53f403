"""The extension in `spark.sql` itself: for notebooks, `%sql` magics and code that already calls it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError

from sqlext.session import AT_WORK, Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EnabledSql:
    """What `spark.sql` of an enabled Spark session is: it plans statements as `session` does.

    `spark_sql` is what it was before. It answers the questions that a Session asks while it works.
    """

    def __init__(self, session: Session, spark_sql: Callable[..., DataFrame]) -> None:
        self.session = session
        self.spark_sql = spark_sql
        functools.update_wrapper(self, spark_sql)

    def __call__(
        self,
        sqlQuery: str,  # noqa: N803 - Spark's own name
        args: dict[str, Any] | list[Any] | None = None,
        **kwargs: Any,
    ) -> DataFrame:
        if AT_WORK.get():
            return self.spark_sql(sqlQuery, args, **kwargs)
        return self.session.sql(sqlQuery, args, **kwargs)


def enable(spark: SparkSession, compat: str | None = None, config: Config | Mapping[str, str] | None = None) -> Session:
    """Make `spark.sql` of this session understand the extension; everything else reaches Spark as before.

    Only this Python object changes (what `SparkSession.builder.getOrCreate()` returns as long as it runs), until
    `disable`. Once more with other `compat` or `config` (see Session): these hold from then on. Returns the Session
    that plans the statements. Raises ConfigurationError as Session does.
    """
    session = Session(spark, compat, config)
    before = vars(spark).get("sql", spark.sql)
    spark_sql = before.spark_sql if isinstance(before, EnabledSql) else before
    vars(spark)["sql"] = EnabledSql(session, spark_sql)
    return session


def disable(spark: SparkSession) -> None:
    """Give `spark.sql` back to Spark. Nothing happens if it is not enabled.

    Raises ConfigurationError if something else has replaced `spark.sql` since: taking that away would break it.
    """
    current = vars(spark).get("sql")
    if current is None:
        return
    if not isinstance(current, EnabledSql):
        if not isinstance(getattr(current, "__wrapped__", None), EnabledSql):
            return
        raise ConfigurationError(
            "spark.sql has been replaced by something else since sqlext.enable",
            condition="python-call",
            help="undo that first, then call sqlext.disable",
        )
    if getattr(current.spark_sql, "__self__", None) is spark:
        del vars(spark)["sql"]
    else:
        vars(spark)["sql"] = current.spark_sql
