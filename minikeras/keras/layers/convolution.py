"""Convolutions over one, two and three axes: plain, transposed, and with kernels of their own for each channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...absent import hide_imports
from ...core import Tensor
from ...errors import ShapeError
from ...functions import convolution as functions
from ...functions.shaping import reshape
from ...types import ShapeLike, TensorLike
from ..weight import Weight
from .inputs import InputSpec, called
from .layer_weights import activated
from .options import (
    ActivationLike,
    Constraint,
    DataFormat,
    Flag,
    Initializer,
    Padding,
    PerAxis,
    Positive,
    Regularizer,
    one_for_each,
)
from .windows import SpatialLayer, WindowGeometry


class KernelLayer(SpatialLayer, takes_one_tensor=True):
    """Base of layers whose kernels slide along the axes between batch and channels; then come a bias and an activation.

    A subclass makes its kernels for a number of channels in `make_kernels`, and applies them in `convolved`.
    """

    groups = 1
    filters: int
    kernel_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation_rate: tuple[int, ...]
    padding: str
    use_bias: bool
    activation: Callable[..., Any]

    def check_filters(self) -> None:
        """Refuse numbers of outputs and groups that do not fit, and strides along with dilation."""
        kind = type(self).__name__
        if self.filters % self.groups:
            raise ValueError(f"{kind}: filters={self.filters} must be a multiple of groups={self.groups}.")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(f"{kind}: strides={self.strides} and dilation_rate={self.dilation_rate} cannot both exceed 1.")

    def build(self, input_shape: ShapeLike) -> None:
        axis = self._channel_axis
        channels = input_shape[axis]
        if channels is None or channels % self.groups:
            raise ShapeError(
                f"{called(self)}: the number of channels must be known and a multiple of groups={self.groups}, found "
                f"{channels} in input shape {tuple(input_shape)}."
            )
        outputs = self.compute_output_shape(input_shape)[axis]
        kernel = self.make_kernels(channels)
        self.bias: Any = self._add_kept("bias", (outputs,)) if self.use_bias else None
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels}, fixed_by=kernel)

    def make_kernels(self, channels: int) -> Weight:
        """Make the kernels; the result is the one that takes the channels."""
        raise NotImplementedError

    def convolved(self, inputs: Tensor) -> Tensor:
        """The inputs under the kernels."""
        raise NotImplementedError

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *places, filters)."""
        return WindowGeometry.of(self).output_shape(self, input_shape, self.filters)

    def call(self, inputs: Tensor) -> Tensor:
        y = self.convolved(inputs)
        if self.use_bias:
            bias = self.bias.read_value()
            y = y + (reshape(bias, (-1, *(1,) * self.rank)) if self.data_format == "channels_first" else bias)
        return activated(self.activation, y)


class Convolution(KernelLayer):
    """Base of convolutions, with the arguments of `Conv2D`; over one axis padding may also be 'causal': before the first step
    only, so that no place sees later steps.
    """

    def __init__(
        self,
        filters: Positive,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        data_format: DataFormat = None,
        dilation_rate: PerAxis = 1,
        groups: Positive = 1,
        activation: ActivationLike = None,
        use_bias: Flag = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Any = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.check_filters()

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels / groups, filters)."""
        self.kernel = self._add_kept("kernel", (*self.kernel_size, channels // self.groups, self.filters))
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """The convolution with the layer's kernel."""
        return self.convolution_op(inputs, self.kernel.read_value())

    def convolution_op(self, inputs: TensorLike, kernel: Any) -> Tensor:
        """The convolution without bias and activation; a subclass may override it to compute with another kernel."""
        padding: Any = self.padding.upper()
        if padding == "CAUSAL":
            padding = [(self.dilation_rate[0] * (self.kernel_size[0] - 1), 0)]
        return functions.convolution(inputs, kernel, self.strides, padding, self.data_format, self.dilation_rate)


