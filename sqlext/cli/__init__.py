"""The command line: `sqlext demo | plan | run | deploy | serve | shell | config | errors | doctor | bundle | pecj |
tpch | tpcds | bench`.

Exit codes: 0 success, 2 a user's mistake (one paragraph on stderr, no traceback), 1 anything else; 128 + n if signal n
ended it, 141 if the reader of its output has gone (SIGPIPE), as in the shell for other commands.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line (sys.argv by default) and exit with its code."""
    from sqlext.cli.signals import watch_signals

    watch_signals()  # before anything that takes long to import
    from sqlext.cli.terminal import prepare_streams

    prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `sqlext run ... | head`: the reader has what it wanted
        code = _no_more_output(128 + signal.SIGPIPE)
    except OSError as error:  # standard output is a file on a full disk
        print(f"standard output cannot be written: {error.strerror}", file=sys.stderr)
        code = _no_more_output(1)
    sys.exit(code)


def _no_more_output(code: int) -> int:
    """Discard what is left in the buffer: flushing it at exit would make the interpreter fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from sqlext_planner.errors import SqlExtError

    from sqlext.cli.app import app
    from sqlext.cli.failures import report
    from sqlext.cli.signals import stopped_by

    try:
        words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
        result = app(args=words, prog_name="sqlext", standalone_mode=False)
    except SqlExtError as error:
        return report(error)
    except BaseException as error:
        if stopped_by() is not None:
            return report(error)
        if isinstance(error.__context__, BrokenPipeError):  # typer turns it into an exit with 1
            raise error.__context__ from None
        if isinstance(error, (BrokenPipeError, SystemExit)):
            raise
        return report(error)
    return result if isinstance(result, int) else 0
