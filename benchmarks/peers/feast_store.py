"""A feature repository of Feast with one feature view, users, whose rows are in its SQLite store. Started by the
interpreter of .peers/feast as

    python feast_store.py REPOSITORY FILE

It imports nothing of this project.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, ValueType
from feast.types import Float64, Int32, Int64, String

_SETTINGS = """project: bench
registry: registry.db
provider: local
online_store:
  type: sqlite
  path: online.db
entity_key_serialization_version: 3
"""
#: Rows that are written at once.
_PART = 10_000


def main() -> None:
    """Make the repository, and write the rows of the Parquet file."""
    repository, file = Path(sys.argv[1]), sys.argv[2]
    (repository / "feature_store.yaml").write_text(_SETTINGS)
    user = Entity(name="user", join_keys=["user_id"], value_type=ValueType.INT64)
    columns = {"age": Int32, "city": String, "spent": Float64, "orders": Int64}
    view = FeatureView(
        name="users",
        entities=[user],
        ttl=timedelta(0),
        schema=[Field(name=name, dtype=kind) for name, kind in columns.items()],
        source=FileSource(path=file, timestamp_field="updated"),
    )
    store = FeatureStore(repo_path=str(repository))
    store.apply([user, view])
    rows = pd.read_parquet(file)
    for first in range(0, len(rows), _PART):
        store.write_to_online_store("users", rows.iloc[first : first + _PART])


if __name__ == "__main__":
    main()
