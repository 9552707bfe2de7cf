"""Colors of images in other coordinates."""

from __future__ import annotations

from collections.abc import Callable

from ....core import Tensor
from ....errors import DTypeError, ShapeError
from ....functions.elementwise import cast
from ....functions.image import hue_saturation_value, red_green_blue
from ....functions.shaping import stack
from ....types import TensorLike
from ...promotion import floating
from ...symbolic.operation import operation
from .batches import as_batch

__all__ = ["hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv"]


@operation(name="RGBToGrayscale")
def rgb_to_grayscale(images: TensorLike, data_format: str | None = None) -> Tensor:
    """0.2989 red + 0.587 green + 0.114 blue, in the dtype of the images; images of one channel as they are.

    Args:
        images: ([batch,] height, width, 3), or with the channels first.

    >>> print(tf.keras.ops.image.rgb_to_grayscale([[[1.0, 1.0, 0.0]]]).numpy().round(4))
    [[[0.8859]]]
    """
    x, back = as_batch("rgb_to_grayscale", images, data_format)
    if x.shape[-1] not in (1, 3):
        raise ShapeError(f"rgb_to_grayscale: needs 3 channels, or 1, found {x.shape[-1]}.")
    if x.shape[-1] == 3:
        red, green, blue = [floating(x)[..., place : place + 1] for place in range(3)]
        x = cast(red * 0.2989 + green * 0.587 + blue * 0.114, x.dtype)
    return back(x)


def _planes(name: str, images: TensorLike, data_format: str | None, convert: Callable[..., list[Tensor]]) -> Tensor:
    """Three channels converted into three others."""
    x, back = as_batch(name, images, data_format)
    if not x.dtype.is_floating or x.shape[-1] != 3:
        raise DTypeError(f"{name}: needs 3 channels of floats, found {x.shape[-1]} of {x.dtype.name}. Divide integers by 255.")
    return back(stack(convert(*[x[..., place] for place in range(3)]), -1))


@operation(name="RGBToHSV")
def rgb_to_hsv(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value of floats in [0, 1].

    >>> print(tf.keras.ops.image.rgb_to_hsv([[[0.0, 1.0, 0.0]]]).numpy().round(4))
    [[[0.3333 1.     1.    ]]]
    """
    return _planes("rgb_to_hsv", images, data_format, hue_saturation_value)


@operation(name="HSVToRGB")
def hsv_to_rgb(images: TensorLike, data_format: str | None = None) -> Tensor:
    """The inverse of `rgb_to_hsv`.

    >>> print(tf.keras.ops.image.hsv_to_rgb([[[0.0, 1.0, 1.0]]]).numpy())
    [[[1. 0. 0.]]]
    """
    return _planes("hsv_to_rgb", images, data_format, red_green_blue)
