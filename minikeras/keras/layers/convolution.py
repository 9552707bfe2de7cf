"""Convolutions over one, two and three axes."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions import convolution as functions
from ...functions.shaping import reshape
from ...nn_ops.convolution import places
from .. import activations
from ..weight import Weight
from . import weight_options
from .inputs import InputSpec
from .layer import Layer
from .reshaping import checked_format
from .weight_options import activated, without_absent


class KernelLayer(Layer):
    """Base of layers whose kernels slide along the axes between batch and channels; then come a bias and an activation.

    A subclass makes its kernels for a number of channels in `make_kernels`, and applies them in `convolved`.
    """

    rank: int
    groups = 1
    may_be_causal = False
    _takes_one_tensor = True

    def __init__(
        self,
        kernel_size: Any,
        strides: Any,
        padding: str,
        data_format: str | None,
        dilation_rate: Any,
        activation: Any,
        use_bias: bool,
        bias_initializer: Any = "zeros",
        bias_regularizer: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**without_absent(self, options))
        self.kernel_size = one_for_each(self, "kernel_size", kernel_size, self.rank)
        self.strides = one_for_each(self, "strides", strides, self.rank)
        self.dilation_rate = one_for_each(self, "dilation_rate", dilation_rate, self.rank)
        self.padding = checked_padding(self, padding, self.may_be_causal)
        self.data_format = checked_format(self, data_format)
        self.activation, self.use_bias = activations.get(activation), bool(use_bias)
        weight_options.keep(self, "bias", bias_initializer, bias_regularizer, bias_constraint)
        self.bias: Any = None
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def check_filters(self, filters: Any, groups: Any = 1) -> None:
        """Refuse numbers of outputs and groups that do not fit, and strides along with dilation."""
        kind = type(self).__name__
        check_positive(self, filters=filters, groups=groups)
        if filters % groups:
            raise ValueError(f"{kind}: filters={filters} must be a multiple of groups={groups}.")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(f"{kind}: strides={self.strides} and dilation_rate={self.dilation_rate} cannot both exceed 1.")

    def build(self, input_shape: Any) -> None:
        axis = 1 if self.data_format == "channels_first" else -1
        channels = input_shape[axis]
        if channels is None or channels % self.groups:
            raise ShapeError(
                f"Layer '{self.name}' ({type(self).__name__}): the number of channels must be known and a multiple of "
                f"groups={self.groups}, found {channels} in input shape {tuple(input_shape)}."
            )
        outputs = self.compute_output_shape(input_shape)[axis]
        kernel = self.make_kernels(channels)
        if self.use_bias:
            self.bias = weight_options.add(self, "bias", (outputs,))
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels}, fixed_by=kernel)

    def make_kernels(self, channels: int) -> Weight:
        """Make the kernels; the result is the one that takes the channels."""
        raise NotImplementedError

    def convolved(self, inputs: Tensor) -> Tensor:
        """The inputs under the kernels."""
        raise NotImplementedError

    def call(self, inputs: Tensor) -> Tensor:
        y = self.convolved(inputs)
        if self.use_bias:
            bias = self.bias.read_value()
            y = y + (reshape(bias, (-1, *(1,) * self.rank)) if self.data_format == "channels_first" else bias)
        return activated(self, y)

    def slid(self, input_shape: Any, channels: int | None) -> tuple[Any, ...]:
        """(batch, *places, channels), or with the channels first."""
        return output_shape(self, input_shape, self.kernel_size, self.strides, self.padding, self.dilation_rate, channels)


class Convolution(KernelLayer):
    """Base of convolutions, with the arguments of `Conv2D`; over one axis padding may also be 'causal': before the first step
    only, so that no place sees later steps.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
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
        self.check_filters(filters, groups)
        self.filters, self.groups = filters, groups
        weight_options.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self.kernel: Any = None

    def make_kernels(self, channels: int) -> Weight:
        """(*window, channels / groups, filters)."""
        self.kernel = weight_options.add(self, "kernel", (*self.kernel_size, channels // self.groups, self.filters))
        return self.kernel

    def convolved(self, inputs: Tensor) -> Tensor:
        """The convolution with the layer's kernel."""
        return self.convolution_op(inputs, self.kernel.read_value())

    def convolution_op(self, inputs: Any, kernel: Any) -> Tensor:
        """The convolution without bias and activation; a subclass may override it to compute with another kernel."""
        padding: Any = self.padding.upper()
        if padding == "CAUSAL":
            padding = [(self.dilation_rate[0] * (self.kernel_size[0] - 1), 0)]
        return functions.convolution(inputs, kernel, self.strides, padding, self.data_format, self.dilation_rate)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *places, filters)."""
        return self.slid(input_shape, self.filters)


class Conv1D(Convolution):
    """A convolution along one axis, such as time.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size, strides, padding, data_format, dilation_rate, groups: as in `Conv2D`; padding may also be 'causal'.
        activation, use_bias, options: as in `Dense`.

    >>> tf.keras.layers.Conv1D(4, 3, padding="causal")(tf.ones([2, 10, 5])).shape
    TensorShape([2, 10, 4])
    """

    rank = 1
    may_be_causal = True


class Conv2D(Convolution):
    """A convolution over height and width.

    Args:
        filters: number of outputs for each place, a positive int.
        kernel_size: height and width of the window; an int serves both.
        strides: distance between neighbouring places.
        padding: 'valid' (none) or 'same' (places = size / stride, rounded up).
        data_format: 'channels_last' (default) or 'channels_first'.
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

    rank = 2


class Conv3D(Convolution):
    """A convolution over depth, height and width, or time and two axes. Arguments as in `Conv2D`.

    >>> tf.keras.layers.Conv3D(4, 2)(tf.ones([2, 5, 6, 7, 1])).shape
    TensorShape([2, 4, 5, 6, 4])
    """

    rank = 3


def check_positive(layer: Any, **numbers: Any) -> None:
    """Refuse what is no positive int."""
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
            raise ValueError(f"{type(layer).__name__}: `{name}` must be a positive integer, found {number!r}.")


def one_for_each(layer: Any, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """Ints of at least so much, one for each axis, from one for all or a sequence."""
    found = (value,) * rank if isinstance(value, int) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(found) != rank or any(not isinstance(n, int) or isinstance(n, bool) or n < least for n in found):
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{type(layer).__name__}: `{name}` must be {kind} or a tuple of {rank}. Received: {name}={value!r}.")
    return found


def checked_padding(layer: Any, padding: Any, causal: bool = False) -> str:
    """'valid', 'same' or, where it is allowed, 'causal'."""
    allowed = ("valid", "same", "causal")[: 3 if causal else 2]
    if not isinstance(padding, str) or padding.lower() not in allowed:
        raise ValueError(f"{type(layer).__name__}: padding must be one of {allowed}, found {padding!r}.")
    return padding.lower()


def output_shape(
    layer: Any,
    input_shape: Any,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    dilation: tuple[int, ...],
    channels: int | None = None,
) -> tuple[Any, ...]:
    """The shape after windows slid over the axes between batch and channels; refused if none fits."""
    first = layer.data_format == "channels_first"
    shape = tuple(input_shape)
    if len(shape) != len(window) + 2:
        raise ShapeError(
            f"Layer '{layer.name}' ({type(layer).__name__}) needs inputs with {len(window) + 2} axes, found shape {shape}."
        )
    sizes, kept = (shape[2:], shape[1]) if first else (shape[1:-1], shape[-1])
    found = tuple(
        None if size is None else -(-size // step) if padding != "valid" else places((size,), (w,), (step,), ((0, 0),), (d,))[0]
        for size, w, step, d in zip(sizes, window, strides, dilation, strict=True)
    )
    if any(n is not None and n < 1 for n in found):
        raise ShapeError(
            f"Layer '{layer.name}' ({type(layer).__name__}): a window of {window} does not fit into inputs of shape {shape}; "
            "use padding='same', a smaller window, or larger inputs."
        )
    depth = kept if channels is None else channels
    return (shape[0], depth, *found) if first else (shape[0], *found, depth)
