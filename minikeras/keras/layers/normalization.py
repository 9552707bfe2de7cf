"""Normalization by the statistics of each row, and the factor gamma and offset beta that normalizations share."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from ...core import Tensor
from ...core.ops.transcendental import rsqrt
from ...errors import ShapeError
from ...functions import broadcast_to, cast, constant, maximum, reduce_mean, reduce_sum, reshape, sqrt
from ...types import Axis, ShapeLike, TensorLike, as_dtype
from .. import config
from ..symbolic import is_data
from .core import SameShape
from .inputs import InputSpec, called
from .options import Constraint, Flag, Initializer, Kept, Number, Option, Regularizer


class ScalingLayer(SameShape, gives_floats=True):
    """Base of normalizations with gamma and beta."""

    def __init__(
        self,
        center: Flag = True,
        scale: Flag = True,
        beta_initializer: Initializer = "zeros",
        gamma_initializer: Initializer = "ones",
        beta_regularizer: Regularizer = None,
        gamma_regularizer: Regularizer = None,
        beta_constraint: Constraint = None,
        gamma_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(**{"autocast": False, **options})

    def add_gamma_and_beta(self, shape: tuple[int, ...]) -> Any:
        """Make gamma and beta, as far as the layer has them; the result is one of them, for its shape, or None."""
        self.gamma = self._add_kept("gamma", shape, autocast=False) if self.scale else None
        self.beta = self._add_kept("beta", shape, autocast=False) if self.center else None
        return self.gamma if self.scale else self.beta

    def scaled(self, outputs: Tensor, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """The outputs times gamma, plus beta, along these axes of inputs `x`; in the compute dtype."""
        if self.scale:
            outputs = outputs * shaped(self.gamma, x, axes)
        if self.center:
            outputs = outputs + shaped(self.beta, x, axes)
        return cast(outputs, self.compute_dtype)


def known_axes(layer: Any, axes: tuple[int, ...], input_shape: ShapeLike) -> tuple[int, ...]:
    """Axes as sorted positions of a shape, in which each must exist, have a known size and be named once."""
    rank, which = len(input_shape), f"{called(layer)}: axis"
    for axis in axes:
        if not -rank <= axis < rank:
            raise ShapeError(
                f"{which} {axis} is out of range for inputs of shape {tuple(input_shape)}, which have the axes {-rank} to "
                f"{rank - 1}. Give another `axis`, or inputs with more axes."
            )
        if input_shape[axis] is None:
            raise ShapeError(
                f"{which} {axis} of inputs of shape {tuple(input_shape)} has no known size, which the weights need. Give "
                "the size in keras.Input or in `build`."
            )
    places = positions(axes, rank)
    if len(places) < len(axes):
        raise ShapeError(f"{which} {axes} names an axis of inputs of shape {tuple(input_shape)} twice. Leave one out.")
    return places


def positions(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes as sorted positions, counted from the first."""
    return tuple(sorted({axis % rank for axis in axes}))


def checked_axes(layer: Any, name: str, axis: Axis) -> Any:
    """An int, or a tuple of ints."""
    if isinstance(axis, int):
        return axis
    if isinstance(axis, (list, tuple)) and axis and all(isinstance(one, int) for one in axis):
        return tuple(axis)
    raise TypeError(f"{type(layer).__name__}: {name} must be an int or several ints, found {axis!r}.")


Axes = Annotated[Axis, Option(checked_axes)]


def listed(axis: Axis) -> tuple[int, ...]:
    """One axis or several, as a tuple."""
    return axis if isinstance(axis, tuple) else (axis,)


def wide(layer: Any, inputs: Tensor) -> Tensor:
    """Inputs as floats of at least single precision, since sums of squares would overflow in half precision. Layers that use it
    have `autocast=False`, or inputs beyond float16 would arrive as infinity.
    """
    dtype = inputs.dtype if inputs.dtype.is_floating else as_dtype(layer.compute_dtype)
    return cast(inputs, "float32" if dtype.size < 4 else dtype)


def read(weight: Any, like: Tensor) -> Tensor:
    """The value of a weight, in the dtype of what it stands beside."""
    value: Tensor = weight.read_value()
    return value if value.array.dtype == like.array.dtype else cast(value, like.dtype)


