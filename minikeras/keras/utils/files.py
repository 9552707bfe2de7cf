"""Image files as arrays and back, through Pillow, and folders of images and texts as datasets."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...boundary import explaining
from ...core import Tensor, convert_to_tensor, warn_caller
from ...data import Dataset
from ...data.pipeline import order_stream
from ...errors import NotFoundError, ShapeError
from ...extras import imported
from ...functions.resizing import METHODS, resize
from ...functions.shaping import transpose
from ...types import TensorLike
from ..config import checked_format, floatx

MODES = {"grayscale": ("L", "I;16", "I"), "rgb": ("RGB",), "rgba": ("RGBA",)}
"""For each color mode the modes of Pillow that are taken as they are; others are converted to the first."""


def pillow(name: str) -> Any:
    """Pillow's module of images."""
    return imported("PIL.Image", f"{name} needs Pillow")


def channels_first(name: str, data_format: str | None) -> bool:
    """True if channels come before height and width; None stands for the global setting."""
    return checked_format(data_format, f"{name}: ") == "channels_first"


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
    path: Any, x: TensorLike, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
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
        warn_caller("save_img: JPEG files have no transparency; it is left out.")
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
        OSError: if it is no image, or a part of one; Pillow's UnidentifiedImageError for the first.
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
    try:
        img = image.open(io.BytesIO(content))
        img.load()
    except OSError as error:  # Pillow does not name the file
        raise type(error)(f"load_img: {path} is no image that Pillow reads, or only a part of one.") from error
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
    x: TensorLike, size: tuple[int, int], interpolation: str = "bilinear", data_format: str | None = "channels_last"
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


_THREADS = 4
"""The number of threads that read files; the order is kept."""


class _Files(NamedTuple):
    """Files, the numbers of their classes if they have some, and the names of these."""

    paths: list[str]
    labels: np.ndarray[Any, Any] | None
    class_names: list[str] | None

    def part(self, rows: Any) -> _Files:
        labels = None if self.labels is None else self.labels[rows]
        return self._replace(paths=[self.paths[row] for row in np.arange(len(self.paths))[rows]], labels=labels)


# Datasets of the files in a directory, with a subdirectory for each class ----------------------------------------------


