"""Examples of properties: the same few every time in `make test`, many others each time among the slow tests."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

#: The part of a property's examples that `make test` tries.
SHARE = 4

# A slow machine must not change the result: the first example of a property may compile kernels or share the cores
# with Spark. No test changes what a fixture gave it.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("new", derandomize=False, **_PATIENT)
settings.register_profile("same", derandomize=True, database=None, max_examples=100 // SHARE, **_PATIENT)


def examples(count: int = 100, *, share: int = SHARE, **others: Any) -> settings:
    """``@examples(400)``: so many of a property among the slow tests, a quarter in `make test`. Examples that take long
    have a smaller share: ``@examples(400, share=8)``."""
    return settings(max_examples=-(-count // share) if settings().derandomize else count, **others)


def no_constants() -> providers.Constants:
    """Hypothesis also draws constants that stand in those modules of ours that are imported so far. Which these are
    depends on the tests that ran before, and with them every example."""
    return providers.Constants()


def draw(*, new: bool) -> None:
    """Whether properties are tried with new examples from now on, or with the same ones."""
    settings.load_profile("new" if new else "same")
    if not new:
        providers._get_local_constants = no_constants
