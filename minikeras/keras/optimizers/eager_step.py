"""An optimizer's step outside of compiled functions, by the program that it is within one: over flattened Variables."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ...compiler.executors.base import NUMPY, Executable
from ...compiler.ir import Program, Slot
from ...compiler.passes.pipeline import optimized
from ...core import Record, Variable
from ...core.arrays import is_on_host
from ...core.effects import State, clock, effect
from ...core.variable import drop_spares, restore, snapshot
from ...types import Array
from .state import SlotState, Stepper

STEPS = 6
"""How many steps over the same Variables are taken before their program is compiled, which takes as long as fifty."""


class EagerStep:
    """The program of one optimizer's steps over the Variables that it was given last. It is called with the locks held.

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
        """What a step is now; None if each is taken by itself."""
        return None if self._run is None else self._run.program

    def take(self, optimizer: Stepper, gradients: list[Array], states: list[SlotState]) -> bool:
        """Take a step, whole or not at all; False if there is no program for it, and nothing was done.

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
            drop_spares(self._targets)  # now, so that their memory can become the program's
        if self._run is None:
            return False
        before = snapshot(self._targets)
        try:
            self._run(gradients)
        except BaseException:
            restore(before)
            raise
        return True

    def _holds(self, run: Executable) -> bool:
        """Whether the optimizer's options are those of the program: looked at again if anything was set since (2 us)."""
        now = clock.now
        if now != self._looked:
            if not all([holds() for holds in run.program.guards]):
                return False
            self._looked = now
        return True


def _compiled(optimizer: Stepper, gradients: Sequence[Array], states: Sequence[SlotState]) -> Executable | None:
    """The program of a step; None if it is more than a formula of each element, or if the formula or what gives its rate is the
    user's: they may read anything, at any time.
    """
    if not all(map(is_on_host, gradients)):
        return None  # a device's program is that of the whole step
    inner = getattr(optimizer, "inner_optimizer", None)
    for one in (optimizer, *getattr(optimizer, "optimizers", () if inner is None else (inner,))):
        if not one.is_own or not one.rate_is_own:
            return None  # to compile would call it once more
    held = weakref.proxy(optimizer)  # which has the program; the two are freed with the last reference to the optimizer
    slots = [Slot(number, tuple(array.shape), array.dtype) for number, array in enumerate(gradients)]
    record = Record(optimizer_step, slots, {"optimizer": held, "variables": [state.variable for state in states]}, ())
    program = optimized(Program(slots, [record], [], None))
    return None if any(one.primitive is optimizer_step for one in program.records) else NUMPY.compile(program)


def _run_step(*gradients: Array, optimizer: Stepper, variables: Sequence[Variable]) -> tuple[()]:
    known = optimizer.state.slots
    states = [known[variable.key] for variable in variables]
    arrays = [
        g if g.dtype == variable._array.dtype else g.astype(variable._array.dtype)
        for g, variable in zip(gradients, variables, strict=True)
    ]
    optimizer.commit(optimizer.changes(arrays, states))
    return ()


optimizer_step = effect("optimizer_step", _run_step, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""A step as one operation, for interpreters and until passes take it apart."""
