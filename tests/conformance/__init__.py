"""OpenMLDB's own test cases against Session.sql: the pytest module `test_cases`, and a command.

``python -m tests.conformance PATH... [--select RULE] [--report docs/conformance.md]``
"""
