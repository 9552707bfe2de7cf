"""Layers that replace or mix parts of images in training: RandomErasing, MixUp, CutMix."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...errors import DTypeError
from ...functions import cast, clip_by_value, gather, ones, reshape, sqrt, where
from ...functions.creation import range as numbers
from .. import random
from .augmentation import Augmentation, Transformation, one_for_each
from .inputs import called
from .options import Kept


class PatchMixing(Augmentation):
    """Base of layers that put something else into a rectangle of each image."""

    def rectangles(self, shape: tuple[int, ...], shares: tuple[Tensor, Tensor], seed: Any) -> tuple[Tensor, Tensor]:
        """Masks that are true in a rectangle of each image, and its part of the area.

        Args:
            shape: of the images.
            shares: width and height of each rectangle as parts of the image's.
            seed: of its place.
        """
        inside = []
        for axis, share in zip((self._columns, self._rows), shares, strict=True):
            size = float(shape[axis])
            length = share * size
            start = self.uniform((shape[0],), (0.0, 1.0), seed) * (size - length)
            along = [1] * 4
            along[axis] = shape[axis]
            place = reshape(cast(numbers(shape[axis]), "float32"), along)
            first, last = reshape(start, (-1, 1, 1, 1)), reshape(start + length, (-1, 1, 1, 1))
            inside.append((place >= first) & (place < last))
        return inside[0] & inside[1], ones([shape[0]]) * shares[0] * shares[1]


class RandomErasing(PatchMixing, described=True, makes_nothing=True):
    """In some images a rectangle is replaced by noise or a value.

    Args:
        factor: the probability is drawn between 0 and this, or between two numbers, for each image.
        scale: limits of the rectangle's area as a part of the image's, for its width and its height.
        fill_value: a number, one for each channel, or None for normal noise times the largest value.
        value_range: least and largest value of a pixel.
        seed, data_format, options: as in `Augmentation`.

    Source: Zhong et al., Random Erasing Data Augmentation (2017), algorithm 1, with Keras's draws.

    >>> erase = tf.keras.layers.RandomErasing((1.0, 1.0), (0.25, 0.25), fill_value=9.0, seed=1)
    >>> int((erase(tf.zeros([8, 8, 1])) == 9.0).numpy().sum())
    16
    """

    def __init__(
        self,
        factor: Any = 1.0,
        scale: Any = (0.02, 0.33),
        fill_value: Any = None,
        value_range: Any = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(seed, data_format, **options)
        self.factor = self.limits("factor", factor, (0.0, 1.0), symmetric=False)
        self.scale = self.limits("scale", scale, (0.0, 1.0), symmetric=False)
        if not isinstance(fill_value, (int, float, list, tuple, type(None))):
            raise ValueError(
                f"RandomErasing: fill_value must be a number, one for each channel, or None, found {fill_value!r}."
            )
        self.fill_value, self.value_range = fill_value, tuple(value_range)

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        count = shape[0]
        shares = [sqrt(self.uniform((count,), self.scale, seed)) for _ in range(2)]
        inside, _ = self.rectangles(shape, (shares[0], shares[1]), seed)
        chance = self.uniform((count,), self.factor, seed)
        applies = self.uniform((count,), (0.0, 1.0), seed) < chance
        return {"batch_masks": inside & reshape(applies, (-1, 1, 1, 1)), "fill_value": self._fill(shape, seed)}

    def _fill(self, shape: tuple[int, ...], seed: Any) -> Tensor:
        low, high = [float(one) for one in self.value_range]
        if self.fill_value is None:
            value = random.normal(shape, dtype="float32", seed=seed) * high
        else:
            value = cast(self.fill_value, "float32")
            if value.ndim:
                along = [1] * 4
                along[self._channels] = -1
                value = reshape(value, along)
        return clip_by_value(value, low, high)

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return where(transformation["batch_masks"], cast(transformation["fill_value"], images.dtype), images)


class LabelMixing(Augmentation):
    """Base of layers that mix the images of a batch, and with them their labels."""

    def _mixed(self, labels: Tensor, weight: Tensor, order: Tensor) -> Tensor:
        """Labels of images that are mixed with others: weight * y + (1 - weight) * y[order]."""
        if labels.ndim < 2 or not labels.dtype.is_floating:
            raise DTypeError(
                f"{called(self)} mixes labels in shares, so they must be floats of shape (batch, classes), such as tf.one_hot "
                f"gives; found {labels.dtype.name} of shape {tuple(labels.shape)}."
            )
        share = cast(reshape(weight, (-1, *[1] * (labels.ndim - 1))), labels.dtype)
        return share * labels + (1.0 - share) * gather(labels, order)


class MixUp(LabelMixing, described=True, makes_nothing=True):
    """Each image mixed with another of the batch: w x + (1 - w) x', with w of a beta distribution; labels likewise.

    Args:
        alpha: both parameters of the distribution, above 0; small numbers mix little.
        data_format, seed, options: as in `Augmentation`.

    Source: Zhang et al., mixup: Beyond Empirical Risk Minimization (2018), equation 1.

    >>> mixed = tf.keras.layers.MixUp(0.2, seed=1)({"images": tf.ones([4, 2, 2, 1]), "labels": tf.one_hot([0, 1, 2, 3], 4)})
    >>> print(mixed["labels"].numpy().sum(axis=1))
    [1. 1. 1. 1.]
    """

    def __init__(
        self, alpha: Kept[float] = 0.2, data_format: str | None = None, seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(seed, data_format, **options)
        if not isinstance(alpha, (int, float)) or alpha <= 0:
            raise ValueError(f"MixUp: alpha must be a number above 0, found {alpha!r}.")

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        order = random.shuffle(numbers(shape[0]), seed=seed)
        return {"permutation_order": order, "mix_weight": random.beta((shape[0],), self.alpha, self.alpha, "float32", seed)}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        share = one_for_each(images, transformation["mix_weight"])
        return share * images + (1.0 - share) * gather(images, transformation["permutation_order"])

    def transform_labels(self, labels: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self._mixed(labels, transformation["mix_weight"], transformation["permutation_order"])

    def transform_segmentation_masks(self, masks: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self.transform_images(cast(masks, self.compute_dtype), transformation)


class CutMix(PatchMixing, LabelMixing, described=True, makes_nothing=True):
    """In each image a rectangle is that of another image of the batch; labels are mixed by its area.

    Args:
        factor: alpha, both parameters of a beta distribution for the area, is drawn between 0 and this, or between two
            numbers from 0 to 1.
        seed, data_format, options: as in `Augmentation`.

    Source: Yun et al., CutMix (2019), equations 1 and 2.

    >>> data = {"images": tf.ones([4, 8, 8, 1]), "labels": tf.one_hot([0, 1, 2, 3], 4)}
    >>> print(tf.keras.layers.CutMix(seed=1)(data)["labels"].numpy().sum(axis=1))
    [1. 1. 1. 1.]
    """

    moves_pixels = True

    def __init__(self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None, **options: Any) -> None:
        super().__init__(seed, data_format, **options)
        self.factor = self.limits("factor", factor, (0.0, 1.0), symmetric=False)

    def draw(self, shape: tuple[int, ...], seed: Any) -> Transformation:
        alpha = self.uniform((), self.factor, seed) + 1e-6
        share = sqrt(1.0 - random.beta((shape[0],), alpha, alpha, "float32", seed))
        inside, area = self.rectangles(shape, (share, share), seed)
        order = random.shuffle(numbers(shape[0]), seed=seed)
        return {"batch_masks": inside, "mix_weight": 1.0 - area, "permutation_order": order}

    def transform_images(self, images: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return where(transformation["batch_masks"], gather(images, transformation["permutation_order"]), images)

    def transform_labels(self, labels: Tensor, transformation: Transformation, training: bool = True) -> Tensor:
        return self._mixed(labels, transformation["mix_weight"], transformation["permutation_order"])
