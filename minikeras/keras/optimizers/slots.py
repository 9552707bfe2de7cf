"""What an optimizer keeps: its slots beside Variables, its counters, and how all of that is bound, saved and loaded.

Key idea: slots are made per Variable, and what a step looks up of a Variable is gathered in one `Kept`. State changes in one
way only: `commit` binds new arrays, all or none. Next: `optimizer.py`, which computes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from ...arrays import namespace
from ...core import Tensor, Variable
from ...core.dispatch import decide
from ...core.update_lock import UpdateLock
from ...errors import ShapeError
from ...types import Array
from ..weight import KerasVariable
from .blocks import Change
from .configuration import Configuration


class Kept:
    """What an optimizer keeps for one Variable; all that a step looks up, made once.

    Attributes:
        variable: the Variable.
        slots: the Variables beside it, by name.
        targets: the Variable itself and the slots of the formula, in its order.
        decays: whether weight decay reaches it.
    """

    __slots__ = ("decays", "slots", "targets", "variable")

    def __init__(self, variable: Variable, slots: dict[str, Variable], targets: list[Variable], decays: bool) -> None:
        self.variable, self.slots, self.targets, self.decays = variable, slots, targets, decays


class SlotKeeper(Configuration):
    """The state of an optimizer; `Optimizer` describes its options."""

    slot_groups: tuple[tuple[str, ...], ...] = ()
    """Names of the slots in the order in which the formula takes them. Each group stands together in `variables`, Variable by
    Variable; the groups follow one another."""

    def __init__(self, learning_rate: Any = 0.01, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self._slots: dict[int, Kept] = {}
        self._update_lock = UpdateLock()
        self._undecayed: list[Variable] = []
        self._undecayed_names: list[re.Pattern[str]] = []

    @property
    def built(self) -> bool:
        """Whether slots exist."""
        return bool(self._slots)

    @property
    def variables(self) -> list[Variable]:
        """Iteration, learning rate (unless scheduled), averages, accumulators, then the slots of the formula."""
        own = [self._iterations]
        if isinstance(self._learning_rate, Variable):
            own.append(self._learning_rate)
        for group in (("average",), ("gradient_accumulator",), *self.slot_groups):
            own += [kept.slots[name] for kept in self._slots.values() for name in group if name in kept.slots]
        return own

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of Variables that have none yet."""
        if not isinstance(variables, Iterable):
            raise TypeError(f"build: expected a list of Variables, found {variables!r:.200}.")
        new = [variable for variable in variables if getattr(variable, "key", None) not in self._slots]
        for variable in new:
            if not isinstance(variable, Variable):
                raise TypeError(f"build: expected Variables, such as model.trainable_variables, found {variable!r:.200}.")
        if new:
            self._slots = self._slots | {variable.key: self._kept(variable) for variable in new}
            self._update_lock.join([*new, self._iterations])

    def slot_names(self, variable: Variable) -> Sequence[str]:
        """Names of the slots that the formula needs for a Variable, in its order."""
        return [name for group in self.slot_groups for name in group]

    def initial_slot(self, name: str, value: Array) -> Array:
        """What a slot holds at first, given the Variable's value: zeros."""
        return namespace(value).zeros_like(value)

    def _kept(self, variable: Variable) -> Kept:
        """What to keep for a Variable, with slots at their first values."""
        value, path = variable._array, name_of(variable).removesuffix(":0").replace("/", "_")
        first = {"average": value} if self.use_ema else {}
        if self.gradient_accumulation_steps is not None:
            first["gradient_accumulator"] = namespace(value).zeros_like(value)
        names = self.slot_names(variable)
        first |= {name: self.initial_slot(name, value) for name in names}
        slots: dict[str, Variable] = {
            name: KerasVariable(Tensor(array), trainable=False, name=f"{path}_{name}") for name, array in first.items()
        }
        excluded = any(variable is other for other in self._undecayed)
        excluded = excluded or any(pattern.search(variable.name) for pattern in self._undecayed_names)
        return Kept(variable, slots, [variable, *(slots[name] for name in names)], not excluded)

    def slot(self, variable: Variable, name: str) -> Variable:
        """What the optimizer keeps beside a Variable: 'average', 'gradient_accumulator' or a slot of its formula.

        Raises:
            ValueError: if there is none, with the names there are.
        """
        slots = self._slots[variable.key].slots if variable.key in self._slots else {}
        if name not in slots:
            raise ValueError(f"{self.name} keeps no '{name}' for '{name_of(variable)}'; it keeps {list(slots) or 'nothing'}.")
        return slots[name]

    def _checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        """Counters, numbers and inner optimizers: what a checkpoint keeps beside the slots, by name."""
        for name, value in vars(self).items():
            if isinstance(value, (Variable, SlotKeeper)) or name == "_numbers":
                yield name.lstrip("_"), value

    def _checkpoint_slots(self) -> list[tuple[Variable, dict[str, Variable]]]:
        """The slots of each Variable, unless they are those of an inner optimizer."""
        return [(kept.variable, kept.slots) for kept in vars(self).get("_slots", {}).values()]

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Leave Variables out of weight decay: by object, or by a regular expression found in their name.

        Raises:
            ValueError: after the first step.
        """
        if self.built:
            raise ValueError("`exclude_from_weight_decay()` can only be configured before the optimizer is built.")
        self._undecayed += var_list or ()
        self._undecayed_names += [re.compile(name) for name in var_names or ()]

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Write all of `variables` to a mapping, by their position: '0', '1' and so on."""
        for position, variable in enumerate(self.variables):
            store[str(position)] = variable.numpy()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Have what `save_own_variables` wrote; all of it or, if anything does not fit, nothing.

        Raises:
            ValueError: if number or shapes differ.
        """
        variables = self.variables
        if len(store) != len(variables):
            hint = "" if self.built else " It has no slots yet: call optimizer.build(model.trainable_variables) first."
            raise ValueError(
                f"Optimizer '{self.name}' has {len(variables)} variables, the saved one {len(store)}. Nothing was loaded.{hint}"
            )
        arrays = [variable._convert(store[str(position)]) for position, variable in enumerate(variables)]
        for variable, array in zip(variables, arrays, strict=True):
            if array.shape != variable._array.shape:
                raise ShapeError(
                    f"Optimizer variable '{name_of(variable)}' has shape {tuple(variable.shape)}, the saved one {array.shape}. "
                    "Nothing was loaded."
                )
        decide(self._iterations)
        self.commit(list(zip(variables, arrays, strict=True)))

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Let those weights of which the optimizer keeps moving averages be these."""
        decide(self._iterations)
        if self.use_ema:
            known = [variable for variable in var_list if variable.key in self._slots]
            self.commit([(variable, self.slot(variable, "average")._array) for variable in known])

    @staticmethod
    def commit(changes: Sequence[Change]) -> None:
        """Let all Variables hold their new arrays; an interrupt on the way gives them all the old ones back."""
        before = [variable._array for variable, _ in changes]
        try:
            for variable, array in changes:
                variable.exchange(array)
        except BaseException:
            for (variable, _), array in zip(changes, before, strict=True):
                variable._array, variable._spare = array, None
            raise

    # Copying: a copied Variable has another key ---------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._slots = {kept.variable.key: kept for kept in self._slots.values()}
        self._update_lock.join(kept.variable for kept in self._slots.values())


def name_of(variable: Variable) -> str:
    """The path of a weight, the name of another Variable."""
    return getattr(variable, "path", variable.name)


def names_of(variables: Iterable[Variable]) -> str:
    """The names of several, for a message."""
    return ", ".join(map(name_of, variables))
