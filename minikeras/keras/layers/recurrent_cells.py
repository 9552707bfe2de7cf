"""The steps of recurrent layers: a simple one, with gates (GRU), and with a memory (LSTM)."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...core.ops.contractions import affine, matrix_product
from ...core.ops.shaping import split_along
from ...distribute.replica import part_of_draw
from ...functions import nn
from ...functions.creation import zeros
from ...functions.shaping import concat
from .. import activations, initializers
from ..random import SeedGenerator
from . import layer_weights
from .layer import Layer
from .layer_weights import activated, without_absent
from .windows import check_positive


class Cell(Layer, described=True):
    """Base of cells: x W + b and h U, for all gates at once.

    In training, what dropout lets through is drawn once and kept until `reset_masks`, so that it is the same in each step: one
    mask for all gates, or one for each if there is recurrent dropout or `implementation=1`.
    """

    gates = 1
    channel_axis = -1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        implementation = options.pop("implementation", 2)
        super().__init__(**without_absent(self, options))
        check_positive(self, units=units)
        self.units, self.use_bias = units, bool(use_bias)
        self.activation = activations.get(activation)
        layer_weights.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        layer_weights.keep(self, "recurrent", recurrent_initializer, recurrent_regularizer, recurrent_constraint)
        layer_weights.keep(self, "bias", bias_initializer, bias_regularizer, bias_constraint)
        self.dropout, self.recurrent_dropout = (min(1.0, max(0.0, rate)) for rate in (dropout, recurrent_dropout))
        self._masks_of_gates = implementation == 1 or self.recurrent_dropout > 0.0
        self.seed, self.seed_generator = seed, SeedGenerator(seed)
        self.state_size: Any = units
        self.output_size = units
        self.kernel: Any = None
        self.recurrent_kernel: Any = None
        self.bias: Any = None
        self.reset_masks()

    def build(self, input_shape: Any) -> None:
        width = self.units * self.gates
        shape, recurrent_shape = self.kernel_shapes(input_shape, width)
        self.kernel = layer_weights.add(self, "kernel", shape)
        self.recurrent_kernel = layer_weights.add(self, "recurrent", recurrent_shape, name="recurrent_kernel")
        if self.use_bias:
            self.bias = self.make_bias(width)

    def kernel_shapes(self, input_shape: Any, width: int) -> tuple[tuple[int, ...], ...]:
        """The shapes of both kernels."""
        return (input_shape[-1], width), (self.units, width)

    def make_bias(self, width: int) -> Any:
        """The weight that is added."""
        return layer_weights.add(self, "bias", (width,))

    def get_initial_state(self, batch_size: Any = None) -> list[Tensor]:
        """Zeros."""
        sizes = self.state_size if isinstance(self.state_size, list) else [self.state_size]
        return [zeros((batch_size, size), self.compute_dtype) for size in sizes]

    # Dropout ---------------------------------------------------------------------------------------------------------------

    def draw_masks(self, input_shape: tuple[Any, ...], state: Tensor) -> None:
        """Draw what dropout lets through of the inputs and of a state, for the steps until `reset_masks`."""
        for name, rate, shape in (
            ("_input_masks", self.dropout, input_shape),
            ("_state_masks", self.recurrent_dropout, tuple(state.shape)),
        ):
            if 0.0 < rate < 1.0 and self.__dict__[name] is None:
                count = self.gates if self._masks_of_gates else 1
                keys, part = self.seed_generator.key, part_of_draw(shape)
                self.__dict__[name] = [nn.dropout_mask(keys, shape, rate, state, **part) for _ in range(count)]

    def reset_masks(self) -> None:
        """Have the next step in training draw anew."""
        self.__dict__.update(_input_masks=None, _state_masks=None)

    def masks(self, inputs: Tensor, state: Tensor, training: bool | None) -> tuple[Any, Any]:
        """The masks of inputs and state; None for none."""
        if not training:
            return None, None
        self.draw_masks(tuple(inputs.shape), state)
        return self.__dict__["_input_masks"], self.__dict__["_state_masks"]

    # Products --------------------------------------------------------------------------------------------------------------

    def of_inputs(self, inputs: Tensor, masks: Any) -> Tensor:
        """x W + b, which does not depend on what is carried."""
        return self._masked(self.product, inputs, self.kernel.read_value(), self.input_bias(), masks)

    def of_state(self, state: Tensor, masks: Any, kernel: Any = None, bias: Any = None) -> Tensor:
        """h U, with the whole recurrent kernel unless another one is given."""
        kernel = self.recurrent_kernel.read_value() if kernel is None else kernel
        return self._masked(self.recurrent_product, state, kernel, bias, masks)

    def input_bias(self) -> Any:
        """The bias that is added to the product of the inputs, or None."""
        return None if self.bias is None else self.bias.read_value()

    def product(self, x: Tensor, kernel: Tensor, bias: Any) -> Tensor:
        """The product of a step of the inputs."""
        return matrix_product(x, kernel) if bias is None else affine(x, kernel, bias)

    def recurrent_product(self, x: Tensor, kernel: Tensor, bias: Any) -> Tensor:
        """The product of a state."""
        return self.product(x, kernel, bias)

    def _masked(self, product: Any, x: Tensor, kernel: Tensor, bias: Any, masks: Any) -> Tensor:
        if masks is None or len(masks) == 1:
            return product(x if masks is None else x * masks[0], kernel, bias)
        kernels = split_along(kernel, sizes=(self.units,) * len(masks), axis=-1)
        biases = [None] * len(masks) if bias is None else split_along(bias, sizes=(self.units,) * len(masks), axis=-1)
        parts = zip(masks, kernels, biases, strict=True)
        return concat([product(x * mask, part, own) for mask, part, own in parts], self.channel_axis)

    def parts(self, y: Tensor, *counts: int) -> tuple[Tensor, ...]:
        """The gates, or groups of so many of them."""
        found: tuple[Tensor, ...] = split_along(y, sizes=tuple(n * self.units for n in counts), axis=self.channel_axis)
        return found


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
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    The call takes inputs (batch, features) and the states, and gives the output and the next states.

    >>> cell = tf.keras.layers.SimpleRNNCell(3)
    >>> output, states = cell(tf.ones([2, 4]), [tf.zeros([2, 3])])
    >>> output.shape, len(states)
    (TensorShape([2, 3]), 1)
    """

    def call(self, sequence: Tensor, states: Any, training: bool | None = False) -> tuple[Tensor, Any]:
        nested = isinstance(states, (list, tuple))
        h = states[0] if nested else states
        of_inputs, of_state = self.masks(sequence, h, training)
        h = activated(self, self.of_inputs(sequence, of_inputs) + self.of_state(h, of_state))
        return h, [h] if nested else h