class Conv1D(Convolution, described=True, rank=1):
    """A convolution along one axis, such as time.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size, strides, padding, data_format, dilation_rate, groups: as in `Conv2D`; padding may also be 'causal'.
        activation, use_bias, options: as in `Dense`.

    >>> tf.keras.layers.Conv1D(4, 3, padding="causal")(tf.ones([2, 10, 5])).shape
    TensorShape([2, 10, 4])
    """

    may_be_causal = True


class Conv2D(Convolution, described=True, rank=2):
    """A convolution over height and width.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size: height and width of the window; an int serves both.
        strides: distance between neighbouring places.
        padding: 'valid' (none) or 'same' (places = size / stride, rounded up).
        dilation_rate: distance between neighbouring elements of the window; strides and this one cannot both exceed 1.
        groups: inputs and outputs are divided into so many groups that do not see one another.
        activation, use_bias, options: as in `Dense`.

    Shapes: input (batch, height, width, channels), output (batch, places, places, filters); kernel (height, width,
    channels / groups, filters), bias (filters,).

    Raises:
        ShapeError: if the channels are not those it was built for, or the window does not fit.

    >>> tf.keras.layers.Conv2D(4, 3, strides=2, activation="relu")(tf.ones([2, 28, 28, 1])).shape
    TensorShape([2, 13, 13, 4])
    """


class Conv3D(Convolution, described=True, rank=3):
    """A convolution over depth, height and width, or time and two axes. Arguments as in `Conv2D`.

    >>> tf.keras.layers.Conv3D(4, 2)(tf.ones([2, 5, 6, 7, 1])).shape
    TensorShape([2, 4, 5, 6, 4])
    """


class Depthwise(KernelLayer):
    """Base of convolutions with kernels of its own for each channel, with the arguments of `DepthwiseConv2D`."""

    def __init__(
        self,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        depth_multiplier: Positive = 1,
        data_format: DataFormat = None,
        dilation_rate: PerAxis = 1,
        activation: ActivationLike = None,
        use_bias: Flag = True,
        depthwise_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        depthwise_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels, depth_multiplier)."""
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel = self._add_kept("depthwise", shape, name="kernel")
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """Each channel under its kernels."""
        geometry = (self.strides, self.padding.upper(), self.data_format, self.dilation_rate)
        return functions.depthwise_conv(inputs, self.kernel.read_value(), *geometry)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *places, channels * depth_multiplier)."""
        channels = input_shape[self._channel_axis]
        return WindowGeometry.of(self).output_shape(self, input_shape, channels and channels * self.depth_multiplier)


class DepthwiseConv1D(Depthwise, described=True, rank=1):
    """A convolution along one axis with kernels of its own for each channel. Arguments as in `DepthwiseConv2D`.

    >>> tf.keras.layers.DepthwiseConv1D(3)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 8, 5])
    """


class DepthwiseConv2D(Depthwise, described=True, rank=2):
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


