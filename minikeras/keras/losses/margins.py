"""Hinges: no loss once the right answer leads by a margin of 1. Labels 0 and 1 are turned into -1 and 1."""

from __future__ import annotations

from ...core import Tensor
from ...functions.elementwise import logical_or, square, where
from ...functions.nn import relu
from ...functions.reductions import reduce_all, reduce_max, reduce_mean, reduce_sum
from ...types import TensorLike
from .alignment import aligned
from .loss import FunctionLoss, catalogue


def hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)) over the last axis.

    Args:
        y_true: -1 and 1; if all are 0 or 1, 0 is read as -1.
        y_pred: scores of any size.

    >>> print(tf.keras.losses.hinge([[1.0, -1.0]], [[0.5, -2.0]]).numpy())
    [0.25]
    """
    return reduce_mean(_shortfall("hinge", y_true, y_pred), -1)


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)**2) over the last axis. Labels as in `hinge`.

    >>> print(tf.keras.losses.squared_hinge([[1.0, 0.0]], [[0.5, -2.0]]).numpy())
    [0.125]
    """
    return reduce_mean(square(_shortfall("squared_hinge", y_true, y_pred)), -1)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """max(1 + max((1 - y_true) y_pred) - sum(y_true y_pred), 0) over the last axis, for one-hot labels.

    >>> print(tf.keras.losses.categorical_hinge([[0.0, 1.0]], [[0.5, 1.0]]).numpy())
    [0.5]
    """
    labels, predictions = aligned("categorical_hinge", y_true, y_pred)
    return relu(1.0 + reduce_max((1.0 - labels) * predictions, -1) - reduce_sum(labels * predictions, -1))


def _shortfall(name: str, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """By how much each product of label and prediction falls short of 1."""
    labels, predictions = aligned(name, y_true, y_pred)
    binary = reduce_all(logical_or(labels == 0.0, labels == 1.0))
    return relu(1.0 - where(binary, 2.0 * labels - 1.0, labels) * predictions)


@catalogue.add()
class Hinge(FunctionLoss, fn=hinge):
    """mean(max(1 - y_true y_pred, 0)). Labels as in `hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Hinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.75
    """


@catalogue.add()
class SquaredHinge(FunctionLoss, fn=squared_hinge):
    """mean(max(1 - y_true y_pred, 0)**2). Labels as in `hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.SquaredHinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.625
    """


@catalogue.add()
class CategoricalHinge(FunctionLoss, fn=categorical_hinge):
    """The margin of the right class over the best wrong one. As `categorical_hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CategoricalHinge()([[0.0, 1.0]], [[0.6, 0.4]]).numpy().round(4))
    1.2
    """
