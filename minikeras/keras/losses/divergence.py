"""Losses of distributions and counts: Kullback and Leibler's divergence, Poisson's likelihood."""

from __future__ import annotations

from ...core import Tensor
from ...functions.elementwise import clip_by_value, log
from ...functions.reductions import reduce_mean, reduce_sum
from ...types import TensorLike
from ..config import epsilon
from .alignment import aligned
from .loss import FunctionLoss, catalogue


def kl_divergence(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """sum(y_true log(y_true / y_pred)) over the last axis, for probabilities; they are limited to [epsilon, 1].

    Source: Kullback and Leibler (1951), On Information and Sufficiency.

    >>> print(tf.keras.losses.kl_divergence([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    [0.1438]
    """
    labels, predictions = (clip_by_value(p, epsilon(), 1.0) for p in aligned("kl_divergence", y_true, y_pred))
    return reduce_sum(labels * log(labels / predictions), -1)


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(y_pred - y_true log(y_pred + epsilon)) over the last axis: the log-likelihood of counts, save a constant.

    Args:
        y_true: counts, at least 0.
        y_pred: their expected values, at least 0.

    >>> print(tf.keras.losses.poisson([[3.0]], [[1.0]]).numpy().round(4))
    [1.]
    """
    labels, predictions = aligned("poisson", y_true, y_pred)
    return reduce_mean(predictions - labels * log(predictions + epsilon()), -1)


@catalogue.add("kld", "KLD", "kullback_leibler_divergence")
class KLDivergence(FunctionLoss, fn=kl_divergence):
    """sum(y_true log(y_true / y_pred)). As `kl_divergence`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    0.1438
    """


@catalogue.add()
class Poisson(FunctionLoss, fn=poisson):
    """mean(y_pred - y_true log(y_pred)). As `poisson`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Poisson()([[1.0, 2.0]], [[1.0, 1.0]]).numpy().round(4))
    1.0
    """
