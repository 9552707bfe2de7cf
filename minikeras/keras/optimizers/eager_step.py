"""An optimizer's step outside of compiled functions: on arrays, one Variable after the other, and after a few steps by the
program that a compiled function would have. What a program cannot express is always taken on arrays.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...compiler.executors import NUMPY, Executable
from ...compiler.ir import Program, Slot
from ...compiler.passes import optimized
from ...core import Record, Tensor, Variable
from ...core.arrays import is_on_host, namespace
from ...core.effects import State, clock, effect
from ...core.precision import in_float32, is_short
from ...core.variable import restore, snapshot
from ...functions.elementwise import cast
from ...types import Array
from .gradients import gathered_over
from .state import Change, SlotState, Stepper, constrained
from .step import (
    Flags,
    StepFormula,
    all_finite,
    carry_out,
    changes_others,
    clipped_by_norm,
    clips_first,
    columns_of,
    counted,
    flags_of,
    groups_alike,
    shares_of,
)

STEPS = 6
"""The number of steps over the same Variables before their program is compiled, which takes as long as fifty."""


class OnArrays:
    """Carries out the step of one optimizer on arrays, one Variable after the other. Nothing is assigned.

    Args:
        own: the optimizer.
        states: of the Variables that have gradients.
        known: see `Flags`.
        clips: whether gradients are still to be clipped.
        changes: new values that there are already, beside which averages and accumulators change.

    Attributes:
        changes: all new values; of two for one Variable the last counts.
    """

    def __init__(
        self, own: Any, states: Sequence[SlotState], known: Flags, clips: bool = True, changes: Iterable[Change] = ()
    ) -> None:
        self._own, self._states, self._known, self._clips, self._step, self._rate = own, states, known, clips, None, 0.0
        self.changes = [*changes]

    @functools.cached_property
    def _new(self) -> dict[int, Array]:
        """The new values when this is first asked for, by the keys of Variables."""
        return {variable.key: array for variable, array in self.changes}

    def begin(self, taken: int) -> list[Change]:
        """Ask for the numbers of the step, given the number of steps taken; the changes of `end_step`."""
        own = self._own
        self._rate = own._rate()
        self._step = own.begin_step(taken // (own.gradient_accumulation_steps or 1) + 1, self._rate)
        return [*own.end_step(self._step)]

    def incoming(self, gradients: Sequence[Array]) -> list[tuple[Array, Array]]:
        """For each Variable the gradient that is clipped next, and the sum of all since the last update."""
        formula, pairs = StepFormula(0), zip(gradients, self._states, strict=True)
        return [formula.incoming(self._own, self._known, one, [_accumulated(state)]) for one, state in pairs]

    def total(self, groups: Any, part: str, gradients: Sequence[Array], sums: Flags) -> Array:
        """A sum over each of the groups that a compiled step has, as it adds up; of 16-bit floats in float32."""
        own, method = self._own, getattr(StepFormula(0), part)
        given, found = [gradient.reshape(-1) for gradient, _ in self.incoming(gradients)], []
        for places, _ in groups_alike(own, self._states, apart=not own.elementwise):
            parts = [given[place] for place in places]
            whole = parts[0] if len(parts) == 1 else namespace(parts[0]).concatenate(parts)
            whole = whole.astype("float32") if is_short(whole.dtype) else whole
            found.append(method(own, self._step, {"gathered": True}, whole, None).sum())
        return sum(found[1:], found[0])

    def take(self, group: tuple[SlotState, Array | None], gradients: Sequence[Array], sums: Flags) -> None:
        """Note the new values of a Variable and its slots; without a gradient, those of its average and its accumulator."""
        own, known, (state, gradient) = self._own, self._known, group
        decay = state.decay(own)
        if decay or sums:
            known = {**known, **sums, **({"decay": decay * self._rate} if decay else {})}
        columns, formula = columns_of(state), StepFormula(len(state.targets), self._clips)
        before = [column.array for column in columns]
        if gradient is None and self.changes:
            before = [self._new.get(column.key, array) for column, array in zip(columns, before, strict=True)]
        found = in_float32(functools.partial(formula, own, self._step, known))(gradient, *before)
        rows = zip(columns, before, found, strict=True)
        self.changes += [(column, new.astype(was.dtype, copy=False)) for column, was, new in rows if new is not was]

    def assign(self, gradients: Sequence[Array]) -> None:
        """Note what Keras's `update_step` assigns for these gradients."""
        own, formula, pairs = self._own, StepFormula(0), self.incoming(gradients)
        if self._known.get("updates", True):
            known = {} if own.global_clipnorm is None else {"norm": self.total((), "square", gradients, {})}
            clipped = in_float32(lambda gradient: formula.clipped(own, known, gradient))
            self.changes += _assigned(own, [clipped(gradient) for gradient, _ in pairs], self._states)
        if own.gradient_accumulation_steps is not None:
            rows = zip(self._states, pairs, strict=True)
            self.changes += [(state.slots["gradient_accumulator"], total) for state, (_, total) in rows]


