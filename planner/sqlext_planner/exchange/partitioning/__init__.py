"""Partitioners for keys with many rows: where the rows of each key go, what that moves, which one is the cheapest.

`loads` is what samples tell, `partitioners` make plans of it and of what the query allows, and `choice` compares
the plans.
"""
