"""Random statements over all features at once, each with DuckDB's answer; `python -m tests.differential --help`."""
