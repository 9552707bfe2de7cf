"""Layers over one, two and three axes between batch and channels; the windows that slide along these; and pools: the largest or
the mean of a window, of the whole row, or of a given number of places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from ...absent import hide_imports
from ...core import Tensor
from ...errors import ShapeError
from ...functions import convolution as functions
from ...functions.elementwise import cast
from ...functions.reductions import reduce_max, reduce_mean, reduce_sum
from ...functions.shaping import reshape
from ...nn_ops.convolution import places
from ...nn_ops.nn import masked_fill
from ...types import ShapeLike, TensorLike
from .inputs import InputSpec, called
from .layer import Layer
from .normalization import wide
from .options import DataFormat, Flag, Padding, PerAxis, one_for_each


class SpatialLayer(Layer):
    """Base of layers whose inputs have `rank` axes between batch and channels: `class Conv2D(Convolution, rank=2)`."""

    rank: int
    data_format = "channels_last"
    may_be_causal = False

    def __init_subclass__(cls, rank: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if rank is not None:
            cls.rank = rank

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    _first_axis = property(lambda self: 2 if self.data_format == "channels_first" else 1)
    """The first axis that is neither that of the batch nor that of the channels."""
    _channel_axis = property(lambda self: 1 if self.data_format == "channels_first" else -1)

    def _with_sizes(self, input_shape: ShapeLike, sizes: Any, channels: Any = None) -> tuple[Any, ...]:
        """The input's shape with other sizes between batch and channels, and other channels if some are given."""
        depth = input_shape[self._channel_axis] if channels is None else channels
        return (input_shape[0], depth, *sizes) if self._first_axis == 2 else (input_shape[0], *sizes, depth)


_WINDOW = "kernel_size", "strides", "dilation_rate"


class WindowGeometry(NamedTuple):
    """A window that slides along the axes between batch and channels."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    data_format: str
    dilation: tuple[int, ...]

    @classmethod
    def of(cls, layer: Any) -> WindowGeometry:
        """The geometry of a convolution."""
        window, *others = [one_for_each(layer, name, getattr(layer, name), layer.rank) for name in _WINDOW]
        return cls(window, others[0], layer.padding, layer.data_format, others[1])

    def output_shape(self, layer: Layer, input_shape: ShapeLike, channels: int | None = None) -> tuple[Any, ...]:
        """The shape after the window slid over inputs of a shape, with other channels if some are given."""
        first = self.data_format == "channels_first"
        shape, window = tuple(input_shape), self.window
        if len(shape) != len(window) + 2:
            raise ShapeError(f"{called(layer)} needs inputs with {len(window) + 2} axes, found shape {shape}.")
        sizes, kept = (shape[2:], shape[1]) if first else (shape[1:-1], shape[-1])
        found = []
        for size, w, step, d in zip(sizes, window, self.strides, self.dilation, strict=True):
            fitting = None if size is None else -(-size // step)
            if size is not None and self.padding == "valid":
                (fitting,) = places((size,), (w,), (step,), ((0, 0),), (d,))
            found.append(fitting)
        if any(n is not None and n < 1 for n in found):
            raise ShapeError(
                f"{called(layer)}: a window of {window} does not fit into inputs of shape {shape}; use padding='same', a "
                "smaller window, or larger inputs."
            )
        depth = kept if channels is None else channels
        return (shape[0], depth, *found) if first else (shape[0], *found, depth)


# Pools -----------------------------------------------------------------------------------------------------------------


class PoolingLayer(SpatialLayer):
    """Base of pools, each of which is one function: `class MaxPooling2D(Pooling, rank=2, pool=max_pool)`."""

    pool: ClassVar[Callable[..., Tensor]]

    def __init_subclass__(cls, pool: Callable[..., Tensor] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if pool is not None:
            cls.pool = staticmethod(pool)


class Pooling(PoolingLayer):
    """Base of pools under a sliding window, with the arguments of `MaxPooling2D`."""

    def __init__(
        self,
        pool_size: PerAxis = 2,
        strides: int | Sequence[int] | None = None,
        padding: Padding = "valid",
        data_format: DataFormat = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.strides = self.pool_size if strides is None else one_for_each(self, "strides", strides, self.rank)

    def build(self, input_shape: ShapeLike) -> None:
        self.compute_output_shape(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        return self.pool(inputs, self.pool_size, self.strides, self.padding.upper(), self.data_format)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *places, channels)."""
        geometry = WindowGeometry(self.pool_size, self.strides, self.padding, self.data_format, (1,) * self.rank)
        return geometry.output_shape(self, input_shape)


