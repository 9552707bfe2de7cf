"""Calls of layers: their context, for each thread, with settings of the outer calls and scopes of names; and calls without
effects, to which values of Variables are arguments, and their values afterwards results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..core import Frame, Interpreter, Tensor, Variable, Write, convert_to_tensor, on_top, read_variable
from ..errors import InvalidArgumentError, ShapeError
from ..functions.elementwise import cast
from ..types import TensorLike

setattr(Tensor, "_keras_mask", vars(Tensor)["attached"])  # noqa: B010  what Keras attaches to a tensor is its mask


def mask_of(x: TensorLike) -> Any:
    """The mask that a tensor carries: true where it counts; None if it carries none."""
    return getattr(x, "_keras_mask", None)


class CallContext(threading.local):
    """`training` of the outer calls, the layer that is being called or built, the innermost one that is being built, and the
    scopes that were opened in the caller.
    """

    training: bool | None = None
    caller: Any = None
    built: Any = None
    scopes: tuple[Any, tuple[str, ...]] = (None, ())

    @property
    def is_building(self) -> bool:
        """True if the present caller is being built."""
        return self.caller is not None and self.caller is self.built

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


# Calls without effects -------------------------------------------------------------------------------------------------

Groups = Sequence[tuple[str, Sequence[Variable], Sequence[Any]]]
"""Name of an argument, Variables, and a value for each."""


class Stateless(Interpreter):
    """Reads and assigns values in the place of Variables, by their keys; derivatives reach the values."""

    __slots__ = ("values",)

    def __init__(self, values: dict[int, Tensor]) -> None:
        self.values = values

    def process(self, primitive: Any, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Let a value stand for the Variable that is read."""
        found = self.values.get(inputs[0].key) if primitive is read_variable else None
        return super().process(primitive, inputs, params, below) if found is None else found

    def assign(self, variable: Variable, value: TensorLike, how: Write, below: Frame) -> bool:
        """Keep the new value; True if the Variable is one of those with values."""
        held = self.values.get(variable.key)
        if held is None:
            return False
        if how is Write.SCATTER:
            raise InvalidArgumentError(f"stateless: variable '{variable.name}' is written in part. Assign the whole of it.")
        with on_top(below):
            value = convert_to_tensor(value() if callable(value) and not hasattr(value, "key") else value, variable.dtype)
            if value.shape != held.shape:
                raise ShapeError(f"{how}: variable '{variable.name}' has shape {held.shape}, the value {value.shape}.")
            if how is not Write.ASSIGN:
                value = held + value if how is Write.ADD else held - value
            self.values[variable.key] = value
        return True


def without_effects(asker: str, groups: Groups, call: Callable[[], Any]) -> tuple[Any, list[list[Any]]]:
    """The result of a call while Variables hold other values, and what those of each group would hold afterwards.

    Raises:
        ValueError: if a group has more or fewer values than Variables.
    """
    values: dict[int, Tensor] = {}
    for name, variables, given in groups:
        if len(variables) != len(given):
            raise ValueError(
                f"{asker}: {name} must be {len(variables)} values, one for each Variable, found {len(given)}. Variables are "
                "made when a layer or an optimizer is built."
            )
        values |= {held.key: cast(convert_to_tensor(value), held.dtype) for held, value in zip(variables, given, strict=True)}
    with Stateless(values):
        result = call()
    return result, [[values[held.key] for held in variables] for _, variables, _ in groups]
