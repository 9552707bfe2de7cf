"""Public functions on symbolic tensors, which have no values: there a call becomes a step of a functional model of `keras`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.registry import hook

F = TypeVar("F", bound=Callable[..., Any])


class SymbolicOperand(TypeError, ValueError):
    """A function needs values of what has none."""


@functools.cache
def takes_symbols(function: F, step: Callable[..., Any] | None = None) -> F:
    """The function, which symbolic tensors may be given too.

    Where it is given tensors, nothing is looked at: 0.1 us.

    Args:
        step: what is called instead with the same arguments if one is symbolic; a step that calls the function if None.
    """

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except SymbolicOperand:
            pass  # what follows is no part of a failure
        if step is not None:
            return step(*args, **options)
        return hook("call_on_symbols")(called, args, options)

    return called  # type: ignore[return-value]


def publish(namespace: dict[str, Any], module: str = "") -> None:
    """Let the functions written in this folder that a public module holds take symbolic tensors, not those that it has from
    other folders; pickle finds them in `module`, by default that module.

    Those of one or two tensors, which are called most often, see to it themselves.
    """
    for name, function in list(namespace.items()):
        ours = isinstance(function, types.FunctionType) and function.__module__.startswith(__package__)
        if ours and not hasattr(function, "takes_symbols"):
            namespace[name] = takes_symbols(function)
            if namespace[name].__module__ == function.__module__:
                namespace[name].__module__, namespace[name].__name__ = module or namespace["__name__"], name
                namespace[name].__qualname__ = name
