"""The table of interval relations, for the layers above. Importing it loads neither numpy nor Spark."""

from sqlext_operators.interval.conditions import Condition
from sqlext_operators.interval.passes import Pass
from sqlext_operators.interval.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD, Relation

__all__ = ["LEFT_PERIOD", "RELATIONS", "RIGHT_PERIOD", "Condition", "Pass", "Relation"]
