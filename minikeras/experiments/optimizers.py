"""The optimizers of all members, as one that steps over whole Variables.

Where the formula of a step is elementwise, all members take it in one loop, whatever numbers differ (`together.py`). Other
steps, with norms of weights, constraints or an `update_step`, the members take in turn, by themselves.

The members' own optimizers stay the place to read and set: their learning rates and options are looked up in each step.
`StackedOptimizer.release` gives them their slots for good, `shown` for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ..compiler.loops import Untraceable
from ..core import Tensor, Variable
from ..core.arrays import namespace, to_numpy
from ..core.batch import BatchedTensor
from ..core.stack import BOTTOM, current, on_top, perform
from ..core.variable import restore, snapshot
from ..errors import InvalidArgumentError
from ..functions.operands import tensor
from ..keras.optimizers import LossScaleOptimizer, Optimizer, PerLayer
from ..keras.optimizers.loss_scale import present_scale
from ..keras.optimizers.state import BESIDE, Change, SlotState, paired
from ..keras.optimizers.step import changes_others
from ..keras.optimizers.update_steps import present_rate
from ..keras.weight import KerasVariable
from ..types import Array
from .members import Members, Row, give_rows, shown_rows, with_rows, without_memory
from .together import MembersPart

Rows = Sequence[tuple[Variable, Sequence[Variable]]]
"""A Variable that holds all members' values along a first axis, and the Variables of the members' own models."""


def kind_of(optimizer: Any) -> Any:
    """The common part of the optimizers of members that are trained together: their class, and those of optimizers within.

    >>> kind_of(tf.keras.optimizers.Adam(0.1)) == kind_of(tf.keras.optimizers.Adam(0.2, beta_1=0.5))
    True
    """
    if isinstance(optimizer, PerLayer):
        return type(optimizer), tuple([(one.every, one.offset, kind_of(one.optimizer)) for one in optimizer.members])
    if isinstance(optimizer, LossScaleOptimizer):
        return type(optimizer), kind_of(optimizer.inner_optimizer)
    return type(optimizer)


def check(optimizers: Sequence[Any]) -> None:
    """Refuse optimizers that cannot step together."""
    kind = kind_of(optimizers[0])
    for place, optimizer in enumerate(optimizers):
        if optimizer is None:
            raise InvalidArgumentError(f"member {place} of the ensemble has no optimizer: compile(optimizer='adam').")
        if kind_of(optimizer) != kind:
            raise InvalidArgumentError(
                f"the members of an ensemble must have optimizers of one kind: member 0 has {_text(optimizers[0])}, member "
                f"{place} has {_text(optimizer)}. Numbers such as the learning rate may differ. Train them with Sweep, "
                "which makes a group for each kind."
            )


def _text(optimizer: Any) -> str:
    if isinstance(optimizer, PerLayer):
        inner = [f"{member.label!r}: {_text(member.optimizer)}" for member in optimizer.members]
        return f"{type(optimizer).__name__}({', '.join(inner)})"
    return "none" if optimizer is None else type(optimizer).__name__


class Held:
    """The private state of a `StackedOptimizer`. Walks that look for state do not enter it: `variables` names the Variables.

    Attributes:
        optimizers: the members' own.
        members: the interpreter.
        rows: for the key of a whole Variable the members' own.
        owners: for the key of a member's own Variable the whole one and its place there.
        at_once: whether slots are stacked, as all members can step at once; else the members step in turn.
        ended: the places of members that step no more; their rows mean nothing.
    """

    def __init__(self, optimizers: Sequence[Optimizer], members: Members, rows: Rows) -> None:
        self.optimizers, self.members = list(optimizers), members
        self.rows = {whole.key: own for whole, own in rows}
        self.owners = {own.key: (whole, place) for whole, found in rows for place, own in enumerate(found)}
        self.at_once = True
        self.ended: set[int] = set()

    @property
    def active(self) -> list[Optimizer]:
        """The optimizers of members that have not ended."""
        return [optimizer for place, optimizer in enumerate(self.optimizers) if place not in self.ended]

    def __deepcopy__(self, memo: dict[int, Any]) -> Held:
        raise InvalidArgumentError("the optimizers of an ensemble are not copied; copy those of its members.")


class StackedOptimizer(Optimizer):
    """The optimizers of all members as one, over Variables that hold all members' values along a first axis.

    A model under `Members` sees it: given that model's Variables and the gradients under `Members`, it steps over the whole
    Variables, outside of `Members`.

    Args:
        optimizers: one for each member, of one kind.
        members: the interpreter.
        rows: the whole Variables and the members' own.
    """

    def __init__(self, optimizers: Sequence[Any], members: Members, rows: Rows) -> None:
        check(optimizers)
        super().__init__(0.0, name=optimizers[0].name)
        self._held = Held(optimizers, members, rows)
        self.slot_groups = optimizers[0].slot_groups
        self.needs_loss = any(optimizer.needs_loss for optimizer in optimizers)  # then each member's own model takes its step

    @property
    def optimizers(self) -> list[Optimizer]:
        """The members' own."""
        return self._held.optimizers

    @property
    def ended(self) -> set[int]:
        """The places of members that step no more."""
        return self._held.ended

    @property
    def steps_at_once(self) -> bool:
        """True if all members step in one loop, as far as is known."""
        return self._held.at_once

    @property
    def variables(self) -> list[Variable]:
        """The Variables of the members' optimizers; and the whole slots, if all step at once."""
        return [*(variable for optimizer in self.optimizers for variable in optimizer.variables), *self.whole_slots]

    @property
    def whole_slots(self) -> list[Variable]:
        """The slots of all members at once."""
        return [slot for known in self.state.slots.values() for slot in known.slots.values()]

    @property
    def iterations(self) -> Any:
        """The number of updates."""
        return self._held.active[0].iterations

    @property
    def learning_rate(self) -> Any:
        """Each member's own learning rate. Set it to one for all or to a list with one for each."""
        with self._below():
            rates = perform(present_rate, (), {"optimizer": self})
        return BatchedTensor(rates, self._held.members)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        values = list(value) if not callable(value) and np.ndim(value) else [value] * len(self.optimizers)
        if len(values) != len(self.optimizers):
            raise InvalidArgumentError(f"learning_rate: {len(self.optimizers)} members need as many, found {len(values)}.")
        for optimizer, one in zip(self.optimizers, values, strict=True):
            optimizer.learning_rate = one

    lr = learning_rate

    @property
    def rate_is_own(self) -> bool:
        """True if formulas and learning rates are the package's own: a user's may read anything, at any time."""
        return all(one.rate_is_own and one.is_own for one in self.optimizers)

    def scale_loss(self, loss: Any) -> Any:
        """The losses times the members' scales."""
        if not any(one.loss_scale_factor is not None or isinstance(one, LossScaleOptimizer) for one in self.optimizers):
            return loss
        losses = self._held.members.stack_of(tensor(loss))
        with self._below():
            scales = perform(present_scale, (losses,), {"optimizer": self, "dtype": losses.array.dtype})
        return loss * BatchedTensor(scales, self._held.members)

    def present_scale(self) -> Array:
        """The loss scale of each member."""
        scales = [
            to_numpy(one.dynamic_scale.array) if isinstance(one, LossScaleOptimizer) else one.loss_scale_factor or 1.0
            for one in self.optimizers
        ]
        return np.array(scales, np.float64)

    def _scheduled(self) -> Tensor:
        return Tensor(np.array([one._rate() for one in self.optimizers], np.float32))

    def _below(self) -> on_top:
        """A block outside of `Members`."""
        return on_top(current().without(self._held.members))

    # Slots ---------------------------------------------------------------------------------------------------------------

    def prepare(self, variables: Sequence[Variable]) -> None:
        """Make the slots that there are not yet for Variables of the model that is run."""
        wholes = self._wholes(variables)
        with self._below():
            self.build(wholes)

    def _wholes(self, variables: Iterable[Variable]) -> list[Variable]:
        """The whole Variables that the model's Variables represent."""
        held = self._held
        return [one if one.key in held.rows else held.members.whole_of(one) for one in variables]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the members' slots beside whole Variables, and stack them if all can step at once."""
        new = [variable for variable in variables if variable.key not in self.state.slots]
        if not new:
            return
        held = self._held
        with self._shown(new):
            for place, optimizer in enumerate(self.optimizers):
                optimizer.prepare([held.rows[whole.key][place] for whole in new])
        states = [SlotState(whole, {}, [whole], True) for whole in new]
        if held.at_once:
            stacked, known = [self._stacked(whole) for whole in new] if self._is_alike(new) else [], self.state.slots.values()
            # If slots are stacked already, steps of new ones that do not fit are taken in turn.
            held.at_once = bool(known) or (bool(stacked) and self._is_at_once(stacked))
            states = stacked if held.at_once else states
        self.state.add(states)
        if held.at_once:
            self._let_go(new)

    def _is_alike(self, wholes: Sequence[Variable]) -> bool:
        """True if all members have the same slots."""
        places = range(len(self.optimizers))
        return all(len({tuple(name for name, _ in self._own_slots(one, i)) for i in places}) == 1 for one in wholes)

    def _stacked(self, whole: Variable) -> SlotState:
        """The slots of all members beside a whole Variable."""
        columns = zip(*[self._own_slots(whole, place) for place, _ in enumerate(self.optimizers)], strict=True)
        slots = {pairs[0][0]: _whole_slot([slot for _, slot in pairs]) for pairs in columns}
        names = [name for name in slots if name not in BESIDE]
        return SlotState(whole, slots, [whole, *(slots[name] for name in names)], True)

    def _own_slots(self, whole: Variable, place: int) -> list[tuple[str, Variable]]:
        """The slots that a member's own optimizer has, by name."""
        found = self.optimizers[place].state.slots.get(self._held.rows[whole.key][place].key)
        return [] if found is None else list(found.slots.items())

    def parts(self, states: Sequence[SlotState], owner: Any) -> list[tuple[MembersPart, list[int]]]:
        """The steps of all members at once, for a `CompiledStep` of the owner, this one or its stand-in; each with the
        positions of its Variables. Untraceable for members that step in turn.
        """
        held, shares = self._held, dict[int, tuple[list[Any], list[int]]]()
        if not held.at_once or any(
            member.every != 1 for one in self.optimizers if isinstance(one, PerLayer) for member in one.members
        ):
            raise Untraceable("members that take turns")
        for i, state in enumerate(states):
            own = [_part_of(*pair) for pair in zip(self.optimizers, held.rows[state.variable.key], strict=True)]
            if len({number for number, _ in own}) > 1:
                raise Untraceable("Variables that have other optimizers in some members")
            if own[0][1] is not None:
                shares.setdefault(own[0][0], ([optimizer for _, optimizer in own], []))[1].append(i)
        given = {state.variable.key for state in states}
        others = {_part_of(self.optimizers[0], held.rows[key][0])[0] for key in self.state.slots if key not in given}
        found = list[tuple[MembersPart, list[int]]]()
        for number, (optimizers, places) in shares.items():
            if number in others and changes_others(optimizers[0]):
                raise Untraceable("what has no gradient changes too")
            holders = self.optimizers if isinstance(self.optimizers[0], PerLayer) and not found else ()
            part = MembersPart(owner, optimizers, [states[i] for i in places], held.rows, held.ended, holders)
            found.append((part, places))
        return found

    def _is_at_once(self, states: Sequence[SlotState]) -> bool:
        """True if all members can take the steps for these Variables at once."""
        try:
            with on_top(BOTTOM):  # this looks at numbers as they are now, unseen by interpreters
                return bool(self.parts(states, self))
        except Untraceable:
            return False

    def release(self, places: Sequence[int]) -> None:
        """Let the optimizers of some members hold their slots, and step no more."""
        self._held.ended.update(places)
        give_rows(self.rows_of(places))

    def shown(self, places: Sequence[int]) -> AbstractContextManager[None]:
        """A block within which the optimizers of some members hold their slots; values assigned to them there are kept."""
        return shown_rows(self.rows_of(places))

    def rows_of(self, places: Sequence[int]) -> list[Row]:
        """The slots of some members, if all step at once."""
        return [
            (state.slots[name], place, slot)
            for state in (self.state.slots.values() if self.steps_at_once else ())
            for place in places
            for name, slot in self._own_slots(state.variable, place)
        ]

    def _let_go(self, wholes: Sequence[Variable]) -> None:
        """Have the members' slots keep shape and dtype alone; those of members that ended stay theirs."""
        for whole in wholes:
            for place in set(range(len(self.optimizers))) - self._held.ended:
                for _, slot in self._own_slots(whole, place):
                    slot.array = without_memory(slot.array)

    @contextmanager
    def _shown(self, wholes: Iterable[Variable]) -> Iterator[None]:
        """Within the block the members' own Variables hold their values."""
        pairs = [(whole, self._held.rows[whole.key]) for whole in wholes]
        before = snapshot([own for _, found in pairs for own in found])
        try:
            for whole, found in pairs:
                for place, own in enumerate(found):
                    own.array = whole.array[place, ...]
            yield
        finally:
            restore(before)

    # The step ------------------------------------------------------------------------------------------------------------

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Any:
        """Update the Variables of all members by their gradients; as `Optimizer.apply`."""
        wholes = self._wholes(trainable_variables or ())
        with self._below():
            given = [None if gradient is None else self._held.members.stack_of(gradient) for gradient in grads]
            return super().apply(given, wholes)

    def learning(self, variables: Sequence[Variable]) -> list[int] | None:
        """As in `Optimizer`: a `PerLayer` freezes Variables."""
        first = self.optimizers[0]
        if not isinstance(first, PerLayer):
            return None
        self.build(variables)
        return [i for i, one in enumerate(variables) if first.optimizer_for(self._held.rows[one.key][0]) is not None]

    def changes(self, gradients: list[Array], states: list[SlotState]) -> list[Change]:
        """All changes of one step, member by member: only a program has them step at once. Nothing is assigned."""
        held, changes, known = self._held, [], list(self.state.slots.values())
        members = [place for place in range(len(self.optimizers)) if place not in held.ended]
        owners = held.owners | {slot.key: (whole, place) for whole, place, slot in self.rows_of(members)}
        rows: dict[int, tuple[Variable, dict[int, Array]]] = {}
        with self._shown([state.variable for state in known]), self.shown(members):
            for place in members:
                optimizer = self.optimizers[place]
                own = [held.rows[state.variable.key][place] for state in states]
                _, arrays, found = paired(optimizer, [Tensor(gradient[place, ...]) for gradient in gradients], own)
                for variable, array in optimizer.changes(arrays, found):
                    if variable.key in owners:
                        whole, _ = owners[variable.key]
                        rows.setdefault(whole.key, (whole, {}))[1][place] = array
                    else:
                        changes.append((variable, array))
        return [*((whole, with_rows(whole.array, found)) for whole, found in rows.values()), *changes]


StackedOptimizer.package_class = StackedOptimizer


def _part_of(optimizer: Optimizer, variable: Variable) -> tuple[int, Optimizer | None]:
    """The number of the inner optimizer that has a Variable, and that optimizer; None if the Variable is frozen."""
    if not isinstance(optimizer, PerLayer):
        return 0, optimizer
    found = optimizer.optimizer_for(variable)
    return [id(member.optimizer) for member in optimizer.members].index(id(found)), found


def _whole_slot(slots: Sequence[Variable]) -> Variable:
    arrays = [slot.array for slot in slots]
    return KerasVariable(Tensor(namespace(arrays[0]).stack(arrays)), trainable=False, name=slots[0].name)
