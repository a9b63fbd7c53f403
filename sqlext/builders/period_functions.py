"""The period predicates and functions, made of their tables. `period_functions.pyi` shows them to type checkers."""

from sqlext.builders.table_functions import period_functions

_FUNCTIONS = period_functions(__name__)
globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)
