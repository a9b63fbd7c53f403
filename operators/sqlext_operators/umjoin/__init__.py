"""Multi-way joins of one partition: sorted inputs, a worst-case-optimal search over the key classes."""
