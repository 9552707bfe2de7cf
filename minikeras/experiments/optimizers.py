"""The optimizers of all members, as one that steps over whole Variables.

Where the formula of a step is elementwise, all members take it in one loop over whole Variables, whatever numbers differ:
learning rates, decays and all others of the formula. Other steps, with norms of weights, constraints or an `update_step`, the
members take in turn, by themselves.

The members' own optimizers stay the place to read and set: their learning rates and options are looked up in each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..compiler.ir import PLAIN, Program, Slot
from ..compiler.loops import Pass, Untraceable
from ..compiler.passes.forward_state import NUMBERS
from ..compiler.passes.inlining import TracedArray, Writer
from ..core import BatchedTensor, State, Tensor, Variable, clock, effect, namespace, operations, to_numpy
from ..core.stack import BOTTOM, current, on_top, perform
from ..errors import InvalidArgumentError
from ..functions.operands import tensor
from ..keras.optimizers import LossScaleOptimizer, Optimizer, PerLayer
from ..keras.optimizers import step as single
from ..keras.optimizers.gradients import paired
from ..keras.optimizers.loss_scale import present_scale
from ..keras.optimizers.schedules import LearningRateSchedule
from ..keras.optimizers.state import Change, SlotState
from ..keras.optimizers.step_program import FormulaGroup, FormulaPart, flattened, is_usual, passes_of, tried_step, unchanged
from ..keras.weight import KerasVariable
from ..layout import Layout
from ..types import Array
from .members import Members, with_member_numbers, with_rows, without_memory


def kind_of(optimizer: Any) -> tuple[Any, ...]:
    """The common part of the optimizers of members that are trained together: their class, and those of optimizers within.

    >>> kind_of(tf.keras.optimizers.Adam(0.1)) == kind_of(tf.keras.optimizers.Adam(0.2, beta_1=0.5))
    True
    """
    parts = optimizer.members if isinstance(optimizer, PerLayer) else []
    within = [optimizer.inner_optimizer] if isinstance(optimizer, LossScaleOptimizer) else [one.optimizer for one in parts]
    return type(optimizer), [(one.every, one.offset) for one in parts], list(map(kind_of, within))


def check(optimizers: Sequence[Any]) -> None:
    """Refuse optimizers that cannot step together."""
    first = kind_of(optimizers[0])
    for place, optimizer in enumerate(optimizers):
        if optimizer is None:
            raise InvalidArgumentError(f"member {place} of the ensemble has no optimizer: compile(optimizer='adam').")
        if (kind := kind_of(optimizer)) != first:
            raise InvalidArgumentError(
                f"the members of an ensemble must have optimizers of one kind: member 0 has {_text(first)}, member {place} has "
                f"{_text(kind)}. Numbers such as the learning rate may differ. Train them with Sweep, which makes a group for "
                "each kind."
            )


def _text(kind: tuple[Any, ...]) -> str:
    found, _, within = kind
    return f"{found.__name__}({', '.join(map(_text, within))})" if within else found.__name__


class StackedOptimizer(Optimizer):
    """The optimizers of all members as one, over Variables that hold all members' values along a first axis.

    A model under `Members` sees it: given that model's Variables and the gradients under `Members`, it steps over the whole
    Variables, outside of `Members`.

    Args:
        optimizers: one for each member, of one kind.
        members: the interpreter, which holds whole Variables and the members' own.

    Attributes:
        optimizers: the members' own.
        steps_at_once: whether slots are stacked, as all members can step in one loop; else the members step in turn.
    """

    def __init__(self, optimizers: Sequence[Any], members: Members) -> None:
        check(optimizers)
        super().__init__(0.0, name=optimizers[0].name)
        self.optimizers, self._members = list(optimizers), members
        self.needs_loss = any(optimizer.needs_loss for optimizer in optimizers)  # then each member's own model takes its step
        self.steps_at_once = True

    def __deepcopy__(self, memo: dict[int, Any]) -> StackedOptimizer:
        raise InvalidArgumentError("the optimizers of an ensemble are not copied; copy those of its members.")

    @property
    def variables(self) -> list[Variable]:
        """The Variables of the members' optimizers; and the whole slots, if all step at once."""
        own = [variable for optimizer in self.optimizers for variable in optimizer.variables]
        return [*own, *(slot for known in self.state.slots.values() for slot in known.slots.values())]

    @property
    def iterations(self) -> Any:
        """The number of updates."""
        return self.optimizers[self._members.active[0]].iterations

    @property
    def learning_rate(self) -> Any:
        """Each member's own learning rate. Set it to one for all or to a list with one for each."""
        with self._below():
            rates = perform(single.present_rate, (), {"optimizer": self})
        return BatchedTensor(rates, self._members)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        values = list(value) if not callable(value) and np.ndim(value) else [value] * len(self.optimizers)
        if len(values) != len(self.optimizers):
            raise InvalidArgumentError(f"learning_rate: {len(self.optimizers)} members need as many, found {len(values)}.")
        for optimizer, one in zip(self.optimizers, values, strict=True):
            optimizer.learning_rate = one

    @property
    def rate_is_own(self) -> bool:
        """True if formulas and learning rates are the package's own: a user's may read anything, at any time."""
        return all(one.rate_is_own and one.is_own for one in self.optimizers)

    def scale_loss(self, loss: Any) -> Any:
        """The losses times the members' scales."""
        if not any(one.loss_scale_factor is not None or isinstance(one, LossScaleOptimizer) for one in self.optimizers):
            return loss
        losses = self._members.stack_of(tensor(loss))
        with self._below():
            scales = perform(present_scale, (losses,), {"optimizer": self, "dtype": losses.array.dtype})
        return loss * BatchedTensor(scales, self._members)

    def present_scale(self) -> Array:
        """The loss scale of each member."""
        scales = [
            to_numpy(one.dynamic_scale.array) if isinstance(one, LossScaleOptimizer) else one.loss_scale_factor or 1.0
            for one in self.optimizers
        ]
        return np.array(scales, np.float64)

    def _scheduled_rate(self) -> Tensor:
        return Tensor(np.array([one._rate_now() for one in self.optimizers], np.float32))

    def _below(self) -> on_top:
        """A block outside of `Members`."""
        return on_top(current().without(self._members))

    # Slots ---------------------------------------------------------------------------------------------------------------

    def prepare(self, variables: Sequence[Variable]) -> None:
        """Make the slots that there are not yet for Variables of the model that is run."""
        wholes = self._wholes(variables)
        with self._below():
            self.build(wholes)

    def _wholes(self, variables: Iterable[Variable]) -> list[Variable]:
        """The whole Variables that the model's Variables represent."""
        return [one if one.key in self._members.rows else self._members.whole_of(one) for one in variables]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the members' slots beside whole Variables, and stack them if all can step at once."""
        known, members = self.state.slots, self._members
        new = [variable for variable in variables if variable.key not in known]
        if not new:
            return
        with members.shown(members.active):
            for place, optimizer in enumerate(self.optimizers):
                optimizer.prepare([members.own(whole)[place] for whole in new])
        stacked = [self._stacked(whole) for whole in new] if self.steps_at_once else []
        states = [state for state in stacked if state is not None]
        # If slots are stacked already, steps of new ones that do not fit are taken in turn.
        self.steps_at_once = len(states) == len(new) and (bool(known) or self._is_at_once(states))
        self.state.add(states if self.steps_at_once else [SlotState(whole, {}) for whole in new])
        for state in states if self.steps_at_once else ():
            own = self._own_slots(state.variable)
            for name, slot in state.slots.items():
                members.hold(slot, [one[name] for one in own])
                for place in members.active:
                    own[place][name].array = without_memory(own[place][name].array)

    def _own_slots(self, whole: Variable) -> list[dict[str, Variable]]:
        """The slots of each member beside its row of a whole Variable."""
        states = [one.state.slots.get(row.key) for one, row in zip(self.optimizers, self._members.own(whole), strict=True)]
        return [{} if state is None else state.slots for state in states]

    def _stacked(self, whole: Variable) -> SlotState | None:
        """The slots of all members beside a whole Variable; None if not all members have the same."""
        found = self._own_slots(whole)
        if any(list(one) != list(found[0]) for one in found):
            return None
        stacks = {name: [one[name].array for one in found] for name in found[0]}
        slots: dict[str, Variable] = {
            name: KerasVariable(Tensor(namespace(*own).stack(own)), trainable=False, name=found[0][name].name)
            for name, own in stacks.items()
        }
        return SlotState(whole, slots)

    def parts(self, owner: Any, states: Sequence[SlotState], writer: Writer) -> list[tuple[MembersPart, list[int]]]:
        """The steps of all members at once, for a compiled step of the owner, this one or its stand-in; each with the
        positions of its Variables. Untraceable for members that step in turn.
        """
        shares = dict[int, tuple[list[Any], list[int]]]()
        if not self.steps_at_once or any(
            member.every != 1 for one in self.optimizers if isinstance(one, PerLayer) for member in one.members
        ):
            raise Untraceable("members that take turns")
        for i, state in enumerate(states):
            own = [_part_of(*pair) for pair in zip(self.optimizers, self._members.own(state.variable), strict=True)]
            if len({number for number, _ in own}) > 1:
                raise Untraceable("Variables that have other optimizers in some members")
            if own[0][1] is not None:
                shares.setdefault(own[0][0], ([optimizer for _, optimizer in own], []))[1].append(i)
        given = {state.variable.key for state in states}
        others = [one.variable for key, one in self.state.slots.items() if key not in given]
        parts = {_part_of(self.optimizers[0], self._members.own(one)[0])[0] for one in others}
        found = list[tuple[MembersPart, list[int]]]()
        for number, (optimizers, places) in shares.items():
            if number in parts and optimizers[0]._beside:
                raise Untraceable("what has no gradient changes too")
            holders = self.optimizers if isinstance(self.optimizers[0], PerLayer) and not found else ()
            part = MembersPart(owner, optimizers, [states[i] for i in places], writer, self._members, holders)
            found.append((part, places))
        return found

    def _is_at_once(self, states: Sequence[SlotState]) -> bool:
        """True if all members can take the steps for these Variables at once."""
        try:
            with on_top(BOTTOM):  # this looks at numbers as they are now, unseen by interpreters
                return bool(self.parts(self, states, Writer(Program([], [], [], None))))
        except Untraceable:
            return False

    # The step ------------------------------------------------------------------------------------------------------------

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Any:
        """Update the Variables of all members by their gradients; as `Optimizer.apply`."""
        wholes = self._wholes(trainable_variables or ())
        with self._below():
            given = [None if gradient is None else self._members.stack_of(gradient) for gradient in grads]
            return super().apply(given, wholes)

    def learning(self, variables: Sequence[Variable]) -> list[int] | None:
        """As in `Optimizer`: a `PerLayer` freezes Variables."""
        first = self.optimizers[0]
        if not isinstance(first, PerLayer):
            return None
        self.build(variables)
        return [i for i, one in enumerate(variables) if first.optimizer_for(self._members.own(one)[0]) is not None]

    def changes(self, gradients: list[Array], states: list[SlotState]) -> list[Change]:
        """All changes of one step, member by member: only a program has them step at once. Nothing is assigned."""
        members, changes, changed = self._members, list[Change](), dict[int, tuple[Variable, dict[int, Array]]]()
        with members.shown(members.active) as rows:
            owners = {own.key: (whole, place) for whole, place, own in rows}
            for place in members.active:
                optimizer, own = self.optimizers[place], [members.own(state.variable)[place] for state in states]
                _, *given = paired(optimizer, [Tensor(gradient[place, ...]) for gradient in gradients], own)
                for variable, array in optimizer.changes(*given):
                    if variable.key in owners:
                        whole, _ = owners[variable.key]
                        changed.setdefault(whole.key, (whole, {}))[1][place] = array
                    else:
                        changes.append((variable, array))
        return [*((whole, with_rows(whole.array, found)) for whole, found in changed.values()), *changes]


