"""Calls without effects: the values of Variables go in as arguments, and their values afterwards come out as results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import Tensor, Variable, convert_to_tensor
from ..core.effects import Write
from ..core.stack import Frame, Interpreter, on_top
from ..core.variable import read_variable
from ..errors import InvalidArgumentError, ShapeError
from ..functions.elementwise import cast

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

    def assign(self, variable: Variable, value: Any, how: Write, below: Frame) -> bool:
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
