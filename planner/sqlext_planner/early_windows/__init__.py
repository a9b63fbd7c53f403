"""Early answers of windows of rows: an early and a final row of each FROM row of a stream."""
