"""Pools to a given number of places, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core import Tensor
from ...functions import pooling as functions
from .convolution import one_for_each
from .inputs import InputSpec
from .layer import Layer
from .reshaping import checked_format


class AdaptivePooling(Layer):
    """Base of pools over windows that divide each axis, with the arguments of `AdaptiveAveragePooling2D`."""

    rank: int
    pool: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: Any, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.output_size = one_for_each(self, "output_size", output_size, self.rank)
        self.data_format = checked_format(self, data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        return type(self).pool(inputs, self.output_size, self.data_format)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *output_size, channels)."""
        first = self.data_format == "channels_first"
        return (*input_shape[:2], *self.output_size) if first else (input_shape[0], *self.output_size, input_shape[-1])


class AdaptiveAveragePooling1D(AdaptivePooling):
    """The mean of each of so many windows over one axis. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveAveragePooling1D(3)(tf.ones([2, 7, 3])).shape
    TensorShape([2, 3, 3])
    """

    _makes_nothing = True
    rank = 1
    pool = functions.adaptive_avg_pool


class AdaptiveAveragePooling2D(AdaptivePooling):
    """The mean of each of so many windows over height and width, for each channel.

    Window i of m along an axis of n elements holds those from floor(i n / m) up to ceil((i + 1) n / m), without that one.

    Args:
        output_size: number of windows; an int serves both axes.
        data_format: 'channels_last' (default) or 'channels_first'.
        options: `name`, `dtype`, as in `Layer`.

    >>> tf.keras.layers.AdaptiveAveragePooling2D(3)(tf.ones([2, 7, 5, 3])).shape
    TensorShape([2, 3, 3, 3])
    """

    _makes_nothing = True
    rank = 2
    pool = functions.adaptive_avg_pool


class AdaptiveAveragePooling3D(AdaptivePooling):
    """The mean of each of so many windows over three axes. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveAveragePooling3D(3)(tf.ones([2, 7, 5, 6, 3])).shape
    TensorShape([2, 3, 3, 3, 3])
    """

    _makes_nothing = True
    rank = 3
    pool = functions.adaptive_avg_pool


class AdaptiveMaxPooling1D(AdaptivePooling):
    """The largest element of each of so many windows over one axis. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling1D(3)(tf.ones([2, 7, 3])).shape
    TensorShape([2, 3, 3])
    """

    _makes_nothing = True
    rank = 1
    pool = functions.adaptive_max_pool


class AdaptiveMaxPooling2D(AdaptivePooling):
    """The largest element of each of so many windows over height and width. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling2D(3)(tf.ones([2, 7, 5, 3])).shape
    TensorShape([2, 3, 3, 3])
    """

    _makes_nothing = True
    rank = 2
    pool = functions.adaptive_max_pool


class AdaptiveMaxPooling3D(AdaptivePooling):
    """The largest element of each of so many windows over three axes. Arguments as in `AdaptiveAveragePooling2D`.

    >>> tf.keras.layers.AdaptiveMaxPooling3D(3)(tf.ones([2, 7, 5, 6, 3])).shape
    TensorShape([2, 3, 3, 3, 3])
    """

    _makes_nothing = True
    rank = 3
    pool = functions.adaptive_max_pool
