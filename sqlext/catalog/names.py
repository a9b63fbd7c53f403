"""Names of tables, and the formats of data files, recognised by the suffixes of their names."""

from __future__ import annotations

import re
from collections.abc import Collection


def last_part(name: str) -> str:
    """The last part of a name whose parts are joined by dots, without its backticks."""
    found = re.search(r"`((?:[^`]|``)*)`$", name)
    return found[1].replace("``", "`") if found is not None else name.rpartition(".")[2]


#: Suffix -> format, as Spark calls it. JSON files hold one object a line.
FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".bed": "csv",
    ".orc": "orc",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".avro": "avro",
}
TITLES = {"parquet": "Parquet", "csv": "CSV", "orc": "ORC", "json": "JSON", "avro": "Avro"}
LAYOUT = "tables are NAME.parquet (.csv, .tsv, .bed, .orc, .json, .avro), or folders NAME/ of such files"
#: Suffixes that may follow those of text: Spark and pyarrow read the files as they are.
COMPRESSIONS = (".gz", ".bz2")
#: Formats of text, whose files do not say the types of their columns.
INFERRED = ("csv", "json")


def format_of(name: str) -> str | None:
    """The format of a file by its name; None for any other file."""
    return FORMATS.get(suffix_of(name).removesuffix(compression_of(name)))


def suffix_of(name: str) -> str:
    """`Orders.PARQUET` -> `.parquet`; `orders.csv.gz` -> `.csv.gz`."""
    stem, suffix = _split(name)
    inner = _split(stem)[1]
    return inner + suffix if suffix in COMPRESSIONS and FORMATS.get(inner) in INFERRED else suffix


def compression_of(name: str) -> str:
    """`orders.csv.gz` -> `.gz`; '' for a file that is not compressed as a whole."""
    suffix = suffix_of(name)
    return next((ending for ending in COMPRESSIONS if suffix.endswith(ending)), "")


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    return (stem, f".{suffix.lower()}") if dot and stem else (name, "")


def table_name(name: str) -> str:
    """The table that a file or folder of this name is."""
    return name[: -len(suffix_of(name))] if format_of(name) else name


def titles(formats: Collection[str]) -> str:
    """`CSV and Parquet`."""
    return " and ".join(sorted((TITLES[name] for name in formats), key=list(TITLES.values()).index))
