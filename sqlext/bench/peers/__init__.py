"""Peers in their own environments: programs that their interpreters run, and the packages they need.

`make peers` makes `.peers/polars` and `.peers/genomics` from the two requirement files of this folder.
"""
