"""Layers that move elements: rows in another shape or order, images resampled or cropped, zeros around, elements left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from ...absent import hide_imports
from ...core import Tensor
from ...core.ops.indexing import getitem
from ...core.ops.shaping import broadcast_to, reshape
from ...errors import ShapeError
from ...functions import cast, pad, round, saturate_cast, transpose
from ...functions.resizing import METHODS, enlarged, resized
from ...types import ShapeLike
from ..symbolic import KerasTensor, Spec
from .inputs import InputSpec, called
from .layer import Layer
from .options import DataFormat, Flag, Kept, Number, Option, Size, one_for_each, one_of
from .windows import SpatialLayer


class Flatten(Layer, described=True, makes_nothing=True):
    """All axes but the batch axis as one; a batch of scalars becomes (batch, 1).

    Args:
        data_format: 'channels_last' (default) or 'channels_first', which moves the channels behind first.

    >>> tf.keras.layers.Flatten()(tf.ones([2, 3, 4])).shape
    TensorShape([2, 12])
    """

    def __init__(self, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        shape, x = inputs.array.shape, inputs
        if self.data_format == "channels_first" and len(shape) > 2:
            x = transpose(inputs, [0, *range(2, len(shape)), 1])
        return reshape(x, shape=(shape[0], math.prod(shape[1:])), rank=len(shape))

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, product of the others)."""
        rest = tuple(input_shape[1:])
        return (input_shape[0], None if None in rest else math.prod(rest))


class Reshape(Layer, described=True, makes_nothing=True, takes_one_tensor=True):
    """The elements of each row, in their order, with another shape.

    Args:
        target_shape: without the batch axis; one size may be -1.

    Raises:
        ShapeError: if a row has another number of elements.

    >>> tf.keras.layers.Reshape((2, -1))(tf.ones([5, 6])).shape
    TensorShape([5, 2, 3])
    """

    def __init__(self, target_shape: ShapeLike, **options: Any) -> None:
        super().__init__(**options)
        self.target_shape = tuple(int(size) for size in target_shape)
        if self.target_shape.count(-1) > 1 or any(size < -1 for size in self.target_shape):
            raise ValueError(f"Reshape: target_shape may hold one -1 and no other negative size, found {self.target_shape}.")

    def call(self, inputs: Tensor) -> Tensor:
        return reshape(inputs, shape=self.compute_output_shape(tuple(inputs.shape)), rank=inputs.ndim)

    def output_spec(self, x: KerasTensor) -> Spec | None:
        """The spec of the output if axes beside the batch are unknown: a trial would need one of the few sizes that fit."""
        return Spec(self.compute_output_shape(x.shape), x.dtype) if None in x.shape[1:] else None

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *target_shape), with -1 worked out."""
        rest, target = tuple(input_shape[1:]), self.target_shape
        if None in rest:
            return (input_shape[0], *(None if size == -1 else size for size in target))
        count, known = math.prod(rest), math.prod(size for size in target if size != -1)
        if count != known if -1 not in target else known == 0 or count % known:
            raise ShapeError(f"{called(self)}: rows of shape {rest} have {count} elements, target_shape {target} does not.")
        return (input_shape[0], *(count // known if size == -1 else size for size in target))


class Permute(Layer, described=True, makes_nothing=True):
    """The axes of each row in another order.

    Args:
        dims: the axes in their new order, counted from 1; (2, 1) swaps the two behind the batch axis.

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

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The axes in their new order."""
        return (input_shape[0], *(input_shape[axis] for axis in self.dims))


class RepeatVector(Layer, described=True, makes_nothing=True):
    """Each row n times: (batch, features) becomes (batch, n, features).

    Args:
        n: a positive int.

    >>> tf.keras.layers.RepeatVector(3)(tf.ones([5, 2])).shape
    TensorShape([5, 3, 2])
    """

    def __init__(self, n: Kept[int], **options: Any) -> None:
        super().__init__(**options)
        if n < 1:
            raise ValueError(f"`n` should be a positive integer, got {n}.")
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        batch, features = inputs.shape
        return broadcast_to(reshape(inputs, shape=(batch, 1, features), rank=2), shape=(batch, self.n, features), rank=3)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, n, features)."""
        return (input_shape[0], self.n, input_shape[1])


# Sizes of images -------------------------------------------------------------------------------------------------------


