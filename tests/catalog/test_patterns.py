"""Patterns that stand for too much are refused at once, in a short message."""

from __future__ import annotations

import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.locations import located


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("/nowhere/**", r"'\*\*' in the pattern"),
        ("/nowhere/a**b/*.csv", r"'\*\*' in the pattern"),
        ("/nowhere/" + "{a,b}" * 22, "stands for more than 1,000 names"),
        ("/nowhere/" + "{" * 1500 + "a,b" + "}" * 1500, "nothing matches|nested too deeply"),
        ("/nowhere/" + "{a,b" * 1000, "nothing matches|nested too deeply"),
        ("/nowhere/{" + "a," * 3000 + "}", "stands for more than 1,000 names"),
    ],
)
def test_patterns_that_are_too_much(pattern: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        located(pattern)
    assert caught.value.help
    assert len(str(caught.value)) < 400
