"""An optimizer's step outside of compiled functions: on arrays, one Variable after the other, and after a few steps by a
program, as in a compiled function.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.executors import NUMPY, Executable
from ...compiler.ir import Program, Slot
from ...compiler.passes import optimized
from ...core import Record, Variable
from ...core.arrays import is_on_host, namespace
from ...core.effects import State, clock, effect
from ...core.precision import in_float32, is_short
from ...core.variable import restore, snapshot
from ...types import Array
from .exchange import gathered_over
from .options import all_finite
from .state import Change, SlotState, Stepper, constrained
from .step import (
    Flags,
    StepFormula,
    carry_out,
    changes_others,
    clipped_by_norm,
    columns_of,
    flags_of,
    groups_alike,
    shares_of,
    stepping,
)
from .update_steps import changes_of

STEPS = 6
"""The number of steps over the same Variables before their program is compiled, which takes as long as fifty."""


class _OnArrays:
    """Carries out the parts of a step on arrays.

    Args:
        own: the optimizer.
        states: of the Variables that have gradients.
        flags: see `Flags`.
        step, rate: what `begin_step` gave, and the learning rate.
        clips: whether gradients are still to be clipped by the formula.

    Attributes:
        changes: all that the step changes.
    """

    def __init__(
        self, own: Any, states: Sequence[SlotState], flags: dict[str, Any], step: Any, rate: float, clips: bool
    ) -> None:
        self._own, self._states, self._flags, self._step, self._rate, self._clips = own, states, flags, step, rate, clips
        self.changes: list[Change] = []

    def incoming(self, gradients: Sequence[Array]) -> list[tuple[Array, Array]]:
        """For each Variable the gradient that is clipped next, and the sum of all since the last update."""
        pairs = zip(gradients, self._states, strict=True)
        return [StepFormula(0).incoming(self._own, self._flags, one, [_accumulator(state)]) for one, state in pairs]

    def clipped(self, gradient: Array) -> Array:
        """One gradient, clipped by its norm."""
        return in_float32(clipped_by_norm)(gradient, limit=self._own.clipnorm)

    def total(self, groups: Sequence[int], part: str, gradients: Sequence[Array], sums: Flags) -> Array:
        """A sum over each of the groups that a compiled step has, as it adds up; of 16-bit floats in float32."""
        own, method = self._own, getattr(StepFormula(0), part)
        given, found = [gradient.reshape(-1) for gradient, _ in self.incoming(gradients)], []
        for places, _ in groups_alike(own, self._states, apart=not own.elementwise):
            parts = [given[place] for place in places]
            whole = parts[0] if len(parts) == 1 else namespace(parts[0]).concatenate(parts)
            whole = whole.astype("float32") if is_short(whole.dtype) else whole
            found.append(method(own, self._step, {"gathered": True}, whole, None).sum())
        return sum(found[1:], found[0])

    def take(self, place: int, gradients: Sequence[Array], sums: Flags) -> None:
        """Note the new values of a Variable and its slots."""
        own, known, state = self._own, {**self._flags, **sums}, self._states[place]
        if state.decays and (decay := own.decay_of(state.variable)):
            known["decay"] = decay * self._rate
        columns, formula = columns_of(state), StepFormula(len(state.targets), self._clips)
        before = [column.array for column in columns]
        found = in_float32(functools.partial(formula, own, self._step, known))(gradients[place], *before)
        rows = zip(columns, before, found, strict=True)
        self.changes += [(column, new.astype(was.dtype, copy=False)) for column, was, new in rows if new is not was]

    def assign(self, gradients: Sequence[Array]) -> None:
        """Note what Keras's `update_step` assigns for these gradients, and what changes beside that."""
        own, formula, pairs = self._own, StepFormula(0), self.incoming(gradients)
        if self._flags.get("updates", True):
            known = {} if own.global_clipnorm is None else {"norm": self.total((), "square", gradients, {})}
            clipped = in_float32(lambda gradient: formula.clipped(own, known, gradient))
            self.changes += changes_of(own, [clipped(gradient) for gradient, _ in pairs], self._states)
        totals = {state.variable.key: total for state, (_, total) in zip(self._states, pairs, strict=True)}
        self.changes += changes_beside(own, own.state.slots.values(), self._flags, self.changes, totals)


