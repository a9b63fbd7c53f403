"""What may happen when a mutant is planned."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ParseError, SqlExtError, UnsupportedError

from sqlext.run.pipeline import stage

from .corpus import Source

#: Without one of these no statement is ours: asked independently of the parser.
_OURS = re.compile(
    r"\bLAST\b|\bASOF\b|ROWS_RANGE|MAXSIZE|INSTANCE_NOT_IN_WINDOW|CURRENT_ROW|CURRENT_TIME|\bOPEN\b|\bUNION\b|UMJOIN|SWEEP|PARTITIONER|"
    r"\d(ms|s|m|h|d|w)\b|\bPERIOD|\b(NORMALIZE|GAPS|CONCURRENT)\b|ALLEN|ISEQL|DEPLOY|EXPLAIN\s+ANALYZE|"
    + "|".join(rf"\b{name}\b" for function in FUNCTIONS.values() for name in (function.name, *function.aliases))
    + "|"
    + "|".join(r"\W+".join(words.split()) for row in RELATIONS.values() for words in row.words)
    + "|"
    + "|".join(rf"\b{name}\b" for name in RELATIONS),
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant: `kind` is "passed", "planned" or the error's class; `fault` says what must not be."""

    kind: str
    seconds: float
    fault: str | None = None
    placed: bool = True


def check(source: Source, config: Config | None = None) -> Verdict:
    """Plan a statement as a Session does, and as `sqlext plan` does."""
    started = time.perf_counter()
    verdicts = [_planned(source, config or Config(), lenient=lenient) for lenient in (True, False)]
    seconds = (time.perf_counter() - started) / 2
    kind, _, placed = verdicts[0]
    return Verdict(kind, seconds, verdicts[0][1] or verdicts[1][1], placed)


def _planned(source: Source, config: Config, *, lenient: bool) -> tuple[str, str | None, bool]:
    try:
        plan = stage(source.sql, source.catalog, config, source.compat, lenient=lenient)
    except SqlExtError as error:
        return type(error).__name__, _wrong(error, source) if lenient else _bad_span(error, source), _placed(error)
    except Exception as error:
        where = []
        trace = (error.__cause__ or error).__traceback__
        while trace is not None:
            where.append(f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
            trace = trace.tb_next
        return type(error).__name__, f"{type(error).__name__}: {str(error)[:200]} at {' '.join(where[-4:])}", True
    return ("passed" if plan.passthrough else "planned"), None, True


def _wrong(error: SqlExtError, source: Source) -> str | None:
    told = error.message.startswith("unknown relation of periods")  # a misspelt one, between two periods
    if source.compat is None and not _OURS.search(source.sql) and not told:
        return f"an ordinary statement is refused: {error.message}"
    return _bad_span(error, source)


def _bad_span(error: SqlExtError, source: Source) -> str | None:
    if not error.message:
        return "an error without a message"
    span = error.span
    if span is not None and not 0 <= span.start <= span.end <= len(source.sql):
        return f"the place {span} is outside the text: {error.message}"
    str(error.with_sql(source.sql))
    return None


def _placed(error: SqlExtError) -> bool:
    return error.span is not None or not isinstance(error, (AnalysisError, ParseError, UnsupportedError))
