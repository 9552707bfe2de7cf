"""InputLayer and Input, the entrance of a model; Dense, Identity, Masking; EinsumDense: a Dense layer over any axes, as an
equation says; Embedding: a table whose rows stand for integers; ReversibleEmbedding, which leads back to them.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core import Tensor, warn_caller
from ...core.ops.contractions import affine, matrix_product
from ...core.ops.shaping import reshape
from ...errors import ShapeError
from ...functions import cast, einsum, gather, matmul, not_equal, ones_like, reduce_any, tanh, tensor
from ...functions.catalogue import takes_symbols
from ...nn_ops.nn import masked_fill
from ...types import DTypeLike, ShapeLike, TensorLike, as_dtype
from .. import initializers
from ..config import floatx
from ..symbolic import KerasTensor, Node, Spec, nodes_of
from .inputs import InputSpec, attach, called, called_on_none
from .layer import Layer
from .layer_weights import activated
from .options import ActivationLike, Constraint, Flag, Initializer, Kept, Positive, Regularizer


class SameShape(Layer, takes_one_tensor=True):
    """Base of layers whose output has the shape of their input, and its mask."""

    supports_masking = True

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The input's."""
        return tuple(input_shape)


class Dense(Layer, described=True, takes_one_tensor=True, gives_floats=True):
    """A fully connected layer: activation(x @ kernel + bias).

    Args:
        units: number of outputs, a positive int.
        activation: by name or as a function of a Tensor; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: first values, by name or object.
        kernel_regularizer, bias_regularizer, activity_regularizer: penalties added to the losses.
        kernel_constraint, bias_constraint: projections after each step.

    Shapes: input (batch, ..., features), output (batch, ..., units); kernel (features, units), bias (units,).

    Raises:
        ValueError: if `units` is no positive int.
        ShapeError: if the last axis of an input is not the one it was built for.

    >>> layer = tf.keras.layers.Dense(3, activation="relu")
    >>> layer(tf.ones([2, 4])).shape
    TensorShape([2, 3])
    """

    supports_masking = True
    units: int
    use_bias: bool
    activation: Callable[..., Any]

    def __init__(
        self,
        units: Positive,
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
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: ShapeLike) -> None:
        if not input_shape or input_shape[-1] is None:
            raise ShapeError(f"{called(self)} needs a known number of features, found shape {tuple(input_shape)}.")
        features = input_shape[-1]
        self.kernel = self._add_kept("kernel", (features, self.units))
        self.bias: Any = self._add_kept("bias", (self.units,)) if self.use_bias else None
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features}, fixed_by=self.kernel)

    def call(self, inputs: Tensor) -> Tensor:
        x, shape = inputs, inputs.array.shape
        if x.array.dtype.kind in "iub":
            x = cast(x, dtype=self.compute_dtype)
        if len(shape) != 2:
            x = reshape(x, shape=(math.prod(shape[:-1]), shape[-1]), rank=len(shape))
        kernel = self.kernel.read_value()
        y = affine(x, kernel, self.bias.read_value()) if self.use_bias else matrix_product(x, kernel)
        if len(shape) != 2:
            y = reshape(y, shape=(*shape[:-1], self.units), rank=2)
        return activated(self.activation, y)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, ..., units)."""
        return (*input_shape[:-1], self.units)


class Identity(SameShape, described=True, makes_nothing=True, takes_one_tensor=False):
    """The input as it is.

    >>> print(tf.keras.layers.Identity()([1.0, 2.0]).numpy())
    [1. 2.]
    """

    def call(self, inputs: TensorLike) -> Any:
        return inputs


class Masking(SameShape, described=True, makes_nothing=True):
    """Leave out the steps whose features all equal a value: they become 0, and the layers after it see the mask.

    Args:
        mask_value: what marks a step to be left out.

    Shapes: input (batch, steps, ..., features); the mask lacks the last axis and is true where a step counts.

    >>> y = tf.keras.layers.Masking(mask_value=-1.0)([[[2.0], [-1.0]]])
    >>> y._keras_mask.numpy(), y.numpy().ravel()
    (array([[ True, False]]), array([2., 0.], dtype=float32))
    """

    def __init__(self, mask_value: Kept[TensorLike] = 0.0, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        counts = self._counts(inputs)
        outputs = masked_fill(reduce_any(counts, -1, keepdims=True), inputs)
        attach(reduce_any(counts, -1), outputs)
        return outputs

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """True where some feature is not the value."""
        return takes_symbols(reduce_any)(self._counts(inputs), -1)

    def _counts(self, inputs: TensorLike) -> Tensor:
        """True for features that differ from `mask_value`; integers and bools never equal a value that is not whole."""
        x = inputs if isinstance(inputs, KerasTensor) else tensor(inputs)
        if x.dtype.is_floating:
            return not_equal(x, self.mask_value)
        x = cast(x, dtype="uint8") if x.dtype.is_bool else x
        whole = int(self.mask_value)
        return not_equal(x, whole) if whole == self.mask_value else ones_like(x, dtype="bool")


_EQUATION = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?")


class EquationSizes(NamedTuple):
    """The sizes of an equation for an input: shapes, and the axes of the kernel that count inputs and outputs."""

    kernel: tuple[Any, ...]
    bias: tuple[Any, ...] | None
    output: tuple[Any, ...]
    input_axes: list[int]
    output_axes: list[int]


class EinsumDense(Layer, described=True, takes_one_tensor=True, gives_floats=True):
    """A fully connected layer over any axes: activation(einsum(equation, x, kernel) + bias).

    Args:
        equation: 'ab,bc->ac' with the labels of input, kernel and output; '...' before or behind those of input and output
            stands for axes of any number that stay as they are.
        output_shape: sizes of the labelled axes of the output, without the batch axis if there is no '...' before them; an int
            for one; None for the size that the input has.
        activation: by name or as a function of a Tensor; None for none.
        bias_axes: labels of the output along which a bias is added, such as 'c'; None for no bias.
        kernel_initializer, bias_initializer: first values, by name or object; the axes of the kernel that the equation sums
            over count as inputs.
        kernel_regularizer, bias_regularizer: penalties added to the losses.
        kernel_constraint, bias_constraint: projections after each step.
        options: `name`, `dtype`, `trainable`, `activity_regularizer`, as in `Layer`.

    Raises:
        ValueError: for an equation of another form, or labels that occur nowhere.
        ShapeError: if sizes of input and output_shape contradict each other, or the kernel would need one that is not known.

    >>> layer = tf.keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 5), bias_axes="de")
    >>> layer(tf.ones([7, 3, 4])).shape, layer.kernel.shape, layer.bias.shape
    (TensorShape([7, 3, 2, 5]), TensorShape([4, 2, 5]), TensorShape([2, 5]))
    """

    def __init__(
        self,
        equation: Kept[str],
        output_shape: ShapeLike,
        activation: ActivationLike = None,
        bias_axes: Kept[str | None] = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.partial_output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        if any(size is not None and (not isinstance(size, int) or size < 1) for size in self.partial_output_shape):
            raise ValueError(f"EinsumDense: output_shape must hold positive ints or None, found {output_shape!r}.")
        self._before, self._labels_in, self._labels_of_kernel, self._labels_out = self._parsed()

    def build(self, input_shape: ShapeLike) -> None:
        sizes = self._sizes(tuple(input_shape))
        if None in (*sizes.kernel, *(sizes.bias or ())):
            raise ShapeError(
                f"{called(self)} needs known sizes for its weights, found input shape {tuple(input_shape)} and output_shape "
                f"{self.partial_output_shape} for '{self.equation}'."
            )
        first = self.kernel_initializer
        if isinstance(first, initializers.VarianceScaling) and None in (first.input_axes, first.output_axes):
            first = copy.copy(first)
            first.input_axes, first.output_axes = sizes.input_axes, sizes.output_axes
        penalty, projection = self.kernel_regularizer, self.kernel_constraint
        self.kernel = self.add_weight(sizes.kernel, first, regularizer=penalty, constraint=projection, name="kernel")
        self.bias = None if sizes.bias is None else self._add_kept("bias", sizes.bias)
        self.input_spec = InputSpec(ndim=len(input_shape))

    def call(self, inputs: Tensor) -> Tensor:
        x = inputs if inputs.dtype.is_floating else cast(inputs, dtype=self.compute_dtype)
        y = einsum(self.equation, x, self.kernel)
        return activated(self.activation, y + self.bias if self.bias_axes else y)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The sizes of the labels of the output."""
        return self._sizes(tuple(input_shape)).output

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_shape": self.partial_output_shape}

    # What the equation says -----------------------------------------------------------------------------------------------

    def _parsed(self) -> tuple[bool, str, str, str]:
        """The parsed equation: True if '...' comes before the labels, then the labels of input, kernel and output."""
        found = _EQUATION.fullmatch(self.equation.replace(" ", "")) if isinstance(self.equation, str) else None
        wrong = found is None or (found[1], found[3]) != (found[5], found[7]) or (found[1] and found[3])
        if (
            found is None or wrong or (found[3] and len(found[2]) < 2)
        ):  # the batch axis has a label, or is within the first dots
            raise ValueError(
                f"Invalid einsum equation '{self.equation}'. Equations must be in the form [X],[Y]->[Z], ...[X],[Y]->...[Z], "
                "or [X]...,[Y]->[Z]...."
            )
        x, kernel, y = found[2], found[4], found[6]
        for part, labels, others in (("output", y, x + kernel), ("kernel", kernel, x + y)):
            for label in labels:
                if label not in others:
                    raise ValueError(f"EinsumDense '{self.equation}': label '{label}' of the {part} occurs nowhere else.")
        if self.bias_axes is not None and (not self.bias_axes or not set(self.bias_axes) <= set(y)):
            raise ValueError(f"EinsumDense '{self.equation}': bias_axes '{self.bias_axes}' must be labels of the output '{y}'.")
        return bool(found[1]), x, kernel, y

    def _sizes(self, shape: tuple[Any, ...]) -> EquationSizes:
        x, kernel, y = self._labels_in, self._labels_of_kernel, self._labels_out
        elided = len(shape) - len(x)
        if elided < 0 or (elided and "..." not in self.equation):
            raise ShapeError(f"{called(self)} expected inputs with {len(x)} axes for '{self.equation}', found {shape}.")
        before = shape[:elided] if self._before else ()
        behind = () if self._before else shape[len(x) :]
        sizes = dict(zip(x, shape[len(before) :], strict=False))
        partial = self.partial_output_shape
        stated = partial if before else (shape[0], *partial)
        if len(stated) != len(y):
            raise ShapeError(
                f"{called(self)}: output_shape {partial} must have {len(y) - (not before)} sizes for '{self.equation}' and "
                f"inputs of shape {shape}."
            )
        output = []
        for label, size in zip(y, stated, strict=True):
            if label in sizes and size is not None and sizes[label] != size:
                raise ShapeError(
                    f"Input shape and output shape do not match at shared dimension '{label}' of '{self.equation}': input "
                    f"{shape}, output_shape {partial}."
                )
            output.append(sizes.get(label, size) if size is None else size)
        ends = dict(zip(y, output, strict=True))
        of_kernel = tuple(ends[label] if label in ends else sizes[label] for label in kernel)
        bias = None
        if self.bias_axes is not None:
            first = min(y.index(label) for label in self.bias_axes)
            bias = (*(ends[label] if label in self.bias_axes else 1 for label in y[first:]), *(1 for _ in behind))
        axes: tuple[list[int], list[int]] = ([], [])
        for axis, label in enumerate(kernel):
            axes[label in y].append(axis)
        return EquationSizes(of_kernel, bias, (*before, *output, *behind), *axes)


