"""Which estimators of early answers there are. The table is the operators'; it is loaded when it is asked for."""

from __future__ import annotations


def default_estimator() -> str:
    """The one that is used if none is named."""
    from sqlext_operators.early.estimators import DEFAULT

    return DEFAULT


def estimator_docs() -> dict[str, str]:
    """A line about each estimator, by name."""
    from sqlext_operators.early.estimators import ESTIMATORS

    return {name: kind.doc for name, kind in ESTIMATORS.items()}


def stream_estimators() -> list[str]:
    """Those that need no arrivals, which a stream does not keep."""
    from sqlext_operators.early.estimators import ESTIMATORS

    return [name for name, kind in ESTIMATORS.items() if not kind.follows_arrivals]
