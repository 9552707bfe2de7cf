"""Optimizers written for Keras: `update_step(gradient, variable, learning_rate)` assigns where a `formula` returns.

A step lets it assign, notes the changes and undoes them; then they are committed as a whole, like those of any other step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import nest
from ...core import Tensor, Variable
from ...core.effects import State, effect
from ...core.tensor import Operand
from ...core.variable import restore, snapshot
from ...functions.elementwise import cast
from ...types import Array
from ..weight import Weight
from .state import Change, SlotState, Stepper

present_rate = effect(
    "learning_rate", lambda *, optimizer: optimizer._scheduled().array, reads=(State.VARIABLES,), writes=(State.VARIABLES,)
)
"""The learning rate of a schedule, computed anew in each run."""


def changes_of(optimizer: Stepper, gradients: Sequence[Array], states: Sequence[SlotState]) -> list[Change]:
    """All that `update_step` assigns for these gradients. Nothing stays assigned."""
    before = snapshot([*(known.variable for known in optimizer.state.slots.values()), *optimizer.variables])
    try:
        take_updates(optimizer, [Tensor(gradient) for gradient in gradients], states)
        return [(variable, variable.array) for variable, array in before if variable.array is not array]
    finally:
        restore(before)


def take_updates(optimizer: Stepper, gradients: Sequence[Any], states: Sequence[SlotState]) -> None:
    """Weight decay, then `update_step` for each Variable."""
    rate = optimizer.learning_rate
    for state in states:
        variable, decay = state.variable, optimizer.decay_of(state.variable)
        if state.decays and decay:
            variable.assign_sub(variable * decay * cast(rate, variable.dtype))
    optimizer._backend_update_step(gradients, [state.variable for state in states], rate)


def held_in_containers(optimizer: Stepper) -> list[Variable]:
    """Variables that `build` put into lists or dicts without `add_variable`; no Variables that are trained."""
    slots = optimizer.state.slots
    if not slots or not optimizer.assigns:
        return []
    known = {*slots, *(one.key for one in optimizer.state.added)}
    known |= {slot.key for found in slots.values() for slot in found.slots.values()}
    held = [list(one.values()) if type(one) is dict else one for name, one in vars(optimizer).items() if name != "_undecayed"]
    leaves = [leaf for one in held if type(one) in (list, tuple) for leaf in nest.flatten(one)]
    return [leaf for leaf in leaves if isinstance(leaf, Variable) and not isinstance(leaf, Weight) and leaf.key not in known]


def in_dtype_of(variable: Variable, value: Any) -> Any:
    """A value to assign to a Variable; a Tensor in the Variable's dtype."""
    return cast(value, variable.dtype) if isinstance(value, Operand) and value.dtype != variable.dtype else value
