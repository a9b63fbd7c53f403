"""The table of interval relations, for the layers above. Importing it loads neither numpy nor Spark."""

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Pass
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD, Relation

__all__ = ["LEFT_PERIOD", "RELATIONS", "RIGHT_PERIOD", "Condition", "Pass", "Relation"]
