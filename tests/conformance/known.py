"""Cases that are known not to pass, with the reason: docs/conformance.md prints them, the tests expect them to fail."""

from __future__ import annotations

KNOWN: dict[str, str] = {}
