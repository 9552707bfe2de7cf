"""Layers that change images at random in training: mirrored, moved, lit and cut. Elsewhere they hand images on.

Each image of a batch is changed by numbers of its own, from a stream whose state is a Variable of the layer, so that training
goes on bit for bit after it was interrupted. The distributions are Keras's; the numbers are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions import cast, clip_by_value, cos, gather, reduce_mean, sin, where, zeros
from ...functions.creation import range as numbers
from ...functions.shaping import expand_dims, reshape, reverse, squeeze, stack
from ...types import ShapeLike
from .. import random
from ..ops.images import affine_transform, resize
from ..random import SeedGenerator
from .inputs import called
from .layer import Layer
from .options import DataFormat, Kept, Size, one_of

FillMode = Annotated[str, one_of("reflect", "wrap", "constant", "nearest")]
Interpolation = Annotated[str, one_of("nearest", "bilinear")]
FlipMode = Annotated[str, one_of("horizontal", "vertical", "horizontal_and_vertical")]
Transformation = Mapping[str, Tensor]
"""Random numbers, by name, that say how to change the images of a batch."""


class Augmentation(Layer):
    """Base of random changes of images: one draw a batch, applied to images, labels and segmentation masks.

    A subclass gives `draw`, `transform_images`, and the methods for labels and masks where they change too.

    Args:
        seed: an int repeats the changes; None follows the global seed and the layer's name.
        data_format: 'channels_last' or 'channels_first'.
        bounding_box_format: None; boxes are not moved.

    Shapes: (height, width, channels), with or without a batch in front; or a dict with 'images' and perhaps 'labels' and
    'segmentation_masks'. Floats come out.
    """

    gives_floats = True
    _not_described = ("bounding_box_format",)
    moves_pixels = False
    """True if a segmentation mask is transformed along with its image."""

    def __init__(
        self, seed: int | None = None, data_format: DataFormat = None, bounding_box_format: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if bounding_box_format is not None:
            raise ValueError(
                f"{type(self).__name__}: bounding boxes are not moved, found bounding_box_format={bounding_box_format!r}. "
                "Leave it out, and move the boxes by the result of `get_random_transformation`."
            )
        self.seed, self.bounding_box_format = seed, None
        self.generator = SeedGenerator(seed)
        first = self.data_format == "channels_first"
        self._rows, self._columns, self._channels = (-2, -1, -3) if first else (-3, -2, -1)

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        """The random numbers for a batch of images of a shape, of 4 axes, from a seed or generator."""
        raise NotImplementedError

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Transformation | None:
        """The random numbers that change this batch; None outside of training.

        Args:
            data: images, or a dict with them.
            training: see above.
            seed: as in `keras.random`; the layer's own generator if None.
        """
        images = data["images"] if isinstance(data, dict) else data
        shape = tuple(images.shape)
        if len(shape) not in (3, 4):
            raise ShapeError(f"{called(self)} expects images of 3 axes, or batches of 4, found shape {shape}.")
        if not training:
            return None
        return self.draw((1,) * (4 - len(shape)) + shape, self.generator if seed is None else seed)

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        """The images of a batch, changed."""
        raise NotImplementedError

    def transform_labels(self, labels: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        """Their labels: the same."""
        return labels

    def transform_segmentation_masks(self, masks: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        """The segmentation masks of the images: unchanged, unless pixels move."""
        return self.transform_images(masks, transformation) if self.moves_pixels else masks

    def outside_training(self, images: Tensor) -> Tensor:
        """Images in evaluation and prediction."""
        return images

    def call(self, data: Any, training: bool | None = True) -> Any:
        parts = dict(data) if isinstance(data, dict) else {"images": data}
        if "images" not in parts or "bounding_boxes" in parts:
            raise ValueError(
                f"{called(self)} takes images, or a dict with 'images' and perhaps 'labels' and 'segmentation_masks'; found "
                f"{sorted(parts)}."
            )
        parts["images"] = cast(parts["images"], self.compute_dtype)
        transformation = self.get_random_transformation(parts, bool(training))
        if transformation is None:
            parts["images"] = self.outside_training(parts["images"])
        else:
            self._transform(parts, transformation)
        return parts if isinstance(data, dict) else parts["images"]

    def _transform(self, parts: dict[str, Any], transformation: Transformation) -> None:
        is_single = parts["images"].ndim == 3
        changes: dict[str, Callable[..., Tensor]] = {
            "images": self.transform_images,
            "labels": self.transform_labels,
            "segmentation_masks": self.transform_segmentation_masks,
        }
        for name, change in changes.items():
            if name in parts:
                batch = expand_dims(parts[name], 0) if is_single else parts[name]
                batch = change(batch, transformation, training=True)
                parts[name] = squeeze(batch, 0) if is_single else batch

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The input's."""
        return input_shape

    def uniform(self, shape: ShapeLike, limits: tuple[float, float], seed: Any) -> Tensor:
        """Numbers between two limits, in float32: angles and places of pixels want its digits in half precision too."""
        return random.uniform(shape, *limits, dtype="float32", seed=seed)

    def limits(self, name: str, value: Any, bounds: tuple[float, float], symmetric: bool = True) -> tuple[float, float]:
        """Lower and upper limit from a pair, or from one number f: -f (or 0) and f."""
        if isinstance(value, (int, float)):
            pair = [-abs(value) if symmetric else 0.0, abs(value)]
        else:
            pair = list(value) if isinstance(value, (list, tuple)) else []
        if len(pair) != 2 or not all(isinstance(one, (int, float)) and bounds[0] <= one <= bounds[1] for one in pair):
            raise ValueError(
                f"{type(self).__name__}: `{name}` must be a number, or two, from {bounds[0]} to {bounds[1]}, found {value!r}."
            )
        lower, upper = sorted(pair)
        return lower, upper