def _accumulator(state: SlotState) -> Array | None:
    slot = state.slots.get("gradient_accumulator")
    return None if slot is None else slot.array


def changes_beside(
    own: Any,
    states: Iterable[SlotState],
    flags: Flags,
    changes: Sequence[Change] = (),
    totals: Mapping[int, Array] | None = None,
) -> list[Change]:
    """Averages, accumulators, and weights that become averages.

    Args:
        own: the optimizer.
        states: of the Variables beside which they are.
        flags: see `Flags`.
        changes: new values of weights.
        totals: by the keys of Variables the sums of gradients since the last update, if these are not what accumulators hold.
    """
    new, found = {variable.key: array for variable, array in changes}, []
    for state in states if changes_others(own) else ():
        columns, formula, key = columns_of(state), StepFormula(len(state.targets)), state.variable.key
        before = [column.array for column in columns]

        def finished(weight: Array, total: Any, *before: Array, formula: StepFormula = formula) -> tuple[Array, ...]:
            return formula.finished(own, flags, [weight, *before[1 : formula.targets]], total, before)

        weight, total = new.get(key, before[0]), (totals or {}).get(key, _accumulator(state))
        rows = zip(columns, in_float32(finished)(weight, total, *before), before, strict=True)
        found += [(column, array) for column, array, was in rows if array is not was and array is not weight]
    return found


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


def _changes(own: Any, gradients: Sequence[Array], states: Sequence[SlotState], known: Flags) -> list[Change]:
    """The changes of one formula, given the loss scale if there is one. Nothing is assigned."""
    count, steps = own.state.iterations, own.gradient_accumulation_steps
    taken, rate, step, changes = int(count.array), 0.0, None, []
    flags = {**flags_of(own, taken), **known}
    updates = flags.get("updates", True)
    if own.sums or own.clipnorm is not None:  # contiguous, so that sums have the order of a compiled step
        gradients = [gradient.reshape(-1).reshape(gradient.shape) for gradient in gradients]
    with np.errstate(all="ignore"):
        if updates and (own.changes_numbers or not own.assigns):
            rate = own._rate()
            step = own.begin_step(taken // (steps or 1) + 1, rate)
            changes = [*own.end_step(step)]
        clips_first = own.clipnorm is not None and steps is None and own.loss_scale_factor is None and not known
        on = _OnArrays(own, states, flags, step, rate, not clips_first)
        if own.exchange is not None and steps is not None and updates:
            totals = [total for _, total in on.incoming(gradients)]
            gradients, flags["gathered"] = gathered_over(steps, totals, own.exchange), True
        if own.assigns:
            on.assign(gradients)
        else:
            sums = {"norm": "square"} if own.global_clipnorm is not None and updates else {}
            carry_out(on, range(len(states)), gradients, sums, clips_first, {})
            if len(states) < len(own.state.slots):
                given = {state.variable.key for state in states}
                others = [state for key, state in own.state.slots.items() if key not in given]
                on.changes += changes_beside(own, others, flags)
        found = [constrained(*change) if change[0].constraint is not None else change for change in on.changes]
    return [*changes, *found, (count, count.array + 1)]


def changes_of_step(optimizer: Any, gradients: list[Array], states: list[SlotState]) -> list[Change]:
    """All changes of one step, by one formula or several; under a loss scale only the scale's, unless all is finite."""
    found: list[Change] = []
    known: dict[str, float] = {}
    if optimizer.scales:
        finite = all_finite(gradients)
        found += optimizer.changes_of_scale(finite)
        if not finite:
            return found
        known = {"scale": float(optimizer.dynamic_scale.array)}
    for own, places in shares_of(optimizer, states):
        found += _changes(own, [gradients[i] for i in places], [states[i] for i in places], known)
    inner = stepping(optimizer)
    if inner.divided(states) is not None:
        found.append((inner.state.iterations, inner.state.iterations.array + 1))
    return found


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
