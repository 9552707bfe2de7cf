"""Cells, the steps of recurrent layers, and the layers that repeat them: a simple one, with gates (GRU), with a memory (LSTM),
and an LSTM with convolutions in place of products.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core import Tensor
from ...core.ops.shaping import split_along
from ...errors import ShapeError
from ...functions import convolution as functions
from ...functions.creation import zeros
from ...functions.shaping import concat, reshape
from ...module import snake_case
from ...types import DTypeLike, ShapeLike, TensorLike
from .. import initializers
from ..saving.objects import constructor_arguments
from .inputs import InputSpec, called
from .layer import Layer
from .layer_weights import activated
from .options import ActivationLike, DataFormat, Flag, Kept, Padding, PerAxis, Positive
from .recurrent import RNN, Cell
from .windows import WindowGeometry


class SimpleRNNCell(Cell, described=True):
    """h' = activation(x W + h U + b): the step of `SimpleRNN`.

    Args:
        units: number of outputs, a positive int.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, kernel_constraint,
            bias_constraint: as in `Dense`.
        recurrent_initializer, recurrent_regularizer, recurrent_constraint: of the recurrent kernel U (units, units).
        dropout: rate at which inputs are dropped in training, by one mask for all steps.
        recurrent_dropout: rate for what is carried.
        seed: of the dropout; None follows the global seed and the layer's name.

    The call takes inputs (batch, features) and the states, and gives the output and the next states.

    >>> cell = tf.keras.layers.SimpleRNNCell(3)
    >>> output, states = cell(tf.ones([2, 4]), [tf.zeros([2, 3])])
    >>> output.shape, len(states)
    (TensorShape([2, 3]), 1)
    """

    def call(self, sequence: Tensor, states: TensorLike, training: bool | None = False) -> tuple[Tensor, Any]:
        nested = isinstance(states, (list, tuple))
        h = states[0] if nested else states
        of_inputs, of_state = self.masks(sequence, h, training)
        h = activated(self.activation, self.of_inputs(sequence, of_inputs) + self.of_state(h, of_state))
        return h, [h] if nested else h


class GRUCell(Cell, described=True):
    """A gated recurrent unit: h' = z h + (1 - z) candidate, the step of `GRU`.

    Args:
        units, activation, use_bias, options: as in `SimpleRNNCell`, with its further arguments.
        recurrent_activation: of the gates.
        reset_after: whether the reset gate r multiplies h U, with a bias of its own, or h itself:
            candidate = activation(x W + b + r (h U + b')) or activation(x W + b + (r h) U).

    The kernels hold the update gate z, the reset gate r and the candidate, side by side.

    Source: Cho et al. (2014), section 2.3.

    >>> cell = tf.keras.layers.GRUCell(3)
    >>> output, states = cell(tf.ones([2, 4]), [tf.zeros([2, 3])])
    >>> output.shape, cell.bias.shape
    (TensorShape([2, 3]), TensorShape([2, 9]))
    """

    gates = 3

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        reset_after: Flag = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, use_bias, **options)

    def make_bias(self, width: int) -> Any:
        return self._add_kept("bias", (2, width) if self.reset_after else (width,))

    def input_bias(self) -> Any:
        bias = super().input_bias()
        return bias[0] if bias is not None and self.reset_after else bias

    def call(self, inputs: Tensor, states: TensorLike, training: bool | None = False) -> tuple[Tensor, Any]:
        nested = isinstance(states, (list, tuple))
        h = states[0] if nested else states
        of_inputs, of_state = self.masks(inputs, h, training)
        x_gates, x = self.parts(self.of_inputs(inputs, of_inputs), 2, 1)
        if self.reset_after:
            bias = self.bias.read_value()[1] if self.use_bias else None
            h_gates, inner = self.parts(self.of_state(h, of_state, bias=bias), 2, 1)
            z, r = map(self.recurrent_activation, self.parts(x_gates + h_gates, 1, 1))
            candidate = activated(self.activation, x + r * inner)
        else:
            for_gates, kernel = split_along(self.recurrent_kernel.read_value(), sizes=(2 * self.units, self.units), axis=-1)
            masks = [None if of_state is None else part for part in ((of_state or [])[:2], (of_state or [])[2:])]
            z, r = map(self.recurrent_activation, self.parts(x_gates + self.of_state(h, masks[0], for_gates), 1, 1))
            candidate = activated(self.activation, x + self.of_state(r * h, masks[1], kernel))
        h = z * h + (1.0 - z) * candidate
        return h, [h] if nested else h


class LSTMCell(Cell, described=True):
    """A cell with a memory c: c' = f c + i activation(...), h' = o activation(c'), the step of `LSTM`.

    Args:
        units, activation, use_bias, options: as in `SimpleRNNCell`, with its further arguments.
        recurrent_activation: of the gates.
        unit_forget_bias: whether the bias of the forget gate f begins with 1.

    The kernels hold the input gate i, the forget gate f, the candidate and the output gate o, side by side. The states are h
    and c.

    Source: Hochreiter and Schmidhuber (1997); Jozefowicz et al. (2015) for the bias.

    >>> cell = tf.keras.layers.LSTMCell(3)
    >>> output, states = cell(tf.ones([2, 4]), [tf.zeros([2, 3]), tf.zeros([2, 3])])
    >>> output.shape, cell.bias.numpy()[3:6]
    (TensorShape([2, 3]), array([1., 1., 1.], dtype=float32))
    """

    gates = 4

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        unit_forget_bias: Flag = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, use_bias, **options)
        self.state_size = [units, units]

    def make_bias(self, width: int) -> Any:
        if not self.unit_forget_bias:
            return super().make_bias(width)
        first, n = initializers.get(self.bias_initializer), self.units

        def start(shape: ShapeLike, dtype: DTypeLike = None) -> Tensor:
            return concat([first((n,), dtype=dtype), initializers.Ones()((n,), dtype=dtype), first((2 * n,), dtype=dtype)], 0)

        return self.add_weight((width,), start, regularizer=self.bias_regularizer, constraint=self.bias_constraint, name="bias")

    def call(self, inputs: Tensor, states: TensorLike, training: bool | None = False) -> tuple[Tensor, Any]:
        h, c = states
        of_inputs, of_state = self.masks(inputs, h, training)
        z = self.of_inputs(inputs, of_inputs) + self.of_state(h, of_state)
        i, f, candidate, o = self.parts(z, 1, 1, 1, 1)
        opened = self.recurrent_activation
        c = opened(f) * c + opened(i) * activated(self.activation, candidate)
        h = opened(o) * activated(self.activation, c)
        return h, [h, c]


# Layers ----------------------------------------------------------------------------------------------------------------


_OF_LAYERS = (*constructor_arguments(Layer, object), *constructor_arguments(RNN, Layer), "input_shape", "input_dim")


class CellLayer(RNN, described=True):
    """Base of RNNs that make their cell, whose arguments they take beside those of RNN.

    A subclass names the class of its cell; the arguments of that are attributes of the layer, too.
    """

    cell_class: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "cell_class"):
            for name in constructor_arguments(cls.cell_class, Layer):
                if not hasattr(cls, name):
                    setattr(cls, name, property(operator.attrgetter(f"cell.{name}")))

    def __init__(self, *arguments: Any, activity_regularizer: Any = None, **options: Any) -> None:
        choice = options.pop("use_cudnn", "auto") if self.cell_class in (GRUCell, LSTMCell) else None
        if choice not in ("auto", True, False, None):
            raise ValueError(f"{type(self).__name__}: use_cudnn must be 'auto', True or False, found {choice!r}.")
        own = {name: options.pop(name) for name in _OF_LAYERS if name in options}
        common = {name: own[name] for name in ("dtype", "trainable") if name in own}
        cell = self.cell_class(*arguments, **options, **common, name=snake_case(self.cell_class.__name__))
        super().__init__(cell, activity_regularizer=activity_regularizer, **own)
        if choice is not None:  # kept for Keras; it changes nothing here
            self.use_cudnn = choice
        self.input_spec = InputSpec(ndim=3)

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        super().build(sequences_shape, initial_state_shape)
        axis = getattr(self.cell, "channel_axis", -1)
        self.input_spec = InputSpec(ndim=len(sequences_shape), axes={axis: sequences_shape[axis]}, fixed_by=self.cell.kernel)

    def get_config(self) -> dict[str, Any]:
        config, cell = super().get_config(), self.cell.get_config()
        del config["cell"]
        return config | {
            name: value for name, value in cell.items() if name not in {"name", "trainable", "dtype", *self._not_described}
        }


class SimpleRNN(CellLayer, described=True):
    """h_t = activation(x_t W + h_{t-1} U + b), repeated along the series.

    Args:
        units, activation, use_bias: as in `SimpleRNNCell`, all of whose arguments may be given by name.
        options: those of `RNN`, such as `return_sequences`, and of `Layer`.

    Shapes: input (batch, steps, features), output (batch, units), or (batch, steps, units) with return_sequences.

    >>> tf.keras.layers.SimpleRNN(4)(tf.ones([2, 5, 3])).shape
    TensorShape([2, 4])
    """

    cell_class = SimpleRNNCell

    def __init__(
        self, units: int, activation: str | Callable[..., Any] | None = "tanh", use_bias: bool = True, **options: Any
    ) -> None:
        super().__init__(units, activation, use_bias, **options)


class GatedLayer(CellLayer, described=True):
    """Base of layers whose cell has gates."""

    def __init__(
        self,
        units: int,
        activation: str | Callable[..., Any] | None = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, **options)


class GRU(GatedLayer, described=True):
    """A gated recurrent unit, repeated along the series.

    Args:
        units, activation, recurrent_activation, use_bias: as in `GRUCell`, all of whose arguments may be given by name.
        options: those of `RNN`, such as `return_sequences`, and of `Layer`.

    Shapes: input (batch, steps, features), output (batch, units), or (batch, steps, units) with return_sequences.

    Source: Cho et al. (2014).

    >>> tf.keras.layers.GRU(4, return_sequences=True)(tf.ones([2, 5, 3])).shape
    TensorShape([2, 5, 4])
    """

    cell_class = GRUCell


class LSTM(GatedLayer, described=True):
    """A cell with a memory, repeated along the series.

    Args:
        units, activation, recurrent_activation, use_bias: as in `LSTMCell`, all of whose arguments may be given by name.
        options: those of `RNN`, such as `return_sequences`, and of `Layer`.

    Shapes: input (batch, steps, features), output (batch, units), or (batch, steps, units) with return_sequences; with
    return_state the states h and c (batch, units) behind it.

    Source: Hochreiter and Schmidhuber (1997).

    >>> output, h, c = tf.keras.layers.LSTM(4, return_state=True)(tf.ones([2, 5, 3]))
    >>> output.shape, c.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))
    """

    cell_class = LSTMCell


class ConvLSTMCell(LSTMCell, described=True):
    """The step of `ConvLSTM2D`: an LSTMCell whose products are convolutions; that of the states keeps their places."""

    may_be_causal = False

    def __init__(
        self,
        rank: Kept[int],
        filters: Positive,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: Padding = "valid",
        data_format: DataFormat = None,
        dilation_rate: PerAxis = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(filters, activation, recurrent_activation, use_bias, implementation=1, **options)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(f"ConvLSTM: strides={self.strides} and dilation_rate={self.dilation_rate} cannot both exceed 1.")
        self.channel_axis = -1 - rank if self.data_format == "channels_first" else -1
        self.input_spec = InputSpec(ndim=rank + 2)
        self.state_size = -1

    def build(self, input_shape: ShapeLike) -> None:
        if None in input_shape[1:]:
            raise ShapeError(f"{called(self)} needs known sizes but for batch and steps, found {input_shape}.")
        self._step_shape = tuple(input_shape[1:])
        super().build(input_shape)

    def kernel_shapes(self, input_shape: ShapeLike, width: int) -> tuple[tuple[int, ...], ...]:
        return tuple((*self.kernel_size, n, width) for n in (input_shape[self.channel_axis], self.filters))

    def get_initial_state(self, batch_size: Any = None) -> list[Tensor]:
        shape = self.compute_output_shape((batch_size, *self._step_shape))
        return [zeros(shape, self.compute_dtype) for _ in range(2)]

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, *places, filters), or with the filters first."""
        return WindowGeometry.of(self).output_shape(self, input_shape, self.filters)

    def product(self, x: Tensor, kernel: Tensor, bias: Any) -> Tensor:
        y = functions.convolution(x, kernel, self.strides, self.padding.upper(), self.data_format, self.dilation_rate)
        if bias is None:
            return y
        return y + (reshape(bias, (-1, *(1,) * self.rank)) if self.data_format == "channels_first" else bias)

    def recurrent_product(self, x: Tensor, kernel: Tensor, bias: Any) -> Tensor:
        return functions.convolution(x, kernel, (1,) * self.rank, "SAME", self.data_format)


class ConvLSTM(CellLayer, described=True):
    """Base of LSTMs over images, with the arguments of `ConvLSTM2D`."""

    cell_class = ConvLSTMCell
    _not_described = ("rank", "units")
    rank: int

    def __init_subclass__(cls, rank: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if rank is not None:
            cls.rank = rank

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: int | Sequence[int] = 1,
        **options: Any,
    ) -> None:
        super().__init__(self.rank, filters, kernel_size, strides, padding, data_format, dilation_rate, **options)
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        found = super().compute_mask(inputs, mask)
        return [found[0], None, None] if self.return_state else found


class ConvLSTM1D(ConvLSTM, described=True, rank=1):
    """An LSTM over series of rows of features, whose products are convolutions along them. Arguments as in `ConvLSTM2D`.

    >>> tf.keras.layers.ConvLSTM1D(4, 3)(tf.ones([2, 5, 8, 1])).shape
    TensorShape([2, 6, 4])
    """


class ConvLSTM2D(ConvLSTM, described=True, rank=2):
    """An LSTM over series of images, whose products are convolutions.

    Args:
        filters, kernel_size, strides, padding, data_format, dilation_rate: of the convolution of the inputs, as in `Conv2D`;
            that of the states has the same kernel size, and keeps their places.
        options: the other arguments of `LSTM`.

    Shapes: input (batch, steps, height, width, channels), output (batch, places, places, filters), with the steps behind the
    batch if return_sequences.

    Source: Shi et al. (2015), section 3.1.

    >>> layer = tf.keras.layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)
    >>> layer(tf.ones([2, 5, 8, 8, 1])).shape
    TensorShape([2, 5, 8, 8, 4])
    """


class ConvLSTM3D(ConvLSTM, described=True, rank=3):
    """An LSTM over series of volumes, whose products are convolutions. Arguments as in `ConvLSTM2D`.

    >>> tf.keras.layers.ConvLSTM3D(2, 3)(tf.ones([1, 2, 4, 4, 4, 1])).shape
    TensorShape([1, 2, 2, 2, 2])
    """
