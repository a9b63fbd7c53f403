"""Interval joins by sweeps over endpoints in the order of time (docs/reference/sweeps.md; Piatov et al. 2021).

`transforms` is the table of the relations; `batch.sweep_join` joins whole relations, `stream.SweepStream` endpoints as
they arrive. docs/sweeps.md says which algorithm of the paper is where.
"""
