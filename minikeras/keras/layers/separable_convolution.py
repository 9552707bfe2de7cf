"""Convolutions with kernels of their own for each channel, alone or followed by a mix of the channels."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions import convolution as functions
from ..weight import Weight
from . import weight_options
from .convolution import KernelLayer, check_positive


class Depthwise(KernelLayer):
    """Base of convolutions with kernels of its own for each channel, with the arguments of `DepthwiseConv2D`."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        geometry = (kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias)
        bias = (bias_initializer, bias_regularizer, bias_constraint)
        super().__init__(*geometry, *bias, activity_regularizer=activity_regularizer, **options)
        check_positive(self, depth_multiplier=depth_multiplier)
        self.depth_multiplier = depth_multiplier
        weight_options.keep(self, "depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        self.kernel: Any = None

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels, depth_multiplier)."""
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel = weight_options.add(self, "depthwise", shape, name="kernel")
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """Each channel under its kernels."""
        geometry = (self.strides, self.padding.upper(), self.data_format, self.dilation_rate)
        return functions.depthwise_conv(inputs, self.kernel.read_value(), *geometry)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *places, channels * depth_multiplier)."""
        channels = input_shape[1 if self.data_format == "channels_first" else -1]
        return self.slid(input_shape, None if channels is None else channels * self.depth_multiplier)


class DepthwiseConv1D(Depthwise):
    """A convolution along one axis with kernels of its own for each channel. Arguments as in `DepthwiseConv2D`.

    >>> tf.keras.layers.DepthwiseConv1D(3)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 8, 5])
    """

    rank = 1


class DepthwiseConv2D(Depthwise):
    """A convolution over height and width with kernels of its own for each channel: channels do not see one another.

    Args:
        kernel_size, strides, padding, data_format, dilation_rate: as in `Conv2D`.
        depth_multiplier: number of outputs for each channel.
        activation, use_bias, options: as in `Dense`, with `depthwise_initializer` and so on for the kernel.

    Shapes: input (batch, height, width, channels), output (batch, places, places, channels * depth_multiplier); kernel
    (height, width, channels, depth_multiplier), bias (channels * depth_multiplier,).

    >>> tf.keras.layers.DepthwiseConv2D(3, depth_multiplier=2)(tf.ones([2, 28, 28, 3])).shape
    TensorShape([2, 26, 26, 6])
    """

    rank = 2


class Separable(KernelLayer):
    """Base of separable convolutions, with the arguments of `SeparableConv2D`."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        geometry = (kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias)
        bias = (bias_initializer, bias_regularizer, bias_constraint)
        super().__init__(*geometry, *bias, activity_regularizer=activity_regularizer, **options)
        check_positive(self, filters=filters, depth_multiplier=depth_multiplier)
        self.filters, self.depth_multiplier = filters, depth_multiplier
        weight_options.keep(self, "depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        weight_options.keep(self, "pointwise", pointwise_initializer, pointwise_regularizer, pointwise_constraint)
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels, depth_multiplier) and (*ones, channels * depth_multiplier, filters)."""
        deep = (*self.kernel_size, channels, self.depth_multiplier)
        mixing = (*(1,) * self.rank, channels * self.depth_multiplier, self.filters)
        self.depthwise_kernel = weight_options.add(self, "depthwise", deep, name="depthwise_kernel")
        self.pointwise_kernel = weight_options.add(self, "pointwise", mixing, name="pointwise_kernel")
        return self.depthwise_kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """Each channel under its kernels, then a mix of the results."""
        deep, mixing = self.depthwise_kernel.read_value(), self.pointwise_kernel.read_value()
        geometry = (self.strides, self.padding.upper(), self.data_format, self.dilation_rate)
        return functions.separable_conv(inputs, deep, mixing, *geometry)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *places, filters)."""
        return self.slid(input_shape, self.filters)


class SeparableConv1D(Separable):
    """A depthwise convolution along one axis, then a mix of its channels. Arguments as in `SeparableConv2D`.

    >>> tf.keras.layers.SeparableConv1D(4, 3)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 8, 4])
    """

    rank = 1


class SeparableConv2D(Separable):
    """A depthwise convolution over height and width, then a mix of its channels at each place.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size, strides, padding, data_format, dilation_rate: as in `Conv2D`.
        depth_multiplier: number of outputs of the first step for each channel.
        activation, use_bias, options: as in `Dense`, with `depthwise_initializer`, `pointwise_initializer` and so on.

    Source: Chollet (2017), section 2.

    >>> tf.keras.layers.SeparableConv2D(4, 3, padding="same")(tf.ones([2, 28, 28, 3])).shape
    TensorShape([2, 28, 28, 4])
    """

    rank = 2


SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
