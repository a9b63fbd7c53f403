"""The Spark boundary: the one package that looks below PySpark's public API.

What is not public here: `pyspark.sql.pandas.types` (Spark and Arrow types), `recover_python_exception` (errors from
tasks), `SparkContext._jsc` (None when it is stopped), the Java process of the gateway, the status store (times of tasks
and stages), the registry of accumulators, `SparkContext.defaultParallelism`, and the optimised plan behind a DataFrame
(its estimated size, whether it is a plain Parquet scan, whether it only selects columns of one of our mapInArrow calls,
the tables that it reads). Under Spark Connect the plan is out of reach: sizes are then unknown and Spark reads the
inputs.
"""
