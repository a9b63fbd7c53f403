"""SQL for time on Spark: ``Session(spark).sql(text)`` gives back an ordinary PySpark DataFrame."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlext_planner import __version__
from sqlext_planner.errors import SqlExtError, without_credentials
from sqlext_planner.spark.streams import stream_settings

from sqlext.enable import disable, enable
from sqlext.session import Session, sql

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Session", "SqlExtError", "__version__", "disable", "enable", "sql", "stream_settings"]

for _name in ("sqlext", "sqlext.run.spark_analysis"):  # a filter holds for messages of its own logger only
    logging.getLogger(_name).addFilter(without_credentials)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext sqlext``: the magics `%sqlext` and `%%sqlext` (sqlext.notebook)."""
    from sqlext.notebook import load_ipython_extension as load

    load(shell)
