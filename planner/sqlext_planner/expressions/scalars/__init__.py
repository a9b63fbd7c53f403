"""Which scalar expressions are computed without Spark, and how: types, conversions, and the table of functions."""
