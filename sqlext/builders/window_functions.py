"""The window functions, made of their table. `window_functions.pyi` shows them to type checkers and editors."""

from sqlext.builders.table_functions import window_functions

_FUNCTIONS = window_functions(__name__)
globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)
