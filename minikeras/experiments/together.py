"""Steps of several optimizers as one: an elementwise formula is one loop over the Variables of all members.

Learning rates, decays and all other numbers of the formula may differ from member to member.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.ir import PLAIN
from ..compiler.loops import Untraceable
from ..compiler.passes.expansion import Writer
from ..core import Primitive, Variable
from ..core.arrays import namespace
from ..core.effects import State, clock, effect
from ..errors import InvalidArgumentError
from ..keras.optimizers import Optimizer
from ..keras.optimizers.compiled_step import is_usual
from ..keras.optimizers.schedules import LearningRateSchedule
from ..keras.optimizers.state import SlotState
from ..keras.optimizers.step import Sight, TracedFormula, changes_others, columns_of, flags_of, numbers_of, sight_of
from ..layout import Layout
from ..types import Array
from .members import MemberBody, laid_out, with_member_numbers


class MemberGroup(NamedTuple):
    """Variables of one dtype, of which each member has one weight decay.

    Attributes:
        places: their positions.
        formula: of the step.
        elements: the operands of the loop among the gradient and the columns, by number.
        numbers: its operands among the numbers of a step and the settings after them.
        decays: the weight decay of each member; empty for none.
        body: of the loop over their elements.
        layout: their places in one flat array.
    """

    places: list[int]
    formula: TracedFormula
    elements: list[int]
    numbers: list[int]
    decays: tuple[float, ...]
    body: MemberBody
    layout: Layout


class Plan(NamedTuple):
    """The part of a step that stays the same from step to step.

    Attributes:
        states: of the Variables.
        kinds: for each member the first one with the same options, so that equal ones compute their numbers once.
        settings: the names of options that differ.
        flags: the names of further numbers of a step.
        differ: whether any number differs between members.
        groups: of the Variables.
        options: of all members, as a guard.
    """

    states: list[SlotState]
    kinds: list[int]
    settings: list[str]
    flags: tuple[str, ...]
    differ: bool
    groups: list[MemberGroup]
    options: list[Any]


class Together:
    """Optimizers of one class, one for each member, that step together.

    Args:
        optimizers: built, each for its own Variables.
        rows: for the key of a whole Variable the members' own.
        ended: the places of members that step no more: their optimizers stay as they are.
        size: the number of their whole Variables.
    """

    def __init__(
        self, optimizers: Sequence[Optimizer], rows: dict[int, Sequence[Variable]], ended: Collection[int], size: int
    ) -> None:
        self.optimizers, self._rows, self._ended, self._size = list(optimizers), rows, ended, size
        self._plan: Plan | None = None
        self._states: list[SlotState] = []
        self._looked = -1
        self._asked: Any = None
        self._held: list[Any] = []
        self._rates: list[Any] | None = None
        self._numbers: list[int] = []
        self._firsts: list[int] = []
        """The last learning rates, the number of each member's step, and the first member with each step."""
        self._laid_out: dict[tuple[int, int], tuple[bytes, Array]] = {}
        """The last coefficients at every element, by group and position: most stay the same from step to step."""

    # What one step is ----------------------------------------------------------------------------------------------------

    def planned(self, states: Sequence[SlotState]) -> Plan | None:
        """The plan of the steps for these whole Variables; None if the formula is not elementwise."""
        if states != self._states or (clock.now != self._looked and not (self._plan and self._is_of(self._plan))):
            self._states, self._plan, self._laid_out = list(states), self._made(list(states)), {}
        self._looked = clock.now
        return self._plan

    def _is_of(self, plan: Plan) -> bool:
        """True if the options of all members are those of a plan, and their numbers still equal if they were."""
        same = list(map(_options, self.optimizers)) == plan.options and self._is_free(plan.states)
        return same and (plan.differ or _agree(self._steps(plan.kinds, plan.groups, plan.flags)))

    def _is_free(self, states: Sequence[SlotState]) -> bool:
        """True if no member's Variable has a constraint."""
        return all([own.constraint is None for state in states for own in self._rows[state.variable.key]])

    def _made(self, states: list[SlotState]) -> Plan | None:
        optimizers, first = self.optimizers, self.optimizers[0]
        if any(one.assigns or not is_usual(one, states) or _hides(one, first) for one in optimizers) or not self._is_free(
            states
        ):
            return None
        step = first.begin_step(1, first._rate())
        if sight_of(first, states, step) is not Sight.ELEMENT:
            return None
        before = first.loss_scale_factor, first.gradient_accumulation_steps  # norms are of what comes after these
        if (first.clipnorm, first.global_clipnorm) != (None, None) and before != (None, None):
            return None
        if changes_others(first) and len(states) < self._size:
            return None
        options = list(map(_options, optimizers))
        settings = _differing(options)
        if settings is None or len({optimizer.state.iterations.array.item() for optimizer in self._going_on}) > 1:
            return None
        marks: dict[Any, list[int]] = {}
        for place, state in enumerate(states):
            marks.setdefault((state.variable.array.dtype, self._decays(state.variable)), []).append(place)
        kinds, flags = self._kinds(options, [decays for _, decays in marks]), tuple(flags_of(first, 0))
        decayed = [decays for _, decays in marks if any(decays)]
        groups: list[MemberGroup] = []
        for (dtype, decays), places in marks.items():
            names = (*(["decay"] if any(decays) else []), *flags)
            try:
                formula = TracedFormula(first, states[places[0]], step, names, settings=settings, clips=False)
                passes = formula.passes("__call__")
            except Untraceable:
                return None
            spread = with_member_numbers(passes[0].body) if len(passes) == 1 else None
            if spread is None:
                return None
            layout = Layout([states[place].variable.array.shape for place in places], dtype)
            decay = decayed.index(decays) if decays in decayed else None
            numbers = _numbers_of(formula.leaves, len(decayed), decay, len(flags), len(settings))
            count, reads = 1 + formula.width, passes[0].reads
            elements, taken = [one for one in reads if one < count], [numbers[one - count] for one in reads if one >= count]
            groups.append(MemberGroup(places, formula, elements, taken, decays if any(decays) else (), spread, layout))
        steps = self._steps(kinds, groups, flags)
        differ = any(one != options[0] for one in options) or not _agree(steps) or any(len(set(one)) > 1 for _, one in marks)
        return Plan(states, kinds, settings, flags, differ, groups, options)

    def _decays(self, whole: Variable) -> tuple[float, ...]:
        """The weight decay of each member's Variable."""
        pairs = zip(self.optimizers, self._rows[whole.key], strict=True)
        return tuple(
            [(optimizer.decay_of(own) or 0.0) if optimizer.state.slots[own.key].decays else 0.0 for optimizer, own in pairs]
        )

    def _kinds(self, options: Sequence[Any], decays: Sequence[tuple[float, ...]]) -> list[int]:
        first: dict[Any, int] = {}
        kinds = []
        for place, (optimizer, own) in enumerate(zip(self.optimizers, options, strict=True)):
            remembers = optimizer.changes_numbers
            key = place if remembers else (repr(own), tuple([one[place] for one in decays]))
            kinds.append(first.setdefault(key, place))
        return kinds

    # Its numbers -----------------------------------------------------------------------------------------------------------

    def _steps(self, kinds: Sequence[int], groups: Sequence[MemberGroup], flags: Sequence[str]) -> list[tuple[float, ...]]:
        """The numbers of `begin_step`, flattened, products of weight decays and learning rate, and flags: once for all members
        with the same numbers; `_numbers` says which of these each member has.
        """
        taken = int(self._going_on[0].state.iterations.array)
        decays = [group.decays for group in groups if group.decays]
        return [
            numbers_of(self.optimizers[place], taken, [own[place] for own in decays], flags) for place in self._alike(kinds)
        ]

    def _alike(self, kinds: Sequence[int]) -> list[int]:
        """The first member of each kind and learning rate."""
        if self._asked != (clock.now, kinds):
            self._held = [one._learning_rate for one in self.optimizers if isinstance(one._learning_rate, Variable)]
            self._asked, self._rates = (clock.now, kinds), None
        rates = list(map(_ARRAY, self._held))
        if rates != self._rates:  # identical arrays are not compared by value: 1 us for 32 members
            first: dict[Any, int] = {}
            own = [rate if isinstance(rate := one._learning_rate, Variable) else None for one in self.optimizers]
            keys = [(kind, None if rate is None else float(rate.array)) for kind, rate in zip(kinds, own, strict=True)]
            self._numbers = [first.setdefault(key, len(first)) for key in keys]
            self._rates, self._firsts = rates, [self._numbers.index(number) for number in range(len(first))]
        return self._firsts

    @property
    def _going_on(self) -> list[Optimizer]:
        if not self._ended:
            return self.optimizers
        return [optimizer for place, optimizer in enumerate(self.optimizers) if place not in self._ended]

    # The step ------------------------------------------------------------------------------------------------------------

    def _limits(self, plan: Plan) -> dict[str, Any] | None:
        """The parameters of `clip_members`; None if no norms are clipped."""
        first = self.optimizers[0]
        name = "clipnorm" if first.clipnorm is not None else "global_clipnorm"
        if getattr(first, name) is None:
            return None
        groups = tuple([tuple(group.places) for group in plan.groups]) if name == "global_clipnorm" else None
        return {"limits": tuple([getattr(one, name) for one in self.optimizers]), "groups": groups}

    def count(self, plan: Plan) -> None:
        """Change the members' own numbers."""
        active = self._going_on
        count = active[0].state.iterations.array + 1
        if self.optimizers[0].changes_numbers:
            steps, formula, changes = self._steps(plan.kinds, plan.groups, plan.flags), plan.groups[0].formula, []
            for place, (optimizer, number) in enumerate(zip(self.optimizers, self._numbers, strict=True)):
                changes += [] if place in self._ended else formula.ended(optimizer, steps[number])
            active[0].commit([*changes, *[(optimizer.state.iterations, count) for optimizer in active]])
            return
        for optimizer in active:
            optimizer.state.iterations.array = count

    def begin(self, writer: Writer, states: Sequence[SlotState], owner: Optimizer) -> list[list[Any]]:
        """Write the instruction that computes a step's numbers, as part of its owner's step; the slots of each group."""
        plan = self.planned(states)
        assert plan is not None
        own: list[list[Any]] = []
        for group in plan.groups:
            size, single = group.layout.size, group.body.single
            if plan.differ:
                own.append([writer.slot((size,), dtype) for _, dtype in group.body.coefficients])
            else:
                own.append([writer.slot(None, float) for dtype in single.inputs if dtype is float])
        params = {"optimizer": owner, "together": self, "plan": plan}
        writer.begin(member_numbers, params, tuple([slot for found in own for slot in found]))
        writer.guards.append(functools.partial(self._is_of, plan))
        return own

    def write(
        self,
        writer: Writer,
        gradients: Sequence[Any],
        states: Sequence[SlotState],
        owner: Optimizer,
        own: Sequence[Sequence[Any]],
    ) -> None:
        """Write the step as instructions of a program, given the slots of its numbers."""
        plan = self.planned(states)
        assert plan is not None
        if (limits := self._limits(plan)) is not None:
            clipped = tuple([writer.slot(one.shape, one.dtype) for one in gradients])
            gradients = writer.write(clip_members, gradients, limits, clipped)
        for group, numbers in zip(plan.groups, own, strict=True):
            layout, places = group.layout, group.places
            columns = list(zip(*[columns_of(states[place]) for place in places], strict=True))
            gradient = writer.flatten([gradients[place] for place in places], layout)
            body = group.body.body if plan.differ else group.body.single
            given = [gradient, *writer.read(columns, layout)]
            operands = [*[given[number] for number in group.elements], *numbers]
            writer.assign(columns, writer.loop(body, operands, layout.size), layout)
        writer.write(members_finished, (), {"optimizer": owner, "together": self, "plan": plan})

    def numbers(self, plan: Plan) -> tuple[Any, ...]:
        """The operands of all groups' loops beside elements: arrays with a number at every element, or numbers for all."""
        steps = self._steps(plan.kinds, plan.groups, plan.flags)
        if not plan.differ:
            if not _agree(steps):
                clock.tick()  # the next step makes another plan
                raise InvalidArgumentError(
                    "learning rates that were one for all members were assigned different values. Set them instead, so that "
                    "it is seen: optimizer.learning_rate = value. Nothing was changed; the next step takes the new ones."
                )
            return tuple([steps[0][number] for group in plan.groups for number in group.numbers])
        columns = list(np.array(steps, np.float64)[self._numbers].T)
        columns += [np.array([getattr(one, name) for one in self.optimizers], np.float64) for name in plan.settings]
        with np.errstate(all="ignore"):
            found = [group.body.values([columns[number] for number in group.numbers]) for group in plan.groups]
        return tuple(
            [
                self._everywhere((number, position), values, group.layout)
                for number, (group, coefficients) in enumerate(zip(plan.groups, found, strict=True))
                for position, values in enumerate(coefficients)
            ]
        )

    def _everywhere(self, key: tuple[int, int], values: Array, layout: Layout) -> Array:
        seen, known = values.tobytes(), self._laid_out.get(key)
        if known is None or known[0] != seen or known[1].size != layout.size:
            known = self._laid_out[key] = seen, laid_out(values, layout)
        return known[1]