class MaxPooling1D(Pooling, described=True, makes_nothing=True, rank=1, pool=functions.max_pool):
    """The largest element under a window along one axis, for each channel. Arguments as in `MaxPooling2D`.

    >>> tf.keras.layers.MaxPooling1D()(tf.ones([2, 5, 3])).shape
    TensorShape([2, 2, 3])
    """


class MaxPooling2D(Pooling, described=True, makes_nothing=True, rank=2, pool=functions.max_pool):
    """The largest element under a window over height and width, for each channel; of several the first has the gradient.

    Args:
        pool_size: sizes of the window; an int serves both axes.
        strides: distance between neighbouring places; the sizes of the window by default.
        padding: 'valid' (none) or 'same' (places = size / stride, rounded up).

    >>> tf.keras.layers.MaxPooling2D()(tf.ones([2, 28, 28, 3])).shape
    TensorShape([2, 14, 14, 3])
    """


class MaxPooling3D(Pooling, described=True, makes_nothing=True, rank=3, pool=functions.max_pool):
    """The largest element under a window over three axes, for each channel. Arguments as in `MaxPooling2D`.

    >>> tf.keras.layers.MaxPooling3D()(tf.ones([2, 4, 6, 8, 3])).shape
    TensorShape([2, 2, 3, 4, 3])
    """


class AveragePooling1D(Pooling, described=True, makes_nothing=True, rank=1, pool=functions.avg_pool):
    """The mean of what lies under a window along one axis, for each channel. Arguments as in `MaxPooling2D`.

    >>> tf.keras.layers.AveragePooling1D()(tf.ones([2, 5, 3])).shape
    TensorShape([2, 2, 3])
    """


class AveragePooling2D(Pooling, described=True, makes_nothing=True, rank=2, pool=functions.avg_pool):
    """The mean of what lies under a window over height and width, for each channel. Arguments as in `MaxPooling2D`.

    >>> tf.keras.layers.AveragePooling2D(3, strides=2, padding="same")(tf.ones([2, 5, 5, 3])).shape
    TensorShape([2, 3, 3, 3])
    """


class AveragePooling3D(Pooling, described=True, makes_nothing=True, rank=3, pool=functions.avg_pool):
    """The mean of what lies under a window over three axes, for each channel. Arguments as in `MaxPooling2D`.

    >>> tf.keras.layers.AveragePooling3D()(tf.ones([2, 4, 6, 8, 3])).shape
    TensorShape([2, 2, 3, 4, 3])
    """


