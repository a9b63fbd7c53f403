"""What `sqlext doctor` checks: of the machine (`machine`, `memory`), and of a Spark that it has started (`spark`)."""