class Separable(KernelLayer):
    """Base of separable convolutions, with the arguments of `SeparableConv2D`."""

    def __init__(
        self,
        filters: Positive,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        data_format: DataFormat = None,
        dilation_rate: PerAxis = 1,
        depth_multiplier: Positive = 1,
        activation: ActivationLike = None,
        use_bias: Flag = True,
        depthwise_initializer: Initializer = "glorot_uniform",
        pointwise_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        depthwise_regularizer: Regularizer = None,
        pointwise_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Constraint = None,
        pointwise_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels, depth_multiplier) and (*ones, channels * depth_multiplier, filters)."""
        deep = (*self.kernel_size, channels, self.depth_multiplier)
        mixing = (*(1,) * self.rank, channels * self.depth_multiplier, self.filters)
        self.depthwise_kernel = self._add_kept("depthwise", deep, name="depthwise_kernel")
        self.pointwise_kernel = self._add_kept("pointwise", mixing, name="pointwise_kernel")
        return self.depthwise_kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """Each channel under its kernels, then a mix of the results."""
        deep, mixing = self.depthwise_kernel.read_value(), self.pointwise_kernel.read_value()
        geometry = (self.strides, self.padding.upper(), self.data_format, self.dilation_rate)
        return functions.separable_conv(inputs, deep, mixing, *geometry)


class SeparableConv1D(Separable, described=True, rank=1):
    """A depthwise convolution along one axis, then a mix of its channels. Arguments as in `SeparableConv2D`.

    >>> tf.keras.layers.SeparableConv1D(4, 3)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 8, 4])
    """


class SeparableConv2D(Separable, described=True, rank=2):
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


SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D


class TransposedConvolution(KernelLayer):
    """Base of transposed convolutions, with the arguments of `Conv2DTranspose`."""

    def __init__(
        self,
        filters: Positive,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        output_padding: Any = None,
        data_format: DataFormat = None,
        dilation_rate: PerAxis = 1,
        activation: ActivationLike = None,
        use_bias: Flag = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Any = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.check_filters()
        self.output_padding = None
        if output_padding is not None:
            self.output_padding = one_for_each(self, "output_padding", output_padding, self.rank, least=0)
            if any(extra >= stride for extra, stride in zip(self.output_padding, self.strides, strict=True)):
                raise ValueError(
                    f"{type(self).__name__}: each output_padding must be less than its stride, found "
                    f"output_padding={self.output_padding} and strides={self.strides}."
                )

    def make_kernels(self, channels: int) -> Weight:
        """(*window, filters, channels)."""
        self.kernel = self._add_kept("kernel", (*self.kernel_size, self.filters, channels))
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """The transpose of a convolution."""
        options = (self.strides, self.padding, self.output_padding, self.data_format, self.dilation_rate)
        return functions.conv_transpose_to_fit(inputs, self.kernel.read_value(), *options)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *sizes, filters)."""
        more = self.output_padding or (None,) * self.rank
        places = input_shape[self._first_axis :][: self.rank]
        axes = zip(places, self.kernel_size, self.strides, more, self.dilation_rate, strict=True)
        sizes = [
            None if n is None else functions.transposed_axis(n, k, step, self.padding, extra, spread)[0]
            for n, k, step, extra, spread in axes
        ]
        return self._with_sizes(input_shape, sizes, self.filters)


class Conv1DTranspose(TransposedConvolution, described=True, rank=1):
    """The transpose of a convolution along one axis. Arguments as in `Conv2DTranspose`.

    >>> tf.keras.layers.Conv1DTranspose(4, 3, strides=2)(tf.ones([2, 10, 5])).shape
    TensorShape([2, 21, 4])
    """


class Conv2DTranspose(TransposedConvolution, described=True, rank=2):
    """The transpose of a convolution over height and width: each element adds its window, times the kernel, to the result.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size, strides, dilation_rate: of the convolution; strides and dilation_rate cannot both exceed 1.
        padding: 'same' (sizes = places * stride) or 'valid' (all that windows reach).
        output_padding: how much larger the result is at the end of each axis, less than the stride; None follows `padding`.
        activation, use_bias, options: as in `Dense`.

    Shapes: input (batch, height, width, channels), output (batch, size, size, filters); kernel (height, width, filters,
    channels), bias (filters,).

    >>> tf.keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same")(tf.ones([2, 7, 7, 8])).shape
    TensorShape([2, 14, 14, 4])
    """


class Conv3DTranspose(TransposedConvolution, described=True, rank=3):
    """The transpose of a convolution over three axes. Arguments as in `Conv2DTranspose`, but `data_format` is before
    `output_padding`, as in Keras.

    >>> tf.keras.layers.Conv3DTranspose(4, 2, strides=2)(tf.ones([2, 3, 4, 5, 8])).shape
    TensorShape([2, 6, 8, 10, 4])
    """

    def __init__(
        self,
        filters: Positive,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        data_format: DataFormat = None,
        output_padding: Any = None,
        *others: Any,
        **options: Any,
    ) -> None:
        super().__init__(filters, kernel_size, strides, padding, output_padding, data_format, *others, **options)


Convolution1DTranspose, Convolution2DTranspose, Convolution3DTranspose = Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D

hide_imports(globals(), "Convolution", "Depthwise", "KernelLayer", "Separable", "TransposedConvolution")
