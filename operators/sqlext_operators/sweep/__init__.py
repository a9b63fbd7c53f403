"""Interval joins by sweeping over endpoints in the order of time, as Piatov et al. (VLDB Journal 30, 2021) do it.

`transforms` is the table of the relations; `batch.sweep_join` joins whole relations, `stream.SweepStream` endpoints as
they arrive. docs/sweeps.md says which algorithm of the paper is where.
"""
