"""The four families for users: operations are not registered, and rules see Tensors, so they may call any tf function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core import Primitive, Rule, Tensor, arrays_of, families, tensors_of


def _on_tensors(rule: Any) -> Any:
    """The same rule on Tensors: arrays are wrapped for it, and its result is unwrapped if no Tensor was given."""
    if not callable(rule):
        return rule

    @functools.wraps(rule)
    def wrapped(*values: Any, **params: Any) -> Any:
        found = rule(*tensors_of(values), **params)
        on_tensors = any(isinstance(value[0] if type(value) is tuple else value, Tensor) for value in values)
        return found if on_tensors else arrays_of(found)

    return wrapped


def elementwise(name: str, function: str | Callable[..., Any], *partials: Rule | int | None, **options: Any) -> Primitive:
    """A new operation on corresponding elements, from its partial derivatives.

    Args:
        name: shown in records and messages.
        function: `function(xp, *arrays, **params)` with `xp` NumPy or CuPy, or the name of a ufunc.
        partials: for each input `partial(*inputs, y, **params)`, written with tf functions; 1 and -1 stand for themselves,
            None for an input without gradient.
        options: `guarded=True` if a slope may be infinite: then a cotangent of zero stays zero.

    Derived: gradients with broadcasting undone, tangents, second and higher derivatives, stacks.

    >>> cube = tf.autodiff.elementwise("cube", lambda xp, x: x**3, lambda x, y: 3.0 * x**2)
    >>> x = tf.Variable([1.0, 2.0])
    >>> with tf.GradientTape() as tape:
    ...     y = cube(x)
    >>> print(tape.gradient(y, x).numpy())
    [ 3. 12.]
    """
    return families.elementwise(name, function, *map(_on_tensors, partials), registered=False, **options)


def linear(name: str, function: Callable[..., Any], transpose: Rule, **options: Any) -> Primitive:
    """A new operation that is linear in its input, from its transpose.

    Args:
        name: shown in records and messages.
        function: `function(xp, *arrays, **params)`, acting on trailing axes; further leading axes are a stack.
        transpose: `transpose(g, *inputs, **params)`, the cotangent of the input, or a list with one for each of several.
        options: `batching` if the function cannot take leading axes: 'loop', or a rule as in the guide; `accumulates=True` if
            many elements become one: 16-bit floats are then added up in float32 and rounded once.

    Derived: gradients, tangents (the map itself), higher derivatives, stacks.

    >>> flip = tf.autodiff.linear("flip", lambda xp, x: x[..., ::-1], lambda g, x: g[..., ::-1])
    >>> print(flip(tf.constant([1.0, 2.0])).numpy())
    [2. 1.]
    """
    return families.linear(name, function, _on_tensors(transpose), registered=False, **options)


def bilinear(name: str, function: Callable[..., Any], left: Rule, right: Rule, **options: Any) -> Primitive:
    """A new operation that is linear in each of two inputs, from its transpose in each.

    Args:
        name: shown in records and messages.
        function: `function(xp, a, b, **params)`, acting on trailing axes; further leading axes are broadcast.
        left: `left(g, a, b, **params)`, the cotangent of `a`, of the shape of `a`.
        right: `right(g, a, b, **params)`, the cotangent of `b`.
        options: as in `linear`.

    Derived: gradients, tangents by the product rule, higher derivatives, stacks.

    >>> dot = tf.autodiff.bilinear(
    ...     "dot", lambda xp, a, b: (a * b).sum(-1), lambda g, a, b: g[..., None] * b, lambda g, a, b: g[..., None] * a
    ... )
    >>> print(dot(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])).numpy())
    11.0
    """
    return families.bilinear(name, function, _on_tensors(left), _on_tensors(right), registered=False, **options)


def primitive(name: str, function: Callable[..., Any], *vjps: Rule | None, **options: Any) -> Primitive:
    """Any new operation, from its vector-Jacobian products.

    Args:
        name: shown in records and messages.
        function: `function(xp, *arrays, **params)`; a tuple if it has several results.
        vjps: for each input `vjp(g, y, *inputs, **params)`, or None; `g` and `y` are tuples if there are several results.
        options: `batching='keep'` if the function acts on trailing axes only; without it, stacks are carried out value by
            value and counted in `tf.autodiff.loop_fallbacks`.

    Derived: tangents, by differentiating the rule in its cotangent; higher derivatives.

    >>> total = tf.autodiff.primitive("total", lambda xp, x: x.sum(), lambda g, y, x: g * tf.ones_like(x))
    >>> print(total(tf.constant([1.0, 2.0])).numpy())
    3.0
    """
    return families.primitive(name, function, *map(_on_tensors, vjps), registered=False, **options)
