"""The algebra of periods by key: NORMALIZE, GAPS, CONCURRENT and EXCEPT over periods."""
