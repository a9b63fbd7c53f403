"""Mutated statements against the planner: no exception but SqlExtError, and none at all for ordinary statements."""
