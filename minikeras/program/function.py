"""Functions in the form that TensorFlow's `tf.function` gives them, carried out eagerly.

Key idea: what eager execution computes is what a compiled function has to compute. Python runs at every call, so Variables are
read anew, side effects happen each time, and tapes see every operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Function:
    """A function made by `tf.function`.

    Attributes:
        python_function: the function that was decorated.
        input_signature: as it was given; not enforced.
    """

    def __init__(self, python_function: Callable[..., Any], input_signature: Any = None, name: str | None = None) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = input_signature
        self.name = name or getattr(python_function, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.python_function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tf.function {self.name}, run eagerly>"


def function(func: Callable[..., Any] | None = None, input_signature: Any = None, **options: Any) -> Any:
    """A decorator, with or without arguments, as TensorFlow's. The function runs eagerly at each call.

    Args:
        func: the function.
        input_signature: kept, not enforced.
        options: `autograph`, `jit_compile`, `reduce_retracing` and `experimental_*` are accepted and have no effect, since
            nothing is traced.

    Raises:
        TypeError: for other options.

    >>> import minikeras as tf
    >>> @tf.function
    ... def square(x):
    ...     return x * x
    >>> print(square(tf.constant(3.0)).numpy(), square.python_function.__name__)
    9.0 square
    """
    unknown = {
        key
        for key in options
        if key not in {"autograph", "jit_compile", "reduce_retracing"} and not key.startswith("experimental_")
    }
    if unknown:
        raise TypeError(f"function: unknown options {sorted(unknown)}.")
    if func is None:
        return functools.partial(function, input_signature=input_signature, **options)
    return Function(func, input_signature)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """TensorFlow's switch between traced and eager functions. Here they are eager in either position.

    Raises:
        TypeError: if the argument is no bool.

    >>> run_functions_eagerly(True)
    """
    if not isinstance(run_eagerly, bool):
        raise TypeError(f"run_functions_eagerly: expected True or False, found {run_eagerly!r}.")


def functions_run_eagerly() -> bool:
    """True: there is no other way yet.

    >>> functions_run_eagerly()
    True
    """
    return True
