"""Peers in their own environments: programs that their interpreters run, and the packages they need.

`make peers` makes `.peers/polars`, `.peers/genomics` and `.peers/flink` from the requirement files of this folder.
"""
