"""Conversions, control flow, and parts of tensors, under Keras's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Tensor
from ...core import convert_to_tensor as to_tensor
from ...functions import elementwise as tf
from ...functions.shaping import is_tensor as _is_tensor
from ...types import TensorLike, as_dtype
from ..symbolic.keras_tensor import KerasTensor
from ..symbolic.operation import operation

__all__ = ["cast", "convert_to_numpy", "convert_to_tensor", "dtype", "is_tensor", "saturate_cast", "shape", "stop_gradient"]


@operation
def cast(x: TensorLike, dtype: Any) -> Tensor:
    """The elements as another dtype. Derivative: 1 between floats.

    >>> tf.keras.ops.cast([1, 0], "bool").numpy()
    array([ True, False])
    """
    return tf.cast(to_tensor(x), dtype)


@operation
def saturate_cast(x: TensorLike, dtype: Any) -> Tensor:
    """The elements as another dtype, moved into its range first.

    >>> print(tf.keras.ops.saturate_cast([300, -5], "uint8").numpy())
    [255   0]
    """
    return tf.saturate_cast(to_tensor(x), dtype)


@operation
def stop_gradient(variable: TensorLike) -> Tensor:
    """The same values, through which no gradient flows.

    >>> tf.keras.ops.stop_gradient(2.0).numpy()
    np.float32(2.0)
    """
    return tf.stop_gradient(to_tensor(variable))


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Any:
    """The value as a Tensor of a dtype, cast to it if it has another one; a KerasTensor as a KerasTensor.

    Raises:
        ValueError: for sparse=True or ragged=True: tensors are dense here.

    >>> tf.keras.ops.convert_to_tensor([1, 2], "float32").dtype
    tf.float32
    """
    if sparse or ragged:
        raise ValueError("convert_to_tensor: tensors are dense here; leave out sparse= and ragged=.")
    if not isinstance(x, KerasTensor):
        x = to_tensor(x)
    return x if dtype is None or x.dtype == as_dtype(dtype) else cast(x, dtype)


def convert_to_numpy(x: TensorLike) -> np.ndarray:
    """The value as an array of NumPy.

    >>> tf.keras.ops.convert_to_numpy(tf.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    return np.asarray(to_tensor(x).numpy())


def is_tensor(x: Any) -> bool:
    """Whether it is a Tensor or a Variable.

    >>> tf.keras.ops.is_tensor(tf.constant(1.0)), tf.keras.ops.is_tensor([1.0])
    (True, False)
    """
    return _is_tensor(x)


def shape(x: Any) -> tuple[int | None, ...]:
    """The sizes of the axes as a tuple; of a KerasTensor with None where any size fits.

    >>> tf.keras.ops.shape(tf.zeros([2, 3])), tf.keras.ops.shape(tf.keras.Input((3,)))
    ((2, 3), (None, 3))
    """
    return tuple((x if isinstance(x, KerasTensor) else to_tensor(x)).shape)


def dtype(x: Any) -> str:
    """The name of the dtype.

    >>> tf.keras.ops.dtype([1.0])
    'float32'
    """
    return (x if isinstance(x, KerasTensor) else to_tensor(x)).dtype.name
