"""The magics `%sqlext` and `%%sqlext` for IPython and Jupyter: ``%load_ext sqlext``."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display
from sqlext_planner.errors import SqlExtError
from sqlext_planner.spark.results import python_values
from sqlext_planner.spark.versions import arrow_table

from sqlext.session import COMPAT, Session

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from pyspark.sql import DataFrame

#: Rows that a cell shows unless it is told otherwise.
ROWS = 20


@magics_class
class SqlMagics(Magics):
    """Statements of the extension in a cell. They run on the notebook's variable `spark` if that is a Spark session,
    else as those of `Session()` do."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._variables: dict[str, Any] = shell.user_ns
        self._sessions: dict[str | None, tuple[Any, Session]] = {}

    @magic_arguments()
    @argument("-o", "--output", metavar="NAME", help="keep the DataFrame in this variable")
    @argument("-n", "--rows", type=int, default=ROWS, help=f"show at most so many rows ({ROWS}); 0: none")
    @argument("-p", "--plan", action="store_true", help="show the plan; the statement does not run")
    @argument("-a", "--analyze", action="store_true", help="run the query, and show the plan with what was measured")
    @argument("--compat", choices=COMPAT, help="read the statement as OpenMLDB does")
    @argument("sql", nargs="*", help="the statement, if it is not in the lines below")
    @line_cell_magic
    def sqlext(self, line: str, cell: str | None = None) -> None:
        """Run a statement and show its first rows.

        %%sqlext -o features
        SELECT ..., sum(price) OVER w AS spent FROM {views} WINDOW w AS (UNION orders ...)

        {name} is a DataFrame, or a number or string, in the notebook's variable `name`.
        """
        words, sql = _split(line) if cell is None else (line, cell)
        options = parse_argstring(self.sqlext, words)
        if cell is not None and options.sql:
            raise UsageError(f"%%sqlext takes the statement in the lines below, not {' '.join(options.sql)!r}")
        if not sql.strip():
            raise UsageError("%sqlext needs a statement: %sqlext SELECT ..., or %%sqlext and the text below it")
        try:
            self._run(sql, options)
        except Exception as error:
            if not _is_users(error):
                raise
            # IPython shows this instead of a traceback through our code; the cell still fails.
            lines = (error.text() if isinstance(error, SqlExtError) else str(error)).splitlines()
            vars(error)["_render_traceback_"] = lambda: lines
            raise

    def _run(self, sql: str, options: Any) -> None:
        session = self._session(options.compat)
        values = self._values(sql)
        if options.plan or options.analyze:
            display(session.analyze(sql, **values) if options.analyze else session.plan(sql, **values))
            return
        frame = session.sql(sql, **values)
        if options.output:
            self._variables[options.output] = frame
        _show(frame, options.rows)

    def _session(self, compat: str | None) -> Session:
        """One Session for each mode, as long as the notebook has the same Spark."""
        named = self._variables.get("spark")
        spark = named if type(named).__name__ == "SparkSession" else None  # a classic one, or one of Spark Connect
        of, session = self._sessions.get(compat, (None, None))
        if session is None or of is not spark:
            session = Session(spark, compat)
            self._sessions[compat] = spark, session
        return session

    def _values(self, sql: str) -> dict[str, Any]:
        """The notebook's variables that the text names in braces."""
        from sqlext_planner.spark.versions import is_frame

        try:
            names = {name for _, name, _, _ in string.Formatter().parse(sql) if name}
        except ValueError:  # braces that are no references
            return {}
        found = {name: self._variables[name] for name in names if name in self._variables}
        return {name: value for name, value in found.items() if is_frame(value) or isinstance(value, (int, float, str))}


def _split(line: str) -> tuple[str, str]:
    """The options of a line and the statement behind them."""
    words = line.split()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 if words[at] in ("-p", "--plan", "-a", "--analyze") or "=" in words[at] else 2
    return " ".join(words[:at]), line.split(None, at)[-1] if len(words) > at else ""


def _is_users(error: Exception) -> bool:
    """Whether an error is about the statement, not about the code."""
    from pyspark.errors import PySparkException

    return isinstance(error, (SqlExtError, PySparkException))


def _show(frame: DataFrame, rows: int) -> None:
    if frame.isStreaming:
        print(f"a stream of {', '.join(frame.columns)}: keep it with -o NAME, and start it with NAME.writeStream")
        return
    if not frame.columns or rows <= 0:
        return
    found = _pandas(frame.limit(rows + 1))
    display(found.head(rows))
    if len(found) > rows:
        print(f"the first {rows:,} rows; -n shows more")


def _pandas(frame: DataFrame) -> Any:
    """The rows in pandas; dates beyond Python's calendar, which `toPandas` fails on, as text."""
    try:
        return frame.toPandas()
    except (OverflowError, ValueError):
        import pandas as pd

        table = arrow_table(frame)
        rows = list(zip(*map(python_values, table.columns), strict=True))
        return pd.DataFrame(rows, columns=table.column_names)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; IPython calls it for ``%load_ext sqlext``."""
    shell.register_magics(SqlMagics)
