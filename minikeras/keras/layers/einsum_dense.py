"""EinsumDense: a Dense layer over any axes, as an equation says."""

from __future__ import annotations

import copy
import re
from typing import Any, NamedTuple

from ...core import Tensor
from ...errors import ShapeError
from ...functions.contractions import einsum
from ...functions.elementwise import cast
from .. import activations, initializers
from . import weight_options
from .inputs import InputSpec
from .layer import Layer
from .weight_options import activated, without_absent

_EQUATION = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?")


class Sizes(NamedTuple):
    """What an equation means for an input: shapes, and the axes of the kernel that count inputs and outputs."""

    kernel: tuple[Any, ...]
    bias: tuple[Any, ...] | None
    output: tuple[Any, ...]
    input_axes: list[int]
    output_axes: list[int]


class EinsumDense(Layer):
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

    _takes_one_tensor = True
    _gives_floats = True

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**without_absent(self, options))
        self.equation, self.bias_axes = equation, bias_axes
        self.partial_output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        if any(size is not None and (not isinstance(size, int) or size < 1) for size in self.partial_output_shape):
            raise ValueError(f"EinsumDense: output_shape must hold positive ints or None, found {output_shape!r}.")
        self.activation = activations.get(activation)
        weight_options.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        weight_options.keep(self, "bias", bias_initializer, bias_regularizer, bias_constraint)
        self._before, self._labels_in, self._labels_of_kernel, self._labels_out = self._parsed()
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = self._sizes(tuple(input_shape))
        if None in (*sizes.kernel, *(sizes.bias or ())):
            raise ShapeError(
                f"Layer '{self.name}' (EinsumDense) needs known sizes for its weights, found input shape {tuple(input_shape)} "
                f"and output_shape {self.partial_output_shape} for '{self.equation}'."
            )
        first = self.kernel_initializer
        if isinstance(first, initializers.VarianceScaling) and None in (first.input_axes, first.output_axes):
            first = copy.copy(first)
            first.input_axes, first.output_axes = sizes.input_axes, sizes.output_axes
        penalty, projection = self.kernel_regularizer, self.kernel_constraint
        self.kernel = self.add_weight(sizes.kernel, first, regularizer=penalty, constraint=projection, name="kernel")
        if sizes.bias is not None:
            self.bias = weight_options.add(self, "bias", sizes.bias)
        self.input_spec = InputSpec(ndim=len(input_shape))

    def call(self, inputs: Tensor) -> Tensor:
        x = inputs if inputs.dtype.is_floating else cast(inputs, self.compute_dtype)
        y = einsum(self.equation, x, self.kernel)
        return activated(self, y if self.bias is None else y + self.bias)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The sizes of the labels of the output."""
        return self._sizes(tuple(input_shape)).output

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_shape": self.partial_output_shape}

    # What the equation says -----------------------------------------------------------------------------------------------

    def _parsed(self) -> tuple[bool, str, str, str]:
        """Whether '...' comes before the labels, and the labels of input, kernel and output."""
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

    def _sizes(self, shape: tuple[Any, ...]) -> Sizes:
        """The shapes of weights and output for an input of this shape."""
        x, kernel, y = self._labels_in, self._labels_of_kernel, self._labels_out
        elided = len(shape) - len(x)
        if elided < 0 or (elided and "..." not in self.equation):
            raise ShapeError(
                f"Layer '{self.name}' (EinsumDense) expected inputs with {len(x)} axes for '{self.equation}', found {shape}."
            )
        before = shape[:elided] if self._before else ()
        behind = () if self._before else shape[len(x) :]
        sizes = dict(zip(x, shape[len(before) :], strict=False))
        partial = self.partial_output_shape
        stated = partial if before else (shape[0], *partial)
        if len(stated) != len(y):
            raise ShapeError(
                f"Layer '{self.name}' (EinsumDense): output_shape {partial} must have {len(y) - (not before)} sizes for "
                f"'{self.equation}' and inputs of shape {shape}."
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
        return Sizes(of_kernel, bias, (*before, *output, *behind), *axes)
