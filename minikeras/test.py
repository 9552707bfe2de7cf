"""`tf.test`: numeric checks of gradients, for functions, layers, losses and primitives of your own.

In float64 a difference quotient with Richardson's extrapolation has about ten correct digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import nest
from .core import GradientTape, Tensor, Variable, convert_to_tensor, namespace, restore, snapshot, to_numpy
from .derivatives.flat import flatten
from .errors import GradientMismatchError
from .functions import cast, tensordot
from .layout import Layout
from .module import Module
from .types import float64

__all__ = ["GradientCheck", "check_gradients"]

Values = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class GradientCheck:
    """The result of `check_gradients`. str() is one line.

    Attributes:
        first: the largest error of first order, relative to the largest element of the derivative or to 1.
        second: the same of second order; None if it was not asked for.
        elements: number of elements that were compared at first order.

    >>> print(tf.test.check_gradients(tf.sin, [0.5]).elements)
    1
    """

    first: float
    second: float | None
    elements: int

    def __str__(self) -> str:
        second = "" if self.second is None else f", second order {self.second:.0e}"
        return f"{self.elements} elements agree: first order {self.first:.0e}{second}"


def check_gradients(
    f: Callable[..., Any],
    x: Any,
    order: int = 2,
    *,
    tolerance: float = 1e-6,
    step: float = 1e-3,
    max_elements: int = 1000,
    seed: int = 0,
) -> GradientCheck:
    """Compare the tape's gradients of `f` with numerical derivatives in float64.

    A result of more than one element is weighted with fixed random numbers and added up to s. First order: ds/dx_i for each
    element. Second order: H v, for one random direction v over all elements.

    Args:
        f: a function of tensors, a layer, model or loss. It must be deterministic, and smooth around `x`.
        x: its argument, a tensor or array, or a list or tuple of its arguments. Floats are differentiated and run in float64;
            integers, such as labels, are left as they are. The trainable variables of a layer or Module are checked as well.
        order: 1 or 2.
        tolerance: allowed error, relative to the largest element of the derivative or to 1.
        step: the difference quotient's, relative to the element or to 1.
        max_elements: most elements to check at first order, drawn at random if there are more.
        seed: of the random numbers.

    Returns:
        A `GradientCheck` with the errors.

    Raises:
        GradientMismatchError: an AssertionError that names the worst element, what the tape found and what was expected.
        ValueError: if `f` gives two results for the same argument, or there is nothing to differentiate.

    Source: Press and others, Numerical Recipes (3rd edition, 2007), section 5.7.

    >>> check = tf.test.check_gradients(lambda a, b: tf.sin(a) * b, [[0.5, 1.0], 2.0])
    >>> check.elements, check.first < 1e-8, check.second < 1e-8
    (3, True, True)
    """
    if order not in (1, 2):
        raise ValueError(f"check_gradients: order must be 1 or 2, found {order!r}.")
    generator = np.random.default_rng(seed)
    arguments = [convert_to_tensor(value) for value in (x if isinstance(x, (list, tuple)) else [x])]
    if not getattr(f, "built", True):
        f(*arguments)
    with _in_float64(f):
        problem = _Problem(f, arguments, generator)
        point = problem.point()
        found = problem.gradient(point)
        chosen = np.arange(point.size)
        if point.size > max_elements:
            chosen = np.sort(generator.choice(point.size, max_elements, replace=False))
        expected = np.array([_along(problem.value, point, np.eye(1, point.size, int(i))[0], step) for i in chosen])
        first = _compare("first order", found[chosen], expected, tolerance, lambda i: problem.element(int(chosen[i]), point))
        if order == 1:
            return GradientCheck(first, None, len(chosen))
        direction = generator.standard_normal(point.size)
        expected = _along(problem.gradient, point, direction / np.linalg.norm(direction), step)
        products = problem.product(point, direction / np.linalg.norm(direction))
        second = _compare(
            f"second order, along the random direction of seed {seed}", products, expected, tolerance, problem.element
        )
    return GradientCheck(first, second, len(chosen))


class _Problem:
    """A function of one flat vector of all that is differentiated."""

    def __init__(self, f: Callable[..., Any], arguments: Sequence[Tensor], generator: np.random.Generator) -> None:
        self.f = f
        self.arguments = [cast(value, float64) if value.dtype.is_floating else value for value in arguments]
        first, again = self._results(self.arguments), self._results(self.arguments)
        if any(not np.array_equal(a.numpy(), b.numpy(), equal_nan=True) for a, b in zip(first, again, strict=True)):
            raise ValueError("check_gradients: two calls gave two results; fix the seed or leave dropout out.")
        # Equal weights would hide errors that cancel, such as those of a softmax; one number alone needs none.
        self.weights = [generator.uniform(0.5, 1.5, r.shape) if r.array.size > 1 else np.ones(r.shape) for r in first]
        self.smooth = [i for i, value in enumerate(self.arguments) if value.dtype.is_floating]
        self.variables: list[Variable] = list(f.trainable_variables) if isinstance(f, Module) else []
        self.sources = [*(self.arguments[i] for i in self.smooth), *self.variables]
        self.layout = Layout(tuple(source.shape) for source in self.sources)
        if not self.sources or not first:
            raise ValueError("check_gradients: no argument or no result is floating, so there is nothing to differentiate.")

    def _results(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The floating results of the function."""
        found = [convert_to_tensor(leaf) for leaf in nest.flatten(self.f(*arguments))]
        return [result for result in found if result.dtype.is_floating]

    def point(self) -> Values:
        """The point at which the derivatives are taken."""
        return np.concatenate([np.ravel(to_numpy(source.array)).astype(np.float64) for source in self.sources])

    def element(self, i: int, point: Values | None = None) -> str:
        """The source and index of element `i` of the flat vector; given a point, also the reason if it has no gradient."""
        position = int(np.searchsorted(self.layout.starts, i, side="right")) - 1
        source = self.sources[position]
        index = [int(k) for k in np.unravel_index(i - self.layout.starts[position], source.shape)]
        if isinstance(source, Variable):
            name = f"element {index} of variable '{getattr(source, 'path', source.name)}'"
        else:
            name = f"element {index} of argument {self.smooth[position]}"
        if point is None:
            return name
        smooth = self._at(point)
        with GradientTape(trace=True) as tape:
            tape.watch(smooth)
            total = self._sum(smooth)
        found = tape.explain(total, [*smooth, *self.variables][position])
        return name if found else f"{name} ({str(found).rstrip('.')})"

    def _at(self, point: Values) -> list[Tensor]:
        """Put the parts of the flat vector where they belong; the floating arguments."""
        pieces = self.layout.pieces(point)
        parts = [namespace(source.array).asarray(piece) for source, piece in zip(self.sources, pieces, strict=True)]
        for variable, part in zip(self.variables, parts[len(self.smooth) :], strict=True):
            variable.array = part
        return [Tensor(part) for part in parts[: len(self.smooth)]]

    def _sum(self, smooth: Sequence[Tensor]) -> Any:
        """The weighted sum of all results."""
        arguments = list(self.arguments)
        for i, value in zip(self.smooth, smooth, strict=True):
            arguments[i] = value
        total: Any = None
        for result, weight in zip(self._results(arguments), self.weights, strict=True):
            part = tensordot(cast(result, float64), convert_to_tensor(weight, float64), len(weight.shape))
            total = part if total is None else total + part
        return total

    def value(self, point: Values) -> float:
        """s at a point."""
        return float(self._sum(self._at(point)))

    def gradient(self, point: Values) -> Values:
        """ds/dx at a point, by the tape."""
        smooth = self._at(point)
        with GradientTape() as tape:
            tape.watch(smooth)
            total = self._sum(smooth)
        return _flat(tape.gradient(total, [*smooth, *self.variables], unconnected_gradients="zero"))

    def product(self, point: Values, direction: Values) -> Values:
        """H v at a point, by two tapes."""
        smooth = self._at(point)
        sources = [*smooth, *self.variables]
        with GradientTape() as outer:
            outer.watch(smooth)
            with GradientTape() as inner:
                inner.watch(smooth)
                total = self._sum(smooth)
            first = inner.gradient(total, sources, unconnected_gradients="zero")
            slope = tensordot(flatten(first), convert_to_tensor(direction, float64), 1)
        return _flat(outer.gradient(slope, sources, unconnected_gradients="zero"))


