"""Gradients that users register by name for operations without one. The sweep asks here where a primitive has no rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ..types import TensorLike
from .arrays import is_array
from .tensor import arrays_of, tensors_of

Function = Callable[..., Any]

_registry: dict[str, Function] = {}


def missing_gradient(operation: str) -> LookupError:
    """The error about an operation without gradient; `error.operation` is its name."""
    error = LookupError(f"gradient registry has no entry for: {operation}")
    vars(error)["operation"] = operation
    return error


class RegisterGradient:
    """A decorator that enters a gradient for an operation by name, for one that has none.

    Args:
        op_type: the name in the LookupError, such as 'AdjustContrastv2'.

    The function is called as `fn(op, *upstream)`, with `op.inputs`, `op.outputs`, `op.type` and `op.get_attr(name)`. It returns
    a gradient for each input, None where there is none; a single one needs no list.

    Raises:
        KeyError: if the name has a gradient already.
        TypeError: if the name is no str.

    >>> @tf.RegisterGradient("StraightThrough")
    ... def straight_through(op, upstream):
    ...     return upstream
    """

    def __init__(self, op_type: str) -> None:
        self._name = _checked("RegisterGradient", op_type)

    def __call__(self, f: Function) -> Function:
        """Enter the function."""
        if self._name in _registry:
            earlier = _registry[self._name].__module__
            raise KeyError(f"Registering two gradient with name '{self._name}'! (Previous registration was in {earlier})")
        _registry[self._name] = f
        return f


def no_gradient(op_type: str) -> None:
    """Say that an operation has no gradient: sources behind it get None.

    Raises:
        KeyError: if the name has a gradient already.
        TypeError: if the name is no str.

    >>> tf.no_gradient("MyOperation")
    """
    RegisterGradient(_checked("no_gradient", op_type))(lambda op, *upstream: [None] * len(op.inputs))


def _checked(caller: str, name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{caller}: the name must be a str, found {name!r}.")
    return name


def registered_rule(name: str) -> Any:
    """The registered gradient of an operation in the form of a primitive's VJP, or None."""
    function = _registry.get(name)
    if function is None:
        return None

    def vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        upstream, outputs = (g, y) if type(g) is tuple else ((g,), (y,))
        bare = is_array(upstream[0])
        op = SimpleNamespace(inputs=tensors_of(inputs), outputs=list(tensors_of(outputs)), type=name, get_attr=params.get)
        found = function(op, *tensors_of(upstream))
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        return [arrays_of(listed[i]) if bare else listed[i] for i in wanted]

    return vjp
