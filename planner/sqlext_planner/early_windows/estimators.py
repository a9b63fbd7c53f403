"""Which estimators there are for windows of rows. The table is the operators'; it is loaded when it is asked for."""

from __future__ import annotations


def row_estimators() -> list[str]:
    """Their names."""
    from sqlext_operators.early_windows.estimators import ROW_ESTIMATORS

    return list(ROW_ESTIMATORS)
