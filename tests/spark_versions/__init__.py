"""The tests on other versions of Spark: ``python -m tests.spark_versions 3.5.9 4.1.4 --slice``."""
