"""Where the pages of the documentation are that an error names."""

from __future__ import annotations

from pathlib import Path


def page(name: str) -> Path:
    """The page `docs/NAME` of the checkout, or its copy in the installed package (pyproject.toml lists those)."""
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent / "docs" / name
    return checkout if checkout.is_file() else package / "docs" / name