class GlobalPooling(PoolingLayer):
    """Base of pools over all axes between batch and channels, with the arguments of `GlobalAveragePooling2D`."""

    def __init__(self, data_format: DataFormat = None, keepdims: Flag = False, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        return self.pool(inputs, self._axes(), keepdims=self.keepdims)

    def _axes(self) -> list[int]:
        return list(range(self._first_axis, self._first_axis + self.rank))

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, channels), with axes of size 1 between if they are kept."""
        axes = self._axes()
        return tuple(1 if axis in axes else size for axis, size in enumerate(input_shape) if self.keepdims or axis not in axes)


class GlobalAveragePooling1D(GlobalPooling, described=True, makes_nothing=True, rank=1, pool=reduce_mean):
    """The mean over all steps; what a mask leaves out does not count.

    Args:
        data_format, keepdims, options: as in `GlobalAveragePooling2D`.

    >>> print(tf.keras.layers.GlobalAveragePooling1D()([[[1.0], [5.0]]], mask=[[True, False]]).numpy())
    [[1.]]
    """

    def call(self, inputs: Tensor, mask: TensorLike = None) -> Tensor:
        if mask is None:
            return super().call(inputs)
        if inputs.shape[self._axes()[0]] != mask.shape[-1] or mask.shape[0] != inputs.shape[0] or mask.ndim != 2:
            raise ShapeError(
                f"{called(self)}: the mask must have shape (batch, steps) of the input {tuple(inputs.shape)}, found "
                f"{tuple(mask.shape)}."
            )
        x = wide(self, inputs)
        weights = cast(mask, x.dtype)
        weights = reshape(weights, (*weights.shape, 1) if self.data_format == "channels_last" else (weights.shape[0], 1, -1))
        total = reduce_sum(masked_fill(weights != 0.0, x), self._axes(), keepdims=self.keepdims)
        return cast(total / reduce_sum(weights, self._axes(), keepdims=self.keepdims), self.compute_dtype)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """None: the steps are gone."""
        return None


class GlobalAveragePooling2D(GlobalPooling, described=True, makes_nothing=True, rank=2, pool=reduce_mean):
    """The mean over height and width, for each channel.

    Args:
        keepdims: whether height and width stay, with size 1.

    >>> tf.keras.layers.GlobalAveragePooling2D()(tf.ones([2, 28, 28, 3])).shape
    TensorShape([2, 3])
    """


class GlobalAveragePooling3D(GlobalPooling, described=True, makes_nothing=True, rank=3, pool=reduce_mean):
    """The mean over three axes, for each channel. Arguments as in `GlobalAveragePooling2D`.

    >>> tf.keras.layers.GlobalAveragePooling3D()(tf.ones([2, 4, 6, 8, 3])).shape
    TensorShape([2, 3])
    """


class GlobalMaxPooling1D(GlobalPooling, described=True, makes_nothing=True, rank=1, pool=reduce_max):
    """The largest element over all steps, for each feature. Arguments as in `GlobalAveragePooling2D`.

    >>> print(tf.keras.layers.GlobalMaxPooling1D()([[[1.0], [5.0]]]).numpy())
    [[5.]]
    """


class GlobalMaxPooling2D(GlobalPooling, described=True, makes_nothing=True, rank=2, pool=reduce_max):
    """The largest element over height and width, for each channel. Arguments as in `GlobalAveragePooling2D`.

    >>> tf.keras.layers.GlobalMaxPooling2D(keepdims=True)(tf.ones([2, 28, 28, 3])).shape
    TensorShape([2, 1, 1, 3])
    """


class GlobalMaxPooling3D(GlobalPooling, described=True, makes_nothing=True, rank=3, pool=reduce_max):
    """The largest element over three axes, for each channel. Arguments as in `GlobalAveragePooling2D`.

    >>> tf.keras.layers.GlobalMaxPooling3D()(tf.ones([2, 4, 6, 8, 3])).shape
    TensorShape([2, 3])
    """


class AdaptivePooling(PoolingLayer):
    """Base of pools over windows that divide each axis, with the arguments of `AdaptiveAveragePooling2D`."""

    def __init__(self, output_size: PerAxis, data_format: DataFormat = None, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        return self.pool(inputs, self.output_size, self.data_format)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *output_size, channels)."""
        return self._with_sizes(input_shape, self.output_size)


class AdaptiveAveragePooling1D(AdaptivePooling, described=True, makes_nothing=True, rank=1, pool=functions.adaptive_avg_pool):
    """The mean of each of so many windows over one axis. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveAveragePooling1D(3)(tf.ones([2, 7, 3])).shape
    TensorShape([2, 3, 3])
    """


class AdaptiveAveragePooling2D(AdaptivePooling, described=True, makes_nothing=True, rank=2, pool=functions.adaptive_avg_pool):
    """The mean of each of so many windows over height and width, for each channel.

    Window i of m along an axis of n elements holds those from floor(i n / m) up to ceil((i + 1) n / m), without that one.

    Args:
        output_size: number of windows; an int serves both axes.

    >>> tf.keras.layers.AdaptiveAveragePooling2D(3)(tf.ones([2, 7, 5, 3])).shape
    TensorShape([2, 3, 3, 3])
    """


class AdaptiveAveragePooling3D(AdaptivePooling, described=True, makes_nothing=True, rank=3, pool=functions.adaptive_avg_pool):
    """The mean of each of so many windows over three axes. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveAveragePooling3D(3)(tf.ones([2, 7, 5, 6, 3])).shape
    TensorShape([2, 3, 3, 3, 3])
    """


class AdaptiveMaxPooling1D(AdaptivePooling, described=True, makes_nothing=True, rank=1, pool=functions.adaptive_max_pool):
    """The largest element of each of so many windows over one axis. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling1D(3)(tf.ones([2, 7, 3])).shape
    TensorShape([2, 3, 3])
    """


class AdaptiveMaxPooling2D(AdaptivePooling, described=True, makes_nothing=True, rank=2, pool=functions.adaptive_max_pool):
    """The largest element of each of so many windows over height and width. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling2D(3)(tf.ones([2, 7, 5, 3])).shape
    TensorShape([2, 3, 3, 3])
    """


class AdaptiveMaxPooling3D(AdaptivePooling, described=True, makes_nothing=True, rank=3, pool=functions.adaptive_max_pool):
    """The largest element of each of so many windows over three axes. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling3D(3)(tf.ones([2, 7, 5, 6, 3])).shape
    TensorShape([2, 3, 3, 3, 3])
    """


AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D

hide_imports(globals(), *("AdaptivePooling", "GlobalPooling", "Pooling", "PoolingLayer", "SpatialLayer", "WindowGeometry"))