def one_for_each(images: Tensor, values: Tensor) -> Tensor:
    """One value for each image, to be broadcast over it, in the dtype of the images."""
    return cast(reshape(values, (-1, 1, 1, 1)), images.dtype)


class RandomFlip(Augmentation, described=True, makes_nothing=True):
    """Each image mirrored with probability 1/2.

    Args:
        mode: 'horizontal' for left and right, 'vertical' for top and bottom, 'horizontal_and_vertical' for both at once.
        seed, data_format, options: as in `Augmentation`.

    >>> flip = tf.keras.layers.RandomFlip("horizontal", seed=1)
    >>> images = tf.tile(tf.reshape([1.0, 2.0], [1, 1, 2, 1]), [100, 1, 1, 1])
    >>> sorted(set(flip(images).numpy()[:, 0, 0, 0].tolist())), bool((flip(images, training=False) == images).numpy().all())
    ([1.0, 2.0], True)
    """

    moves_pixels = True

    def __init__(
        self,
        mode: FlipMode = "horizontal_and_vertical",
        seed: int | None = None,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(seed, data_format, **options)

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        return {"flips": self.uniform((shape[0], 1, 1, 1), (0.0, 1.0), seed) <= 0.5}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        axes = [self._columns] * ("horizontal" in self.mode) + [self._rows] * ("vertical" in self.mode)
        return where(transformation["flips"], reverse(images, axes), images)


class Displacement(Augmentation):
    """Base of layers that read the pixels of each image at other places: pixel p comes from c + A (p - c) - d, c the centre.

    Args:
        fill_mode: pixels beyond the edges: 'reflect' (d c b a | a b c d | d c b a), 'wrap', 'nearest', or 'constant' with
            `fill_value`.
        interpolation: 'bilinear' or 'nearest'; masks take the nearest pixel.
        fill_value: see above.
        options: as in `Augmentation`.
    """

    def matrix(self, count: int, sizes: tuple[int, int], seed: Any) -> tuple[Any, Any, Any]:
        """For x and y of each image: the row of A, two Tensors of shape (count,) or numbers, and the shift d in pixels."""
        raise NotImplementedError

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        height, width = shape[self._rows], shape[self._columns]
        of_x, of_y, shift = self.matrix(shape[0], (height, width), seed)
        centre = (width - 1) / 2, (height - 1) / 2
        rows: list[Any] = []
        for (a, b), c, d in zip((of_x, of_y), centre, shift, strict=True):
            rows += [a, b, c - a * centre[0] - b * centre[1] - d]
        zero = zeros([shape[0]])
        return {"transform": stack([one + zero for one in [*rows, 0.0, 0.0]], axis=1)}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self._moved(images, transformation, self.interpolation)

    def transform_segmentation_masks(self, masks: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self._moved(masks, transformation, "nearest")

    def _moved(self, images: Tensor, transformation: Transformation, interpolation: str) -> Tensor:
        moved = affine_transform(
            images, transformation["transform"], interpolation, self.fill_mode, self.fill_value, self.data_format
        )
        return cast(moved, images.dtype)


class RandomRotation(Displacement, described=True, makes_nothing=True):
    """Each image turned around its centre.

    Args:
        factor: largest angle as a share of a full turn, or the least and the largest; positive is counter-clockwise.
        fill_mode, interpolation, fill_value: as in `Displacement`.
        seed, data_format, options: as in `Augmentation`.

    >>> quarter = tf.keras.layers.RandomRotation((0.25, 0.25))
    >>> print(quarter(tf.reshape(tf.range(4.0), [2, 2, 1])).numpy()[..., 0].round(3))
    [[1. 3.]
     [0. 2.]]
    """

    def __init__(
        self,
        factor: Any,
        fill_mode: FillMode = "reflect",
        interpolation: Interpolation = "bilinear",
        seed: int | None = None,
        fill_value: Kept[float] = 0.0,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(seed, data_format, **options)
        self.factor = self.limits("factor", factor, (-1.0, 1.0))

    def matrix(self, count: int, sizes: tuple[int, int], seed: Any) -> tuple[Any, Any, Any]:
        angle = self.uniform((count,), self.factor, seed) * (2 * math.pi)
        c, s = cos(angle), sin(angle)
        return (c, -s), (s, c), (0.0, 0.0)


class RandomTranslation(Displacement, described=True, makes_nothing=True):
    """Each image moved down and to the right.

    Args:
        height_factor, width_factor: largest share of the height and width either way, or the least and the largest.
        fill_mode, interpolation, fill_value: as in `Displacement`.
        seed, data_format, options: as in `Augmentation`.

    >>> down = tf.keras.layers.RandomTranslation((0.5, 0.5), 0.0, "constant")
    >>> print(down(tf.reshape(tf.range(4.0), [2, 2, 1])).numpy()[..., 0])
    [[0. 0.]
     [0. 1.]]
    """

    def __init__(
        self,
        height_factor: Kept[Any],
        width_factor: Kept[Any],
        fill_mode: FillMode = "reflect",
        interpolation: Interpolation = "bilinear",
        seed: int | None = None,
        fill_value: Kept[float] = 0.0,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(seed, data_format, **options)
        self._down = self.limits("height_factor", height_factor, (-1.0, 1.0))
        self._right = self.limits("width_factor", width_factor, (-1.0, 1.0))

    def matrix(self, count: int, sizes: tuple[int, int], seed: Any) -> tuple[Any, Any, Any]:
        down = self.uniform((count,), self._down, seed) * float(sizes[0])
        right = self.uniform((count,), self._right, seed) * float(sizes[1])
        return (1.0, 0.0), (0.0, 1.0), (right, down)


class RandomZoom(Displacement, described=True, makes_nothing=True):
    """Each image seen from farther away, for a positive factor, or closer, for a negative one.

    Args:
        height_factor: a share f: the height shrinks or grows by up to f; or the least and the largest, above -1.
        width_factor: the same for the width; None keeps the proportions.
        fill_mode, interpolation, fill_value: as in `Displacement`.
        seed, data_format, options: as in `Augmentation`.

    >>> closer = tf.keras.layers.RandomZoom((-0.5, -0.5), interpolation="nearest")
    >>> print(closer(tf.reshape(tf.range(16.0), [4, 4, 1])).numpy()[0, :, 0])
    [5. 5. 6. 6.]
    """

    def __init__(
        self,
        height_factor: Kept[Any],
        width_factor: Kept[Any] = None,
        fill_mode: FillMode = "reflect",
        interpolation: Interpolation = "bilinear",
        seed: int | None = None,
        fill_value: Kept[float] = 0.0,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(seed, data_format, **options)
        self._tall = self._zooms("height_factor", height_factor)
        self._wide = None if width_factor is None else self._zooms("width_factor", width_factor)

    def _zooms(self, name: str, value: Any) -> tuple[float, float]:
        lower, upper = self.limits(name, value, (-1.0, 1.0))
        if lower <= -1.0:
            raise ValueError(f"RandomZoom: `{name}` must lie above -1, where nothing of the image is left, found {value!r}.")
        return 1.0 + lower, 1.0 + upper

    def matrix(self, count: int, sizes: tuple[int, int], seed: Any) -> tuple[Any, Any, Any]:
        tall = self.uniform((count,), self._tall, seed)
        wide = tall if self._wide is None else self.uniform((count,), self._wide, seed)
        return (wide, 0.0), (0.0, tall), (0.0, 0.0)


class Lighting(Augmentation):
    """Base of layers that change the values of pixels and keep them in a range.

    Args:
        value_range: least and largest value of a pixel.
        options: as in `Augmentation`.
    """

    def __init__(self, value_range: Any = (0, 255), **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(value_range, (list, tuple)) or len(value_range) != 2:
            raise ValueError(f"{type(self).__name__}: value_range must be two numbers, found {value_range!r}.")
        self.value_range = tuple(sorted(value_range))

    def within_range(self, images: Tensor) -> Tensor:
        """Pixels beyond the range at its ends."""
        low, high = self.value_range
        return clip_by_value(images, float(low), float(high))


class RandomContrast(Lighting, described=True, makes_nothing=True):
    """Each channel x of each image as (x - mean) * c + mean, with c in [1 - lower, 1 + upper].

    Args:
        factor: lower = upper, or both, from 0 to 1.
        value_range: least and largest value of a pixel.
        seed, options: as in `Augmentation`.

    >>> strong = tf.keras.layers.RandomContrast((0.0, 1.0), (0, 4), seed=1)
    >>> y = strong(tf.reshape([1.0, 3.0], [1, 2, 1])).numpy().ravel()
    >>> bool(y[0] < 1.0), bool(y[1] > 3.0), float(y.sum().round(4))
    (True, True, 4.0)
    """

    def __init__(self, factor: Any, value_range: Any = (0, 255), seed: int | None = None, **options: Any) -> None:
        super().__init__(value_range, seed=seed, **options)
        self.factor = self.limits("factor", factor if isinstance(factor, (list, tuple)) else (factor, factor), (0.0, 1.0))

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        lower, upper = self.factor
        return {"contrast_factor": self.uniform((shape[0], 1, 1, 1), (1.0 - lower, 1.0 + upper), seed)}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        mean = reduce_mean(images, axis=(self._rows, self._columns), keepdims=True)
        return self.within_range((images - mean) * one_for_each(images, transformation["contrast_factor"]) + mean)


class RandomBrightness(Lighting, described=True, makes_nothing=True):
    """Each image brighter or darker by a share of the value range.

    Args:
        factor: the largest share either way, or the least and the largest, from -1 to 1.
        value_range: least and largest value of a pixel.
        seed, options: as in `Augmentation`.

    >>> brighter = tf.keras.layers.RandomBrightness((0.5, 0.5), (0, 4))
    >>> print(brighter(tf.reshape([1.0, 3.0], [1, 2, 1])).numpy().ravel())
    [3. 4.]
    """

    def __init__(self, factor: Any, value_range: Any = (0, 255), seed: int | None = None, **options: Any) -> None:
        super().__init__(value_range, seed=seed, **options)
        self.factor = self.limits("factor", factor, (-1.0, 1.0))

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        low, high = self.value_range
        return {"rgb_delta": self.uniform((shape[0], 1, 1, 1), self.factor, seed) * float(high - low)}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self.within_range(images + one_for_each(images, transformation["rgb_delta"]))


class RandomCrop(Augmentation, described=True, makes_nothing=True):
    """A part of the images at a random place, the same for a batch. Outside of training, and of images that are too small, the
    largest part in the middle with the proportions wanted, resized.

    Args:
        height, width: of the output.
        seed, data_format, options: as in `Augmentation`.

    >>> tf.keras.layers.RandomCrop(2, 3, seed=1)(tf.ones([4, 8, 8, 1])).shape
    TensorShape([4, 2, 3, 1])
    """

    moves_pixels = True

    def __init__(
        self, height: Size, width: Size, seed: int | None = None, data_format: str | None = None, **options: Any
    ) -> None:
        super().__init__(seed, data_format, **options)

    def _sizes(self) -> tuple[tuple[int, int], ...]:
        return (self._rows, self.height), (self._columns, self.width)

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        spare = [shape[axis] - size for axis, size in self._sizes()]
        if min(spare) < 0:
            return {}
        top, left = [random.randint((), 0, one + 1, seed=seed) for one in spare]
        return {"top": top, "left": left}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        if not transformation:
            return self.outside_training(images)
        for (axis, size), start in zip(self._sizes(), (transformation["top"], transformation["left"]), strict=True):
            images = gather(images, start + numbers(size), axis=axis)
        return images

    def outside_training(self, images: Tensor) -> Tensor:
        size = self.height, self.width
        return cast(resize(images, size, crop_to_aspect_ratio=True, data_format=self.data_format), images.dtype)

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The input's, with the height and width."""
        if isinstance(input_shape, dict):
            moved = {name: self.compute_output_shape(one) for name, one in input_shape.items() if name != "labels"}
            return input_shape | moved
        shape = list(input_shape)
        for axis, size in self._sizes():
            shape[axis] = size
        return tuple(shape)
