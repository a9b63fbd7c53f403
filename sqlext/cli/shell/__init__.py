"""`sqlext shell`: statements and commands typed at a prompt, on a Spark that starts meanwhile and stays."""
