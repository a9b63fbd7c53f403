"""The command line: `sqlext demo | plan | run | bench`.

Exit codes: 0 success, 2 a mistake of the user (one paragraph on stderr, no traceback), 1 anything else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line (sys.argv by default) and exit with its code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `sqlext run ... | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    from sqlext_planner.errors import SqlExtError

    from sqlext.cli.app import app
    from sqlext.cli.failures import report

    try:
        words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
        result = app(args=words, prog_name="sqlext", standalone_mode=False)
    except SqlExtError as error:
        return report(error)
    except (BrokenPipeError, SystemExit):
        raise
    except BaseException as error:
        return report(error)
    return result if isinstance(result, int) else 0