def _accumulated(state: SlotState) -> Array | None:
    slot = state.slots.get("gradient_accumulator")
    return None if slot is None else slot.array


def _assigned(optimizer: Stepper, gradients: Sequence[Array], states: Sequence[SlotState]) -> list[Change]:
    """All that `update_step` assigns for these gradients. Nothing stays assigned."""
    before = snapshot([*(known.variable for known in optimizer.state.slots.values()), *optimizer.variables])
    try:
        take_updates(optimizer, [Tensor(gradient) for gradient in gradients], states)
        return [(variable, variable.array) for variable, array in before if variable.array is not array]
    finally:
        restore(before)


def take_updates(optimizer: Stepper, gradients: Sequence[Any], states: Sequence[SlotState]) -> None:
    """Weight decay, then `update_step` for each Variable: an optimizer written for Keras assigns where a formula returns."""
    rate = optimizer.learning_rate
    for state in states:
        variable = state.variable
        if decay := state.decay(optimizer):
            variable.assign_sub(variable * decay * cast(rate, variable.dtype))
    optimizer._backend_update_step(gradients, [state.variable for state in states], rate)


def _changes(own: Any, gradients: Sequence[Array], states: Sequence[SlotState], known: Flags) -> list[Change]:
    """The changes of one formula, given the loss scale if there is one. Nothing is assigned."""
    taken, steps, ended = int(own.state.iterations.array), own.gradient_accumulation_steps, list[Change]()
    known = {**flags_of(own, taken), **known}
    updates, clips = known.get("updates", True), own.assigns or not clips_first(own, "scale" in known)
    on = OnArrays(own, states, known, clips)
    if own.sums or own.clipnorm is not None:  # contiguous, so that sums have the order of a compiled step
        gradients = [gradient.reshape(-1).reshape(gradient.shape) for gradient in gradients]
    with np.errstate(all="ignore"):
        if updates and (own.changes_numbers or not own.assigns):
            ended = on.begin(taken)
        if own.exchange is not None and steps is not None and updates:
            gradients = gathered_over(steps, [total for _, total in on.incoming(gradients)], own.exchange)
            known["gathered"] = True
        if not clips:
            gradients = [in_float32(clipped_by_norm)(gradient, limit=own.clipnorm) for gradient in gradients]
        groups: list[Any] = [*zip(states, gradients, strict=True)]
        if own.assigns:
            on.assign(gradients)
            groups = []
        if changes_others(own) and len(groups) < len(own.state.slots):
            given = {state.variable.key for state, _ in groups}
            groups += [(state, None) for key, state in own.state.slots.items() if key not in given]
        sums = {"norm": "square"} if own.global_clipnorm is not None and updates and not own.assigns else {}
        carry_out(on, groups, gradients, sums, {})
        return [*ended, *[constrained(*change) if change[0].constraint is not None else change for change in on.changes]]


