"""Random statements over all features at once, each with an answer of DuckDB's. `python -m tests.differential --help`."""
