"""Images as arrays and back, through Pillow."""

from __future__ import annotations

import io
import os
import pathlib
import warnings
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...errors import MissingExtraError, NotFoundError, ShapeError
from ...functions.resizing import resize
from ...functions.shaping import transpose
from ..config import floatx, image_data_format

MODES = {"grayscale": ("L", "I;16", "I"), "rgb": ("RGB",), "rgba": ("RGBA",)}
"""For each color mode the modes of Pillow that are taken as they are; others are converted to the first."""


def pillow(name: str) -> Any:
    """Pillow's module of images."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(f"{name} needs Pillow: pip install 'minikeras[images]', or pillow alone.") from error
    return Image


def channels_first(name: str, data_format: str | None) -> bool:
    """True if channels come before height and width; None stands for the global setting."""
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(f"{name}: data_format must be 'channels_last' or 'channels_first', found {data_format!r}.")
    return (data_format or image_data_format()) == "channels_first"


def height_and_width(name: str, given: Any) -> tuple[int, int]:
    """Two sizes of at least 1."""
    sizes = tuple(given) if isinstance(given, (list, tuple)) else ()
    if len(sizes) != 2 or not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise ValueError(f"{name}: a height and a width of at least 1 are needed, found {given!r:.100}.")
    return sizes


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """A Pillow image of an array of an image.

    Args:
        x: (height, width, channels), with 1, 3 or 4 channels.
        data_format: 'channels_last', or 'channels_first' for (channels, height, width); None for the global setting.
        scale: whether values are moved and scaled to lie from 0 to 255.
        dtype: in which that is computed; None for `floatx()`.

    Raises:
        MissingExtraError: without Pillow.
        ShapeError: for another shape.

    >>> array_to_img(np.arange(6.0).reshape(1, 2, 3)).size
    (2, 1)
    """
    image = pillow("array_to_img")
    array = np.asarray(x.numpy() if isinstance(x, Tensor) else x, dtype or floatx())
    if channels_first("array_to_img", data_format) and array.ndim == 3:
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise ShapeError(
            f"array_to_img: one image with 1, 3 or 4 channels is needed, found shape {np.shape(x)}. data_format tells where "
            "channels are; x[0] is the first image of a batch."
        )
    if scale:
        array = array - array.min()
        array = array * (255 / (array.max() or 1))
    if array.shape[2] > 1:
        return image.fromarray(array.astype("uint8"))
    return image.fromarray(array[..., 0].astype("int32" if array.max() > 255 else "uint8"))


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray[Any, Any]:
    """An array (height, width, channels) of a Pillow image, or (channels, height, width) for 'channels_first'.

    >>> img_to_array(np.zeros((2, 3))).shape
    (2, 3, 1)
    """
    array = np.asarray(img, dtype or floatx())
    if array.ndim not in (2, 3):
        raise ShapeError(f"img_to_array: an image has two or three axes, found shape {array.shape}.")
    array = array[..., None] if array.ndim == 2 else array
    return array.transpose(2, 0, 1) if channels_first("img_to_array", data_format) else array


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Write an array of an image to a file, in the format of its name.

    Args:
        path: of the file, or an open one.
        x: see `array_to_img`.
        data_format: of `x`.
        file_format: such as 'png', instead of that of the name.
        scale: see `array_to_img`.
        kwargs: for Pillow's `Image.save`.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "red.png")
    >>> tf.keras.preprocessing.image.save_img(path, [[[255, 0, 0]]], scale=False)
    >>> tf.keras.preprocessing.image.load_img(path).getpixel((0, 0))
    (255, 0, 0)
    """
    img = array_to_img(x, data_format, scale)
    if file_format is None and isinstance(path, (str, os.PathLike)):
        file_format = os.path.splitext(path)[1][1:]
    kind = {"jpg": "jpeg"}.get((file_format or "").lower(), file_format or None)
    if img.mode == "RGBA" and kind == "jpeg":
        warnings.warn("save_img: JPEG files have no transparency; it is left out.", stacklevel=2)
        img = img.convert("RGB")
    img.save(path, format=kind, **kwargs)


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """A Pillow image from a file.

    Args:
        path: of the file, or its bytes in a BytesIO.
        color_mode: 'grayscale', 'rgb' or 'rgba'.
        target_size: height and width to resize it to.
        interpolation: 'nearest', 'bilinear', 'bicubic', 'lanczos', 'box' or 'hamming'.
        keep_aspect_ratio: whether what does not fit is cut off, instead of changing the proportions.

    Raises:
        MissingExtraError: without Pillow.
        NotFoundError: if there is no such file.
        ValueError: for an unknown mode or interpolation.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "red.png")
    >>> tf.keras.preprocessing.image.save_img(path, [[[255, 0, 0]]], scale=False)
    >>> tf.keras.preprocessing.image.load_img(path, target_size=(2, 3)).size
    (3, 2)
    """
    image = pillow("load_img")
    methods = {method.name.lower(): method for method in image.Resampling}
    if color_mode not in MODES:
        raise ValueError(f"load_img: color_mode must be one of {list(MODES)}, found {color_mode!r}.")
    if interpolation not in methods:
        raise ValueError(f"load_img: interpolation must be one of {list(methods)}, found {interpolation!r}.")
    height, width = (None, None) if target_size is None else height_and_width("load_img", target_size)
    try:
        content = path.getvalue() if isinstance(path, io.BytesIO) else pathlib.Path(os.fsdecode(path)).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"load_img: there is no file {os.fsdecode(path)!r}.") from None
    img = image.open(io.BytesIO(content))
    if img.mode not in MODES[color_mode]:
        img = img.convert(MODES[color_mode][0])
    if height is None or width is None or img.size == (width, height):
        return img
    box = _middle(img.size[1], img.size[0], height, width) if keep_aspect_ratio else (0, 0, img.size[1], img.size[0])
    return img.resize((width, height), methods[interpolation], box=(box[1], box[0], box[3], box[2]))


