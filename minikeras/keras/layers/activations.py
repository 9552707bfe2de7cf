"""Activation functions as layers, with their options and, in PReLU, with weights."""

from __future__ import annotations

from typing import Annotated, Any

from ...core import Tensor
from ...errors import ShapeError, kind_of
from ...functions import broadcast_to, cast, reshape, where
from ...types import ShapeLike, TensorLike, as_dtype
from .. import activations
from .core import SameShape
from .inputs import InputSpec, called
from .options import ActivationLike, Constraint, Initializer, Kept, Option, Regularizer


def _at_least_zero(layer: Any, name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"{name} of {kind_of(layer)} layer cannot be None or negative. Received: {name}={value!r}.")
    return value


AtLeastZero = Annotated[float, Option(_at_least_zero)]


class Activation(SameShape, described=True, makes_nothing=True):
    """An activation function as a layer.

    Args:
        activation: by name or as a function of a Tensor.

    >>> print(tf.keras.layers.Activation("relu")([-1.0, 2.0]).numpy())
    [0. 2.]
    """

    def __init__(self, activation: ActivationLike, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        return self.activation(inputs)


class ReLU(SameShape, described=True, makes_nothing=True):
    """x from `threshold` to `max_value`, `negative_slope` (x - threshold) below, `max_value` above.

    Args:
        max_value: the ceiling, at least 0; None for none.
        negative_slope: at least 0.
        threshold: at least 0.

    >>> print(tf.keras.layers.ReLU(max_value=1.0, negative_slope=0.5)([-1.0, 0.5, 2.0]).numpy())
    [-0.5  0.5  1. ]
    """

    def __init__(
        self, max_value: float | None = None, negative_slope: AtLeastZero = 0.0, threshold: AtLeastZero = 0.0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.max_value = None if max_value is None else _at_least_zero(self, "max_value", max_value)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(SameShape, described=True, makes_nothing=True):
    """x where x > 0, else negative_slope x.

    Args:
        negative_slope: at least 0.

    >>> print(tf.keras.layers.LeakyReLU(0.5)([-1.0, 2.0]).numpy())
    [-0.5  2. ]
    """

    def __init__(self, negative_slope: float = 0.3, **options: Any) -> None:
        if "alpha" in options:
            negative_slope = options.pop("alpha")
        self.negative_slope = _at_least_zero(self, "negative_slope", negative_slope)
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.leaky_relu(inputs, self.negative_slope)


class PReLU(SameShape, described=True):
    """x where x > 0, else alpha x, where alpha is a weight for each element of a row.

    Args:
        alpha_initializer, alpha_regularizer, alpha_constraint: of the weight.
        shared_axes: axes along which one weight serves all, counted with the batch axis; [1, 2] for images.

    Source: He et al. (2015), equation (1).

    >>> print(tf.keras.layers.PReLU(alpha_initializer="ones")([[-1.0, 2.0]]).numpy())
    [[-1.  2.]]
    """

    def __init__(
        self,
        alpha_initializer: Initializer = "zeros",
        alpha_regularizer: Regularizer = None,
        alpha_constraint: Constraint = None,
        shared_axes: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        axes = (shared_axes,) if isinstance(shared_axes, int) else shared_axes
        self.shared_axes = None if axes is None else tuple(int(axis) for axis in axes)

    def build(self, input_shape: ShapeLike) -> None:
        rank, shared = len(input_shape), self.shared_axes or ()
        if any(not 1 <= axis < rank for axis in shared):
            raise ShapeError(f"{called(self)}: shared_axes {shared} must be axes 1 to {rank - 1} of {input_shape}.")
        shape = tuple(1 if axis in shared else input_shape[axis] for axis in range(1, rank))
        if None in shape:
            raise ShapeError(f"{called(self)}: axis sizes of {input_shape} must be known, or be in shared_axes.")
        self.alpha = self._add_kept("alpha", shape)
        axes = {axis: input_shape[axis] for axis in range(1, rank) if axis not in shared}
        self.input_spec = InputSpec(ndim=rank, axes=axes, fixed_by=self.alpha)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.relu(inputs) - self.alpha * activations.relu(-inputs)


class ELU(SameShape, described=True, makes_nothing=True):
    """x where x > 0, else alpha (e**x - 1).

    Args:
        alpha: the limit is -alpha.

    >>> print(tf.keras.layers.ELU()([-1000.0, 2.0]).numpy())
    [-1.  2.]
    """

    def __init__(self, alpha: Kept[float] = 1.0, **options: Any) -> None:
        super().__init__(**options)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.elu(inputs, alpha=self.alpha)


class Softmax(SameShape, described=True, makes_nothing=True):
    """exp(x) / sum(exp(x)) along one axis or several; what a mask leaves out gets 0.

    Args:
        axis: an int, or several.

    The call takes `mask`, true where an element counts: of a shape that broadcasts to the input's. A mask of whole rows, such
    as `Embedding(mask_zero=True)` leaves, leaves nothing out of a row.

    >>> print(tf.keras.layers.Softmax()([[1.0, 1.0, 5.0]], mask=[[True, True, False]]).numpy())
    [[0.5 0.5 0. ]]
    """

    def __init__(self, axis: Any = -1, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis if isinstance(axis, int) else tuple(axis)

    def call(self, inputs: Tensor, mask: Any = None) -> Tensor:
        mask = None if mask is None else self._fitting(mask, inputs)
        if mask is not None:
            inputs = where(mask, inputs, float(as_dtype(inputs.dtype).min) / 2)
        outputs = activations.softmax(inputs, axis=self.axis)
        return outputs if mask is None else where(mask, outputs, 0.0)

    def _fitting(self, mask: TensorLike, inputs: Tensor) -> Tensor | None:
        """The mask as bools of the input's shape, None for one of whole rows; that of a layer before has the first axes."""
        found, wanted = tuple(mask.shape), tuple(inputs.shape)
        if not _fits(found, wanted) and found == wanted[: len(found)]:
            axes = (self.axis,) if isinstance(self.axis, int) else self.axis
            if all(axis % len(wanted) >= len(found) for axis in axes):
                return None
            mask = reshape(mask, (*found, *(1,) * (len(wanted) - len(found))))
        if not _fits(tuple(mask.shape), wanted):
            raise ShapeError(f"{called(self)}: the mask must broadcast to the input; input {wanted}, mask {found}.")
        counts = mask if mask.dtype.is_bool else cast(mask, inputs.dtype) > 0.5
        return broadcast_to(counts, inputs.shape)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    sizes = zip(shape[::-1], target[::-1], strict=False)
    return len(shape) <= len(target) and all(size in (1, whole) for size, whole in sizes)
