"""Suite `skew`: windows over self-similar keys, by each partitioner."""