def _finish(*, optimizer: Optimizer, together: Together, plan: Plan) -> tuple[()]:
    together.count(plan)
    return ()


def _clip(*gradients: Array, limits: Sequence[float], groups: Sequence[Sequence[int]] | None) -> tuple[Array, ...]:
    """As `clipped_by_norm`, or with `groups` as `clipped_by_global_norm`, with each member's own norms and limit."""
    xp, globally = namespace(*gradients), groups is not None
    rows = [one.reshape(len(limits), one.size // len(limits)) for one in gradients]
    whole = rows if groups is None else [xp.concatenate([rows[place] for place in places], 1) for places in groups]
    squares = [(one * one).sum(axis=-1) for one in whole]
    norms = [xp.sqrt(sum(squares[1:], squares[0]))] * len(gradients) if globally else [xp.sqrt(one) for one in squares]
    factors = []
    for norm in norms:
        limit = xp.asarray(np.array(limits), dtype=norm.dtype)
        factors.append(limit / xp.maximum(norm, limit) + (norm - norm if globally else 0.0))
    return tuple(
        [
            (one * factor.reshape(-1, *[1] * (one.ndim - 1))).astype(one.dtype, copy=False)
            for one, factor in zip(gradients, factors, strict=True)
        ]
    )


clip_members = Primitive("clip_members", lambda xp: _clip, differentiable=False, uniform=False, registered=False)
"""Gradients of all members, clipped by norms."""
member_numbers = effect(
    "member_numbers",
    lambda *, optimizer, together, plan: together.numbers(plan),
    reads=(State.VARIABLES,),
    writes=(State.VARIABLES,),
    escapes=True,
)
members_finished = effect("members_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)


_ARRAY = operator.attrgetter("array")


def _numbers_of(leaves: int, decays: int, decay: int | None, flags: int, settings: int) -> list[int]:
    """Positions of the numbers that a formula takes among all: leaves, products of all weight decays, flags, settings."""
    own = [] if decay is None else [leaves + decay]
    end = leaves + decays + flags
    return [*range(leaves), *range(end, end + settings), *own, *range(leaves + decays, end)]


def _agree(steps: Sequence[Any]) -> bool:
    """True if the numbers of a step are the same for all members."""
    return all([step == steps[0] for step in steps[1:]])


def _options(optimizer: Optimizer) -> tuple[dict[str, Any], dict[str, type], Any]:
    """The facts that guard a step: the plain options, their types, and the source of the learning rate."""
    plain, rate = optimizer.plain_options(), optimizer._learning_rate
    if isinstance(rate, Variable):
        source: Any = None
    elif isinstance(rate, LearningRateSchedule) and optimizer.rate_is_own:
        source = repr((type(rate).__name__, rate.get_config()))
    else:
        source = id(rate)
    return plain, {name: type(value) for name, value in plain.items()}, source


def _differing(options: Sequence[Any]) -> list[str] | None:
    """The names of options that differ; None if one of them is no number, or has a number for some members only."""
    first = options[0][0]
    names = [name for name in first if any(repr(plain.get(name)) != repr(first[name]) for plain, _, _ in options)]
    names = [name for name in names if name != "weight_decay"]  # members without one have 0.0 of it
    values = [[plain.get(name) for name in names] for plain, _, _ in options]
    if any(set(plain) - set(first) - {"name"} for plain, _, _ in options):
        return None
    fit = all(type(value) in (int, float) for row in values for value in row)
    return [name for name in names if name not in _BESIDE] if fit else None


_BESIDE = ("clipnorm", "global_clipnorm", "ema_momentum")
"""Options that the formula does not read."""


def _hides(optimizer: Optimizer, first: Optimizer) -> bool:
    """True if a user's optimizer has private attributes that differ from those of the first member's."""
    if optimizer.is_own:
        return False
    return any(
        name.startswith("_") and name not in _OWN and (type(value) not in PLAIN or repr(value) != repr(vars(first).get(name)))
        for name, value in vars(optimizer).items()
    )


_OWN = frozenset(vars(Optimizer()))
