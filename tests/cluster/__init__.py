"""A standalone cluster on this machine, whose executors' Python lacks our package until a documented way supplies it.

`python -m pytest --slow tests/cluster` runs all of it by hand (docs/cluster.md, CONTRIBUTING.md).
"""
