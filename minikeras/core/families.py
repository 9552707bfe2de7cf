"""Four ways to define an operation: each states one mathematical fact, and VJP and JVP are derived from it.

In rules `g` is the cotangent, `y` the result, `x` or `a, b` the inputs, `t` a tangent; they call our own operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..types import Array, TensorLike
from .arrays import resolve, to_device, to_numpy
from .convert import convert_to_tensor
from .gradient_tape import GradientTape
from .precision import rule_in_float32
from .primitive import Primitive, Rule
from .registry import operations
from .tensor import Tensor, arrays_of

# Transposition --------------------------------------------------------------------------------------------------------

# The transpose of a linear map that is given as a function, by differentiating it.
#
# A VJP is linear in its cotangent. Its derivative in that cotangent, applied to a tangent, is the JVP.


def transposed(rule: Callable[[Any], Sequence[Any]], y: TensorLike, tangents: Sequence[Any]) -> Any:
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


def jvp_of(vjp: Callable[[], Rule]) -> Rule:
    """The JVP of a primitive, from a function that gives its VJP."""

    def jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        wanted = [i for i, t in enumerate(tangents) if t is not None]
        return transposed(lambda g: vjp()(wanted, g, y, inputs, params), y, [tangents[i] for i in wanted])

    return jvp


Partial = Rule | int | None


def _kernel(function: str | Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """The kernel for the name of an elementwise function, or for `function(xp, *arrays, **params)`."""
    if isinstance(function, str):
        return lambda xp: resolve(xp, function)
    return lambda xp: functools.partial(function, xp)


def is_complex(value: Any) -> bool:
    """True for a complex array or Tensor."""
    return bool(value.dtype.kind == "c")


def unbroadcast(g: TensorLike, x: TensorLike) -> Any:
    """Sum `g` down to the shape of `x`: the transpose of broadcasting.

    Where both operands of an operation were broadcast, each gets the sum over the axes along which it was repeated.
    """
    target = x.shape
    if g.dtype.kind == "c" and not is_complex(x):
        g = operations.real(g)
    if g.shape == target:
        return g
    extra = len(g.shape) - len(target)
    axes = tuple(-axis for axis in range(1, len(target) + 1) if target[-axis] == 1 and g.shape[-axis] != 1)
    lead = tuple(range(-len(g.shape), -len(target)))
    if not extra:
        return operations.reduce_sum(g, axes=axes, keepdims=True)
    g = operations.reduce_sum(g, axes=lead + axes[::-1], keepdims=False)  # in one sum, which is rounded once
    return operations.reshape(g, shape=tuple(target), rank=len(g.shape)) if axes else g


def elementwise(name: str, function: str | Callable[..., Any], *partials: Partial, **options: Any) -> Primitive:
    """An operation on corresponding elements, broadcast like NumPy.

    Args:
        name: its name in the registry.
        function: the name of a NumPy ufunc, or `function(xp, *arrays, **params)`.
        partials: for each input its partial derivative, `partial(*inputs, y, **params)`; 1 and -1 stand for
            themselves, None for an input without gradient.
        options: `differentiable`, `uniform`, `vjp`, as in `Primitive`; `guarded` if a slope may be infinite:
            then a cotangent of zero stays zero instead of turning into NaN.
    """
    guarded = options.pop("guarded", False)

    def times(slope: Any, change: Any) -> Any:
        return operations.multiply_no_nan(slope, change) if guarded else slope * change

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        for i in wanted:
            partial = partials[i]
            if partial is None:
                found.append(None)
                continue
            if not callable(partial):
                change = g if partial == 1 else -g
            else:
                slope = partial(*inputs, y, **params)
                if g.dtype.kind == "c":
                    slope = operations.conj(slope) if hasattr(slope, "dtype") else slope.conjugate()
                change = times(slope, g)
            found.append(unbroadcast(change, inputs[i]))
        return found

    def jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        total = None
        for i, t in enumerate(tangents):
            partial = partials[i]
            if t is None or partial is None:
                continue
            if callable(partial):
                t = times(partial(*inputs, y, **params), t)
            elif partial == -1:
                t = -t
            total = t if total is None else total + t
        if total is None or total.shape == y.shape:
            return total
        return operations.broadcast_to(total, shape=tuple(y.shape), rank=len(total.shape))

    smooth = any(partial is not None for partial in partials)
    options = {"vjp": vjp, "jvp": jvp, "differentiable": smooth, "batching": "align", "elementwise": True, **options}
    return Primitive(name, _kernel(function), **options)


def linear(name: str, function: Callable[..., Any], transpose: Rule, **options: Any) -> Primitive:
    """An operation that is linear in all its differentiable inputs together.

    Args:
        name: its name in the registry.
        function: `function(xp, *arrays, **params)`, or the name of a ufunc.
        transpose: `transpose(g, *inputs, **params)`, the cotangent of the first input, or a list with one for each
            input where several are linear (None for those that are not).
        options: as in `Primitive`.
    """

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        cotangents = transpose(g, *inputs, **params)
        return [cotangents[i] for i in wanted] if type(cotangents) is list else [cotangents]

    def jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        kinds = {t.dtype.kind for t in tangents if t is not None}
        directions = [constant(x, kinds) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
        return result(*directions, **params)

    def constant(x: TensorLike, kinds: set[str]) -> Any:
        """The operand in place of a missing tangent: zero, or the input if the map is not linear in it (indices, a mask)."""
        if type(x) in (int, float, complex):
            return 0
        return operations.zeros_like(x) if hasattr(x, "dtype") and x.dtype.kind in kinds else x

    result = Primitive(name, _kernel(function), **{"vjp": vjp, "jvp": jvp, "batching": "keep", **options})
    return result


def bilinear(name: str, function: Callable[..., Any], left: Rule, right: Rule, **options: Any) -> Primitive:
    """An operation that is linear in each of its two inputs.

    Args:
        name: its name in the registry.
        function: `function(xp, a, b, **params)`, or the name of a ufunc.
        left: `left(g, a, b, **params)`, the cotangent of `a`; conjugation for complex numbers is part of it.
        right: `right(g, a, b, **params)`, the cotangent of `b`.
        options: as in `Primitive`.
    """
    transposes = (left, right)

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return [transposes[i](g, *inputs, **params) for i in wanted]

    def jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        a, b = inputs
        s, t = tangents
        if s is None or t is None:
            return result(a if s is None else s, b if t is None else t, **params)
        return operations.add(result(s, b, **params), result(a, t, **params))

    result = Primitive(name, _kernel(function), **{"vjp": vjp, "jvp": jvp, "batching": "align", **options})
    return result


def primitive(name: str, function: Callable[..., Any], *vjps: Rule | None, **options: Any) -> Primitive:
    """An operation that is given by its VJP.

    Args:
        name: its name in the registry.
        function: `function(xp, *arrays, **params)`; a tuple if it has several results.
        vjps: for each input `vjp(g, y, *inputs, **params)`, or None; `g` and `y` are tuples if there are several results.
        options: as in `Primitive`; with `accumulates` the rule computes in float32 for 16-bit floats too.
    """

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        rules = [vjps[i] for i in wanted]
        return [None if rule is None else rule(g, y, *inputs, **params) for rule in rules]

    result: Any = Primitive(name, _kernel(function), **{"vjp": vjp, "jvp": jvp_of(lambda: result.vjp), **options})
    if result.accumulates and result.vjp is vjp:
        result.vjp = rule_in_float32(vjp, result)
    return result


# By Python ------------------------------------------------------------------------------------------------------------

# Operations that Python carries out on the host, element by element: of text, and of what no array library knows.


def by_elements(name: str, function: Callable[..., Array]) -> Primitive:
    """An operation on each element by Python: `function(array, **params)` of arrays on the host. Recorded steps repeat it."""

    def computed(*arrays: Array, **params: Any) -> Array:
        found = function(*map(to_numpy, arrays), **params)
        return found if found.dtype == object else to_device(found)

    return Primitive(
        name, lambda xp: computed, differentiable=False, uniform=False, batching="align", registered=False, mixed=True
    )