@explaining
def image_dataset_from_directory(
    directory: Any,
    labels: TensorLike = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: Any = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: str | None = None,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Batches of the images in a directory, float32 from 0 to 255, with their labels.

    Files are read again in each epoch. The Dataset has attributes `class_names` and `file_paths`.

    Args:
        directory: with a subdirectory of .bmp, .gif, .jpeg, .jpg or .png files for each class.
        labels: 'inferred' by the subdirectories; numbers for the files sorted by path; None for images alone.
        label_mode: 'int'; 'categorical' for one-hot rows; 'binary' for 0.0 or 1.0 in an axis of length 1; None for no labels.
        class_names: subdirectories in the order of their numbers; None for that of the alphabet.
        color_mode: 'grayscale', 'rgb' or 'rgba'.
        batch_size: number of images in a batch; None for single ones.
        image_size: height and width that all get.
        shuffle: whether in random order, drawn anew for each epoch, or else sorted by path.
        seed: of the order; needed to shuffle and split.
        validation_split: share of the files that are for validation.
        subset: 'training', 'validation', or 'both' for two Datasets.
        interpolation: a method of `tf.image.resize`.
        follow_links: whether links to directories are followed.
        crop_to_aspect_ratio: whether proportions are kept and the rest is cut off.
        pad_to_aspect_ratio: whether proportions are kept and the rest is black.
        data_format: 'channels_last' or 'channels_first'.
        format: 'tf'.
        verbose: whether the number of files is printed.

    Raises:
        MissingExtraError: without Pillow.
        NotFoundError: if there is no such directory, or no file in it.
        ValueError: for arguments that contradict each other.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat", "dog"):
    ...     (folder / name).mkdir()
    ...     tf.keras.utils.save_img(folder / name / "1.png", tf.zeros([4, 4, 3]).numpy())
    >>> data = tf.keras.preprocessing.image_dataset_from_directory(folder, image_size=(8, 8), verbose=False)
    >>> for images, labels in data:
    ...     print(images.shape, sorted(labels.numpy().tolist()))
    (2, 8, 8, 3) [0, 1]
    """
    name = "image_dataset_from_directory"
    pillow(name)
    size = height_and_width(name, (image_size, image_size) if isinstance(image_size, int) else image_size)
    for what, given, known in (("color_mode", color_mode, MODES), ("interpolation", interpolation, METHODS)):
        if given not in known:
            raise ValueError(f"{name}: {what} must be one of {list(known)}, found {given!r}.")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError(f"{name}: give either crop_to_aspect_ratio or pad_to_aspect_ratio.")
    first = channels_first(name, data_format)

    def read(path: str) -> Any:
        image = img_to_array(load_img(path, color_mode), dtype="float32")
        if pad_to_aspect_ratio:
            height, width = image.shape[:2]
            rows, columns = (max(0, width * size[0] // size[1] - height) // 2, max(0, height * size[1] // size[0] - width) // 2)
            image = np.pad(image, ((rows, rows), (columns, columns), (0, 0)))
        scaled = (
            smart_resize(image, size, interpolation) if crop_to_aspect_ratio else resize(image, size, interpolation).numpy()
        )
        return convert_to_tensor(scaled.transpose(2, 0, 1) if first else scaled)

    extensions = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
    files = _indexed(name, directory, labels, label_mode, class_names, extensions, follow_links, verbose)
    return _datasets(name, files, read, label_mode, batch_size, shuffle, seed, validation_split, subset, format, verbose)


@explaining
def text_dataset_from_directory(
    directory: Any,
    labels: TensorLike = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """Batches of the texts of the .txt files in a directory, with their labels; see `image_dataset_from_directory`.

    Args:
        max_length: characters of a text that are kept; None for all.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, text in (("bad", "dull"), ("good", "a joy")):
    ...     (folder / name).mkdir()
    ...     size = (folder / name / "1.txt").write_text(text)
    >>> data = tf.keras.preprocessing.text_dataset_from_directory(folder, shuffle=False, verbose=False)
    >>> [(texts.numpy().tolist(), labels.numpy().tolist()) for texts, labels in data]
    [(['dull', 'a joy'], [0, 1])]
    """
    name = "text_dataset_from_directory"

    def read(path: str) -> Any:
        with open(path, encoding="utf-8") as file:
            return convert_to_tensor(file.read(-1 if max_length is None else max_length))

    files = _indexed(name, directory, labels, label_mode, class_names, (".txt",), follow_links, verbose)
    return _datasets(name, files, read, label_mode, batch_size, shuffle, seed, validation_split, subset, format, verbose)


def _indexed(
    name: str,
    directory: Any,
    labels: TensorLike,
    label_mode: str | None,
    class_names: Sequence[str] | None,
    extensions: tuple[str, ...],
    follow_links: bool,
    verbose: bool,
) -> _Files:
    """The files below a directory, sorted by path."""
    top = os.fspath(directory)
    if not os.path.isdir(top):
        raise NotFoundError(f"{name}: there is no directory {top!r}.")
    if class_names is not None and not (isinstance(labels, str) and labels == "inferred"):
        raise ValueError(f"{name}: class_names go with labels='inferred', found labels={labels!r:.80}.")
    if label_mode is None or labels is None:
        paths, numbers, names = _found(top, extensions, follow_links), None, None
    elif isinstance(labels, str) and labels == "inferred":
        there = sorted(one for one in os.listdir(top) if os.path.isdir(os.path.join(top, one)) and not one.startswith("."))
        names = there if class_names is None else list(class_names)
        if not set(names) <= set(there):
            raise ValueError(f"{name}: class_names must be subdirectories, which are {there}, found {names}.")
        found = [_found(os.path.join(top, one), extensions, follow_links) for one in names]
        paths, numbers = [path for one in found for path in one], np.repeat(np.arange(len(names)), list(map(len, found)))
    else:
        paths, numbers = _found(top, extensions, follow_links), np.asarray(labels)
        names = [str(one) for one in sorted(set(numbers.tolist()))]
        outside = label_mode != "int" and numbers.size and not 0 <= numbers.min() <= numbers.max() < len(names)
        if numbers.dtype.kind not in "biu" or outside:
            raise ValueError(f"{name}: labels must be ints, for label_mode={label_mode!r} from 0 without gaps, found {names}.")
        if len(numbers) != len(paths):
            raise ValueError(f"{name}: a label is needed for each of {len(paths)} files, found {len(numbers)}.")
    if not paths:
        raise NotFoundError(f"{name}: there is no file in {top!r} that ends in {', '.join(extensions)}.")
    if verbose:
        print(f"Found {len(paths)} files" + (f" belonging to {len(names)} classes." if names is not None else "."))
    return _Files(paths, None if numbers is None else numbers.astype("int32"), names)


def _found(top: str, extensions: tuple[str, ...], follow_links: bool) -> list[str]:
    walked = sorted(os.walk(top, followlinks=follow_links))
    return [os.path.join(root, one) for root, _, files in walked for one in sorted(files) if one.lower().endswith(extensions)]


def _datasets(
    name: str,
    files: _Files,
    read: Callable[[str], Any],
    label_mode: str | None,
    batch_size: int | None,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
    format: str,
    verbose: bool,
) -> Any:
    """The Dataset of a subset of files, or a list of both. The split of shuffled files is that of Keras with the same seed."""
    known: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "label_mode": (label_mode, ("int", "categorical", "binary", None)),
        "format": (format, ("tf",)),
        "subset": (subset, (None,) if validation_split is None else ("training", "validation", "both")),
    }
    for what, (given, allowed) in known.items():
        if given not in allowed:
            raise ValueError(f"{name}: {what} must be one of {allowed}, found {given!r} (validation_split={validation_split}).")
    if label_mode == "binary" and files.class_names is not None and len(files.class_names) != 2:
        raise ValueError(f"{name}: label_mode='binary' needs two classes, found {files.class_names}.")
    if validation_split is not None and (not 0 < validation_split < 1 or (shuffle and seed is None)):
        raise ValueError(
            f"{name}: validation_split must be between 0 and 1, with a seed if files are shuffled, so that subsets differ; "
            f"found {validation_split} and seed={seed}."
        )
    order = np.arange(len(files.paths))
    if shuffle:
        seed = int(order_stream().generator().integers(10**6)) if seed is None else seed
        np.random.RandomState(seed).shuffle(order)
    at = len(order) - int((validation_split or 0) * len(order))
    parts = {None: [order], "training": [order[:at]], "validation": [order[at:]], "both": [order[:at], order[at:]]}[subset]
    if not all(map(len, parts)):
        raise ValueError(f"{name}: validation_split={validation_split} of {len(order)} files leaves a subset without any.")
    if verbose and subset is not None:
        print(f"Using {at} files for training, {len(order) - at} for validation.")
    seeds = [seed if shuffle else None, None]  # validation beside training is not shuffled
    found = [_dataset(files.part(rows), read, label_mode, batch_size, own) for rows, own in zip(parts, seeds, strict=False)]
    return found if subset == "both" else found[0]


def _dataset(
    files: _Files, read: Callable[[str], Any], label_mode: str | None, batch_size: int | None, seed: int | None
) -> Dataset:
    """The content of files, with labels; shuffled if there is a seed."""
    labels = files.labels
    if labels is not None and label_mode == "categorical":
        labels = np.eye(len(files.class_names or ()), dtype="float32")[labels]
    elif labels is not None and label_mode == "binary":
        labels = labels[:, None].astype("float32")

    def element(row: Any) -> Any:
        made = read(files.paths[int(row)])
        return made if labels is None else (made, convert_to_tensor(labels[int(row)]))

    rows = Dataset.range(len(files.paths))
    dataset = (rows if seed is None else rows.shuffle(len(files.paths), seed)).map(element, num_parallel_calls=_THREADS)
    dataset = (dataset if batch_size is None else dataset.batch(batch_size)).prefetch()
    vars(dataset).update(class_names=files.class_names, file_paths=files.paths)
    return dataset
