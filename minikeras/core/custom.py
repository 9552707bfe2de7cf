"""Custom gradients: the function runs hidden from derivatives, and one Record with the user's rule takes its place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from .. import nest
from ..types import TensorLike
from .arrays import is_array
from .batch import BatchedTensor
from .convert import convert_to_tensor
from .families import jvp_of
from .gradient_tape import GradientTape
from .primitive import Primitive
from .stack import Evaluate, Frame, current, notify, on_top
from .tensor import Operand, Tensor, arrays_of
from .variable import Variable

Function = Callable[..., Any]


def hidden_from_derivatives() -> on_top:
    """Within the block tapes and accumulators see nothing; interpreters that see all do."""
    return on_top(_those_that_see_all(current()))


def _those_that_see_all(frame: Frame) -> Frame:
    if isinstance(frame.interpreter, Evaluate):
        return frame
    below = _those_that_see_all(frame.below)
    return Frame(frame.interpreter, below) if frame.interpreter.sees_all else below


def _is_argument(value: object) -> bool:
    """True for what gets a gradient; False for objects such as `self`."""
    return isinstance(value, (Operand, int, float, complex, np.generic)) or is_array(value)


def _anew(value: Any) -> Tensor:
    """The same values as a Tensor of its own, so that it is never the input itself."""
    tensor = convert_to_tensor(value)
    return BatchedTensor(tensor.stacked, tensor.batch) if isinstance(tensor, BatchedTensor) else Tensor(tensor.array)


def _callable(name: str, function: Function) -> Function:
    """The function, which has to be one."""
    if not callable(function):
        raise TypeError(f"{name}: expected a function, found {function!r:.200}.")
    return function


def custom_gradient(f: Function | None = None) -> Any:
    """A decorator for a function that returns its result and a function for its gradient.

    Args:
        f: `f(*args, **kwargs)` returns `(y, grad_fn)`. `grad_fn(*upstream)` gets one upstream gradient for each result and
            returns one gradient for each positional argument (None where there is none; a single one needs no list). If `f`
            reads trainable Variables that are not its arguments, `grad_fn` must take `variables=` and return
            `(gradients of args, list of gradients of variables)`.

    Returns:
        The function with that gradient. Higher derivatives differentiate the operations of `grad_fn`.

    Raises:
        TypeError: at the call, if `grad_fn` does not take `variables` but has to.
        ValueError: if it returns the wrong number of gradients.

    >>> @tf.custom_gradient
    ... def rounded(x):
    ...     return tf.round(x), lambda upstream: upstream
    >>> x = tf.Variable(2.6)
    >>> with tf.GradientTape() as tape:
    ...     y = rounded(x)
    >>> print(y.numpy(), tape.gradient(y, x).numpy())
    3.0 1.0
    """
    if f is None:
        return custom_gradient
    function = _callable("custom_gradient", f)

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not any(_is_argument(leaf) for leaf in nest.flatten(list(args))):
            bound = inspect.signature(function).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        return _called(function, args, kwargs)

    return decorated


def _called(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = [leaf for leaf in nest.flatten(list(args)) if _is_argument(leaf)]
    inputs: list[Any] = [leaf.read_value() if isinstance(leaf, Variable) else convert_to_tensor(leaf) for leaf in given]
    with hidden_from_derivatives(), GradientTape(persistent=True) as private:
        pair = function(*args, **kwargs)
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and callable(pair[1])):
        raise TypeError(
            "@tf.custom_gradient: the function must return its result and a function of the upstream gradient, as `return y, "
            f"grad`, found {pair!r:.200}."
        )
    result, grad_fn = pair
    arguments = {leaf.key for leaf in given if isinstance(leaf, Variable)}
    variables = [variable for variable in private.watched_variables() if variable.trainable and variable.key not in arguments]
    parameters = inspect.signature(grad_fn).parameters.values() if variables else ()
    takes = [p.kind is p.VAR_KEYWORD or (p.name == "variables" and p.kind is not p.VAR_POSITIONAL) for p in parameters]
    if variables and not any(takes):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
            f"{[variable.name for variable in variables]}"
        )
    outputs = [_anew(leaf) for leaf in nest.flatten(result)]
    name = getattr(function, "__name__", "custom")
    primitive = _rule(name, grad_fn, args, len(inputs), variables, several=len(outputs) != 1)
    inputs += [variable.read_value() for variable in variables]
    notify(current(), primitive, inputs, {}, tuple(outputs) if len(outputs) != 1 else outputs[0])
    return nest.pack(result, list(outputs))


def _in_order(found: Any, structure: tuple[Any, ...]) -> list[Any]:
    """The gradients that a rule returned, in the order of the arguments' leaves; dicts are paired by key."""
    if not nest.holds_mapping(found):
        return nest.flatten(found)
    try:
        return nest.flatten_up_to(structure[0] if len(structure) == 1 and isinstance(found, Mapping) else structure, found)
    except ValueError as error:
        raise ValueError(
            f"custom_gradient: the gradients are not nested like the {len(structure)} arguments: {error} Return for each "
            "argument a nest with its keys."
        ) from None


