"""Layers of several inputs: sums, products, means, extrema, and inputs side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import nest
from ...core import Tensor
from ...core.ops.arithmetic import ones_like
from ...errors import ShapeError
from ...functions import add, cast, logical_or, matmul, maximum, minimum, multiply, reduce_any, tensor, where
from ...functions.catalogue import name_like_definition
from ...functions.nn import l2_normalize
from ...functions.shaping import broadcast_to, concat, reshape, transpose
from ...nn_ops.nn import masked_fill
from ...types import ShapeLike, TensorLike
from ..calls import mask_of
from ..promotion import promoted
from .inputs import attach, called
from .layer import Layer
from .options import Flag, OneAxis


class Merge(Layer):
    """Base of layers that combine a list of inputs element by element."""

    supports_masking = True

    def build(self, input_shape: ShapeLike) -> None:
        self.compute_output_shape(input_shape)

    def combine(self, inputs: list[Tensor]) -> Tensor:
        """The result for inputs of one rank."""
        raise NotImplementedError

    def call(self, inputs: TensorLike) -> Tensor:
        rank = max(x.ndim for x in inputs)
        return self.combine([_with_rank(x, rank) for x in inputs])

    def _tensors(self, argument: Any) -> Any:
        """The inputs in the dtype in which they meet, with their masks."""
        tensors = super()._tensors(argument)
        leaves = nest.flatten(tensors)
        if len({getattr(x, "dtype", None) for x in leaves}) < 2 or not all(isinstance(x, Tensor) for x in leaves):
            return tensors
        met = promoted(*leaves)
        attach([mask_of(x) for x in leaves], met)
        return nest.pack(tensors, met)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """True where any input counts; None if one of them carries no mask."""
        masks = _listed_masks(self, inputs, mask)
        if any(mask is None for mask in masks):
            return None
        rank = max(mask.ndim for mask in masks)
        return functools.reduce(logical_or, [_with_rank(mask, rank) for mask in masks])

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The inputs' shapes broadcast."""
        shapes = self._listed(input_shape)
        sizes = {shape[0] for shape in shapes if shape} - {None}
        if len(sizes) > 1:
            raise ShapeError(f"{called(self)} cannot merge tensors with different batch sizes: found shapes {shapes}.")
        rank = max(len(shape) for shape in shapes)
        rows = [shape[1:] for shape in shapes]
        wide = [(1,) * (rank - 1 - len(row)) + row for row in rows]
        batch = sizes.pop() if sizes else None
        return (batch, *(_broadcast(self, column, shapes) for column in zip(*wide, strict=True)))

    def _listed(self, shapes: Any, least: int = 1) -> list[tuple[Any, ...]]:
        """The shapes of the inputs, refused if they are not a list of them."""
        if not isinstance(shapes, (list, tuple)) or not all(isinstance(shape, (list, tuple)) for shape in shapes):
            raise ValueError(f"{called(self)} should be called on a list of inputs, found one of shape {shapes}.")
        if len(shapes) < least:
            raise ValueError(f"{called(self)} should be called on a list of at least {least} inputs, found {len(shapes)}.")
        return [tuple(shape) for shape in shapes]


def _with_rank(x: Tensor, rank: int) -> Tensor:
    """Axes of size 1 behind the batch axis."""
    return x if x.ndim == rank else reshape(x, (*x.shape[:1], *(1,) * (rank - x.ndim), *x.shape[1:]))


def _broadcast(layer: Merge, sizes: tuple[Any, ...], shapes: Any) -> Any:
    """The size of an axis of the result; None where it is not known."""
    known = {size for size in sizes if size not in (1, None)}
    if len(known) > 1:
        raise ShapeError(f"{called(layer)} needs inputs whose shapes can be broadcast, found {shapes}.")
    return known.pop() if known else None if None in sizes else 1


def _listed_masks(layer: Merge, inputs: TensorLike, masks: Any) -> list[Any]:
    if not isinstance(inputs, (list, tuple)):
        raise ValueError(f"{called(layer)} needs a list of inputs, found {inputs!r:.80}.")
    if masks is None:
        return [None] * len(inputs)
    if not isinstance(masks, (list, tuple)) or len(masks) != len(inputs):
        raise ValueError(f"{called(layer)} needs a list of {len(inputs)} masks, found {masks!r:.80}.")
    return [None if mask is None else tensor(mask) for mask in masks]


