"""Recurrent layers with cells of their own: SimpleRNN, GRU, LSTM, and LSTM with convolutions in place of products."""

from __future__ import annotations

import operator
from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions import convolution as functions
from ...functions.creation import zeros
from ...functions.shaping import reshape
from ...module import snake_case
from ..saving.description import constructor_arguments
from .inputs import InputSpec
from .layer import Layer
from .recurrent import RNN
from .recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from .windows import WindowGeometry, check_positive

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
        return config | {name: value for name, value in cell.items() if name not in ("name", "trainable", "dtype")}


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

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True, **options: Any) -> None:
        super().__init__(units, activation, use_bias, **options)


class GatedLayer(CellLayer, described=True):
    """Base of layers whose cell has gates."""

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", use_bias: bool = True, **options: Any
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
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        check_positive(self, filters=filters)
        super().__init__(filters, activation, recurrent_activation, use_bias, implementation=1, **options)
        self.rank, self.filters = rank, filters
        self._geometry = WindowGeometry.checked(self, kernel_size, strides, padding, data_format, dilation_rate)
        self.kernel_size, self.strides, self.padding, self.data_format, self.dilation_rate = self._geometry
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(f"ConvLSTM: strides={self.strides} and dilation_rate={self.dilation_rate} cannot both exceed 1.")
        self.channel_axis = -1 - rank if self.data_format == "channels_first" else -1
        self.input_spec = InputSpec(ndim=rank + 2)
        self.state_size = -1

    def build(self, input_shape: Any) -> None:
        if None in input_shape[1:]:
            raise ShapeError(
                f"Layer '{self.name}' ({type(self).__name__}) needs known sizes but for batch and steps, found {input_shape}."
            )
        self._step_shape = tuple(input_shape[1:])
        super().build(input_shape)

    def kernel_shapes(self, input_shape: Any, width: int) -> tuple[tuple[int, ...], ...]:
        return tuple((*self.kernel_size, n, width) for n in (input_shape[self.channel_axis], self.filters))

    def get_initial_state(self, batch_size: Any = None) -> list[Tensor]:
        shape = self.compute_output_shape((batch_size, *self._step_shape))
        return [zeros(shape, self.compute_dtype) for _ in range(2)]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, *places, filters), or with the filters first."""
        return self._geometry.output_shape(self, input_shape, self.filters)

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
    rank: int

    def __init_subclass__(cls, rank: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if rank is not None:
            cls.rank = rank

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        **options: Any,
    ) -> None:
        super().__init__(self.rank, filters, kernel_size, strides, padding, data_format, dilation_rate, **options)
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        found = super().compute_mask(inputs, mask)
        return [found[0], None, None] if self.return_state else found

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name not in ("rank", "units")}


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
