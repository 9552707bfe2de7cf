"""The state of an optimizer: the slots of each Variable, and the number of steps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import nest
from ...core import HeldLocks, Operand, Tensor, UpdateLocks, Variable, restore, snapshot
from ...errors import ShapeError
from ...functions.elementwise import cast
from ...types import Array, DTypeLike
from ..calls import context
from ..weight import HostVariable, Weight

Change = tuple[Variable, Array]
"""A Variable and the array that it is to hold."""


class SlotState:
    """The state of an optimizer for one Variable.

    Attributes:
        slots: the Variables beside it, by name.
        decays: whether weight decay reaches it.
        member: the number of the member of a `PerLayer` that it belongs to.
    """

    __slots__ = ("decays", "member", "slots", "variable")

    def __init__(self, variable: Variable, slots: dict[str, Variable], decays: bool = True, member: int = 0) -> None:
        self.variable, self.slots, self.decays, self.member = variable, slots, decays, member

    def slot(self, optimizer: Any, name: str) -> Variable:
        """The slot of this name; ValueError if the optimizer keeps none, with the names there are."""
        if name not in self.slots:
            raise ValueError(
                f"{optimizer.name} keeps no '{name}' for '{name_of(self.variable)}'; it keeps {list(self.slots) or 'nothing'}. "
                "Set options that ask for more before the first step, or assign built = False, which drops what is kept."
            )
        return self.slots[name]

    def decay(self, optimizer: Any) -> Any:
        """The weight decay of an optimizer for the Variable, 0 for none."""
        return (optimizer.decay_of(self.variable) or 0.0) if self.decays else 0.0


class OptimizerState:
    """Slots by Variable, the counter of steps, and the locks that a step holds.

    Args:
        owner: the name of the optimizer.
        parts: the states of the optimizers that this one wraps; their slots are its slots. None if it wraps none.

    Attributes:
        iterations: the number of steps taken.
        own: the slots that are here and not in a part, or what else is known of each Variable. Never changed in place.
        added: Variables that an optimizer written for Keras has added, in its order.
        locks: of all Variables that have slots, of these, and of the numbers that steps change.
    """

    def __init__(self, owner: str, parts: Sequence[OptimizerState] | None = None) -> None:
        self.locks = UpdateLocks()
        self._owner, self._numbers, self._parts = owner, list[Variable](), parts
        self.iterations = self.add_number(np.int64(0), "iteration")
        self.own: dict[int, SlotState] = {}
        self.added: list[Variable] = []
        self._early: dict[int, dict[str, Variable]] = {}
        """Slots that were added before their Variable was known."""
        self._first = 0
        """The number of Variables that were added before the slots were made."""
        self._join_locks()

    @property
    def slots(self) -> dict[int, SlotState]:
        """The state for each Variable, by the Variable's key."""
        if self._parts is None:
            return self.own
        if len(self._parts) == 1:
            return self._parts[0].slots
        return functools.reduce(operator.or_, [part.slots for part in self._parts], {})

    def add_number(self, value: Any, name: str, dtype: DTypeLike = None) -> Variable:
        """A number that steps change, in host memory."""
        self._numbers.append(host_variable(self._owner, value, name, dtype))
        self.locks.join(self._numbers)
        return self._numbers[-1]

    def add(self, new: Iterable[SlotState]) -> None:
        added = {found.variable.key: found for found in new}
        for key, found in added.items():
            found.slots.update(self._early.pop(key, {}))
        self.locks.join(_with_slots(added))
        self.own = self.own | added  # last: another thread that finds them takes a step

    def begin(self) -> None:
        """Begin to make slots: Variables added from now on are dropped together with the slots."""
        self._first = len(self.added)

    def keep(self, variable: Variable, beside: Variable | None = None, name: str = "") -> Variable:
        """Add a Variable, as a slot of the one `beside` it if that is given, and return it."""
        if not any(variable is other for other in self.added):
            self.added = [*self.added, variable]
        if beside is not None:
            slots = self.own[beside.key].slots if beside.key in self.own else self._early.setdefault(beside.key, {})
            slots[name] = variable
        return variable

    @property
    def slot_keys(self) -> set[int]:
        """The keys of all slots."""
        return {slot.key for found in self.slots.values() for slot in found.slots.values()}

    def shared(self) -> list[Variable]:
        """Variables that were added and are not slots."""
        slots = self.slot_keys
        return [variable for variable in self.added if variable.key not in slots]

    def unknown_in(self, attributes: Iterable[Any]) -> list[Variable]:
        """Variables in lists or dicts among attributes, without those trained or known here; none before there are slots."""
        slots = self.slots
        known = {*slots, *self.slot_keys, *(one.key for one in self.added)}
        held = [list(one.values()) if type(one) is dict else one for one in attributes] if slots else []
        leaves = [leaf for one in held if type(one) in (list, tuple) for leaf in nest.flatten(one)]
        found = [leaf for leaf in leaves if isinstance(leaf, Variable) and not isinstance(leaf, Weight)]
        return [leaf for leaf in found if leaf.key not in known]

    def restore(self, slots: Mapping[int, SlotState]) -> None:
        """Remember only those Variables that are among these slots."""
        self.own = {key: found for key, found in self.own.items() if key in slots}
        if not self.own:
            self.added = self.added[: self._first]
        for part in self._parts or ():
            part.restore(slots)

    def include(self, part: OptimizerState) -> None:
        """Include the state of another optimizer that this one wraps."""
        self._parts = (*(self._parts or ()), part)
        self.locks.include(part.locks.all)

    def step(self, new: Collection[Variable]) -> StepOf:
        """Within the block all locks are held, those of new Variables too; if it fails, slots that it made are forgotten."""
        if new:
            self.locks.join(new)
        return StepOf(self)

    def _join_locks(self) -> None:
        self.locks.join([*self._numbers, *_with_slots(self.own)])
        for part in self._parts or ():
            self.locks.include(part.locks.all)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copied Variable has another key."""
        self.__dict__.update(state)
        self.own = {found.variable.key: found for found in self.own.values()}
        self._join_locks()


def _with_slots(states: Mapping[int, SlotState]) -> list[Variable]:
    """The Variables that a step of these changes: it holds their locks."""
    return [one for found in states.values() for one in (found.variable, *found.slots.values())]


class StepOf:
    """The block of one step, see `OptimizerState.step`; a class, since a generator would cost a microsecond more."""

    __slots__ = ("_before", "_held", "_state")

    def __init__(self, state: OptimizerState) -> None:
        self._state, self._held = state, HeldLocks(state.locks.all)

    def __enter__(self) -> None:
        self._held.__enter__()
        self._before = self._state.slots  # read here: what another thread's step built while this one waited stays

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is not None:
                self._state.restore(self._before)
        finally:
            self._held.__exit__()


def commit(changes: Sequence[Change]) -> None:
    """Let all Variables hold their new arrays; an interrupt on the way gives them all the old ones back."""
    before = snapshot([variable for variable, _ in changes])
    try:
        for variable, array in changes:
            variable.exchange(array)
    except BaseException:
        restore(before)
        raise


def host_variable(owner: str, value: Any, name: str, dtype: DTypeLike = None) -> Variable:
    """A number of an optimizer in host memory, never trained."""
    return HostVariable(value, trainable=False, name=name, dtype=dtype, path=context.path(owner, name))


def name_of(variable: Variable) -> str:
    """The path of a weight, the name of another Variable."""
    return getattr(variable, "path", variable.name)


def path_of(variable: Variable) -> str:
    """As `name_of`, without the number of an output."""
    return name_of(variable).removesuffix(":0")


def slot_name(variable: Variable, name: str) -> str:
    """The name of a slot, after that of its Variable."""
    return f"{path_of(variable).replace('/', '_')}_{name}"


def names_of(variables: Iterable[Variable]) -> str:
    return ", ".join(map(name_of, variables))


def in_dtype_of(variable: Variable, value: Any) -> Any:
    """A value to assign to a Variable; a Tensor in the Variable's dtype."""
    return cast(value, variable.dtype) if isinstance(value, Operand) and value.dtype != variable.dtype else value


def constrained(variable: Variable, array: Array) -> Change:
    """A new value within the Variable's constraint, if it has one."""
    if variable.constraint is None:
        return variable, array
    projected = variable.convert(variable.constraint(Tensor(array)))
    if projected.shape != array.shape:
        raise ShapeError(
            f"apply: the constraint of '{name_of(variable)}' turned shape {array.shape} into {projected.shape}; it must keep "
            "the shape."
        )
    return variable, projected
