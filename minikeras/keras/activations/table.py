"""The table of activations by name, and what turns a name into a function and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...core import Tensor
from ...core.registry import hook
from ...functions.symbols import takes_symbols
from ..catalogue import Catalogue

F = TypeVar("F", bound=Callable[..., Any])

catalogue = Catalogue("activation")


def activation(*names: str, symbolic: Callable[[Any], Callable[..., Any]] | None = None) -> Callable[[F], F]:
    """A decorator that enters a function under its own and further names.

    Args:
        symbolic: the function of KerasTensors, given `keras`; that of `keras.ops` of the same name if None.
    """

    def enter(function: F) -> F:
        signature = inspect.signature(function)

        def step(*args: Any, **options: Any) -> Any:
            keras = hook("keras")
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            found = getattr(keras.ops, function.__name__) if symbolic is None else symbolic(keras)
            return found(**bound.arguments)

        entered: F = catalogue.add(*names)(takes_symbols(function, step))
        return entered

    return enter


def named(function: F, *names: str) -> F:
    """A function of `tf.nn` or `tf.math`, entered under its own and further names."""
    return catalogue.add(*names)(function if hasattr(function, "takes_symbols") else takes_symbols(function))


def get(identifier: Any) -> Callable[..., Tensor]:
    """The function for a name, a configuration, a function or a layer; None is linear.

    >>> print(tf.keras.activations.get("relu")([-1.0, 2.0]).numpy())
    [0. 2.]
    """
    return catalogue.get("linear" if identifier is None else identifier)


def serialize(activation: Any) -> Any:
    """The name of an activation of this package; the configuration of a layer or of another function.

    >>> tf.keras.activations.serialize(tf.keras.activations.relu)
    'relu'
    """
    known = catalogue.name_of(activation)
    return catalogue.serialize(activation) if known is None else known


def deserialize(config: Any, custom_objects: Any = None) -> Callable[..., Tensor]:
    """The function for what `serialize` gave.

    >>> tf.keras.activations.deserialize("relu") is tf.keras.activations.relu
    True
    """
    return catalogue.deserialize(config, custom_objects)
