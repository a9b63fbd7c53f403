"""Suites `skew` and `skew-tasks`: windows over self-similar keys, by each partitioner."""
