"""Kernels that know the shapes they will see.

Key idea: a signature fixes ranks, sizes and dtypes, so what a kernel finds out about them in each run is found out once. A
prepared kernel makes the same calls of NumPy as the primitive's own and gives the same bits. For small arrays, where a call
costs as much as the numbers, that saves half the time; there is a row only where it does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import Primitive, Record
from ..core.registry import operations
from ..types import Array
from .recorder import Slot

Kernel = Callable[..., Any]


def kernel_of(record: Record, xp: Any) -> Kernel:
    """The function of arrays that carries an instruction out, parameters included."""
    if xp is not np:
        own = record.primitive.on(xp)
    else:
        make = _rows().get(record.primitive)
        simple = all(isinstance(x, Slot) and x.dtype.kind in "fiub" for x in record.inputs)
        found = make(record.params, *record.inputs) if make is not None and simple else None
        if found is not None:
            return found
        own = record.primitive.kernel(np)  # a replay is quiet as a whole, so no kernel needs to be so by itself
    return functools.partial(own, **record.params) if record.params else own


@functools.cache
def _rows() -> dict[Primitive, Callable[..., Kernel | None]]:
    """By primitive: from parameters and operands to a kernel, or None where there is none."""
    return {
        operations.affine: lambda params, x, kernel, bias: _affine if len(x.shape) > 1 else None,
        operations.matrix_product: lambda params, a, b: np.matmul if min(len(a.shape), len(b.shape)) > 1 else None,
        operations.transpose: _transpose,
        operations.reshape: _reshape,
        operations.sparse_softmax_cross_entropy: _sparse_cross_entropy,
        operations.label_excess: _label_excess,
        operations.reduce_sum: _sum,
    }


def _affine(x: Array, kernel: Array, bias: Array) -> Array:
    y = np.matmul(x, kernel)
    return np.add(y, bias, y)


def _transpose(params: dict[str, Any], x: Slot) -> Kernel:
    lead = len(x.shape) - len(params["perm"])
    axes = (*range(lead), *[len(x.shape) + axis for axis in params["perm"]])
    return lambda array: array.transpose(axes)


def _reshape(params: dict[str, Any], x: Slot) -> Kernel:
    shape = (*x.shape[: len(x.shape) - params["rank"]], *params["shape"])
    return lambda array: array.reshape(shape)


def _sum(params: dict[str, Any], x: Slot) -> Kernel | None:
    if x.dtype.kind != "f":
        return None
    return functools.partial(np.add.reduce, axis=params["axes"], keepdims=params["keepdims"])


def _sparse_cross_entropy(params: dict[str, Any], labels: Slot, logits: Slot) -> Kernel | None:
    if len(logits.shape) != 2 or len(labels.shape) != 1:
        return None
    rows = np.arange(logits.shape[0])

    def kernel(y: Array, x: Array) -> Array:
        shifted = np.subtract(x, np.maximum.reduce(x, 1, keepdims=True))
        return np.subtract(np.log(np.add.reduce(np.exp(shifted), 1)), shifted[rows, y])

    return kernel


def _label_excess(params: dict[str, Any], labels: Slot, logits: Slot) -> Kernel | None:
    if len(logits.shape) != 2 or len(labels.shape) != 1:
        return None
    rows = np.arange(logits.shape[0])

    def kernel(y: Array, x: Array) -> Array:
        weights = np.subtract(x, np.maximum.reduce(x, 1, keepdims=True))
        np.exp(weights, weights)
        np.divide(weights, np.add.reduce(weights, 1, keepdims=True), weights)
        weights[rows, y] -= 1
        return weights

    return kernel
