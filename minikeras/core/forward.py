"""ForwardAccumulator: an interpreter that pushes tangents along with the values.

JVP rules run on the stack below, so accumulators above and tapes below differentiate tangents like any other value.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from .. import nest
from ..errors import ShapeError, kind_of
from .convert import convert_to_tensor
from .gradient_arguments import UnconnectedGradients, unconnected_choice
from .gradient_registry import missing_gradient
from .primitive import Primitive
from .registry import operations
from .stack import BOTTOM, Frame, Interpreter, on_top
from .tensor import Tensor, arrays_of
from .variable import Variable
from .warnings import warn

_SMOOTH = "fcV"  # kinds of dtypes that have tangents; V is bfloat16


class _Result(weakref.ref[Tensor]):
    """A primal or result that has a tangent: when it goes, so does the tangent."""

    __slots__ = ("key", "owner")
    key: int
    owner: weakref.ref[ForwardAccumulator]

    def __new__(cls, result: Tensor, owner: ForwardAccumulator) -> _Result:
        self = super().__new__(cls, result, _forget)
        self.key, self.owner = result.key, weakref.ref(owner)
        return self


def _forget(gone: Any) -> None:
    if (owner := gone.owner()) is not None:
        owner._alive.pop(gone.key, None)
        owner._tangents.pop(gone.key, None)


class ForwardAccumulator(Interpreter):
    """Jacobian-vector products by forward mode: derivatives along one direction, at the cost of the function itself.

    Args:
        primals: Tensor, Variable or nest of them: where to differentiate.
        tangents: the direction, a nest of the same structure, shapes and dtypes.

    Raises:
        ValueError: if structures, shapes or dtypes differ, or a primal is named twice.

    Source: Griewank and Walther, Evaluating Derivatives (2008), section 3.1 (forward mode).

    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
    ...     y = x * x
    >>> print(accumulator.jvp(y).numpy())
    [2. 0.]
    """

    __slots__ = ("__weakref__", "_active", "_alive", "_tangents")

    def __init__(self, primals: Any, tangents: Any) -> None:
        points = nest.flatten(primals)
        try:
            directions = nest.flatten_up_to(primals, tangents)  # a list of numbers may stand for a tensor
        except ValueError:
            raise ValueError(
                f"ForwardAccumulator: {len(points)} primals but {len(nest.flatten(tangents))} tangents, or in another order; "
                "the nests must be alike."
            ) from None
        self._active = False
        self._tangents: dict[int, Any] = {}
        self._alive: dict[int, _Result] = {}
        for point, direction in zip(points, directions, strict=True):
            if not isinstance(point, (Tensor, Variable)):
                raise ValueError(f"ForwardAccumulator: a primal is {kind_of(point)}, not a Tensor or Variable.")
            if not point.dtype.is_differentiable:
                warn(5, "The dtype of the watched primal must be floating (e.g. tf.float32), got %r", point.dtype)
                continue
            if point.key in self._tangents:
                raise ValueError(
                    f"ForwardAccumulator: tensor {point!r} was specified as a primal multiple times. Add up its tangents."
                )
            tangent = convert_to_tensor(direction, point.dtype)
            if tangent.shape != point.shape:
                raise ShapeError(f"ForwardAccumulator: a tangent has shape {tangent.shape}, its primal {point.shape}.")
            self._tangents[point.key] = tangent
            if isinstance(point, Tensor):
                self._alive[point.key] = _Result(point, self)

    def __enter__(self) -> ForwardAccumulator:
        if self._active:
            raise ValueError("Accumulator is already recording.")
        self._active = True
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__()
        self._active = False

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Compute the tangents of the results from those of the inputs."""
        if not primitive.differentiable:
            return
        known = self._tangents
        tangents = [known.get(x.key) if hasattr(x, "key") else None for x in inputs]
        if not any(tangent is not None for tangent in tangents):
            return
        results = outputs if type(outputs) is tuple else (outputs,)
        if not any(result.array.dtype.kind in _SMOOTH for result in results):
            return
        if primitive.jvp is None:
            raise missing_gradient(primitive.name)
        # No interpreter sees it: the rule runs on arrays, unless a number beside one of bfloat16 would make it float32.
        bare = below is BOTTOM and all(y.array.dtype.kind != "V" for y in results)
        values = outputs
        if bare:
            tangents = [None if tangent is None else tangent.array for tangent in tangents]
            inputs = [x.array if isinstance(x, Tensor) else x for x in inputs]
            values = arrays_of(outputs)
        with on_top(below):
            moved = primitive.jvp(tangents, values, inputs, params)
        for result, tangent in zip(results, moved if type(outputs) is tuple else (moved,), strict=True):
            if tangent is not None and result.array.dtype.kind in _SMOOTH:
                known[result.key] = Tensor(tangent) if bare else tangent
                self._alive[result.key] = _Result(result, self)

    def jvp(self, primals: Any, unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE) -> Any:
        """The derivative of results along the direction, as far as they were computed within the block.

        Args:
            primals: Tensor, Variable or nest of them.
            unconnected_gradients: 'none' gives None, 'zero' zeros, for what does not depend on the primals.

        Returns:
            A nest like `primals`.
        """
        fill = unconnected_choice(unconnected_gradients)

        def look_up(result: Any) -> Any:
            tangent = self._tangents.get(result.key)
            if tangent is None and fill is UnconnectedGradients.ZERO:
                return operations.zeros_like(Tensor(result.array))
            return tangent

        return nest.map_structure(look_up, primals)