StackedOptimizer.package_class = StackedOptimizer


def _part_of(optimizer: Optimizer, variable: Variable) -> tuple[int, Optimizer | None]:
    """The number of the inner optimizer that has a Variable, and that optimizer; None if the Variable is frozen."""
    if not isinstance(optimizer, PerLayer):
        return 0, optimizer
    found = optimizer.optimizer_for(variable)
    return [id(member.optimizer) for member in optimizer.members].index(id(found)), found


# Steps of all members as one -------------------------------------------------------------------------------------------


class MemberGroup(FormulaGroup):
    """A group whose formula takes numbers that differ from member to member: they are elements, too.

    Attributes:
        body: of the loop over elements.
        taken: the positions of those numbers that the body takes, among the formula's.
        differ: whether they differ; else they stay Python's.
    """

    def __init__(self, *given: Any, differ: bool, **options: Any) -> None:
        super().__init__(*given, **options)
        self.differ = differ
        passes = super().passes(single.new_values)
        spread = with_member_numbers(passes[0].body) if len(passes) == 1 else None
        if spread is None:
            raise Untraceable("a formula whose numbers cannot differ")
        self.body, reads, count = spread, passes[0].reads, 1 + self.width
        self.taken = [one - count for one in reads if one >= count]
        coefficients = range(count, count + len(spread.coefficients))
        self._pass = Pass(spread.body, (*[one for one in reads if one < count], *coefficients))

    def coefficients(self, numbers: Sequence[Array]) -> list[Array]:
        """The coefficients of elements, for the formula's numbers with an element for each member."""
        with np.errstate(all="ignore"):
            return self.body.values([numbers[one] for one in self.taken])

    def _read(self, writer: Writer, gradients: Sequence[Slot]) -> None:
        super()._read(writer, gradients)
        if self.differ:
            self.numbers = [self._everywhere(writer, one) for one in self.numbers]

    def _everywhere(self, writer: Writer, numbers: Slot) -> Slot:
        """Write one number for each member at every element."""
        rows = Layout([(shape[0], math.prod(shape[1:])) for shape in self.layout.shapes], numbers.dtype)
        slots = [writer.slot(shape, numbers.dtype) for shape in rows.shapes]
        pieces = [writer.write(operations.broadcast_to, [numbers], {"shape": one.shape, "rank": 2}, one) for one in slots]
        return flattened(writer, pieces, rows)

    def passes(self, part: Callable[..., Any], sums: Sequence[Any] = ()) -> list[Pass]:
        return [self._pass] if self.differ else super().passes(part, sums)


