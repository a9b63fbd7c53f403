"""Interval joins: the relations, how their pairs are found, and the kernels that find them."""
