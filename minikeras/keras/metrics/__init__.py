# mypy: implicit-reexport
"""Metrics: numbers that accumulate over batches. May import losses and initializers. Read `metric.py` first.

Labels and predictions pass through functions of `losses/loss.py`, so that nothing is broadcast here either.
"""

from typing import Any as _Any

from ...absent import late as _late
from ..losses import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from .accuracy import *  # noqa: F403
from .confusion import *  # noqa: F403
from .errors import *  # noqa: F403
from .iou import *  # noqa: F403
from .metric import Mean, MeanMetricWrapper, Metric, Sum, serialize
from .metric import catalogue as _catalogue

__getattr__, __dir__ = _late(__name__, {})


def get(identifier: _Any) -> _Any:
    """The `Metric` for a name, a configuration, a function, a class or an object; a name given stays its name.

    >>> tf.keras.metrics.get("mae")
    MeanAbsoluteError(name='mae')
    """
    found = _catalogue.get(identifier)
    if isinstance(identifier, str) and isinstance(found, Metric):
        found.name = identifier
    return found if found is None or isinstance(found, Metric) else MeanMetricWrapper(found)


def deserialize(config: _Any, custom_objects: _Any = None) -> _Any:
    """The `Metric` for a name or what `serialize` gave.

    >>> tf.keras.metrics.deserialize(tf.keras.metrics.serialize(tf.keras.metrics.Recall(0.2))).thresholds
    [0.2]
    """
    found = _catalogue.deserialize(config, custom_objects)
    return found if found is None or isinstance(found, Metric) else MeanMetricWrapper(found)


__all__ = [name for name in __dir__() if not name.startswith("_")]
