"""Where table schemas come from."""

from sqlext.catalog.dictionary import DictCatalog

__all__ = ["DictCatalog"]
