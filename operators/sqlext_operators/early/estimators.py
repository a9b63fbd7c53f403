"""The table of estimators: name, class. The command line, the docs and the tests read it."""

from __future__ import annotations

from sqlext_operators.early.alf import AdaptiveLinearFilter
from sqlext_operators.early.arrived import Arrived
from sqlext_operators.early.coverage import Coverage
from sqlext_operators.early.estimator import Estimator
from sqlext_operators.early.kslack import KSlack
from sqlext_operators.early.mlp import Perceptron
from sqlext_operators.early.shrink import Shrink
from sqlext_operators.early.svi import VariationalInference

DEFAULT = Shrink.name

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind
    for kind in (Arrived, KSlack, AdaptiveLinearFilter, VariationalInference, Perceptron, Coverage, Shrink)
}
