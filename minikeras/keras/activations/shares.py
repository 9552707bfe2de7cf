"""Activations that look along an axis: distributions and gates."""

from __future__ import annotations

from ...core import Tensor
from ...errors import ShapeError
from ...functions import nn
from ...functions.creation import range
from ...functions.elementwise import cast, sigmoid
from ...functions.ordering import sort
from ...functions.publish import beside, inexact, negative_axis, rounded_once, tensor
from ...functions.reductions import cumsum, reduce_max
from ...functions.shaping import reshape, split
from ...types import TensorLike
from .table import catalogue, named

log_softmax = named(nn.log_softmax)


@catalogue.add()
def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.softmax([[0.0, 0.0]]).numpy())
    [[0.5 0.5]]
    """
    return nn.softmax(x, axis)


@catalogue.add()
@rounded_once
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """max(x - tau, 0) along an axis, with tau such that the sum is 1: the nearest distribution, in which small shares are 0.

    tau is the largest of (sum of the k largest - 1) / k over all k.

    Source: Martins and Astudillo (2016), From Softmax to Sparsemax, proposition 1.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.sparsemax([[1.0, 0.5, -1.0]]).numpy())
    [[0.75 0.25 0.  ]]
    """
    x = inexact("sparsemax", tensor(x))
    place = negative_axis(axis, x.ndim, "sparsemax")
    counts = reshape(cast(beside(x, range(1, x.shape[place] + 1)), x.dtype), (-1, *[1] * (-place - 1)))
    tau = reduce_max((cumsum(sort(x, place, "DESCENDING"), place) - 1.0) / counts, place, keepdims=True)
    return nn.relu(x - tau)


@catalogue.add()
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """a sigmoid(b), for a and b the two halves of x along an axis.

    Raises:
        ShapeError: if the axis has an odd size.

    Source: Dauphin et al. (2017), Language Modeling with Gated Convolutional Networks, equation (1).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.glu([[3.0, 0.0]]).numpy())
    [[1.5]]
    """
    x = inexact("glu", tensor(x))
    place = negative_axis(axis, x.ndim, "glu")
    if x.shape[place] % 2:
        raise ShapeError(f"glu: axis {axis} of shape {x.shape} has the odd size {x.shape[place]}; it is split in two halves.")
    values, gates = split(x, 2, place)
    return values * sigmoid(gates)
