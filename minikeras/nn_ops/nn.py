"""Activations and losses of neural networks that are primitives for speed or numerical stability."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from ..core.families import elementwise, linear, primitive
from ..core.ops.arithmetic import (
    add,
    choose,
    extreme,
    greater,
    indicator,
    less,
    logical_and,
    multiply,
    negative,
    select,
    subtract,
    zeros_like,
)
from ..core.ops.reductions import reduce_sum, sum_along
from ..core.ops.shaping import reshape
from ..core.ops.transcendental import exp, sigmoid
from ..types import Array, TensorLike


def _rectified(change: Any, y: TensorLike) -> Any:
    """A cotangent or tangent where the unit is active, a true zero elsewhere."""
    return select(greater(y, 0), change, 0)


relu = elementwise(
    "relu",
    lambda xp, x: extreme(xp.maximum, x, 0),
    lambda x, y: indicator(greater(y, 0), y),
    vjp=lambda wanted, g, y, inputs, params: [_rectified(g, y)],
    jvp=lambda tangents, y, inputs, params: _rectified(tangents[0], y),
)
relu6 = elementwise(
    "relu6",
    lambda xp, x: extreme(xp.minimum, extreme(xp.maximum, x, 0), 6),
    lambda x, y: indicator(logical_and(greater(x, 0), less(x, 6)), y),
)
leaky_relu = elementwise(
    "leaky_relu",
    lambda xp, x, alpha: choose(xp, x > 0, x, (x * alpha).astype(x.dtype)),  # bfloat16 times a number is float32
    lambda x, y, alpha: add(multiply(indicator(greater(x, 0), y), 1.0 - alpha), alpha),
)


def _peak(xp: ModuleType, x: Array, axis: int) -> Array:
    """The largest element along an axis, kept with size 1; 0 for an empty axis."""
    if x.shape[axis]:
        return np.maximum.reduce(x, axis, keepdims=True) if type(x) is np.ndarray else x.max(axis=axis, keepdims=True)
    return xp.zeros((*x.shape[:axis], 1, *x.shape[x.ndim + axis + 1 :]), dtype=x.dtype)


def _exponentials(xp: ModuleType, x: Array, axis: int) -> tuple[Array, Array, Array]:
    """x less its largest, so that no exponential overflows; the exponentials; their sum."""
    shifted = x - _peak(xp, x, axis)
    weights = xp.exp(shifted)
    return shifted, weights, sum_along(weights, axis, True)


def _softmax(xp: ModuleType, x: Array, axis: int) -> Array:
    _, weights, total = _exponentials(xp, x, axis)
    return weights / total


def _softmax_vjp(g: TensorLike, y: TensorLike, x: TensorLike, axis: int) -> Any:
    return multiply(y, subtract(g, reduce_sum(multiply(g, y), axes=(axis,), keepdims=True)))


softmax = primitive(
    "softmax",
    _softmax,
    _softmax_vjp,
    jvp=lambda t, y, x, params: _softmax_vjp(t[0], y, x[0], **params),
    batching="keep",
    accumulates=True,
)


def _log_softmax(xp: ModuleType, x: Array, axis: int) -> Array:
    shifted, _, total = _exponentials(xp, x, axis)
    return shifted - xp.log(total)


log_softmax = primitive(
    "log_softmax",
    _log_softmax,
    lambda g, y, x, axis: subtract(g, multiply(exp(y), reduce_sum(g, axes=(axis,), keepdims=True))),
    batching="keep",
    accumulates=True,
)


def _widen(g: TensorLike) -> Any:
    """One value per row, ready to scale the row."""
    return reshape(g, shape=(*g.shape, 1), rank=len(g.shape))


def _cross_entropy(xp: ModuleType, labels: Array, logits: Array) -> Array:
    log_probabilities = _log_softmax(xp, logits, -1)
    # A label of zero contributes nothing, even where the logarithm is minus infinity.
    return 0 - xp.where(xp.equal(labels, 0), 0, labels * log_probabilities).sum(axis=-1)


softmax_cross_entropy = primitive(
    "softmax_cross_entropy",
    _cross_entropy,
    lambda g, y, labels, logits: multiply(_widen(g), negative(log_softmax(logits, axis=-1))),
    lambda g, y, labels, logits: multiply(
        _widen(g), subtract(multiply(softmax(logits, axis=-1), reduce_sum(labels, axes=(-1,), keepdims=True)), labels)
    ),
    batching="align",
    accumulates=True,
)
one_hot = elementwise(
    "one_hot",
    lambda xp, indices, depth, on, off, dtype: xp.where(
        xp.equal(xp.expand_dims(indices, -1), xp.arange(depth)), xp.asarray(on, dtype=dtype), xp.asarray(off, dtype=dtype)
    ),
    None,
)


def _rows(x: Array) -> Array:
    """A stack of rows as a matrix."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _sparse_cross_entropy(xp: ModuleType, labels: Array, logits: Array) -> Array:
    if labels.shape != logits.shape[:-1]:  # only one of them is a stack
        shape = np.broadcast_shapes(labels.shape, logits.shape[:-1])
        labels, logits = xp.broadcast_to(labels, shape), xp.broadcast_to(logits, (*shape, logits.shape[-1]))
    shifted, _, total = _exponentials(xp, logits, -1)
    rows = _rows(shifted)
    at_labels = rows[xp.arange(rows.shape[0]), labels.reshape(-1)]
    return (xp.log(total.reshape(-1)) - at_labels).reshape(labels.shape)


def _sparse_cross_entropy_grad(xp: ModuleType, labels: Array, logits: Array) -> Array:
    """softmax(logits) - one_hot(labels), without the one-hot rows."""
    rows = _rows(_softmax(xp, logits, -1))
    rows[xp.arange(rows.shape[0]), xp.broadcast_to(labels, logits.shape[:-1]).reshape(-1)] -= 1
    return rows.reshape(logits.shape)


sparse_softmax_cross_entropy_grad = primitive(
    "sparse_softmax_cross_entropy_grad",
    _sparse_cross_entropy_grad,
    None,
    lambda g, y, labels, logits: _softmax_vjp(g, softmax(logits, axis=-1), logits, -1),
    uniform=False,
    batching="fill",
    accumulates=True,
)
sparse_softmax_cross_entropy = primitive(
    "sparse_softmax_cross_entropy",
    _sparse_cross_entropy,
    None,
    lambda g, y, labels, logits: multiply(_widen(g), sparse_softmax_cross_entropy_grad(labels, logits)),
    uniform=False,
    batching="fill",
    accumulates=True,
)


sigmoid_cross_entropy = elementwise(
    "sigmoid_cross_entropy",
    lambda xp, labels, logits: xp.maximum(logits, 0) - logits * labels + xp.log1p(xp.exp(-xp.abs(logits))),
    lambda labels, logits, y: negative(logits),
    lambda labels, logits, y: subtract(sigmoid(logits), labels),
)

# Adjusting contrast has no registered gradient in TensorFlow, and its guide uses it to show the error.
adjust_contrast = linear(
    "AdjustContrastv2",
    lambda xp, images, factor: (
        (images - images.mean(axis=(-3, -2), keepdims=True)) * factor + images.mean(axis=(-3, -2), keepdims=True)
    ),
    lambda g, x, factor: g,
    vjp=None,
    jvp=None,
    batching="align",
    accumulates=True,
)


def masked_fill(condition: Any, value: Any) -> Any:
    """`value` where the condition holds, zero elsewhere."""
    return select(condition, value, zeros_like(value))
