"""Suite `umjoin`: multi-way joins, TPC-H, and planning of TPC-DS."""