def changes_of_step(optimizer: Any, gradients: Sequence[Array], states: Sequence[SlotState]) -> list[Change]:
    """All changes of one step, by one formula or several; under a loss scale only the scale's, unless all is finite."""
    found: list[Change] = []
    known: dict[str, float] = {}
    if optimizer.scales:
        finite = all_finite(gradients)
        found += optimizer.changes_of_scale(finite)
        if not finite:
            return found
        known = {"scale": float(optimizer.dynamic_scale.array)}
    shares = shares_of(optimizer, states)
    for own, places in shares:
        found += _changes(own, [gradients[i] for i in places], [states[i] for i in places], known)
    return found + counted(optimizer, [own for own, _ in shares])


class EagerStep:
    """The steps of one optimizer over the Variables that it was given last, and the program that takes them.

    It is called with the locks held.

    >>> w, optimizer = tf.Variable([1.0, 2.0]), tf.keras.optimizers.SGD(0.5)
    >>> for _ in range(STEPS + 1):
    ...     _ = optimizer.apply([tf.ones([2])], [w])
    >>> [record.primitive.name for record in optimizer._eager_step.program.records]
    ['step_numbers', 'reshape', 'read_flat', 'loop', 'assign_flat', 'step_counted']
    """

    __slots__ = ("_looked", "_run", "_states", "_steps", "_targets")

    def __init__(self) -> None:
        self._states: list[SlotState] = []
        self._steps = 0
        self._looked = -1
        self._run: Executable | None = None
        self._targets: list[Variable] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return EagerStep, ()  # a copied optimizer has other Variables

    @property
    def program(self) -> Program | None:
        """The program that takes the steps; None as long as there is none."""
        return None if self._run is None else self._run.program

    def take(self, optimizer: Stepper, gradients: list[Array], states: list[SlotState]) -> None:
        """Take a step, whole or not at all.

        Args:
            optimizer: whose step it is.
            gradients: of the shapes and dtypes of the Variables.
            states: of those Variables.
        """
        if states != self._states or (self._run is not None and not self._holds(self._run)):
            self._states, self._steps, self._run = states, 0, None
        self._steps += 1
        if self._steps == STEPS + 1:
            self._run = _compiled(optimizer, gradients, states)
            self._targets = [*optimizer.variables, *(state.variable for state in states)]
            self._looked = clock.now
        if self._run is None:
            optimizer.commit(optimizer.changes(gradients, states))
            return
        before = snapshot(self._targets)
        try:
            self._run(gradients)
        except BaseException:
            restore(before)
            raise

    def _holds(self, run: Executable) -> bool:
        """True if the optimizer's options are those of the program: compared again if anything was set since (2 us)."""
        now = clock.now
        if now != self._looked:
            if not all([holds() for holds in run.program.guards]):
                return False
            self._looked = now
        return True


def _compiled(optimizer: Stepper, gradients: Sequence[Array], states: Sequence[SlotState]) -> Executable | None:
    """The program of a step; None if the formula is not elementwise, or if the formula or the function of its learning rate is
    the user's: they may read anything, at any time.
    """
    if not all(map(is_on_host, gradients)):
        return None  # a device's program is that of the whole step
    if not optimizer.is_own or not optimizer.rate_is_own:
        return None  # compiling would call it once more
    held = weakref.proxy(optimizer)  # which has the program; the two are freed with the last reference to the optimizer
    slots = [Slot(number, tuple(array.shape), array.dtype) for number, array in enumerate(gradients)]
    record = Record(optimizer_step, slots, {"optimizer": held, "variables": [state.variable for state in states]}, ())
    program = optimized(Program(slots, [record], [], None))
    return None if any(one.primitive is optimizer_step for one in program.records) else NUMPY.compile(program)


def _run_step(*gradients: Array, optimizer: Stepper, variables: Sequence[Variable]) -> tuple[()]:
    known = optimizer.state.slots
    states = [known[variable.key] for variable in variables]
    arrays = [
        g if g.dtype == variable.array.dtype else g.astype(variable.array.dtype)
        for g, variable in zip(gradients, variables, strict=True)
    ]
    optimizer.commit(optimizer.changes(arrays, states))
    return ()


optimizer_step = effect("optimizer_step", _run_step, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""A step as one operation: interpreters see it whole, and a pass expands it."""
