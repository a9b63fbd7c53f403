"""Partitioners for keys with many rows: where the rows of each key go, what that moves, which one is the cheapest.

`loads` is what samples tell, `demand` what the query allows, `partitioners` make plans of these, and `choice` compares
the plans.
"""