def _middle(height: int, width: int, target_height: int, target_width: int) -> tuple[int, int, int, int]:
    """Top, left, bottom and right of the largest part in the middle of an image with the proportions of a target."""
    kept_height = max(1, min(height, width * target_height // target_width))
    kept_width = max(1, min(width, height * target_width // target_height))
    top, left = (height - kept_height) // 2, (width - kept_width) // 2
    return top, left, top + kept_height, left + kept_width


def smart_resize(
    x: Any, size: tuple[int, int], interpolation: str = "bilinear", data_format: str | None = "channels_last"
) -> Any:
    """Images resized without a change of their proportions: what does not fit is cut off at the sides.

    Args:
        x: ([batch,] height, width, channels): an array, or a Tensor, whose kind the result is.
        size: new height and width.
        interpolation: a method of `tf.image.resize`.
        data_format: or 'channels_first' for ([batch,] channels, height, width).

    >>> smart_resize(np.zeros((4, 8, 3)), (2, 2)).shape
    (2, 2, 3)
    """
    images, first = convert_to_tensor(x), channels_first("smart_resize", data_format)
    if images.ndim not in (3, 4) or len(size) != 2:
        raise ShapeError(
            f"smart_resize: ([batch,] height, width, channels) and two sizes are needed, found shape {images.shape} and {size}."
        )
    batch, (one, two, three) = range(images.ndim - 3), range(images.ndim - 3, images.ndim)
    if first:
        images = transpose(images, [*batch, two, three, one])
    height, width = images.shape[-3:-1]
    top, left, bottom, right = _middle(height, width, *size)
    found = resize(images[..., top:bottom, left:right, :], size, interpolation)
    found = transpose(found, [*batch, three, one, two]) if first else found
    return found if isinstance(x, Tensor) else found.numpy()
