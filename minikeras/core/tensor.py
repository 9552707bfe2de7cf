"""Tensor: an immutable value with a key, by which a tape recognises it without keeping it alive."""

from __future__ import annotations

import itertools
from typing import Any

from ..types import Array
from .arrays import is_array, to_numpy
from .operand import Operand

next_key = itertools.count().__next__
"""Serial numbers shared by Tensors and Variables: a lower one was made earlier."""


class Tensor(Operand):
    """An n-dimensional array of one dtype that remembers nothing and never changes.

    Made by `tf.constant`, `tf.convert_to_tensor` and by every operation.

    >>> x = tf.constant([1.0, 2.0])
    >>> print(x * x + 1)
    tf.Tensor([2. 5.], shape=(2,), dtype=float32)
    """

    __slots__ = ("__weakref__", "_array", "attached", "key")

    def __init__(self, array: Array) -> None:
        self._array = array
        self.attached: Any = None  # what a floor above keeps with it
        self.key = next_key()

    # An address is good as long as the value stays where it is, so Variables have neither of these two.

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("__array_interface__")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("__cuda_array_interface__")

    def __str__(self) -> str:
        return f"tf.Tensor({to_numpy(self._array)}, shape={self.shape}, dtype={self.dtype.name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={values_text(self._array)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.numpy(),)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self


def values_text(array: Array) -> str:
    """The values as NumPy prints them, on lines of their own if they need several."""
    values = to_numpy(array)
    text = repr(values) if values.ndim else str(values)
    return "\n" + text if "\n" in text else text


# TensorFlow's guides print the class of a tensor; code that was written beside them compares that name.
Tensor.__name__ = "EagerTensor"


def arrays_of(values: Any) -> Array:
    """The bare array of a Tensor, or of each in a tuple or list; anything else as it is."""
    if isinstance(values, Tensor):
        return values._array
    if type(values) is tuple or type(values) is list:
        return type(values)([arrays_of(value) for value in values])
    return values


def tensors_of(values: Any) -> Any:
    """A bare array as a Tensor, or each in a tuple or list; anything else as it is."""
    if type(values) is tuple or type(values) is list:
        return type(values)([tensors_of(value) for value in values])
    return Tensor(values) if is_array(values) else values