class MembersPart(FormulaPart):
    """The step of optimizers of one class, one for each member.

    Args:
        owner: whose step it is a part of.
        optimizers: built, each for its own Variables.
        states: of the whole Variables.
        writer: of the program.
        members: the interpreter; the optimizers of members that have ended stay as they are.
        holders: the members' optimizers around these, if this step is to count theirs as well.

    Raises:
        Untraceable: if the formula is not elementwise, or members differ in more than numbers.
    """

    def __init__(
        self,
        owner: Any,
        optimizers: Sequence[Optimizer],
        states: Sequence[SlotState],
        writer: Writer,
        members: Members,
        holders: Sequence[Optimizer],
    ) -> None:
        self._optimizer, self.own, self._ends = owner, optimizers[0], optimizers[0].changes_numbers
        self.optimizers, self._members, self._ended, first = list(optimizers), members, members.ended, optimizers[0]
        self._asked, self._sources, self._rates = -1, list[Any](), list[Any]()
        """The sources of learning rates, and the last values of those that are Variables."""
        self._numbers, self._firsts = list[int](), list[int]()
        """The number of each member's step, and the first member with each step."""
        self._present: list[tuple[float, ...]] = []
        """The numbers that the present step has looked up."""
        self._counters = [[one.state.iterations for one in group] for group in (optimizers, holders) if group]
        before = first.loss_scale_factor, first.gradient_accumulation_steps  # norms are of what comes after these
        clips = (first.clipnorm, first.global_clipnorm) != (None, None) and before != (None, None)
        hides = any(not one.is_own and _hide_differences(vars(one), vars(first)) for one in optimizers)
        rows = list(zip(*[members.own(one.variable) for one in states], strict=True))
        pairs = zip([one.variable for one in states], rows[0], strict=True)  # wholes have one more axis
        others = any([*first.slot_names(whole)] != [*first.slot_names(own)] for whole, own in pairs)
        if clips or hides or others or any(one.assigns or not is_usual(one, states) for one in optimizers):
            raise Untraceable("a step that members take in turn")
        if any(own.constraint for some in rows for own in some) or passes_of(first, states, step := tried_step(first)) != 1:
            raise Untraceable("a constraint, or a formula of more than elements")
        self._guards = [unchanged(*pair) for pair in zip(optimizers, rows, strict=True)]
        options, self._flags = [one.plain_options() for one in optimizers], tuple(single.flags_of(first, 0))
        self._settings = _differing(options)
        if len({counter.array.item() for counter in self._of_active(self._counters[0])}) > 1:
            raise Untraceable("members that have taken different numbers of steps")
        alike = [(places, cast(Any, decays)) for places, decays in single.groups_alike(self, states)]
        self._decays: list[tuple[float, ...]] = [decays for _, decays in alike if decays]
        keys = [(repr(own), tuple([one[place] for one in self._decays])) for place, own in enumerate(options)]
        self._kinds = [place if one.changes_numbers else keys.index(keys[place]) for place, one in enumerate(optimizers)]
        """Members with the same options compute their numbers once."""
        agree = self._have_one_step()
        sources = {None if isinstance(one, Variable) else one for one in self._sources}
        self._differ = len({*keys}) > 1 or len(sources) > 1 or not agree
        kind: dict[str, Any] = {"flags": self._flags, "settings": self._settings, "graphs": writer.graphs and not self._differ}
        given = [(first, step, states, *one) for one in alike]
        self.groups: list[MemberGroup] = [MemberGroup(*one, differ=self._differ, clips=False, **kind) for one in given]
        first_flag = self.groups[0].leaves + len(self._decays)
        count, own = first_flag + len(self._flags), iter(range(self.groups[0].leaves, first_flag))
        settings, flags = range(count, count + len(self._settings)), range(first_flag, count)
        self._columns = [
            [*range(group.leaves), *settings, *([next(own)] if group.decay else []), *flags] for group in self.groups
        ]
        """For each group the positions of its formula's numbers among those of `_steps` and the settings."""
        for group, columns in zip(self.groups, self._columns, strict=True):
            kinds = [((len(optimizers), 1), dtype) for _, dtype in group.body.coefficients]
            group.numbers = [writer.slot(*kind) for kind in (kinds if self._differ else [(None, float)] * len(columns))]
        slots = tuple([slot for group in self.groups for slot in group.numbers])
        writer.begin(member_numbers, {"optimizer": self._optimizer, "part": self}, slots)

    def unchanged(self) -> bool:
        """True if the options of all members are those of this step, and their numbers still equal if they were."""
        return all([holds() for holds in self._guards]) and (self._differ or self._have_one_step())

    def _have_one_step(self) -> bool:
        """True if the numbers of all members agree. Code of a user, which may count its calls, is not asked for them."""
        own = all([one.is_own and one.rate_is_own for one in self.optimizers])
        return len(self._first_of_each()) == 1 or (own and _agree(self._steps()))

    def decay_of(self, whole: Variable) -> tuple[float, ...]:
        """The weight decay of each member's Variable; empty for none."""
        pairs = zip(self.optimizers, self._members.own(whole), strict=True)
        found = [optimizer.state.slots[own.key].decay(optimizer) for optimizer, own in pairs]
        return tuple(found) if any(found) else ()

    # Its numbers -----------------------------------------------------------------------------------------------------------

    def _steps(self, ahead: int = 0) -> list[tuple[float, ...]]:
        """The numbers of `begin_step`, flattened, products of weight decays and learning rate, and flags: once for all members
        with the same numbers; `_numbers` says which of these each member has. `ahead` steps are to come before, since rates
        were looked up.
        """
        taken = int(self._of_active(self._counters[0])[0].array) + ahead
        return [
            single.numbers_of(self.optimizers[place], taken, [own[place] for own in self._decays], self._flags)
            for place in (self._firsts if ahead else self._first_of_each())
        ]

    def _first_of_each(self) -> list[int]:
        """The first member of each kind and learning rate."""
        if self._asked != clock.now:
            self._asked, self._sources = clock.now, list(map(_source_of_rate, self.optimizers))
            self._held, self._firsts = [one for one in self._sources if isinstance(one, Variable)], []
        rates = [one.array for one in self._held]
        if rates != self._rates or not self._firsts:  # identical arrays are not compared by value: 1 us for 32 members
            first: dict[Any, int] = {}
            own = [float(one.array) if isinstance(one, Variable) else one for one in self._sources]
            self._numbers = [first.setdefault(key, len(first)) for key in zip(self._kinds, own, strict=True)]
            self._rates, self._firsts = rates, [self._numbers.index(number) for number in range(len(first))]
        return self._firsts

    def _of_active(self, counters: Sequence[Variable]) -> Sequence[Variable]:
        """Those of members that step."""
        return [one for place, one in enumerate(counters) if place not in self._ended] if self._ended else counters

    def numbers(self) -> tuple[Any, ...]:
        """The operands of all groups' loops beside elements: columns with a number for each member, or numbers for all."""
        return tuple([column[0] for column in self._ahead(1)])

    def _ahead(self, steps: int) -> list[Any]:
        """Such numbers of the next steps: a column for each, with a row for each step."""
        found = [self._steps(ahead) for ahead in range(steps)]
        self._present = found[0]
        if self._differ:
            shape, every = (steps, len(self.optimizers)), np.array(found, np.float64)[:, self._numbers]
            settings = [np.full(shape, [getattr(one, name) for one in self.optimizers], np.float64) for name in self._settings]
            given, pairs = [*np.moveaxis(every, -1, 0), *settings], zip(self.groups, self._columns, strict=True)
            return [y[..., None] for group, columns in pairs for y in group.coefficients([given[one] for one in columns])]
        if not all(map(_agree, found)):
            clock.tick()  # the next step is written anew
            raise InvalidArgumentError(
                "learning rates that were one for all members were assigned different values. Set them instead, so that "
                "it is seen: optimizer.learning_rate = value. Nothing was changed; the next step takes the new ones."
            )
        return [[one[0][place] for one in found] for columns in self._columns for place in columns]

    def write(self, writer: Writer, gradients: Sequence[Any], known: single.Flags) -> None:
        if (self.own.clipnorm, self.own.global_clipnorm) != (None, None):
            gradients = self._clipped(writer, gradients)
        super().write(writer, gradients, known)

    def _clipped(self, writer: Writer, gradients: Sequence[Slot]) -> list[Slot]:
        """Write the clipping of gradients by each member's norms and limit."""
        together, found = self.own.clipnorm is None, list[Slot]()
        limits = np.array([one.global_clipnorm if together else one.clipnorm for one in self.optimizers])[:, None]
        rows = [TracedArray(writer, one).reshape(len(limits), -1) for one in gradients]
        whole = [self._beside(writer, [rows[place] for place in group.places]) for group in self.groups] if together else rows
        squares = [(one * one).sum(axis=-1, keepdims=True) for one in whole]
        squares = [sum(squares[1:], squares[0])] * len(rows) if together else squares
        for gradient, row, square in zip(gradients, rows, squares, strict=True):
            limit = writer.slot(limits.shape, square.dtype)
            limit.array, limit.fixed = limits.astype(square.dtype), True
            clip = single.clipped_by_global_norm if together else single.clipped_by_squares
            clipped: Any = clip(cast(Any, row), cast(Any, square), TracedArray(writer, limit))
            found.append(clipped.reshape(gradient.shape).slot)
        return found

    @staticmethod
    def _beside(writer: Writer, rows: Sequence[TracedArray]) -> TracedArray:
        """Write the rows of several arrays side by side."""
        whole = writer.slot((rows[0].shape[0], sum(one.shape[1] for one in rows)), rows[0].dtype)
        return TracedArray(writer, writer.write(operations.concat, [one.slot for one in rows], {"axis": -1}, whole))

    def count(self, writer: Writer) -> None:
        writer.write(members_finished, (), {"optimizer": self._optimizer, "part": self})

    def finish(self) -> tuple[()]:
        """Change the members' own numbers."""
        if self._ends:
            steps, going_on = self._present, enumerate(zip(self.optimizers, self._numbers, strict=True))
            ended = [self.groups[0].ended(own, steps[number]) for place, (own, number) in going_on if place not in self._ended]
            self.own.commit([change for changes in ended for change in changes])
        self._count(1)
        return ()

    def _count(self, steps: int) -> None:
        for counters in map(self._of_active, self._counters):
            count = counters[0].array + steps
            for counter in counters:
                counter.array = count

    def in_a_row(self, steps: int) -> list[Any]:
        """The numbers of the next steps, which are counted: nothing else happens between two of them. As `_ahead`."""
        self._first_of_each()
        if self._ends or not self.own.is_own or len(self._held) < len(self._sources):  # they depend on the step before
            rows = [(self.numbers(), self.finish()) for _ in range(steps)]
            return list(zip(*[row for row, _ in rows], strict=True))
        found = self._ahead(steps)
        self._count(steps)
        return found


