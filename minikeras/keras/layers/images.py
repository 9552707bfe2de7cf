"""Images of one size: resampled, or cut out of the middle."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions.elementwise import cast, round, saturate_cast
from ...functions.indexing import getitem
from ...functions.resizing import METHODS, resized
from ...functions.shaping import pad
from ..arguments import whole
from .layer import Layer
from .reshaping import checked_format


class OfSize(Layer):
    """Base of layers whose images have one height and width."""

    _takes_one_tensor = True

    def __init__(self, height: int, width: int, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        whole(f"{type(self).__name__}: height", height, 1)
        whole(f"{type(self).__name__}: width", width, 1)
        self.height, self.width = height, width
        self.data_format = checked_format(self, data_format)

    def axes(self, shape: Any) -> tuple[int, int]:
        """The axes of height and width of images of a shape, counted from the first."""
        if len(shape) not in (3, 4):
            raise ShapeError(
                f"Layer '{self.name}' ({type(self).__name__}) expects images of 3 axes, or batches of 4, found shape {shape}."
            )
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

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The input's, with the height and width."""
        sizes = dict(zip(self.axes(input_shape), (self.height, self.width), strict=True))
        return tuple(sizes.get(axis, size) for axis, size in enumerate(input_shape))


class Resizing(OfSize):
    """Images resampled to a height and width, as `tf.image.resize` does it.

    Args:
        height, width: of the output.
        interpolation: 'bilinear', 'nearest' or another method of `tf.image.resize`.
        crop_to_aspect_ratio: whether the middle is resized that has the proportions of the output.
        pad_to_aspect_ratio: whether the image is put into the middle of one that has them first; not with the other.
        fill_mode: 'constant', with `fill_value` around.
        antialias: whether the kernel is as many times wider as the image becomes smaller.
        data_format: 'channels_last' (default) or 'channels_first'.
        options: `name`, `dtype`, as in `Layer`.

    Shapes: (height, width, channels) with or without a batch in front. Integers stay integers, rounded.

    >>> print(tf.keras.layers.Resizing(1, 4)([[[0.0], [4.0]]]).numpy().ravel())
    [0. 1. 3. 4.]
    """

    _makes_nothing = True

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(height, width, data_format, **options)
        if interpolation not in METHODS:
            raise ValueError(f"Resizing: interpolation must be one of {METHODS}, found {interpolation!r}.")
        if fill_mode != "constant":
            raise ValueError(f"Resizing: only fill_mode='constant' is there, found {fill_mode!r}.")
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Only one of `pad_to_aspect_ratio` and `crop_to_aspect_ratio` can be `True`.")
        self.interpolation, self.antialias = interpolation, bool(antialias)
        self.crop_to_aspect_ratio, self.pad_to_aspect_ratio = bool(crop_to_aspect_ratio), bool(pad_to_aspect_ratio)
        self.fill_mode, self.fill_value = fill_mode, float(fill_value)

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


class CenterCrop(OfSize):
    """The middle of images, of a height and width; images that are smaller are resized, their proportions kept by cutting.

    Args:
        height, width: of the output.
        data_format: 'channels_last' (default) or 'channels_first'.
        options: `name`, `dtype`, as in `Layer`.

    Shapes: (height, width, channels) with or without a batch in front; floats come out.

    >>> tf.keras.layers.CenterCrop(1, 2)(tf.reshape(tf.range(12.0), [3, 4, 1])).numpy().ravel()
    array([5., 6.], dtype=float32)
    """

    _gives_floats = _makes_nothing = True

    def call(self, inputs: Tensor) -> Tensor:
        x = cast(inputs, self.compute_dtype)
        (rows, columns), wanted = self.as_wide(x)
        if rows >= self.height and columns >= self.width:
            return self.middle(x, self.height, self.width)
        x = self.middle(x, max(min(rows, wanted[0]), 1), max(min(columns, wanted[1]), 1))
        return resized(x, dict(zip(self.axes(x.shape), (self.height, self.width), strict=True)))
