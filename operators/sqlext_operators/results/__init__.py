"""Results on their way to the user: rows as text, and the connection over which tasks send it."""
