"""Public functions on symbolic tensors, which have no values: there a call becomes a step of a functional model of `keras`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..absent import late
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


def publish(namespace: dict[str, Any], module: str = "", names: Mapping[str, str | None] | None = None) -> None:
    """Make a file of imports a public module: its functions take symbolic tensors, and what it lacks is explained.

    Functions that other folders define stay as they are, and so do those of one or two tensors, which are called most often
    and see to symbolic tensors themselves.

    Args:
        namespace: the variables of the file.
        module: whose names they are, where pickle finds the functions; that file's if empty.
        names: further ones that are loaded at their first use, as `late` has them.
    """
    module, names = module or namespace["__name__"], names or {}
    for public, function in list(namespace.items()):
        ours = isinstance(function, types.FunctionType) and function.__module__.startswith(__package__)
        if ours and not hasattr(function, "takes_symbols"):
            namespace[public] = takes_symbols(function)
            if namespace[public].__module__ == function.__module__:
                namespace[public].__module__, namespace[public].__name__ = module, public
                namespace[public].__qualname__ = public
    namespace["__getattr__"], _ = late(module, names)
    namespace["__dir__"] = lambda: [*namespace, *names]
    namespace["__path__"] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
    namespace["__all__"] = [public for public in (*namespace, *names) if not public.startswith("_")]
