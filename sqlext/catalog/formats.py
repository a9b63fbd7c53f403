"""The formats of data files, recognised by their suffixes."""

from __future__ import annotations

from collections.abc import Collection

#: Suffix -> format, as Spark calls it. JSON files hold one object a line.
FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".orc": "orc",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".avro": "avro",
}
TITLES = {"parquet": "Parquet", "csv": "CSV", "orc": "ORC", "json": "JSON", "avro": "Avro"}
LAYOUT = "tables are NAME.parquet (.csv, .orc, .json, .avro), or folders NAME/ of such files"


def format_of(name: str) -> str | None:
    """The format of a file by its name; None for any other file."""
    return FORMATS.get(suffix_of(name))


def suffix_of(name: str) -> str:
    """`Orders.PARQUET` -> `.parquet`."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""


def table_name(name: str) -> str:
    """The table that a file or folder of this name is."""
    return name[: -len(suffix_of(name))] if format_of(name) else name


def titles(formats: Collection[str]) -> str:
    """`CSV and Parquet`."""
    return " and ".join(sorted((TITLES[name] for name in formats), key=list(TITLES.values()).index))
