"""TPC-H and TPC-DS: their queries and tables, data at any scale, and a comparison with plain Spark."""

from sqlext.tpc.benchmark import BENCHMARKS, Benchmark

__all__ = ["BENCHMARKS", "Benchmark"]