def _rule(
    name: str, grad_fn: Function, structure: tuple[Any, ...], count: int, variables: Sequence[Variable], several: bool
) -> Primitive:
    """The primitive of one call of a function with a custom gradient: it has a rule, and is never computed again."""

    def gradients(g: TensorLike) -> list[Any]:
        bare = not isinstance(g[0] if several else g, Tensor)
        upstream = [Tensor(part) if bare else part for part in (g if several else (g,))]
        if variables:
            found, for_variables = grad_fn(*upstream, variables=list(variables))
            for_variables = list(for_variables) if isinstance(for_variables, (list, tuple)) else [for_variables]
            if len(for_variables) != len(variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        else:
            found, for_variables = grad_fn(*upstream), []
        listed = _in_order(found, structure)
        if len(listed) != count:
            raise ValueError(
                f"custom_gradient function expected to return {count} gradients, but returned {len(listed)} instead."
            )
        ready = [None if c is None else convert_to_tensor(c) for c in (*listed, *for_variables)]
        return [arrays_of(c) for c in ready] if bare else ready

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        found = gradients(g)
        return [found[i] for i in wanted]

    return Primitive(name, _kernel, vjp=vjp, jvp=jvp_of(lambda: vjp), registered=False)


def is_custom(primitive: Primitive) -> bool:
    """True if an operation stands for a function with a custom gradient."""
    return primitive.kernel is _kernel


def _kernel(xp: ModuleType) -> Callable[..., Any]:
    return _never


def _never(*arrays: Any) -> Any:
    raise AssertionError("tapes are notified of a custom gradient, it is not computed")


def recompute_grad(f: Function) -> Function:
    """The same function, whose intermediate results are not kept: the gradient computes them once more.

    Memory for time: one more forward pass for each `gradient`. Variables that `f` uses take part, and so do tensors given by
    keyword.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.recompute_grad(lambda v: tf.sin(v) ** 2)(x)
    >>> print(f"{tape.gradient(y, x):.4f}")
    -0.2794
    """
    _callable("recompute_grad", f)

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        holding = [name for name, value in kwargs.items() if any(isinstance(leaf, Operand) for leaf in nest.flatten(value))]
        named = {name: kwargs.pop(name) for name in holding}

        def with_rule(*arguments: Any) -> Any:
            def grad_fn(*upstream: Any, variables: Sequence[Variable] = ()) -> Any:
                leaves = [leaf for leaf in nest.flatten(list(arguments)) if _is_argument(leaf)]
                tensors = [leaf if isinstance(leaf, Variable) else convert_to_tensor(leaf) for leaf in leaves]
                fresh = iter(tensors)
                again = nest.map_structure(lambda leaf: next(fresh) if _is_argument(leaf) else leaf, list(arguments))
                with GradientTape() as tape:
                    tape.watch([tensor for tensor in tensors if tensor.dtype.is_differentiable])
                    result = f(*again[:-1], **again[-1], **kwargs)
                found = tape.gradient(nest.flatten(result), [*tensors, *variables], list(upstream), "zero")
                keys, rest = [tensor.key for tensor in tensors], found[len(tensors) :]
                # The gradient of an argument that is given twice holds all uses, so it counts at its first place only.
                own = [found[i] if keys.index(key) == i else None for i, key in enumerate(keys)]
                return (own, rest) if variables else own

            return f(*args, **named, **kwargs), grad_fn

        return custom_gradient(with_rule)(*args, named)

    return recomputed
