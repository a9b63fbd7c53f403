"""Suite `stream`: windows and joins of streams on Structured Streaming."""
