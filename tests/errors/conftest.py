"""The command line on the shared Spark, as the tests of the commands have it."""

from tests.cli.conftest import here

__all__ = ["here"]
