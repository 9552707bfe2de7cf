"""The context of the current layer call, for each thread: settings of the outer calls, and scopes of names."""

from __future__ import annotations

import threading
from typing import Any

from ..core import Tensor

setattr(Tensor, "_keras_mask", vars(Tensor)["attached"])  # noqa: B010  what Keras attaches to a tensor is its mask


class CallContext(threading.local):
    """`training` of the outer calls, the layer that is being called or built, and the scopes that were opened in it."""

    training: bool | None = None
    caller: Any = None
    scopes: tuple[Any, tuple[str, ...]] = (None, ())

    def names(self) -> tuple[str, ...]:
        """The names of the scopes that the present caller opened."""
        caller, names = self.scopes
        return names if caller is self.caller else ()

    def path(self, *names: str) -> str:
        """The names of the present caller, of the scopes that it opened, and these, joined by '/'."""
        return "/".join((*(() if self.caller is None else (self.caller.path,)), *self.names(), *names))


context = CallContext()


class name_scope:
    """A context that adds a name to the paths of what is made in it: weights, and layers that are built.

    Args:
        name: a string without '/'.

    >>> class Scaled(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         with tf.keras.name_scope("inner"):
    ...             self.factor = self.add_weight((), "ones", name="factor")
    ...     def call(self, x):
    ...         return x * self.factor
    >>> layer = Scaled(name="outer")
    >>> layer.build((None, 2))
    >>> layer.factor.path
    'outer/inner/factor'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name or "/" in name:
            raise ValueError(f"name_scope: name must be a string without '/', found {name!r}.")
        self.name = name

    def __enter__(self) -> name_scope:
        self._before = context.scopes
        context.scopes = (context.caller, (*context.names(), self.name))
        return self

    def __exit__(self, *error: Any) -> None:
        context.scopes = self._before
