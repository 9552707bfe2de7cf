"""What a row of the table says about an operation, and the ways to make inputs.

A row states facts that the laws cannot know (domain, reference, where it is smooth); everything else is
derived.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray
Sampler = Callable[[np.random.Generator], Array]


@dataclass(frozen=True, eq=False)
class Specimen:
    """One way to use one operation.

    Attributes:
        name: what the test is called.
        operation: the public function or primitive that the row is for.
        inputs: one sampler for each input, in float64 (or int, bool, complex), inside the smooth domain.
        reference: the same result by NumPy or SciPy, as an array or a list of arrays; None if it is a random draw.
        call: how the operation is applied to the inputs.
        smooth: whether gradients exist; if not, they must be None.
        analytic: whether the complex step works: no absolute value, comparison of complex numbers or conjugate.
        second_order: whether second derivatives are checked.
        float32: whether float32 inputs must give float32 results.
        elementwise: whether any shapes that broadcast are allowed.
        tolerance: relative tolerance of the forward value against the reference.
    """

    name: str
    operation: Any
    inputs: tuple[Sampler, ...]
    reference: Callable[..., Any]
    call: Callable[..., Any]
    smooth: bool = True
    analytic: bool = True
    second_order: bool = True
    float32: bool = True
    elementwise: bool = False
    tolerance: float = 1e-12

    def generator(self) -> np.random.Generator:
        """The same numbers in every run and every process."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    def sample(self, dtype: str = "float64") -> list[Array]:
        """Inputs in the given floating dtype, read-only, so that an operation that writes to its input fails."""
        generator = self.generator()
        return [frozen(converted(sampler(generator), dtype)) for sampler in self.inputs]


def frozen(array: Array) -> Array:
    """The array, made read-only."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def converted(array: Array, dtype: str) -> Array:
    """A floating array in `dtype`, a complex one in the complex dtype of that precision, others as they are."""
    if array.dtype.kind == "f":
        return array.astype(dtype)
    if array.dtype.kind == "c":
        return array.astype(np.result_type(dtype, "complex64"))
    return array


def row(operation: Any, inputs: Any, reference: Any, variant: str = "", call: Any = None, **facts: Any) -> Specimen:
    """A Specimen named after its operation; keywords that are no facts of a Specimen go to the operation."""
    known = {key: facts.pop(key) for key in list(facts) if key in Specimen.__dataclass_fields__}
    name = getattr(operation, "name", None) or operation.__name__.strip("_")
    if call is None:
        call = (lambda *xs: operation(*xs, **facts)) if facts else operation
    elif facts:
        raise TypeError(f"{name}: both a call and options {list(facts)} are given.")
    samplers = inputs if isinstance(inputs, tuple) else (inputs,)
    title = f"{name} {variant}".strip()
    return Specimen(title, operation, samplers, reference, call, **known)


# Inputs ---------------------------------------------------------------------------------------------------------------


def normal(*shape: int) -> Sampler:
    return lambda rng: rng.normal(size=shape)


def between(low: float, high: float, *shape: int) -> Sampler:
    return lambda rng: rng.uniform(low, high, shape)


def positive(*shape: int) -> Sampler:
    return between(0.5, 2.0, *shape)


def nonzero(*shape: int) -> Sampler:
    """Both signs, magnitudes from 0.4 to 2: away from kinks and poles at 0."""
    return lambda rng: rng.uniform(0.4, 2.0, shape) * np.where(rng.permutation(int(np.prod(shape))) % 2, 1, -1).reshape(shape)


def distinct(*shape: int) -> Sampler:
    """No two elements nearer than 0.2: away from the kinks of maxima and sorting."""
    return lambda rng: (
        (rng.permutation(int(np.prod(shape))) * 0.5 + rng.uniform(0, 0.3, int(np.prod(shape)))).reshape(shape) - 1.0
    )


def complexes(*shape: int) -> Sampler:
    return lambda rng: rng.normal(size=shape) + 1j * rng.normal(size=shape)


def integers(low: int, high: int, *shape: int) -> Sampler:
    return lambda rng: rng.integers(low, high, shape, dtype="int32")


def booleans(*shape: int) -> Sampler:
    return lambda rng: rng.permutation(int(np.prod(shape))).reshape(shape) % 2 == 0


def fixed(value: Any) -> Sampler:
    return lambda rng: np.array(value)


def invertible(*shape: int) -> Sampler:
    """Square matrices far from singular: 2 on the diagonal, noise elsewhere."""
    return lambda rng: rng.normal(size=shape) * 0.5 + 2.0 * np.eye(shape[-1])


def positive_definite(*shape: int) -> Sampler:
    def sampler(rng: np.random.Generator) -> Array:
        a = rng.normal(size=shape)
        return a @ np.swapaxes(a, -1, -2) / shape[-1] + np.diag(np.arange(1.0, shape[-1] + 1))

    return sampler
