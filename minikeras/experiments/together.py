"""Steps of several optimizers as one: an elementwise formula is one loop over the Variables of all members.

Learning rates, decays and all other numbers of the formula may differ from member to member.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..compiler.ir import PLAIN
from ..compiler.loops import Pass, Untraceable
from ..compiler.passes.expansion import Writer
from ..core import Primitive, Variable
from ..core.arrays import namespace
from ..core.effects import State, clock, effect
from ..errors import InvalidArgumentError
from ..keras.optimizers import Optimizer
from ..keras.optimizers.compiled_step import FormulaGroup, FormulaPart, is_usual
from ..keras.optimizers.schedules import LearningRateSchedule
from ..keras.optimizers.state import SlotState
from ..keras.optimizers.step import Flags, Sight, TracedFormula, flags_of, groups_alike, numbers_of, sight_of
from ..types import Array
from .members import laid_out, with_member_numbers


class MemberFormula(TracedFormula):
    """A step's formula whose numbers differ from member to member: they are elements, too.

    Args: as of `TracedFormula`.

    Attributes:
        body: of the loop over elements.
        numbers: the positions of those that the body takes, among the formula's numbers.
        differ: whether they differ; else they stay Python's.
    """

    differ = True

    def __init__(self, optimizer: Any, state: SlotState, step: Any, names: Sequence[str], settings: Sequence[str]) -> None:
        super().__init__(optimizer, state, step, names, settings=settings, clips=False)
        passes = super().passes("__call__")
        spread = with_member_numbers(passes[0].body) if len(passes) == 1 else None
        if spread is None:
            raise Untraceable("a formula whose numbers cannot differ")
        self.body, reads, count = spread, passes[0].reads, 1 + self.width
        self.numbers = [one - count for one in reads if one >= count]
        coefficients = range(count, count + len(spread.coefficients))
        self._pass = Pass(spread.body, (*[one for one in reads if one < count], *coefficients))

    def passes(self, name: str, sums: Sequence[Any] = ()) -> list[Pass]:
        return [self._pass] if self.differ else super().passes(name, sums)


class MembersPart(FormulaPart):
    """The step of optimizers of one class, one for each member.

    Args:
        owner: whose step it is a part of.
        optimizers: built, each for its own Variables.
        states: of the whole Variables.
        rows: for the key of a whole Variable the members' own.
        ended: the places of members that step no more: their optimizers stay as they are.
        holders: the members' optimizers around these, if this step is to count theirs as well.

    Raises:
        Untraceable: if the formula is not elementwise, or members differ in more than numbers.
    """

    def __init__(
        self,
        owner: Any,
        optimizers: Sequence[Optimizer],
        states: Sequence[SlotState],
        rows: Mapping[int, Sequence[Variable]],
        ended: Collection[int],
        holders: Sequence[Optimizer],
    ) -> None:
        self._optimizer, self.own, self._states = owner, optimizers[0], states
        self.optimizers, self._rows, self._ended, first = list(optimizers), rows, ended, optimizers[0]
        self._asked: Any = None
        self._held: list[Any] = []
        self._rates: list[Any] | None = None
        self._numbers: list[int] = []
        self._firsts: list[int] = []
        """The last learning rates, the number of each member's step, and the first member with each step."""
        self._laid_out: dict[tuple[int, int], tuple[bytes, Array]] = {}
        """The last coefficients at every element, by group and position: most stay the same from step to step."""
        self._counters = [[one.state.iterations for one in group] for group in (optimizers, holders) if group]
        before = first.loss_scale_factor, first.gradient_accumulation_steps  # norms are of what comes after these
        clips = (first.clipnorm, first.global_clipnorm) != (None, None) and before != (None, None)
        if clips or any(one.assigns or not is_usual(one, states) or _hides(one, first) for one in optimizers):
            raise Untraceable("a step that members take in turn")
        self._step = first.begin_step(1, first._rate())
        if not self._is_free() or sight_of(first, states, self._step) is not Sight.ELEMENT:
            raise Untraceable("a constraint, or a formula of more than elements")
        self._options, self._flags = list(map(_options, optimizers)), tuple(flags_of(first, 0))
        self._settings = _differing(self._options)
        if len({counter.array.item() for counter in self._of_active(self._counters[0])}) > 1:
            raise Untraceable("members that have taken different numbers of steps")
        self._alike = [(places, cast(Any, decays)) for places, decays in groups_alike(self, states)]
        self._decays: list[tuple[float, ...]] = [decays for _, decays in self._alike if decays]
        self._kinds = self._kinds_of_members()
        same = all(one == self._options[0] for one in self._options) and all(len(set(one)) == 1 for one in self._decays)
        self._differ = not (same and _agree(self._steps()))
        self._formulas = [self._formula(places, decays) for places, decays in self._alike]
        self.formula = self._formulas[0]

    def _formula(self, places: Sequence[int], decays: Any) -> MemberFormula:
        """The formula for Variables of one dtype and weight decay of each member."""
        given = self.own, self._states[places[0]], self._step, (*(["decay"] if decays else []), *self._flags)
        found = MemberFormula(*given, self._settings)
        found.differ = self._differ
        return found

    def unchanged(self) -> bool:
        """True if the options of all members are those of this step, and their numbers still equal if they were."""
        same = list(map(_options, self.optimizers)) == self._options and self._is_free()
        return same and (self._differ or _agree(self._steps()))

    def _is_free(self) -> bool:
        """True if no member's Variable has a constraint."""
        return all([own.constraint is None for state in self._states for own in self._rows[state.variable.key]])

    def decay_of(self, whole: Variable) -> tuple[float, ...]:
        """The weight decay of each member's Variable; empty for none."""
        pairs = zip(self.optimizers, self._rows[whole.key], strict=True)
        found = [(optimizer.decay_of(own) or 0.0) if optimizer.state.slots[own.key].decays else 0.0 for optimizer, own in pairs]
        return tuple(found) if any(found) else ()

    def _kinds_of_members(self) -> list[int]:
        """For each member the first one with the same options, so that equal ones compute their numbers once."""
        first: dict[Any, int] = {}
        kinds = []
        for place, (optimizer, own) in enumerate(zip(self.optimizers, self._options, strict=True)):
            key = place if optimizer.changes_numbers else (repr(own), tuple([one[place] for one in self._decays]))
            kinds.append(first.setdefault(key, place))
        return kinds

    # Its numbers -----------------------------------------------------------------------------------------------------------

    def _steps(self) -> list[tuple[float, ...]]:
        """The numbers of `begin_step`, flattened, products of weight decays and learning rate, and flags: once for all members
        with the same numbers; `_numbers` says which of these each member has.
        """
        taken = int(self._of_active(self._counters[0])[0].array)
        return [
            numbers_of(self.optimizers[place], taken, [own[place] for own in self._decays], self._flags)
            for place in self._first_of_each()
        ]

    def _first_of_each(self) -> list[int]:
        """The first member of each kind and learning rate."""
        if self._asked != clock.now:
            self._held = [one._learning_rate for one in self.optimizers if isinstance(one._learning_rate, Variable)]
            self._asked, self._rates = clock.now, None
        rates = list(map(_ARRAY, self._held))
        if rates != self._rates:  # identical arrays are not compared by value: 1 us for 32 members
            first: dict[Any, int] = {}
            own = [rate if isinstance(rate := one._learning_rate, Variable) else None for one in self.optimizers]
            keys = [(kind, None if rate is None else float(rate.array)) for kind, rate in zip(self._kinds, own, strict=True)]
            self._numbers = [first.setdefault(key, len(first)) for key in keys]
            self._rates, self._firsts = rates, [self._numbers.index(number) for number in range(len(first))]
        return self._firsts

    def _of_active(self, counters: Sequence[Variable]) -> Sequence[Variable]:
        """Those of members that step."""
        return [one for place, one in enumerate(counters) if place not in self._ended] if self._ended else counters

    # The step ------------------------------------------------------------------------------------------------------------

    def begin(self, writer: Writer) -> None:
        self._groups = []
        for formula, (places, decays) in zip(self._formulas, self._alike, strict=True):
            group = FormulaGroup(formula, decays, self._states, places, True)
            if self._differ:
                group.numbers = [writer.slot((group.layout.size,), dtype) for _, dtype in formula.body.coefficients]
            else:
                group.numbers = [writer.slot(None, float) for _ in range(formula.leaves + bool(decays) + len(self._flags))]
            self._groups.append(group)
        slots = tuple([slot for group in self._groups for slot in group.numbers])
        writer.begin(member_numbers, {"optimizer": self._optimizer, "part": self}, slots)

    def numbers(self) -> tuple[Any, ...]:
        """The operands of all groups' loops beside elements: arrays with a number at every element, or numbers for all."""
        steps, leaves, decays = self._steps(), self.formula.leaves, len(self._decays)
        if not (self._differ or _agree(steps)):
            clock.tick()  # the next step is written anew
            raise InvalidArgumentError(
                "learning rates that were one for all members were assigned different values. Set them instead, so that "
                "it is seen: optimizer.learning_rate = value. Nothing was changed; the next step takes the new ones."
            )
        columns = list(np.array(steps, np.float64)[self._numbers].T) if self._differ else steps[0]
        settings = [np.array([getattr(one, name) for one in self.optimizers], np.float64) for name in self._settings]
        products, found = iter(columns[leaves:]), list[Any]()
        for number, group in enumerate(self._groups):
            own = [next(products)] if group.decay else []
            given = [*columns[:leaves], *settings, *own, *columns[leaves + decays :]]
            found += self._everywhere(number, group, given) if self._differ else given
        return tuple(found)

    def _everywhere(self, number: int, group: FormulaGroup, given: Sequence[Array]) -> list[Array]:
        """A group's coefficients at every element, given its numbers for each member."""
        formula = self._formulas[number]
        with np.errstate(all="ignore"):
            coefficients = formula.body.values([given[one] for one in formula.numbers])
        for position, values in enumerate(coefficients):
            seen, known = values.tobytes(), self._laid_out.get((number, position))
            if known is None or known[0] != seen:
                self._laid_out[number, position] = seen, laid_out(values, group.layout)
        return [self._laid_out[number, position][1] for position, _ in enumerate(coefficients)]

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        first = self.own
        name = "clipnorm" if first.clipnorm is not None else "global_clipnorm"
        if getattr(first, name) is not None:
            groups = tuple([tuple(group.places) for group in self._groups]) if name == "global_clipnorm" else None
            limits = {"limits": tuple([getattr(one, name) for one in self.optimizers]), "groups": groups}
            gradients = writer.write(clip_members, gradients, limits, tuple([writer.slot(x.shape, x.dtype) for x in gradients]))
        super().write(writer, gradients, known)

    def count(self, writer: Writer) -> None:
        writer.write(members_finished, (), {"optimizer": self._optimizer, "part": self})

    def finish(self) -> None:
        """Change the members' own numbers."""
        if self.own.changes_numbers:
            steps, going_on = self._steps(), enumerate(zip(self.optimizers, self._numbers, strict=True))
            ended = [self.formula.ended(own, steps[number]) for place, (own, number) in going_on if place not in self._ended]
            self.own.commit([change for changes in ended for change in changes])
        for counters in map(self._of_active, self._counters):
            count = counters[0].array + 1
            for counter in counters:
                counter.array = count


def _finish(*, optimizer: Optimizer, part: MembersPart) -> tuple[()]:
    part.finish()
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
    lambda *, optimizer, part: part.numbers(),
    reads=(State.VARIABLES,),
    writes=(State.VARIABLES,),
    escapes=True,
)
members_finished = effect("members_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)


_ARRAY = operator.attrgetter("array")


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


def _differing(options: Sequence[Any]) -> list[str]:
    """The names of options that differ; Untraceable if one of them is no number, or has a number for some members only."""
    first = options[0][0]
    names = [name for name in first if any(repr(plain.get(name)) != repr(first[name]) for plain, _, _ in options)]
    names = [name for name in names if name != "weight_decay"]  # members without one have 0.0 of it
    values = [[plain.get(name) for name in names] for plain, _, _ in options]
    more = any(set(plain) - set(first) - {"name"} for plain, _, _ in options)
    if more or not all(type(value) in (int, float) for row in values for value in row):
        raise Untraceable("options that are no numbers")
    return [name for name in names if name not in _BESIDE]


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
