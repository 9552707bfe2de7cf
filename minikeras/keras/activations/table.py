"""The table of activations by name, and what turns a name into a function and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import Tensor
from ..catalogue import Catalogue

catalogue = Catalogue("activation")


def named(function: Callable[..., Tensor], *names: str) -> Callable[..., Tensor]:
    """A function of `tf.nn` or `tf.math`, entered under its own and further names."""
    catalogue.add(*names)(function)
    return function


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
