"""Transposed convolutions over one, two and three axes."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions import convolution as functions
from ..weight import Weight
from . import weight_options
from .convolution import KernelLayer, one_for_each


class TransposedConvolution(KernelLayer):
    """Base of transposed convolutions, with the arguments of `Conv2DTranspose`."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        geometry = (kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias)
        bias = (bias_initializer, bias_regularizer, bias_constraint)
        super().__init__(*geometry, *bias, activity_regularizer=activity_regularizer, **options)
        self.check_filters(filters)
        self.filters, self.output_padding = filters, None
        if output_padding is not None:
            self.output_padding = one_for_each(self, "output_padding", output_padding, self.rank, least=0)
            if any(extra >= stride for extra, stride in zip(self.output_padding, self.strides, strict=True)):
                raise ValueError(
                    f"{type(self).__name__}: each output_padding must be less than its stride, found "
                    f"output_padding={self.output_padding} and strides={self.strides}."
                )
        weight_options.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self.kernel: Any = None

    def make_kernels(self, channels: int) -> Weight:
        """(*window, filters, channels)."""
        self.kernel = weight_options.add(self, "kernel", (*self.kernel_size, self.filters, channels))
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """The transpose of a convolution."""
        options = (self.strides, self.padding, self.output_padding, self.data_format, self.dilation_rate)
        return functions.conv_transpose_to_fit(inputs, self.kernel.read_value(), *options)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *sizes, filters)."""
        first = self.data_format == "channels_first"
        more = self.output_padding or (None,) * self.rank
        places = input_shape[2:] if first else input_shape[1:-1]
        axes = zip(places, self.kernel_size, self.strides, more, self.dilation_rate, strict=True)
        sizes = [
            None if n is None else functions.transposed_axis(n, k, step, self.padding, extra, spread)[0]
            for n, k, step, extra, spread in axes
        ]
        return (input_shape[0], self.filters, *sizes) if first else (input_shape[0], *sizes, self.filters)


class Conv1DTranspose(TransposedConvolution):
    """The transpose of a convolution along one axis. Arguments as in `Conv2DTranspose`.

    >>> tf.keras.layers.Conv1DTranspose(4, 3, strides=2)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 21, 4])
    """

    rank = 1


class Conv2DTranspose(TransposedConvolution):
    """The transpose of a convolution over height and width: each element adds its window, times the kernel, to the result.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size, strides, dilation_rate: of the convolution; strides and dilation_rate cannot both exceed 1.
        padding: 'same' (sizes = places * stride) or 'valid' (all that windows reach).
        output_padding: how much larger the result is at the end of each axis, less than the stride; None follows `padding`.
        data_format: 'channels_last' (default) or 'channels_first'.
        activation, use_bias, options: as in `Dense`.

    Shapes: input (batch, height, width, channels), output (batch, size, size, filters); kernel (height, width, filters,
    channels), bias (filters,).

    >>> tf.keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same")(tf.ones([2, 7, 7, 8])).shape
    TensorShape([2, 14, 14, 4])
    """

    rank = 2


class Conv3DTranspose(TransposedConvolution):
    """The transpose of a convolution over three axes. Arguments as in `Conv2DTranspose`, but `data_format` is before
    `output_padding`, as in Keras.

    >>> tf.keras.layers.Conv3DTranspose(4, 2, strides=2)(tf.ones([2, 3, 4, 5, 8])).shape
    TensorShape([2, 6, 8, 10, 4])
    """

    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        output_padding: Any = None,
        *others: Any,
        **options: Any,
    ) -> None:
        super().__init__(filters, kernel_size, strides, padding, output_padding, data_format, *others, **options)


Convolution1DTranspose, Convolution2DTranspose, Convolution3DTranspose = Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
