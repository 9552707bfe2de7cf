"""The transpose of a linear map that is given as a function, by differentiating it.

A VJP is linear in its cotangent. Its derivative in that cotangent, applied to a tangent, is the JVP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .convert import convert_to_tensor
from .gradient_tape import GradientTape
from .registry import operations
from .tensor import Tensor, arrays_of


def transposed(rule: Callable[[Any], Sequence[Any]], y: Any, tangents: Sequence[Any]) -> Any:
    """The tangent of `y`: <rule(g), tangents> = <g, result> for every cotangent g.

    Args:
        rule: from the cotangent of `y` (a tuple if `y` is one) to the cotangents of the inputs.
        y: result of the operation, a Tensor, an array, or a tuple of them.
        tangents: one tangent for each cotangent that `rule` returns.
    """
    several = type(y) is tuple
    bare = not isinstance((y[0] if several else y), Tensor)
    lift = (lambda value: Tensor(value)) if bare else (lambda value: value)
    seeds = [operations.zeros_like(lift(part)) for part in (y if several else (y,))]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(seeds)
        cotangents = [
            (c, t) for c, t in zip(rule(tuple(seeds) if several else seeds[0]), tangents, strict=True) if c is not None
        ]
    results = tape.gradient([c for c, _ in cotangents], seeds, [lift(t) for _, t in cotangents])
    results = [
        operations.zeros_like(seed) if part is None else convert_to_tensor(part)
        for part, seed in zip(results, seeds, strict=True)
    ]
    if bare:
        results = [arrays_of(part) for part in results]
    return tuple(results) if several else results[0]