class GatedCell(Cell, described=True):
    """Base of cells with gates, whose activation is another one."""

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", use_bias: bool = True, **options: Any
    ) -> None:
        super().__init__(units, activation, use_bias, **options)
        self.recurrent_activation = activations.get(recurrent_activation)


class GRUCell(GatedCell, described=True):
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
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        reset_after: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, **options)
        self.reset_after = bool(reset_after)

    def make_bias(self, width: int) -> Any:
        return layer_weights.add(self, "bias", (2, width) if self.reset_after else (width,))

    def input_bias(self) -> Any:
        bias = super().input_bias()
        return bias[0] if bias is not None and self.reset_after else bias

    def call(self, inputs: Tensor, states: Any, training: bool | None = False) -> tuple[Tensor, Any]:
        nested = isinstance(states, (list, tuple))
        h = states[0] if nested else states
        of_inputs, of_state = self.masks(inputs, h, training)
        x_gates, x = self.parts(self.of_inputs(inputs, of_inputs), 2, 1)
        if self.reset_after:
            bias = None if self.bias is None else self.bias.read_value()[1]
            h_gates, inner = self.parts(self.of_state(h, of_state, bias=bias), 2, 1)
            z, r = map(self.recurrent_activation, self.parts(x_gates + h_gates, 1, 1))
            candidate = activated(self, x + r * inner)
        else:
            for_gates, kernel = split_along(self.recurrent_kernel.read_value(), sizes=(2 * self.units, self.units), axis=-1)
            masks = [None if of_state is None else part for part in ((of_state or [])[:2], (of_state or [])[2:])]
            z, r = map(self.recurrent_activation, self.parts(x_gates + self.of_state(h, masks[0], for_gates), 1, 1))
            candidate = activated(self, x + self.of_state(r * h, masks[1], kernel))
        h = z * h + (1.0 - z) * candidate
        return h, [h] if nested else h


class LSTMCell(GatedCell, described=True):
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
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        unit_forget_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, **options)
        self.unit_forget_bias = bool(unit_forget_bias)
        self.state_size = [units, units]

    def make_bias(self, width: int) -> Any:
        if not self.unit_forget_bias:
            return super().make_bias(width)
        first, n = initializers.get(self.bias_initializer), self.units

        def start(shape: Any, dtype: Any = None) -> Tensor:
            return concat([first((n,), dtype=dtype), initializers.Ones()((n,), dtype=dtype), first((2 * n,), dtype=dtype)], 0)

        return self.add_weight((width,), start, regularizer=self.bias_regularizer, constraint=self.bias_constraint, name="bias")

    def call(self, inputs: Tensor, states: Any, training: bool | None = False) -> tuple[Tensor, Any]:
        h, c = states
        of_inputs, of_state = self.masks(inputs, h, training)
        z = self.of_inputs(inputs, of_inputs) + self.of_state(h, of_state)
        i, f, candidate, o = self.parts(z, 1, 1, 1, 1)
        opened = self.recurrent_activation
        c = opened(f) * c + opened(i) * activated(self, candidate)
        h = opened(o) * activated(self, c)
        return h, [h, c]