class Add(Merge, described=True):
    """The sum of the inputs.

    >>> print(tf.keras.layers.Add()([tf.constant([[1.0, 2.0]]), tf.constant([[10.0, 20.0]])]).numpy())
    [[11. 22.]]
    """

    def combine(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(add, inputs)


class Subtract(Merge, described=True):
    """The first of two inputs less the second.

    >>> print(tf.keras.layers.Subtract()([tf.constant([[1.0]]), tf.constant([[10.0]])]).numpy())
    [[-9.]]
    """

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The inputs' shapes broadcast."""
        if len(self._listed(input_shape, 2)) != 2:
            raise ValueError(f"{called(self)} should be called on exactly 2 inputs, found {len(input_shape)}.")
        return super().compute_output_shape(input_shape)

    def combine(self, inputs: list[Tensor]) -> Tensor:
        return inputs[0] - inputs[1]


class Multiply(Merge, described=True):
    """The product of the inputs; what a mask leaves out of an input does not count as a factor, and what all leave out is 0.

    >>> print(tf.keras.layers.Multiply()([tf.constant([[1.0, 2.0]]), tf.constant([[10.0, 20.0]])]).numpy())
    [[10. 40.]]
    """

    def call(self, inputs: TensorLike) -> Tensor:
        masks = [mask_of(x) for x in inputs]
        factors = [
            x if mask is None else where(_spread(mask, x), x, ones_like(x)) for x, mask in zip(inputs, masks, strict=True)
        ]
        product = super().call(factors)
        if any(mask is None for mask in masks):
            return product
        valids = [_with_rank(_spread(mask, x), product.ndim) for x, mask in zip(inputs, masks, strict=True)]
        return masked_fill(functools.reduce(logical_or, valids), product)

    def combine(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(multiply, inputs)


class Average(Merge, described=True, gives_floats=True):
    """The mean of the inputs.

    >>> print(tf.keras.layers.Average()([tf.constant([[1.0]]), tf.constant([[4.0]])]).numpy())
    [[2.5]]
    """

    def combine(self, inputs: list[Tensor]) -> Tensor:
        total = functools.reduce(add, inputs)
        return (total if total.dtype.is_floating else cast(total, self.compute_dtype)) * (1.0 / len(inputs))


class Maximum(Merge, described=True):
    """The largest of the inputs; what a mask leaves out of an input does not count.

    >>> print(tf.keras.layers.Maximum()([tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 4.0]])]).numpy())
    [[3. 5.]]
    """

    choose = staticmethod(maximum)

    def call(self, inputs: TensorLike) -> Tensor:
        masks = [mask_of(x) for x in inputs]
        if not any(mask is not None for mask in masks):
            return super().call(inputs)
        rank = max(x.ndim for x in inputs)
        valids = [_with_rank(_counting(mask, x), rank) for x, mask in zip(inputs, masks, strict=True)]
        wide = [_with_rank(x, rank) for x in inputs]
        best, counts = wide[0], valids[0]
        for x, valid in zip(wide[1:], valids[1:], strict=True):
            best = where(logical_or(valid, ~counts), where(logical_or(counts, ~valid), self.choose(best, x), x), best)
            counts = logical_or(counts, valid)
        return best

    def combine(self, inputs: list[Tensor]) -> Tensor:
        return functools.reduce(self.choose, inputs)


class Minimum(Maximum, described=True):
    """The smallest of the inputs; what a mask leaves out of an input does not count.

    >>> print(tf.keras.layers.Minimum()([tf.constant([[1.0, 5.0]]), tf.constant([[3.0, 4.0]])]).numpy())
    [[1. 4.]]
    """

    choose = staticmethod(minimum)


def _spread(mask: TensorLike, x: Tensor) -> Tensor:
    """A mask of the first axes of `x`, as bools of its shape; sizes that a symbol leaves open are those of the mask."""
    counts = mask if mask.dtype.is_bool else cast(mask, "bool")
    counts = reshape(counts, (*counts.shape, *(1,) * (x.ndim - counts.ndim)))
    shape = [own if size is None else size for size, own in zip(x.shape, counts.shape, strict=True)]
    return broadcast_to(counts, shape)


def _counting(mask: TensorLike, x: Tensor) -> Tensor:
    return cast(ones_like(x), "bool") if mask is None else _spread(mask, x)


class Concatenate(Merge, described=True):
    """The inputs side by side along an axis.

    Args:
        axis: along which they lie; not the batch axis.

    Raises:
        ShapeError: if sizes along another axis differ.

    >>> tf.keras.layers.Concatenate()([tf.ones([5, 2]), tf.ones([5, 3])]).shape
    TensorShape([5, 5])
    """

    def __init__(self, axis: OneAxis = -1, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: TensorLike) -> Tensor:
        return concat(list(inputs), self.axis)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """The masks side by side; inputs without one count as a whole."""
        masks = _listed_masks(self, inputs, mask)
        if all(mask is None for mask in masks):
            return None
        whole = [_counting(mask, x) for mask, x in zip(masks, inputs, strict=True)]
        return reduce_any(concat(whole, self.axis), -1)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The sizes along the axis added up."""
        shapes = self._listed(input_shape)
        rank = len(shapes[0])
        if any(len(shape) != rank for shape in shapes) or not -rank <= self.axis < rank:
            raise ShapeError(f"{called(self)} needs inputs of one rank that have axis {self.axis}, found {shapes}.")
        place = self.axis % rank
        columns = list(zip(*shapes, strict=True))
        if any(len(set(column) - {None}) > 1 for axis, column in enumerate(columns) if axis != place):
            raise ShapeError(f"{called(self)} requires inputs with matching shapes except along axis {self.axis}: {shapes}.")
        sizes = [next((size for size in column if size is not None), None) for column in columns]
        sizes[place] = None if None in columns[place] else sum(columns[place])
        return tuple(sizes)


class Dot(Merge, described=True):
    """The sum of products of two inputs along an axis of each, row by row.

    Args:
        axes: the axis of both, or a pair; not the batch axis.
        normalize: whether both are divided by their length first, which gives the cosine of the angle between them.

    Returns:
        (batch, other axes of the first, other axes of the second), at least (batch, 1).

    Raises:
        ShapeError: if the sizes along the axes differ.

    >>> print(tf.keras.layers.Dot(axes=1)([tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])]).numpy())
    [[11.]]
    """

    def __init__(self, axes: Any = -1, normalize: Flag = False, **options: Any) -> None:
        super().__init__(**options)
        pair = [axes] * 2 if isinstance(axes, int) else axes
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(axis, int) for axis in pair):
            raise ValueError(f"Dot: axes must be an int or a pair of them, found {axes!r}.")
        self.axes = axes if isinstance(axes, int) else tuple(axes)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """None: the masked axis is summed over."""
        return None

    def call(self, inputs: TensorLike) -> Tensor:
        first, second = inputs
        axes = self._places([tuple(x.shape) for x in inputs])
        if self.normalize:
            first, second = l2_normalize(first, axes[0]), l2_normalize(second, axes[1])
        rest = [[axis for axis in range(1, x.ndim) if axis != place] for x, place in zip(inputs, axes, strict=True)]
        free = [tuple(x.shape[axis] for axis in others) for x, others in zip(inputs, rest, strict=True)]
        left = reshape(transpose(first, [0, *rest[0], axes[0]]), (first.shape[0], -1, first.shape[axes[0]]))
        right = reshape(transpose(second, [0, axes[1], *rest[1]]), (second.shape[0], second.shape[axes[1]], -1))
        product = matmul(left, right)
        return reshape(product, (first.shape[0], *((*free[0], *free[1]) or (1,))))

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, other axes of the first, other axes of the second)."""
        shapes = self._listed(input_shape, 2)
        axes = self._places(shapes)
        rest = [
            size for shape, place in zip(shapes, axes, strict=True) for axis, size in enumerate(shape) if axis not in (0, place)
        ]
        return (shapes[0][0], *(rest or [1]))

    def _places(self, shapes: list[tuple[Any, ...]]) -> list[int]:
        if len(shapes) != 2:
            raise ValueError(f"{called(self)} should be called on exactly 2 inputs, found {len(shapes)}.")
        pair = [self.axes] * 2 if isinstance(self.axes, int) else self.axes
        if any(
            not -len(shape) <= axis < len(shape) or axis % len(shape) == 0 for axis, shape in zip(pair, shapes, strict=True)
        ):
            raise ShapeError(f"{called(self)} has axes {self.axes}, which must lie behind the batch axis of {shapes}.")
        places = [axis % len(shape) for axis, shape in zip(pair, shapes, strict=True)]
        sizes = [shape[place] for shape, place in zip(shapes, places, strict=True)]
        if None not in sizes and sizes[0] != sizes[1]:
            raise ShapeError(
                f"{called(self)} found incompatible input shapes {shapes[0]} and {shapes[1]}: sizes {sizes[0]} and "
                f"{sizes[1]} along axes {places[0]} and {places[1]} differ."
            )
        return places