def shaped(weight: Any, like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The value of a weight, laid along these axes of `like`, with size 1 along the others."""
    value = read(weight, like)
    if axes == (like.ndim - 1,):
        return value
    return reshape(value, tuple(size if axis in axes else 1 for axis, size in enumerate(like.shape)))


class LayerNormalization(ScalingLayer, described=True):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and population variance of each row.

    Args:
        axis: the axis over which a row is normalized, or several.
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma.
        rms_scaling: divide by the deviation only: no mean is taken away and there is no beta.
        options: `beta_initializer`, `gamma_initializer`, `beta_regularizer`, `gamma_regularizer`, `beta_constraint`,
            `gamma_constraint`; `name`, `dtype`, `trainable`.

    Shapes: output like the input; the weights have the sizes of the axes.

    Source: Ba, Kiros and Hinton (2016), equation (4).

    >>> print(tf.keras.layers.LayerNormalization()([[0.0, 2.0]]).numpy().round(2))
    [[-1.  1.]]
    """

    _member_numbers = ("epsilon",)

    def __init__(
        self,
        axis: Axes = -1,
        epsilon: Number = 1e-3,
        center: bool = True,
        scale: bool = True,
        rms_scaling: Flag = False,
        **options: Any,
    ) -> None:
        super().__init__(center, scale, **options)
        if self.rms_scaling:
            self.center, self.scale = False, True

    def build(self, input_shape: ShapeLike) -> None:
        places = known_axes(self, listed(self.axis), input_shape)
        weight = self.add_gamma_and_beta(tuple(input_shape[axis] for axis in places))
        sizes = {axis: input_shape[axis] for axis in listed(self.axis)}
        self.input_spec = InputSpec(axes={} if weight is None else sizes, fixed_by=weight)

    def call(self, inputs: Tensor) -> Tensor:
        x = wide(self, inputs)
        axes = positions(listed(self.axis), x.ndim)
        mean = reduce_mean(x, axes, keepdims=True)
        centred = x - mean
        variance = reduce_mean(centred * centred, axes, keepdims=True)
        return self.scaled((x if self.rms_scaling else centred) * rsqrt(variance + self.epsilon), x, axes)


class RMSNormalization(SameShape, described=True, gives_floats=True):
    """x / sqrt(mean(x**2) + epsilon) * scale, with the mean over the axis of each row.

    Args:
        axis: the axis over which a row is normalized, or several.
        epsilon: added to the mean of the squares.

    Source: Zhang and Sennrich (2019), equation (4).

    >>> print(tf.keras.layers.RMSNormalization()([[3.0, 4.0]]).numpy().round(3))
    [[0.849 1.131]]
    """

    def __init__(self, axis: Axes = -1, epsilon: Number = 1e-6, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})

    def build(self, input_shape: ShapeLike) -> None:
        places = known_axes(self, listed(self.axis), input_shape)
        self.scale = self.add_weight(tuple(input_shape[axis] for axis in places), "ones", autocast=False, name="scale")
        self.input_spec = InputSpec(axes={axis: input_shape[axis] for axis in listed(self.axis)}, fixed_by=self.scale)

    def call(self, inputs: Tensor) -> Tensor:
        x = wide(self, inputs)
        axes = positions(listed(self.axis), x.ndim)
        squares = reduce_mean(x * x, axes, keepdims=True)
        return cast(x * rsqrt(squares + self.epsilon) * shaped(self.scale, x, axes), self.compute_dtype)


