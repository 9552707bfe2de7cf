"""Layers that move elements without computing."""

from __future__ import annotations

import math
from typing import Any

from ...core import Tensor
from ...core.ops.shaping import broadcast_to, reshape
from ...errors import ShapeError
from ...functions.shaping import transpose
from ..config import image_data_format
from ..symbolic.keras_tensor import KerasTensor, Spec
from .inputs import InputSpec
from .layer import Layer


class Flatten(Layer, described=True, makes_nothing=True):
    """All axes but the batch axis as one; a batch of scalars becomes (batch, 1).

    Args:
        data_format: 'channels_last' (default) or 'channels_first', which moves the channels behind first.
        options: `name`, `dtype`, as in `Layer`.

    >>> tf.keras.layers.Flatten()(tf.ones([2, 3, 4])).shape
    TensorShape([2, 12])
    """

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.data_format = checked_format(self, data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        shape, x = inputs.array.shape, inputs
        if self.data_format == "channels_first" and len(shape) > 2:
            x = transpose(inputs, [0, *range(2, len(shape)), 1])
        return reshape(x, shape=(shape[0], math.prod(shape[1:])), rank=len(shape))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, product of the others)."""
        rest = tuple(input_shape[1:])
        return (input_shape[0], None if None in rest else math.prod(rest))


class Reshape(Layer, described=True, makes_nothing=True, takes_one_tensor=True):
    """The elements of each row, in their order, with another shape.

    Args:
        target_shape: without the batch axis; one size may be -1.
        options: `name`, `dtype`, as in `Layer`.

    Raises:
        ShapeError: if a row has another number of elements.

    >>> tf.keras.layers.Reshape((2, -1))(tf.ones([5, 6])).shape
    TensorShape([5, 2, 3])
    """

    def __init__(self, target_shape: Any, **options: Any) -> None:
        super().__init__(**options)
        self.target_shape = tuple(int(size) for size in target_shape)
        if self.target_shape.count(-1) > 1 or any(size < -1 for size in self.target_shape):
            raise ValueError(f"Reshape: target_shape may hold one -1 and no other negative size, found {self.target_shape}.")

    def call(self, inputs: Tensor) -> Tensor:
        return reshape(inputs, shape=self.compute_output_shape(tuple(inputs.shape)), rank=inputs.ndim)

    def output_spec(self, x: KerasTensor) -> Spec | None:
        """The spec of the output if axes beside the batch are unknown: a trial would need one of the few sizes that fit."""
        return Spec(self.compute_output_shape(x.shape), x.dtype) if None in x.shape[1:] else None

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *target_shape), with -1 worked out."""
        rest, target = tuple(input_shape[1:]), self.target_shape
        if None in rest:
            return (input_shape[0], *(None if size == -1 else size for size in target))
        count, known = math.prod(rest), math.prod(size for size in target if size != -1)
        if count != known if -1 not in target else known == 0 or count % known:
            raise ShapeError(
                f"Layer '{self.name}' (Reshape): rows of shape {rest} have {count} elements, target_shape {target} does not."
            )
        return (input_shape[0], *(count // known if size == -1 else size for size in target))


class Permute(Layer, described=True, makes_nothing=True):
    """The axes of each row in another order.

    Args:
        dims: the axes in their new order, counted from 1; (2, 1) swaps the two behind the batch axis.
        options: `name`, `dtype`, as in `Layer`.

    >>> tf.keras.layers.Permute((2, 1))(tf.ones([5, 2, 3])).shape
    TensorShape([5, 3, 2])
    """

    def __init__(self, dims: Any, **options: Any) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                f"Invalid permutation argument `dims` for Permute Layer: the set of indices must start at 1 and be "
                f"consecutive. Received dims={self.dims}."
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Tensor) -> Tensor:
        return transpose(inputs, (0, *self.dims))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The axes in their new order."""
        return (input_shape[0], *(input_shape[axis] for axis in self.dims))


class RepeatVector(Layer, described=True, makes_nothing=True):
    """Each row n times: (batch, features) becomes (batch, n, features).

    Args:
        n: a positive int.
        options: `name`, `dtype`, as in `Layer`.

    >>> tf.keras.layers.RepeatVector(3)(tf.ones([5, 2])).shape
    TensorShape([5, 3, 2])
    """

    def __init__(self, n: int, **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(n, int) or isinstance(n, bool):
            raise TypeError(f"Expected an integer value for `n`, got {n!r} (of type {type(n)}).")
        if n < 1:
            raise ValueError(f"`n` should be a positive integer, got {n}.")
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        batch, features = inputs.shape
        return broadcast_to(reshape(inputs, shape=(batch, 1, features), rank=2), shape=(batch, self.n, features), rank=3)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, n, features)."""
        return (input_shape[0], self.n, input_shape[1])


def checked_format(layer: Any, data_format: Any) -> str:
    """'channels_last' or 'channels_first'."""
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(
            f"{type(layer).__name__}: data_format must be 'channels_last' or 'channels_first', found {data_format!r}."
        )
    return data_format or image_data_format()