_ARGUMENTS = {"Dot": ", axes=1"}
_EXAMPLES = {
    "Add": "[[4. 3.]]",
    "Average": "[[2.  1.5]]",
    "Concatenate": "[[1. 2. 3. 1.]]",
    "Dot": "[[5.]]",
    "Maximum": "[[3. 2.]]",
    "Minimum": "[[1. 1.]]",
    "Multiply": "[[3. 2.]]",
    "Subtract": "[[-2.  1.]]",
}
"""The output of the example in the docstring of each function."""


def _function(layer: Callable[..., Merge]) -> Callable[..., Any]:
    """The layer as a function of its inputs, made and called at once."""
    name = getattr(layer, "__name__", "")

    def merged(inputs: TensorLike, *arguments: Any, **options: Any) -> Any:
        return layer(*arguments, **options)(inputs)

    name_like_definition(merged, name.lower(), __package__ or "")
    merged.__doc__ = f"""The output of the layer `{name}` for a list of inputs; further arguments go to the layer.

    >>> x, y = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 1.0]])
    >>> print(tf.keras.layers.{name.lower()}([x, y]{_ARGUMENTS.get(name, "")}).numpy())
    {_EXAMPLES[name]}
    """
    return merged


FUNCTIONS = tuple(_function(cls) for cls in (Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract))
"""Keras's lower-case forms, in the order of their names."""
