"""Activations that look along an axis: distributions and gates."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tensor
from ...errors import ShapeError
from ...functions import nn
from ...functions.creation import range
from ...functions.elementwise import cast, sigmoid
from ...functions.ordering import sort
from ...functions.publish import beside, inexact, negative_axes, negative_axis, rounded_once, tensor
from ...functions.reductions import cumsum, reduce_max
from ...functions.shaping import reshape, split, transpose
from ...types import TensorLike
from .table import activation


@activation()
def softmax(x: TensorLike, axis: Any = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, or along several as if they were one; along all if None. An axis of size 1, over
    which all results are 1, is warned about.

    >>> print(tf.keras.activations.softmax([[0.0, 0.0]]).numpy())
    [[0.5 0.5]]
    >>> print(tf.keras.activations.softmax([[0.0, 0.0], [0.0, 0.0]], axis=(0, 1)).numpy())
    [[0.25 0.25]
     [0.25 0.25]]
    """
    result = _along(nn.softmax, x, axis)
    if isinstance(axis, int) and result.shape[axis] == 1:
        shape = ["..."] * result.ndim  # a trial on zeros has sizes of its own
        shape[axis] = "1"
        warnings.warn(
            f"You are using a softmax over axis {axis} of a tensor of shape ({', '.join(shape)}). This axis has size 1. The "
            "softmax operation will always return the value 1, which is likely not what you intended. Did you mean to use a "
            "sigmoid instead?",
            stacklevel=3,
        )
    return result


@activation()
def log_softmax(x: TensorLike, axis: Any = -1) -> Tensor:
    """The logarithm of softmax, exact where softmax underflows; along an axis, or along several (all if
    None) as if they were one.

    >>> print(tf.keras.activations.log_softmax([1000.0, 0.0]).numpy())
    [    0. -1000.]
    """
    return _along(nn.log_softmax, x, axis)


def _along(function: Callable[..., Tensor], x: TensorLike, axis: Any) -> Tensor:
    """A function along one axis of `x`; several are moved to the end and laid out as one."""
    if axis is not None and not isinstance(axis, (tuple, list)):
        return function(x, axis)
    x = tensor(x)
    axis = np.arange(x.ndim).tolist() if axis is None else axis
    if not axis:
        raise ValueError(f"{function.__name__}: no axis was given, found axis={axis!r}. Give one or several, such as -1.")
    axes = negative_axes(axis, x.ndim, function.__name__)
    order = sorted(np.arange(-x.ndim, 0).tolist(), key=lambda place: (place in axes, place))
    moved = transpose(x, [place + x.ndim for place in order])
    shape = tuple(moved.shape)
    joined = reshape(moved, (*shape[: -len(axes)], math.prod(shape[-len(axes) :])))
    return transpose(reshape(function(joined, -1), shape), np.argsort(order).tolist())


@activation()
@rounded_once
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """max(x - tau, 0) along an axis, with tau such that the sum is 1: the nearest distribution, in which small shares are 0.

    tau is the largest of (sum of the k largest - 1) / k over all k.

    Source: Martins and Astudillo (2016), From Softmax to Sparsemax, proposition 1.

    >>> print(tf.keras.activations.sparsemax([[1.0, 0.5, -1.0]]).numpy())
    [[0.75 0.25 0.  ]]
    """
    x = inexact("sparsemax", tensor(x))
    place = negative_axis(axis, x.ndim, "sparsemax")
    counts = reshape(cast(beside(x, range(1, x.shape[place] + 1)), x.dtype), (-1, *[1] * (-place - 1)))
    tau = reduce_max((cumsum(sort(x, place, "DESCENDING"), place) - 1.0) / counts, place, keepdims=True)
    return nn.relu(x - tau)


@activation()
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """a sigmoid(b), for a and b the two halves of x along an axis.

    Raises:
        ShapeError: if the axis has an odd size.

    Source: Dauphin et al. (2017), Language Modeling with Gated Convolutional Networks, equation (1).

    >>> print(tf.keras.activations.glu([[3.0, 0.0]]).numpy())
    [[1.5]]
    """
    x = inexact("glu", tensor(x))
    place = negative_axis(axis, x.ndim, "glu")
    if x.shape[place] % 2:
        raise ShapeError(f"glu: axis {axis} of shape {x.shape} has the odd size {x.shape[place]}; it is split in two halves.")
    values, gates = split(x, 2, place)
    return values * sigmoid(gates)
