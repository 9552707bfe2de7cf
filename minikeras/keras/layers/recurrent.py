"""Loops over the steps of a series: a cell as a layer, cells in turn, and both directions at once; and the base of cells."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Annotated, Any

from ... import nest
from ...core import Tensor, convert_to_tensor, is_in_step
from ...core.ops.contractions import affine, matrix_product
from ...core.ops.shaping import split_along
from ...errors import ShapeError
from ...functions import cast, concat, nn, reshape, reverse, transpose, where, zeros, zeros_like
from ...nn_ops.loop_body import Unrepeatable
from ...nn_ops.scan import scan
from ...types import ShapeLike, TensorLike
from ..random import SeedGenerator
from ..saving.objects import described_kind, deserialize_keras_object, serialize_keras_object
from ..weight import CarriedState
from .inputs import InputSpec, called, unmarked
from .layer import Layer
from .layer_weights import zero_inputs
from .options import ActivationLike, Constraint, Flag, Initializer, Kept, Positive, Regularizer, one_of
from .wrappers import LayerOfLayers


def _swapped(x: TensorLike) -> Any:
    return transpose(x, [1, 0, *range(2, x.ndim)])


def _chosen(keep: Tensor, new: Tensor, old: Any) -> Tensor:
    """A value where a step counts, the earlier one elsewhere."""
    return where(reshape(keep, (*keep.shape, *(1,) * (new.ndim - keep.ndim))), new, old)


def _called(cell: Any, inputs: Tensor, states: TensorLike, training: bool | None) -> tuple[Tensor, Any]:
    named = {"training": training} if isinstance(cell, Layer) and cell.call_spec.takes_training else {}
    output, following = (cell if callable(cell) else cell.call)(inputs, states, **named)
    return output, following


def _checked(cell: Any) -> Any:
    for name in ("call", "state_size"):
        if not hasattr(cell, name):
            raise ValueError(f"The RNN cell should have a `{name}` (see help(keras.layers.RNN)). Received: {cell!r:.100}.")
    return cell


def _size_of_output(cell: Any) -> Any:
    found = getattr(cell, "output_size", None)
    return nest.flatten(cell.state_size)[0] if found is None else found


def _build(cell: object, input_shape: ShapeLike) -> None:
    """Build a cell that is a layer; one whose layers are built by calls is called on zeros, as the layers in it are."""
    if isinstance(cell, Layer) and not cell.built:
        if type(cell).build is Layer.build:
            zero = zero_inputs(input_shape, cell.compute_dtype)
            _called(cell, zero, _first_states(cell, zero.shape[0], cell.compute_dtype), False)
        else:
            cell.build(input_shape)


def _first_states(cell: Any, batch_size: Any, dtype: str) -> Any:
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(batch_size=batch_size)
    return nest.map_structure(lambda size: zeros((batch_size, size), dtype), cell.state_size)


class Cell(Layer, described=True):
    """Base of cells: x W + b and h U, for all gates at once.

    In training, what dropout lets through is drawn once and kept until `reset_masks`, so that it is the same in each step: one
    mask for all gates, or one for each if there is recurrent dropout or `implementation=1`.
    """

    gates = 1
    channel_axis = -1
    units: int
    use_bias: bool
    activation: Callable[..., Any]

    def __init__(
        self,
        units: Positive,
        activation: ActivationLike = "tanh",
        use_bias: Flag = True,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        recurrent_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: Kept[int | None] = None,
        **options: Any,
    ) -> None:
        implementation = options.pop("implementation", 2)
        super().__init__(**options)
        self.dropout, self.recurrent_dropout = (min(1.0, max(0.0, rate)) for rate in (dropout, recurrent_dropout))
        self._masks_of_gates = implementation == 1 or self.recurrent_dropout > 0.0
        self.seed_generator = SeedGenerator(seed)
        self.state_size: Any = units
        self.output_size = units
        self.reset_masks()

    def build(self, input_shape: ShapeLike) -> None:
        width = self.units * self.gates
        shape, recurrent_shape = self.kernel_shapes(input_shape, width)
        self.kernel = self._add_kept("kernel", shape)
        self.recurrent_kernel = self._add_kept("recurrent", recurrent_shape, name="recurrent_kernel")
        self.bias: Any = self.make_bias(width) if self.use_bias else None

    def kernel_shapes(self, input_shape: ShapeLike, width: int) -> tuple[tuple[int, ...], ...]:
        """The shapes of both kernels."""
        return (input_shape[-1], width), (self.units, width)

    def make_bias(self, width: int) -> Any:
        """The weight that is added."""
        return self._add_kept("bias", (width,))

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
                keys, sizes = self.seed_generator.key, (None, *shape[1:])
                self.__dict__[name] = [nn.dropout_mask(keys, sizes, rate, state) for _ in range(count)]

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
        return self.bias.read_value() if self.use_bias else None

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


class StackedRNNCells(LayerOfLayers, described=True):
    """Several cells in turn as one: each gets the output of the one before it.

    Args:
        cells: a list of cells.

    The states are a list with the states of each cell.

    >>> cells = [tf.keras.layers.LSTMCell(4), tf.keras.layers.GRUCell(3)]
    >>> tf.keras.layers.RNN(tf.keras.layers.StackedRNNCells(cells))(tf.ones([2, 5, 1])).shape
    TensorShape([2, 3])
    """

    _made_of = ("cells",)

    def __init__(self, cells: Any, **options: Any) -> None:
        super().__init__(**options)
        self.cells = [_checked(cell) for cell in cells]

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the states of each cell."""
        return [cell.state_size for cell in self.cells]

    output_size = property(lambda self: _size_of_output(self.cells[-1]), doc="The size of the last cell's output.")

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """The first states of each cell."""
        return [_first_states(cell, batch_size, self.compute_dtype) for cell in self.cells]

    def call(self, inputs: Tensor, states: TensorLike, training: bool | None = False) -> tuple[Tensor, Any]:
        following = []
        for cell, own in zip(self.cells, states, strict=True):
            nested = isinstance(own, (list, tuple))
            inputs, after = _called(cell, inputs, list(own) if nested else [own], training)
            after = after if isinstance(after, (list, tuple)) else [after]
            following.append(list(after) if nested else after[0])
        return inputs, following if len(following) > 1 else following[0]

    def build(self, input_shape: ShapeLike) -> None:
        for cell in self.cells:
            _build(cell, input_shape)
            input_shape = (input_shape[0], _size_of_output(cell))