def _flat(gradients: Sequence[Any]) -> Values:
    vector: Values = flatten(gradients).numpy()
    return vector


def _along(function: Callable[[Values], Any], point: Values, direction: Values, step: float) -> Any:
    """The derivative along a direction: central differences with steps h and h/2, extrapolated to fourth order in h."""
    h = step * max(1.0, float(np.abs(point[direction != 0]).max(initial=0.0)))
    wide, narrow = (
        (function(point + size * direction) - function(point - size * direction)) / (2 * size) for size in (h, h / 2)
    )
    return (4.0 * narrow - wide) / 3.0


def _compare(what: str, found: Values, expected: Values, tolerance: float, element: Callable[[int], str]) -> float:
    """The largest relative error."""
    if not found.size:
        return 0.0
    scale = max(1.0, float(np.abs(expected).max()))
    errors = np.abs(found - expected) / scale
    errors = np.where(np.isnan(errors), np.inf, errors)
    worst = int(errors.argmax())
    if errors[worst] > tolerance:
        raise GradientMismatchError(
            f"check_gradients, {what}: the worst of {found.size} is {element(worst)}: the tape found {found[worst]:.10g}, "
            f"expected {expected[worst]:.10g} (error {errors[worst]:.1e}, allowed {tolerance:.0e}). "
            "If the function has a kink there, choose another x."
        )
    return float(errors[worst])


@contextlib.contextmanager
def _in_float64(f: Any) -> Iterator[None]:
    """Let a layer, and the layers and Variables within, hold and compute float64 for a while."""
    variables = [variable for _, variable in Module.named_variables(f)] if isinstance(f, Module) else []
    layers: list[Any] = [f, *f.submodules] if isinstance(f, Module) else []
    layers = [layer for layer in layers if hasattr(layer, "_array_dtype")]
    before, dtypes = snapshot(variables), [layer.compute_dtype for layer in layers]
    config = sys.modules.get("minikeras.keras.config")
    default = config.floatx() if config else ""
    for variable in variables:
        if variable.dtype.is_floating:
            variable.array = variable.array.astype(np.float64)
    for layer in layers:
        layer._compute_in(float64.name)
    if config:
        config.set_floatx("float64")
    try:
        yield
    finally:
        restore(before)
        for layer, dtype in zip(layers, dtypes, strict=True):
            layer._compute_in(dtype)
        if config:
            config.set_floatx(default)
