"""What all suites share: how they are measured, and how their options are read, their rows compared and kept."""