_any: dict[str, Any] = {"reads": (State.VARIABLES,), "writes": (State.VARIABLES,), "escapes": True}
member_numbers = effect("member_numbers", lambda *, optimizer, part: part.numbers(), **_any)
NUMBERS.add(member_numbers)
members_finished = effect("members_finished", lambda *, optimizer, part: part.finish(), **_any)


def _agree(steps: Sequence[Any]) -> bool:
    """True if the numbers of a step are the same for all members."""
    return len(steps) == 1 or all([step == steps[0] for step in steps])


def _source_of_rate(optimizer: Optimizer) -> Any:
    """The Variable of the learning rate, or what is equal for equal schedules."""
    rate = optimizer._learning_rate
    if isinstance(rate, LearningRateSchedule) and optimizer.rate_is_own:
        return repr((type(rate).__name__, rate.get_config()))
    return rate if isinstance(rate, Variable) else id(rate)


def _differing(options: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of options that differ; Untraceable if one of them is no number, or has a number for some members only."""
    first = options[0]
    names = [name for name in first if any(repr(plain.get(name)) != repr(first[name]) for plain in options)]
    names = [name for name in names if name != "weight_decay"]  # members without one have 0.0 of it
    values = [[plain.get(name) for name in names] for plain in options]
    more = any(set(plain) - set(first) - {"name"} for plain in options)
    if more or not all(type(value) in (int, float) for row in values for value in row):
        raise Untraceable("options that are no numbers")
    return [name for name in names if name not in _BESIDE]


_BESIDE = ("clipnorm", "global_clipnorm", "ema_momentum")
"""Options that the formula does not read."""


def _hide_differences(attributes: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """True if private attributes of a user's optimizer differ from those of the first member's."""
    own = {name: value for name, value in attributes.items() if name.startswith("_") and name not in _OWN}
    return any(type(value) not in PLAIN or repr(value) != repr(first.get(name)) for name, value in own.items())


_OWN = frozenset(vars(Optimizer()))