class OfSize(Layer, takes_one_tensor=True):
    """Base of layers whose images have one height and width."""

    def __init__(self, height: Size, width: Size, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(**options)

    def axes(self, shape: ShapeLike) -> tuple[int, int]:
        """The axes of height and width of images of a shape, counted from the first."""
        if len(shape) not in (3, 4):
            raise ShapeError(f"{called(self)} expects images of 3 axes, or batches of 4, found shape {shape}.")
        first = len(shape) - (2 if self.data_format == "channels_first" else 3)
        return first, first + 1

    def middle(self, x: Tensor, height: int, width: int) -> Tensor:
        """The middle of images, of a height and width that they have."""
        key: list[Any] = [slice(None)] * x.ndim
        for axis, size in zip(self.axes(x.shape), (height, width), strict=True):
            start = (x.shape[axis] - size) // 2
            key[axis] = slice(start, start + size)
        return getitem(x, tuple(key))

    def as_wide(self, x: Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
        """Height and width of images, and those that would give them the proportions wanted."""
        rows, columns = (x.shape[axis] for axis in self.axes(x.shape))
        return (rows, columns), (int(columns * self.height / self.width), int(rows * self.width / self.height))

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The input's, with the height and width."""
        sizes = dict(zip(self.axes(input_shape), (self.height, self.width), strict=True))
        return tuple(sizes.get(axis, size) for axis, size in enumerate(input_shape))


class Resizing(OfSize, described=True, makes_nothing=True):
    """Images resampled to a height and width, as `tf.image.resize` does it.

    Args:
        height, width: of the output.
        interpolation: 'bilinear', 'nearest' or another method of `tf.image.resize`.
        crop_to_aspect_ratio: whether the middle is resized that has the proportions of the output.
        pad_to_aspect_ratio: whether the image is put into the middle of one that has them first; not with the other.
        fill_mode: 'constant', with `fill_value` around.
        antialias: whether the kernel is as many times wider as the image becomes smaller.

    Shapes: (height, width, channels) with or without a batch in front. Integers stay integers, rounded.

    >>> print(tf.keras.layers.Resizing(1, 4)([[[0.0], [4.0]]]).numpy().ravel())
    [0. 1. 3. 4.]
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: Annotated[str, one_of(*METHODS)] = "bilinear",
        crop_to_aspect_ratio: Flag = False,
        pad_to_aspect_ratio: Flag = False,
        fill_mode: Kept[str] = "constant",
        fill_value: Number = 0.0,
        antialias: Flag = False,
        data_format: DataFormat = None,
        **options: Any,
    ) -> None:
        super().__init__(height, width, data_format, **options)
        if fill_mode != "constant":
            raise ValueError(f"Resizing: only fill_mode='constant' is there, found {fill_mode!r}.")
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Only one of `pad_to_aspect_ratio` and `crop_to_aspect_ratio` can be `True`.")

    def call(self, inputs: Tensor) -> Tensor:
        x, axes = inputs, self.axes(inputs.shape)
        if self.crop_to_aspect_ratio:
            found, wanted = self.as_wide(x)
            x = self.middle(x, *(max(min(pair), 1) for pair in zip(found, wanted, strict=True)))
        elif self.pad_to_aspect_ratio:
            found, wanted = self.as_wide(x)
            edges = [[0, 0] for _ in x.shape]
            for axis, n, size in zip(axes, found, wanted, strict=True):
                edges[axis] = [max(size - n, 0) // 2] * 2
            x = pad(x, edges, constant_values=self.fill_value if x.dtype.is_floating else int(self.fill_value))
        y = resized(x, dict(zip(axes, (self.height, self.width), strict=True)), self.interpolation, self.antialias)
        return y if y.dtype == inputs.dtype else saturate_cast(round(y), inputs.dtype)


class CenterCrop(OfSize, described=True, makes_nothing=True, gives_floats=True):
    """The middle of images, of a height and width; images that are smaller are resized, their proportions kept by cutting.

    Args:
        height, width: of the output.

    Shapes: (height, width, channels) with or without a batch in front; floats come out.

    >>> tf.keras.layers.CenterCrop(1, 2)(tf.reshape(tf.range(12.0), [3, 4, 1])).numpy().ravel()
    array([5., 6.], dtype=float32)
    """

    def call(self, inputs: Tensor) -> Tensor:
        x = cast(inputs, self.compute_dtype)
        (rows, columns), wanted = self.as_wide(x)
        if rows >= self.height and columns >= self.width:
            return self.middle(x, self.height, self.width)
        x = self.middle(x, max(min(rows, wanted[0]), 1), max(min(columns, wanted[1]), 1))
        return resized(x, dict(zip(self.axes(x.shape), (self.height, self.width), strict=True)))


class Resized(SpatialLayer):
    """Base of layers that change each size between batch and channels."""

    def new_sizes(self, sizes: tuple[int | None, ...]) -> list[int | None]:
        """The sizes of the output for those of the input."""
        raise NotImplementedError

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The input's, with other sizes between batch and channels."""
        return self._with_sizes(input_shape, self.new_sizes(tuple(input_shape[self._first_axis :][: self.rank])))


def _pairs(layer: Any, name: str, value: Any) -> tuple[Any, ...]:
    """A pair of ints for each axis, from one int for all, or an int or a pair for each; the pair alone of a single axis."""
    if layer.rank == 1:
        return one_for_each(layer, name, value, 2, least=0)
    parts = (value,) * layer.rank if isinstance(value, int) else value
    if not isinstance(parts, (list, tuple)) or len(parts) != layer.rank:
        raise ValueError(
            f"{type(layer).__name__}: `{name}` must be an int, or an int or a pair of ints for each of {layer.rank} axes. "
            f"Received: {name}={value!r}."
        )
    return tuple(one_for_each(layer, name, part, 2, least=0) for part in parts)


Pairs = Annotated[int | Sequence[Any], Option(_pairs)]


class Margins(Resized):
    """Base of layers that add or take away elements at both ends of each axis."""

    def of_each_axis(self, kept: Any) -> list[tuple[int, int]]:
        """The kept option as a list, with a pair for each axis."""
        return [kept] if self.rank == 1 else list(kept)


class ZeroPadding(Margins):
    """Base of padding with zeros, with the arguments of `ZeroPadding2D`."""

    def __init__(self, padding: Pairs = 1, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        start = self._first_axis
        behind = inputs.ndim - start - self.rank
        return pad(inputs, [(0, 0)] * start + self.of_each_axis(self.padding) + [(0, 0)] * behind)

    def new_sizes(self, sizes: tuple[int | None, ...]) -> list[int | None]:
        """As many more as there are zeros."""
        pairs = self.of_each_axis(self.padding)
        return [None if n is None else n + sum(pair) for n, pair in zip(sizes, pairs, strict=True)]


class ZeroPadding1D(ZeroPadding, described=True, makes_nothing=True, rank=1):
    """Zeros before the first step and after the last. Arguments as in `ZeroPadding2D`; `padding` is an int or one pair.

    >>> print(tf.keras.layers.ZeroPadding1D((1, 2))([[[3.0], [4.0]]]).numpy().ravel())
    [0. 3. 4. 0. 0.]
    """


class ZeroPadding2D(ZeroPadding, described=True, makes_nothing=True, rank=2):
    """Zeros around height and width.

    Args:
        padding: how many at each end; an int or a pair for each axis, or an int for all.

    >>> tf.keras.layers.ZeroPadding2D(((0, 1), 2))(tf.ones([2, 5, 5, 3])).shape
    TensorShape([2, 6, 9, 3])
    """


class ZeroPadding3D(ZeroPadding, described=True, makes_nothing=True, rank=3):
    """Zeros around three axes. Arguments as in `ZeroPadding2D`.

    >>> tf.keras.layers.ZeroPadding3D()(tf.ones([2, 5, 6, 7, 3])).shape
    TensorShape([2, 7, 8, 9, 3])
    """


class Cropping(Margins):
    """Base of layers that leave elements out at both ends."""

    def call(self, inputs: Tensor) -> Tensor:
        self.compute_output_shape(tuple(inputs.shape))
        kept = tuple(slice(before, -behind or None) for before, behind in self.of_each_axis(self.cropping))
        return getitem(inputs, (slice(None),) * self._first_axis + kept)

    def new_sizes(self, sizes: tuple[int | None, ...]) -> list[int | None]:
        """As many fewer as are left out."""
        pairs = self.of_each_axis(self.cropping)
        if any(n is not None and n <= sum(pair) for n, pair in zip(sizes, pairs, strict=True)):
            raise ShapeError(
                f"{called(self)}: cropping={self.cropping} leaves nothing of sizes {sizes}; values in `cropping` must be "
                "smaller than the input."
            )
        return [None if n is None else n - sum(pair) for n, pair in zip(sizes, pairs, strict=True)]


class Cropping1D(Cropping, described=True, makes_nothing=True, rank=1):
    """Steps left out at the beginning and the end: `cropping` is an int or a pair.

    >>> print(tf.keras.layers.Cropping1D((1, 0))([[[3.0], [4.0]]]).numpy().ravel())
    [4.]
    """

    def __init__(self, cropping: Pairs = 1, **options: Any) -> None:
        super().__init__(**options)


class Cropping2D(Cropping, described=True, makes_nothing=True, rank=2):
    """Rows and columns left out at the edges.

    Args:
        cropping: how many at each end; an int or a pair for each axis, or an int for all.

    Raises:
        ShapeError: if nothing is left.

    >>> tf.keras.layers.Cropping2D(((0, 1), 2))(tf.ones([2, 5, 5, 3])).shape
    TensorShape([2, 4, 1, 3])
    """

    def __init__(self, cropping: Pairs = 0, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(**options)


class Cropping3D(Cropping2D, described=True, makes_nothing=True, rank=3):
    """Elements of three axes left out at the edges: one each by default. Arguments as in `Cropping2D`.

    >>> tf.keras.layers.Cropping3D()(tf.ones([2, 5, 6, 7, 3])).shape
    TensorShape([2, 3, 4, 5, 3])
    """

    def __init__(self, cropping: int | Sequence[Any] = 1, data_format: str | None = None, **options: Any) -> None:
        super().__init__(cropping, data_format, **options)


class UpSampling(Resized):
    """Base of layers that make images larger by whole factors."""

    interpolation = "nearest"

    def __init__(self, size: int | Sequence[int] = 2, **options: Any) -> None:
        super().__init__(**options)
        factors = one_for_each(self, "size", size, self.rank)
        self.size = factors[0] if self.rank == 1 else factors

    def factors(self) -> tuple[int, ...]:
        """One for each axis."""
        return (self.size,) if isinstance(self.size, int) else self.size

    def call(self, inputs: Tensor) -> Tensor:
        if self.interpolation == "nearest":
            return enlarged(inputs, self.factors(), self.data_format)
        x = inputs if inputs.dtype.is_floating else cast(inputs, self.compute_dtype)
        sizes = {axis: factor * x.shape[axis] for axis, factor in enumerate(self.factors(), self._first_axis)}
        return resized(x, sizes, self.interpolation)

    def new_sizes(self, sizes: tuple[int | None, ...]) -> list[int | None]:
        """So many times as large."""
        return [None if n is None else n * factor for n, factor in zip(sizes, self.factors(), strict=True)]


class UpSampling1D(UpSampling, described=True, makes_nothing=True, rank=1):
    """Each step `size` times.

    >>> print(tf.keras.layers.UpSampling1D(2)([[[3.0], [4.0]]]).numpy().ravel())
    [3. 3. 4. 4.]
    """


class UpSampling2D(UpSampling, described=True, makes_nothing=True, rank=2):
    """Height and width times whole numbers.

    Args:
        size: factors of height and width; an int serves both.
        interpolation: 'nearest' (default) repeats rows and columns; 'bilinear', 'bicubic', 'lanczos3' and 'lanczos5' are as in
            `tf.image.resize`.

    >>> tf.keras.layers.UpSampling2D((1, 2), interpolation="bilinear")([[[[0.0], [4.0]]]]).numpy().ravel()
    array([0., 1., 3., 4.], dtype=float32)
    """

    def __init__(
        self, size: int | Sequence[int] = 2, data_format: DataFormat = None, interpolation: str = "nearest", **options: Any
    ) -> None:
        super().__init__(size, **options)
        if not isinstance(interpolation, str) or interpolation.lower() not in METHODS:
            raise ValueError(f"UpSampling2D: interpolation must be one of {METHODS}, found {interpolation!r}.")
        self.interpolation = interpolation.lower()
        self.gives_floats = self.interpolation != "nearest"


class UpSampling3D(UpSampling, described=True, makes_nothing=True, rank=3):
    """Each element `size` times along three axes. `size` and `data_format` as in `UpSampling2D`.

    >>> tf.keras.layers.UpSampling3D((1, 2, 3))(tf.ones([2, 5, 6, 7, 3])).shape
    TensorShape([2, 5, 12, 21, 3])
    """

    def __init__(self, size: int | Sequence[int] = 2, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(size, **options)


hide_imports(globals(), "Cropping", "Margins", "OfSize", "Resized", "UpSampling", "ZeroPadding")
