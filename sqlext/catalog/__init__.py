"""Where table schemas come from: text, files, or a running Spark."""

from sqlext.catalog.dictionary import DictCatalog
from sqlext.catalog.files import FileCatalog, data_files, table_info
from sqlext.catalog.reading import read_files, tables_at
from sqlext.catalog.spark import SparkCatalog

__all__ = ["DictCatalog", "FileCatalog", "SparkCatalog", "data_files", "read_files", "table_info", "tables_at"]
