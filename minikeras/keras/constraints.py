"""Projections that an optimizer applies to weights after its step."""

from __future__ import annotations

from ..core import Tensor
from ..functions import clip_by_value, maximum, reduce_euclidean_norm, tensor
from ..types import TensorLike
from .arguments import Catalogue, Configured
from .config import epsilon

catalogue = Catalogue("constraint")
get, serialize, deserialize = catalogue.get, catalogue.serialize, catalogue.deserialize

__all__ = [
    *("Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "deserialize", "get", "max_norm", "min_max_norm", "non_neg"),
    *("serialize", "unit_norm"),
]


class Constraint(Configured):
    """Base: a function from a weight to its projection.

    >>> class Whole(tf.keras.constraints.Constraint):
    ...     def __call__(self, w):
    ...         return tf.round(w)
    >>> print(Whole()(tf.constant([0.7])).numpy())
    [1.]
    """

    def __call__(self, w: TensorLike) -> Tensor:
        """The projection; here the weight as it is. Override it."""
        return tensor(w)


def is_own(constraint: object) -> bool:
    """True if a constraint is the package's: a user's may read and change anything, at any time."""
    return catalogue.name_of(type(constraint)) is not None


@catalogue.add("nonneg")
class NonNeg(Constraint):
    """max(w, 0).

    >>> print(tf.keras.constraints.NonNeg()([-1.0, 2.0]).numpy())
    [0. 2.]
    """

    def __call__(self, w: TensorLike) -> Tensor:
        return maximum(w, 0.0)


@catalogue.add()
class MaxNorm(Constraint):
    """w scaled down to Euclidean norm `max_value` along an axis, if longer.

    >>> print(tf.keras.constraints.MaxNorm(1.0)([[3.0], [4.0]]).numpy().round(4).tolist())
    [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, max_value: float = 2, axis: int = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = tensor(w)
        norms = reduce_euclidean_norm(w, self.axis, True)
        return w * (clip_by_value(norms, 0.0, float(self.max_value)) / (norms + epsilon()))


@catalogue.add()
class UnitNorm(Constraint):
    """w scaled to Euclidean norm 1 along an axis.

    >>> print(tf.keras.constraints.UnitNorm()([[3.0], [4.0]]).numpy().round(4).tolist())
    [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, axis: int = 0) -> None:
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = tensor(w)
        return w / (reduce_euclidean_norm(w, self.axis, True) + epsilon())


@catalogue.add()
class MinMaxNorm(Constraint):
    """w scaled so that its norm along an axis moves, at `rate`, into [min_value, max_value].

    >>> print(tf.keras.constraints.MinMaxNorm(0.0, 1.0)([[3.0], [4.0]]).numpy().round(4).tolist())
    [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: int = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: TensorLike) -> Tensor:
        w = tensor(w)
        norms = reduce_euclidean_norm(w, self.axis, True)
        desired = self.rate * clip_by_value(norms, float(self.min_value), float(self.max_value)) + (1 - self.rate) * norms
        return w * (desired / (norms + epsilon()))


# Keras's second names of the classes.
non_neg, max_norm, unit_norm, min_max_norm = NonNeg, MaxNorm, UnitNorm, MinMaxNorm
