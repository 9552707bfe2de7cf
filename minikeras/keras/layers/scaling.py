"""What normalizations share: the factor gamma and the offset beta, one for each feature."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions.elementwise import cast
from ...functions.shaping import reshape
from ...types import as_dtype
from . import weight_options
from .layer import SameShape


class ScalingLayer(SameShape):
    """Base of normalizations with gamma and beta."""

    _gives_floats = True

    def __init__(
        self,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**{"autocast": False, **options})
        self.center, self.scale = bool(center), bool(scale)
        weight_options.keep(self, "beta", beta_initializer, beta_regularizer, beta_constraint)
        weight_options.keep(self, "gamma", gamma_initializer, gamma_regularizer, gamma_constraint)
        self.gamma: Any = None
        self.beta: Any = None

    def add_gamma_and_beta(self, shape: tuple[int, ...]) -> None:
        """Make the weights that the layer has."""
        if self.scale:
            self.gamma = weight_options.add(self, "gamma", shape, autocast=False)
        if self.center:
            self.beta = weight_options.add(self, "beta", shape, autocast=False)


def known_axes(layer: Any, axes: tuple[int, ...], input_shape: Any) -> tuple[int, ...]:
    """Axes as sorted positions of a shape, in which each must exist, have a known size and be named once."""
    rank, which = len(input_shape), f"Layer '{layer.name}' ({type(layer).__name__}): axis"
    for axis in axes:
        if not -rank <= axis < rank:
            raise ShapeError(
                f"{which} {axis} is out of range for inputs of shape {tuple(input_shape)}, which have the axes {-rank} to "
                f"{rank - 1}. Give another `axis`, or inputs with more axes."
            )
        if input_shape[axis] is None:
            raise ShapeError(
                f"{which} {axis} of inputs of shape {tuple(input_shape)} has no known size, which the weights need. Give "
                "the size in keras.Input or in `build`."
            )
    places = positions(axes, rank)
    if len(places) < len(axes):
        raise ShapeError(f"{which} {axes} names an axis of inputs of shape {tuple(input_shape)} twice. Leave one out.")
    return places


def positions(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes as sorted positions, counted from the first."""
    return tuple(sorted({axis % rank for axis in axes}))


def checked_axes(layer: Any, axis: Any) -> Any:
    """An int, or a tuple of ints."""
    if isinstance(axis, int):
        return axis
    if isinstance(axis, (list, tuple)) and axis and all(isinstance(one, int) for one in axis):
        return tuple(axis)
    raise TypeError(f"{type(layer).__name__}: axis must be an int or several ints, found {axis!r}.")


def listed(axis: Any) -> tuple[int, ...]:
    """One axis or several, as a tuple."""
    return axis if isinstance(axis, tuple) else (axis,)


def wide(layer: Any, inputs: Tensor) -> Tensor:
    """Inputs as floats of at least single precision, since sums of squares would overflow in half precision. Layers that use it
    have `autocast=False`, or inputs beyond float16 would arrive as infinity.
    """
    dtype = inputs.dtype if inputs.dtype.is_floating else as_dtype(layer.compute_dtype)
    return cast(inputs, "float32" if dtype.size < 4 else dtype)


def read(weight: Any, like: Tensor) -> Tensor:
    """The value of a weight, in the dtype of what it stands beside."""
    value: Tensor = weight.read_value()
    return value if value._array.dtype == like._array.dtype else cast(value, like.dtype)


def shaped(weight: Any, like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The value of a weight, laid along these axes of `like`, with size 1 along the others."""
    value = read(weight, like)
    if axes == (like.ndim - 1,):
        return value
    return reshape(value, tuple(size if axis in axes else 1 for axis, size in enumerate(like.shape)))
