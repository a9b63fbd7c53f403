"""The algebra of periods: unions, gaps, numbers of concurrent periods and differences, by key."""
