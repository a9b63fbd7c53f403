"""Suite `interval`: interval joins, and their kernels alone."""