class RNN(LayerOfLayers, described=True, takes_one_tensor=True, gives_floats=True):
    """A cell repeated along the second axis of its inputs: output, states = cell(x_t, states).

    Args:
        cell: a layer, or any object, with `call(inputs, states)` that gives the output and the next states, and a
            `state_size`, an int or a list of them; it may have an `output_size` and a `get_initial_state(batch_size=)`. A
            list of cells is taken in turn.
        return_sequences: whether to give the outputs of all steps, or that of the last one.
        return_state: whether to give the last states behind the output.
        go_backwards: whether to begin with the last step; outputs are in the order in which they are computed.
        stateful: whether a batch begins with the states in which the one before it ended; the batch size must be fixed.
        unroll: accepted for compatibility, ignored.
        zero_output_for_mask: whether the outputs of steps that are left out are 0, instead of those of the step before.
        options: `name`, `dtype`, `trainable`, `activity_regularizer`, as in `Layer`.

    The call takes the series, `initial_state` (a tensor or a list, zeros by default) and `mask` (batch, steps): where it is
    false states stay as they are.

    Shapes: input (batch, steps, ...), output (batch, steps, units) or (batch, units), states (batch, units).

    The step is recorded once and repeated without Python code; products of the inputs are computed for all steps at once. A
    cell that draws random numbers, assigns Variables or asks for values in its `call` runs step by step.

    >>> class Sum(tf.keras.layers.Layer):
    ...     state_size = 1
    ...     def call(self, inputs, states):
    ...         total = states[0] + inputs
    ...         return total, [total]
    >>> print(tf.keras.layers.RNN(Sum(), return_sequences=True)(tf.constant([[[1.0], [2.0], [3.0]]])).numpy().ravel())
    [1. 3. 6.]
    """

    _made_of = ("cell",)

    def __init__(
        self,
        cell: Any,
        return_sequences: Flag = False,
        return_state: Flag = False,
        go_backwards: Flag = False,
        stateful: Flag = False,
        unroll: Flag = False,
        zero_output_for_mask: Flag = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else _checked(cell)
        sizes = self.cell.state_size
        if not isinstance(sizes, (list, tuple, int)):
            raise ValueError(f"{type(self).__name__}: `state_size` must be an integer or a list of them, found {sizes!r}.")
        self.state_size = [sizes] if isinstance(sizes, int) else list(sizes)
        self.states: Any = None
        self.input_spec = InputSpec(min_ndim=3)

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        _build(self.cell, (sequences_shape[0], *sequences_shape[2:]))
        if self.stateful and self.states is None:
            if sequences_shape[0] is None:
                raise ValueError(
                    f"Layer '{self.name}': with `stateful=True` the batch size must be fixed, found shape "
                    f"{tuple(sequences_shape)}. Give Input(batch_shape=...)."
                )
            self.states = nest.map_structure(
                lambda value: CarriedState(
                    cast(value, self.variable_dtype), trainable=False, name="rnn_state", path=f"{self.path}/rnn_state"
                ),
                self.get_initial_state(sequences_shape[0]),
            )

    def get_initial_state(self, batch_size: Any) -> list[Any]:
        """The states before the first step: the cell's, zeros by default."""
        found = _first_states(self.cell, batch_size, getattr(self.cell, "compute_dtype", self.compute_dtype))
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def reset_state(self) -> None:
        """Have a stateful layer begin with zeros again."""
        for state in nest.flatten(self.states) if self.states is not None else ():
            state.assign(zeros_like(state))

    reset_states = reset_state

    def call(
        self, sequences: Tensor, initial_state: TensorLike = None, mask: TensorLike = None, training: bool | None = False
    ) -> Any:
        if not sequences.shape[1]:
            raise ShapeError(f"{called(self)}: the series has no steps: {sequences.shape}.")
        if self.stateful and sequences.shape[0] != (expected := nest.flatten(self.states)[0].shape[0]):
            raise ValueError(
                f"Layer '{self.name}' is stateful, so each batch must have {expected} rows as the first one, found "
                f"{sequences.shape[0]}."
            )
        first = self.states if self.stateful else self.get_initial_state(sequences.shape[0])
        given = first if initial_state is None else initial_state
        states = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(states) != len(first):
            raise ValueError(f"{called(self)}: `initial_state` must be {len(first)} tensors, found {len(states)}.")
        kind = getattr(self.cell, "compute_dtype", self.compute_dtype)
        states = nest.map_structure(lambda x: cast(convert_to_tensor(x), kind), states)
        inputs = sequences if sequences.dtype.is_floating else cast(sequences, self.compute_dtype)
        own, width = (states if self._is_stack else [states]), (inputs.shape[0], *inputs.shape[2:])
        try:
            for cell, state in zip(self._cells, own, strict=True):
                if training and isinstance(cell, Cell):
                    cell.draw_masks(width, nest.flatten(state)[0])
                width = (inputs.shape[0], _size_of_output(cell))
            output, states = self._repeated(inputs, states, None if mask is None else nest.flatten(mask)[0], training)
        finally:
            for cell in self.collect_contents().sublayers if training else ():
                if isinstance(cell, Cell):
                    cell.reset_masks()
        states = nest.map_structure(lambda x: cast(x, self.compute_dtype), states)
        output = cast(output, self.compute_dtype)
        if self.stateful:
            for own, state in zip(nest.flatten(self.states), nest.flatten(states), strict=True):
                own.assign(cast(state, own.dtype))
        return (output, *states) if self.return_state else output

    _is_stack = property(lambda self: isinstance(self.cell, StackedRNNCells))
    _cells = property(lambda self: self.cell.cells if self._is_stack else [self.cell])

    def _repeated(self, inputs: Tensor, states: TensorLike, mask: TensorLike, training: bool | None) -> tuple[Tensor, Any]:
        """The outputs of all steps or the last one, and the last states."""
        first: list[Any] = nest.flatten(states)
        count = len(first)
        known = all(isinstance(cell, Cell) and type(cell).call is described_kind(type(cell)).call for cell in self._cells)
        place = None if not known else len(nest.flatten(states[:-1])) if self._is_stack else 0  # of the output among the states
        sliced = [_swapped(inputs)]
        if mask is not None:
            sliced.append(_swapped(cast(convert_to_tensor(mask), "bool")))
            if place is None:  # what is repeated where a step is left out, zeros at first
                size = _size_of_output(self.cell)
                sizes = tuple(size) if isinstance(size, (list, tuple)) else (size,)
                first.append(zeros((inputs.shape[0], *sizes), self.compute_dtype))
        zeroed = mask is not None and self.zero_output_for_mask
        all_rows = self.return_sequences or place is None or zeroed

        def step(carried: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
            with self._without_losses():
                output, following = _called(self.cell, slices[0], nest.pack(states, carried[:count]), training)
            after = nest.flatten(following)
            if mask is not None:
                after = [_chosen(slices[1], new, old) for new, old in zip(after, carried, strict=False)]
                chosen = after[place] if place is not None else _chosen(slices[1], output, carried[-1])
                after += [chosen] if place is None else []
                output = _chosen(slices[1], output, zeros_like(output)) if zeroed else chosen
            return after, [output] if all_rows else []

        last, rows = scan(step, first, sliced, inputs.shape[1], self.go_backwards, trusted=place is not None)
        states = nest.pack(states, last[:count])
        if not all_rows:
            return last[place or 0], states
        if not self.return_sequences:
            return rows[0][0 if self.go_backwards else -1], states
        return _swapped(reverse(rows[0], [0]) if self.go_backwards else rows[0]), states

    @contextlib.contextmanager
    def _without_losses(self) -> Iterator[None]:
        """Within the block a cell must not add losses, which would differ from step to step: else the step is not recorded."""
        layers = [self.cell, *self.cell.collect_contents().sublayers] if isinstance(self.cell, Layer) else []
        counts = [len(one.added_losses) for one in layers]
        yield
        if is_in_step() and [len(one.added_losses) for one in layers] != counts:
            for one, count in zip(layers, counts, strict=True):
                del one.added_losses[count:]
            raise Unrepeatable("a cell adds losses")

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """The mask of the series, if the output is a series."""
        mask = nest.flatten(mask)[0] if self.return_sequences and mask is not None else None
        return [mask, *(None for _ in self.state_size)] if self.return_state else mask


MergeMode = Annotated[str | None, one_of("sum", "mul", "ave", "concat", None)]


class Bidirectional(LayerOfLayers, described=True, takes_one_tensor=True, gives_floats=True):
    """A recurrent layer on a series and, as another layer, on the series from its end; the outputs are merged.

    Args:
        layer: a layer such as RNN, LSTM or GRU, or one with its attributes; it is copied for the forward direction.
        merge_mode: 'concat' along the last axis, 'sum', 'mul', 'ave', or None for both outputs.
        weights: first values, those of the forward layer and then those of the backward one.
        backward_layer: the layer for the other direction; a copy with `go_backwards` turned round by default.

    The call is that of the layer; `initial_state` holds the states of the forward layer and then those of the backward one,
    and so do the states that are returned. Outputs of steps that are left out are 0.

    >>> layer = tf.keras.layers.Bidirectional(tf.keras.layers.GRU(3, return_sequences=True))
    >>> layer(tf.ones([2, 5, 1])).shape
    TensorShape([2, 5, 6])
    """

    _made_of = ("layer", "backward_layer")

    def __init__(
        self, layer: Any, merge_mode: MergeMode = "concat", weights: Any = None, backward_layer: Any = None, **options: Any
    ) -> None:
        for name, one in (("layer", layer), ("backward_layer", backward_layer)):
            if (one is not None or name == "layer") and not (isinstance(one, Layer) and hasattr(one, "go_backwards")):
                raise ValueError(f"Bidirectional: `{name}` must be a layer such as keras.layers.LSTM, found {one!r:.80}.")
        super().__init__(**options)
        self.forward_layer = _copied(layer, "forward_")
        self.backward_layer = _copied(layer, "backward_", go_backwards=True) if backward_layer is None else backward_layer
        both = self.forward_layer, self.backward_layer
        if both[0].go_backwards == both[1].go_backwards:
            raise ValueError("Bidirectional: forward layer and backward layer should have different `go_backwards` value.")
        for name in ("stateful", "return_sequences", "return_state"):
            if getattr(both[0], name) != getattr(both[1], name):
                raise ValueError(f"Bidirectional: forward layer and backward layer need the same `{name}`.")
        for one in both:
            if getattr(one, "zero_output_for_mask", None) is not None:
                one.zero_output_for_mask = one.return_sequences
        self.stateful, self.return_sequences = layer.stateful, layer.return_sequences
        self.return_state, self.input_spec = layer.return_state, layer.input_spec
        self._first_weights = weights

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
        if self._first_weights:
            self.set_weights(self._first_weights)

    def call(
        self, sequences: Tensor, initial_state: TensorLike = None, mask: TensorLike = None, training: bool | None = None
    ) -> Any:
        half = 0 if initial_state is None else len(initial_state) // 2
        halves = (None, None) if initial_state is None else (initial_state[:half], initial_state[half:])
        found = []
        for layer, state in zip((self.forward_layer, self.backward_layer), halves, strict=True):
            named = {"training": training} if layer.call_spec.takes_training else {}
            named |= {"mask": mask} if layer.call_spec.takes_mask and mask is not None else {}
            found.append(layer(unmarked(sequences), **named, **({} if state is None else {"initial_state": state})))
        y, back = [cast(one[0] if self.return_state else one, self.compute_dtype) for one in found]
        if self.return_sequences:
            back = reverse(back, [1])
        merged = (y, back) if self.merge_mode is None else (_MERGED[self.merge_mode](y, back),)
        states = (*found[0][1:], *found[1][1:]) if self.return_state else ()
        return (*merged, *states) if len(merged) + len(states) > 1 else merged[0]

    def reset_state(self) -> None:
        """Have both layers begin with zeros again."""
        if not self.stateful:
            raise AttributeError(f"Layer '{self.name}' must be stateful.")
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    @property
    def states(self) -> Any:
        """The states of both layers, None if they are not stateful."""
        both = self.forward_layer.states, self.backward_layer.states
        return None if None in both else (*both[0], *both[1])

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """The mask of the series for each output that is a series."""
        mask = nest.flatten(mask)[0] if self.return_sequences and mask is not None else None
        outputs = (mask, mask) if self.merge_mode is None else (mask,)
        return outputs if len(outputs) > 1 or self.return_state else mask

    layer = property(attrgetter("forward_layer"), doc="The forward layer.")


_MERGED: dict[Any, Callable[[Any, Any], Any]] = {
    "concat": lambda y, back: concat([y, back], -1),
    "sum": lambda y, back: y + back,
    "ave": lambda y, back: (y + back) / 2.0,
    "mul": lambda y, back: y * back,
}


def _copied(layer: Any, prefix: str, **changes: Any) -> Any:
    """A new layer like another one, with a name that begins so."""
    config = copy.deepcopy(serialize_keras_object(layer))
    config.pop("build_config", None)
    name = layer.name.removeprefix(prefix)
    config["config"] |= {**changes, "name": f"{prefix}{name}"}
    made = deserialize_keras_object(config)
    label = f"{prefix}{layer._layer_place.label}"  # without the number that a process counts up
    made._layer_place = made._layer_place._replace(label=label)
    if hasattr(layer, "use_cudnn"):  # which no configuration holds
        made.use_cudnn = layer.use_cudnn
    return made