class GroupNormalization(ScalingLayer, described=True):
    """LayerNormalization of each group of neighbouring features, over all axes but the batch axis.

    Args:
        groups: number of groups, which divides the number of features; -1 for one feature a group.
        axis: the axis of the features.
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma, one for each feature.
        options: as in `LayerNormalization`.

    Source: Wu and He (2018), equation (7).

    >>> print(tf.keras.layers.GroupNormalization(groups=2)([[0.0, 2.0, 5.0, 9.0]]).numpy().round(2))
    [[-1.  1. -1.  1.]]
    """

    def __init__(
        self, groups: int = 32, axis: int = -1, epsilon: Number = 1e-3, center: bool = True, scale: bool = True, **options: Any
    ) -> None:
        super().__init__(center, scale, **options)
        if not isinstance(groups, int) or isinstance(groups, bool) or (groups <= 0 and groups != -1):
            raise ValueError(f"GroupNormalization: `groups` must be a positive integer or -1, found {groups!r}.")
        if not isinstance(axis, int) or axis == 0:
            raise ValueError(f"GroupNormalization: axis must be an int behind the batch axis, found {axis!r}.")
        self.groups, self.axis = groups, axis

    def build(self, input_shape: ShapeLike) -> None:
        (self._place,) = known_axes(self, (self.axis,), input_shape)
        features = input_shape[self._place]
        self._count = features if self.groups == -1 else self.groups
        if features % self._count:
            raise ShapeError(f"{called(self)}: {features} features cannot be divided into {self._count} groups.")
        weight = self.add_gamma_and_beta((features,))
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: features}, fixed_by=weight)

    def call(self, inputs: Tensor) -> Tensor:
        x, place = wide(self, inputs), self._place
        shape = tuple(x.shape)
        split = reshape(x, (*shape[:place], self._count, shape[place] // self._count, *shape[place + 1 :]))
        axes = [axis for axis in range(1, split.ndim) if axis != place]
        centred = split - reduce_mean(split, axes, keepdims=True)
        variance = reduce_mean(centred * centred, axes, keepdims=True)
        return self.scaled(reshape(centred * rsqrt(variance + self.epsilon), shape), x, (place,))


class UnitNormalization(SameShape, described=True, makes_nothing=True, gives_floats=True):
    """Each row divided by its length: x / max(|x|, 1e-6).

    Args:
        axis: along which the length is taken, or several.

    >>> print(tf.keras.layers.UnitNormalization()([[3.0, 4.0]]).numpy())
    [[0.6 0.8]]
    """

    def __init__(self, axis: Axes = -1, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})

    def call(self, inputs: Tensor) -> Tensor:
        x = wide(self, inputs)
        squares = reduce_sum(x * x, listed(self.axis), keepdims=True)
        return cast(x * rsqrt(maximum(squares, 1e-12)), self.compute_dtype)


class Rescaling(SameShape, described=True, makes_nothing=True, gives_floats=True):
    """scale * x + offset.

    Args:
        scale, offset: numbers, or arrays that broadcast to the input; a vector has a number for each channel.

    >>> print(tf.keras.layers.Rescaling(1 / 255)([[0, 255]]).numpy())
    [[0. 1.]]
    """

    def __init__(self, scale: Kept[TensorLike], offset: Kept[TensorLike] = 0.0, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        x = cast(inputs, self.compute_dtype)
        return x * self._number(self.scale, x.ndim) + self._number(self.offset, x.ndim)

    def _number(self, value: Any, rank: int) -> Any:
        if isinstance(value, (int, float)):
            return float(value)
        numbers = np.asarray(value)
        if numbers.ndim == 1 and config.image_data_format() == "channels_first":
            numbers = numbers.reshape(-1, *[1] * (rank - 2))
        return constant(numbers, self.compute_dtype)


class Normalization(SameShape, described=True, gives_floats=True):
    """(x - mean) / sqrt(variance), with statistics of the data that `adapt` is shown, or that are given.

    Args:
        axis: each position along these axes has statistics of its own; -1 for features, None for one pair of numbers.
        mean, variance: given instead of `adapt`; they broadcast to the sizes along the axes.
        invert: multiply and add instead, which undoes it.

    >>> layer = tf.keras.layers.Normalization()
    >>> layer.adapt([[0.0, 1.0], [2.0, 5.0]])
    >>> print(layer([[2.0, 3.0]]).numpy())
    [[1. 0.]]
    """

    def __init__(self, axis: Axis = -1, mean: Any = None, variance: Any = None, invert: Flag = False, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})
        self.axis = () if axis is None or axis in ((), []) else listed(checked_axes(self, "axis", axis))
        if (mean is None) != (variance is None):
            raise ValueError(
                f"Normalization: give both `mean` and `variance` or none. Received: mean={mean}, variance={variance}."
            )
        if np.shape(mean) != np.shape(variance) or np.ndim(mean) > len(self.axis):
            raise ValueError(
                f"Normalization: mean and variance must have one shape of at most {len(self.axis)} axes (axis={self.axis}), "
                f"found {np.shape(mean)} and {np.shape(variance)}."
            )
        self.input_mean = None if mean is None else np.asarray(mean, np.float64)
        self.input_variance = None if variance is None else np.asarray(variance, np.float64)
        self.adapt_mean: Any = None
        self.adapt_variance: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        places = known_axes(self, self.axis, input_shape)
        sizes = tuple(input_shape[axis] for axis in places)
        self._shape = tuple(size if axis in places else 1 for axis, size in enumerate(input_shape))
        dtype = "float32" if as_dtype(self.variable_dtype).size < 4 else self.variable_dtype
        if self.input_mean is None:
            self.adapt_mean = self.add_weight(sizes, "zeros", dtype, trainable=False, autocast=False, name="mean")
            self.adapt_variance = self.add_weight(sizes, "ones", dtype, trainable=False, autocast=False, name="variance")
            self.count = self.add_weight((), "zeros", dtype="int32", trainable=False, name="count")
        else:
            self._given_mean, self._given_variance = (
                broadcast_to(constant(value, dtype), sizes) for value in (self.input_mean, self.input_variance)
            )
        if self.axis:  # one pair of numbers serves inputs of any shape
            axes = {axis: input_shape[axis] for axis in self.axis}
            self.input_spec = InputSpec(axes=axes, fixed_by=self.adapt_mean)

    _can_adapt = property(lambda self: self.input_mean is None)
    _both = property(lambda self: self._statistics(self._shape) if self._built else (None, None))
    mean = property(
        lambda self: self._both[0],
        doc="The mean, ready to be broadcast to the inputs that the layer was built for; None before that.",
    )
    variance = property(lambda self: self._both[1], doc="The variance, as `mean`.")

    def _statistics(self, shape: tuple[int, ...]) -> list[Tensor]:
        """Mean and variance in a shape with their sizes along the axes and 1 along the others."""
        if self.input_mean is None:
            return [reshape(weight.read_value(), shape) for weight in (self.adapt_mean, self.adapt_variance)]
        return [reshape(value, shape) for value in (self._given_mean, self._given_variance)]

    def adapt(self, data: Any) -> None:
        """Take mean and population variance from data, anew.

        Args:
            data: an array or tensor, or an iterable of batches, such as a Dataset; of pairs the first counts.

        Raises:
            ValueError: if the statistics were given, or there is no data.
            TypeError: if a batch is a single number.
        """
        if self.input_mean is not None:
            raise ValueError(f"Cannot `adapt` layer '{self.name}': its mean and variance were given to the constructor.")
        count, mean, squares = 0, np.zeros(()), np.zeros(())
        for batch in _batches(data):
            x = np.asarray(batch, np.float64)
            if not x.ndim:
                raise TypeError(
                    f"Cannot `adapt` layer '{self.name}' to {batch!r}: a batch needs a `.shape` of at least one axis."
                )
            if not self.built:
                self.build((None, *x.shape[1:]))
            self._accept(constant(x, self.compute_dtype))
            places = positions(self.axis, x.ndim)
            rest = tuple(axis for axis in range(x.ndim) if axis not in places)
            size = math.prod(x.shape[axis] for axis in rest)
            if not size:
                continue
            step = x.mean(rest) - mean
            squares = squares + x.var(rest) * size + step**2 * (count * size / (count + size))
            mean, count = mean + step * (size / (count + size)), count + size
        if not count:
            raise ValueError(f"Cannot `adapt` layer '{self.name}': there is no data.")
        for weight, value in ((self.adapt_mean, mean), (self.adapt_variance, squares / count)):
            weight.assign(np.asarray(value).astype(weight.dtype.numpy))
        self.count.assign(min(count, 2**31 - 1))

    def call(self, inputs: Tensor) -> Tensor:
        x = wide(self, inputs)
        places = positions(self.axis, x.ndim)
        shape = tuple(size if axis in places else 1 for axis, size in enumerate(x.shape))
        mean, variance = (cast(value, x.dtype) for value in self._statistics(shape))
        deviation = maximum(sqrt(variance), 1e-7)
        return cast(mean + x * deviation if self.invert else (x - mean) / deviation, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        given = {"mean": self.input_mean, "variance": self.input_variance}
        return super().get_config() | {name: None if v is None else v.tolist() for name, v in given.items()}


def _batches(data: Any) -> Any:
    if is_data(data) or (isinstance(data, (list, tuple)) and data and not any(is_data(_first(one)) for one in data)):
        yield data.numpy() if isinstance(data, Tensor) else data
        return
    for batch in data:
        x = _first(batch)
        yield x.numpy() if isinstance(x, Tensor) else x


def _first(batch: Any) -> Any:
    """The inputs of a batch, which may be a tuple of inputs, labels and weights."""
    return batch[0] if isinstance(batch, tuple) and batch else batch