class Embedding(Layer, described=True, takes_one_tensor=True, gives_floats=True):
    """The row of a table for each integer.

    Args:
        input_dim: number of rows; inputs lie in [0, input_dim).
        output_dim: length of a row.
        embeddings_initializer: first values, evenly distributed in [-0.05, 0.05) by default.
        embeddings_regularizer, embeddings_constraint: as in `Dense`.
        mask_zero: whether 0 stands for no entry; the layers after it then see a mask, true where the input is not 0.
        weights: first values as an array of shape (input_dim, output_dim).

    Shapes: input (batch, ...) of integers, output (batch, ..., output_dim).

    Raises:
        InvalidArgumentError: if an integer is out of range.

    >>> layer = tf.keras.layers.Embedding(3, 2, weights=[[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> print(layer([[2, 1]]).numpy())
    [[[3. 4.]
      [1. 2.]]]
    """

    input_dim: int
    output_dim: int
    mask_zero: bool

    def __init__(
        self,
        input_dim: Positive,
        output_dim: Positive,
        embeddings_initializer: Initializer = "uniform",
        embeddings_regularizer: Regularizer = None,
        embeddings_constraint: Constraint = None,
        mask_zero: Flag = False,
        weights: Any = None,
        **options: Any,
    ) -> None:
        if options.pop("input_length", None) is not None:
            warn_caller("Embedding: input_length is left out, as in Keras: sequences may have any length.")
        autocast = options.pop("autocast", False)  # large integers would not survive half precision
        super().__init__(autocast=autocast, **options)
        self.supports_masking = self.mask_zero
        if weights is not None:
            self.build()
            single = isinstance(weights, list) and len(weights) == 1 and getattr(weights[0], "ndim", 1) == 2
            self.set_weights(weights if single else [weights])

    def build(self, input_shape: ShapeLike = None) -> None:
        self.embeddings = self._add_kept("embeddings", (self.input_dim, self.output_dim), autocast=False)

    def call(self, inputs: Tensor) -> Tensor:
        indices = inputs if inputs.dtype.is_integer else cast(inputs, "int32")
        return cast(gather(self.embeddings, indices), self.compute_dtype)

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """True where the input is not 0, if 0 stands for no entry."""
        return not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """(batch, ..., output_dim)."""
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding, described=True):
    """An Embedding that is called with reverse=True to score each integer: the products of a vector with all rows.

    Args:
        input_dim, output_dim, embeddings_initializer, embeddings_regularizer, embeddings_constraint, mask_zero: as in
            `Embedding`.
        tie_weights: whether both ways use the same table; else `reverse_embeddings` is another weight.
        reverse_dtype: of the products; that of the inputs and the table if None.
        logit_soft_cap: bounds the scores: cap * tanh(score / cap); None for no bound.

    Shapes: input (batch, ...) of integers, output (batch, ..., output_dim); the other way (batch, ..., output_dim) to
    (batch, ..., input_dim).

    Source: Press and Wolf (2017).

    >>> layer = tf.keras.layers.ReversibleEmbedding(3, 2, weights=[[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> print(layer([[1.0, 0.0]], reverse=True).numpy())
    [[0. 1. 3.]]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: Flag = True,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        reverse_dtype: Kept[DTypeLike] = None,
        logit_soft_cap: Kept[float | None] = None,
        **options: Any,
    ) -> None:
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise ValueError(f"ReversibleEmbedding: logit_soft_cap must be positive or None, found {logit_soft_cap!r}.")
        first, penalty, projection = embeddings_initializer, embeddings_regularizer, embeddings_constraint
        super().__init__(input_dim, output_dim, first, penalty, projection, mask_zero, **options)

    def build(self, input_shape: ShapeLike = None) -> None:
        super().build(input_shape)
        if not self.tie_weights:
            shape = (self.output_dim, self.input_dim)
            self.reverse_embeddings = self.add_weight(shape, self.embeddings_initializer, name="reverse_embeddings")

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            y = super().call(inputs)
            attach(super().compute_mask(inputs), y)
            return y
        kernel = self.embeddings if self.tie_weights else self.reverse_embeddings
        dtype = self.reverse_dtype or self.compute_dtype
        scores = matmul(cast(inputs, dtype), cast(kernel, dtype), transpose_b=self.tie_weights)
        return scores if self.logit_soft_cap is None else tanh(scores / self.logit_soft_cap) * self.logit_soft_cap

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """None: `call` itself attaches the mask, on the way from integers only."""
        return None

    def compute_output_shape(self, input_shape: ShapeLike, reverse: bool = False) -> tuple[Any, ...]:
        """(batch, ..., output_dim), or the other way (batch, ..., input_dim)."""
        return (*input_shape[:-1], self.input_dim) if reverse else super().compute_output_shape(input_shape)


class InputLayer(Layer, described=True, takes_one_tensor=True):
    """The shape and dtype of the data at the entrance of a model; `keras.Input` makes one.

    Args:
        shape, batch_size, dtype, batch_shape, optional, sparse, ragged: as in `keras.Input`.
        options: `name`, as in `Layer`; `input_shape` and `batch_input_shape`, older names of `shape` and `batch_shape`.

    Raises:
        ValueError: if both or neither of `shape` and `batch_shape` are given, and for a negative size.
        NotImplementedError: for sparse or ragged inputs.

    >>> model = tf.keras.Sequential([tf.keras.layers.InputLayer(shape=(4,)), tf.keras.layers.Dense(2)])
    >>> model.built, model.count_params()
    (True, 10)
    """

    def __init__(
        self,
        shape: ShapeLike = None,
        batch_size: int | None = None,
        dtype: DTypeLike = None,
        batch_shape: ShapeLike = None,
        optional: Flag = False,
        sparse: bool | None = None,
        ragged: bool | None = None,
        **options: Any,
    ) -> None:
        shape = options.pop("input_shape", shape)
        batch_shape = options.pop("batch_input_shape", batch_shape)
        super().__init__(**options)
        if sparse or ragged:
            raise NotImplementedError("Input: sparse and ragged tensors are not available; give dense ones, padded if need be.")
        if (shape is None) == (batch_shape is None) or (batch_shape is not None and batch_size is not None):
            raise ValueError(
                "Input: give shape=(...), without the batch axis, or batch_shape=(batch, ...), and one of them only; found "
                f"shape={shape}, batch_size={batch_size}, batch_shape={batch_shape}."
            )
        if batch_shape is None:
            batch_shape = (batch_size, *((shape,) if isinstance(shape, int) else shape))
        self.batch_shape = tuple([None if isinstance(n, KerasTensor) or n is None else int(n) for n in batch_shape])
        if any(n is not None and n < 0 for n in self.batch_shape):
            raise ValueError(f"Input: no size may be negative, found {self.batch_shape}; None stands for any size.")
        self.input_dtype = as_dtype(dtype or floatx())
        self._takes_text = self.input_dtype.name == "string"
        self.autocast = False  # `call` casts
        self._built = True

    @property
    def dtype(self) -> str:
        """The dtype of the data."""
        return self.input_dtype.name

    def passes(self, x: TensorLike) -> bool:
        """True if a call would only return `x`: a tensor without a mask, of its dtype and of the shape that it saw last."""
        return (
            type(x) is Tensor
            and x.array.shape == self._accepted
            and x.array.dtype is self.input_dtype.numpy
            and x.attached is None
        )

    def call(self, inputs: Tensor | None) -> Tensor | None:
        if inputs is None and not self.optional:
            raise ValueError(called_on_none(self))
        return inputs if inputs is None or inputs.array.dtype == self.input_dtype.numpy else cast(inputs, self.input_dtype)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The shape that was given."""
        return self.batch_shape

    def get_config(self) -> dict[str, Any]:
        told = {"batch_shape": self.batch_shape, "dtype": self.dtype, "sparse": False, "ragged": False}
        return told | {"name": self.name, "optional": self.optional}

    def get_build_config(self) -> None:
        """None: there is nothing to build."""


