"""From a parsed statement to a logical plan with every name resolved: `queries.analyze`."""
