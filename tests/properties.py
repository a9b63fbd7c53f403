"""Examples of properties: the same every time in `make test`, others each time among the slow tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# The first example of a property may compile kernels or share the cores with Spark: no time limit for one example.
settings.register_profile("new", deadline=None, derandomize=False)
# A slow machine must not change the result: no limit for making examples either.
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def no_constants() -> providers.Constants:
    """Hypothesis also draws constants that stand in those modules of ours that are imported so far. Which these are
    depends on the tests that ran before, and with them every example."""
    return providers.Constants()


def draw(*, new: bool) -> None:
    """Whether properties are tried with new examples from now on, or with the same ones."""
    settings.load_profile("new" if new else "same")
    if not new:
        providers._get_local_constants = no_constants