def entrance(layer: InputLayer) -> KerasTensor:
    """The KerasTensor that an InputLayer stands for."""
    nodes = nodes_of(layer)
    node = nodes[0] if nodes else Node(layer, (), {}, [Spec(layer.batch_shape, layer.input_dtype)], 0)
    return node.outputs


def Input(
    shape: ShapeLike = None,
    batch_size: int | None = None,
    dtype: DTypeLike = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: ShapeLike = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor:
    """The entrance of a model: a KerasTensor for layers to be called on, or the first element of a Sequential.

    Args:
        shape: of one row, without the batch axis; None for an axis of any size.
        batch_size: a fixed batch size, or None.
        dtype: of the data; the default float dtype if None.
        sparse, ragged: not available; False or None.
        batch_shape: the shape with the batch axis, instead of `shape` and `batch_size`.
        name: of the layer; made up if None.
        tensor: a KerasTensor to return as it is, or a Tensor whose shape and dtype to take.
        optional: whether None may be given instead of data.

    Raises:
        ValueError: if both or neither of `shape` and `batch_shape` are given.
        NotImplementedError: for sparse or ragged inputs.

    >>> inputs = tf.keras.Input(shape=(4,), name="row")
    >>> inputs
    <KerasTensor shape=(None, 4), dtype=float32, name=row>
    >>> tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs)).count_params()
    10
    """
    if isinstance(tensor, KerasTensor):
        return tensor
    if tensor is not None:
        batch_shape, dtype, shape, batch_size = tuple(tensor.shape), dtype or tensor.dtype, None, None
    return entrance(InputLayer(shape, batch_size, dtype, batch_shape, optional, sparse, ragged, name=name))
