"""Suite `serving`: answers of a server under an open loop of requests."""
