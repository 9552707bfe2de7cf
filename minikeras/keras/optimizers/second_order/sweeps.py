"""Steps of second order in a compiled step: what is asked of the loss is recorded, what is decided stays with Python.

Key idea: a step asks for a few things - loss and gradient, products, the loss elsewhere - and decides by their numbers what to
ask next. Each of these is a sweep with a name. In the run that `tf.function` watches, every sweep becomes a program of its own,
which takes what it needs from outside (a batch) or from an earlier sweep (the record of the loss). The step as a whole is one
instruction of the outer program. Next: `replayed.py`, what that instruction does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....compiler.passes.expansion import EXPANSIONS, Writer
from ....compiler.recorder import Recorder, Slot
from ....core import Primitive, Record, Tensor, Variable
from ....core.effects import State, decide, effect
from ....core.repeat import Repeatable
from ....core.stack import BOTTOM, Frame, current, perform, switch
from ....types import Array
from .replayed import Piece, Step, programs, runs_loss

Sweep = Callable[..., Sequence[Any]]


def plainly(name: str, function: Sweep, *given: Tensor) -> Sequence[Any]:
    """A sweep as it is."""
    return function(*given)


def stepped(optimizer: Any, loss_fn: Callable[[], Any], variables: Sequence[Variable]) -> Tensor:
    """Take a step, as one instruction where a compiled step is being recorded.

    Args:
        optimizer: has `plan`, and `sweeps`, the names of what each step asks for.
        loss_fn, variables: as in `minimize`.

    Returns:
        The loss before the step.
    """
    frame = current()
    outer, runs = frame.interpreter, Repeatable(loss_fn)
    recorder = outer if isinstance(outer, Recorder) and frame.below is BOTTOM else None
    watched = None
    if recorder is not None and recorder.refusal is None and optimizer.sweeps is not None:
        watched = Watched(recorder)
    else:
        decide(optimizer.iterations)
    if recorder is not None:
        recorder.keep([*variables, *optimizer.variables])
        switch(BOTTOM)  # a plan asks for many values, and does without the short ways where somebody listens
    try:
        loss, changes = optimizer.plan(loss_fn, variables, runs, watched or plainly)
        optimizer.commit(changes)
    finally:
        switch(frame)
        if recorder is not None:
            recorder.before = {variable.key: (variable, array) for variable, array in runs._before} | recorder.before
    step = watched and watched.step(optimizer, variables, runs, loss)
    return loss if watched is None or step is None else perform(optimizer_minimize, watched.captured, {"step": step})[0]


class Watched(Recorder):
    """Carries sweeps out, and keeps each as a `Piece`; of a sweep that is repeated, the last one.

    Args:
        outer: the recorder of the function in which the step is taken. What it knows is taken from outside here.

    Attributes:
        captured: the Tensors from outside.
    """

    def __init__(self, outer: Recorder) -> None:
        super().__init__([], False)
        self._outer = outer
        self.captured: list[Tensor] = []
        self._sources: list[int] = []
        self._given: set[int] = set()
        self._pieces: dict[str, Piece] = {}
        self._made: dict[str, list[tuple[weakref.ref[Tensor], Slot]]] = {}
        """By sweep its results, for as long as they live, with their Slots."""
        self._earlier: list[weakref.ref[Tensor]] = []
        self._sweep = ""

    def __call__(self, name: str, function: Sweep, *given: Tensor) -> Sequence[Any]:
        """One sweep."""
        self._earlier += [ref for ref, _ in self._made.get(name, [])]
        self.records, self._made[name], self._sweep = [], [], name
        self._given.update(x.key for x in given)
        with self:
            results = function(*given)
            if self.refusal is None:
                slots = [None if x is None else self.slot(x) for x in results]
                self._pieces[name] = Piece([self.slot(x) for x in given], self.records, slots)
        return results

    def slot(self, x: Tensor) -> Slot:
        """As of any recorder, but what is known outside is no constant."""
        found = super().slot(x)
        if found.array is not None:
            source = None if x.key in self._given else self._outer.slot(x)
            if source is None or source.array is None:
                found.array, found.fixed = None, source is not None and source.fixed
            if source is not None and source.array is None:
                self.captured.append(x)
                self._sources.append(found.key)
        return found

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Keep a Record, and an eye on the results."""
        within = self._within
        outputs = super().process(primitive, inputs, params, below)
        if self.refusal is None and not within:
            several = outputs if type(outputs) is tuple else (outputs,)
            self._made[self._sweep] += [(weakref.ref(y), self.slot(y)) for y in several]
        return outputs

    def refuse(self, reason: str, located: bool = True) -> None:
        """Nobody records any further."""
        self.refusal = reason
        self._outer.refuse(reason, located)

    def step(self, optimizer: Any, variables: Sequence[Variable], runs: Repeatable, loss: Tensor) -> Step | None:
        """The whole step, ready to be repeated. None if there is nothing to be recorded; then the outer recorder knows."""
        self._outer.born |= self.born
        if self.born or self.refusal is not None:
            return None
        missing = [name for name in optimizer.sweeps if not any(one.split(" ")[0] == name for one in self._pieces)]
        if missing:
            self.refuse(f"the first step of {optimizer.name} ended before it asked for {missing}, which later ones may need")
            return None
        alive = [(loss, self.slot(loss))]
        unsure = [ref() for ref in self._earlier]
        for name, made in self._made.items():
            found = [(x, slot) for ref, slot in made if (x := ref()) is not None and x is not loss]
            alive += found if runs_loss(name) else []
            unsure += [x for x, _ in found if not runs_loss(name) or type(x._array) is np.bool_]
        if any(x is not None for x in unsure):
            self.refuse("the loss function hands out tensors of each of its runs, or its gradient does")
            return None
        handed, ready = [slot for _, slot in alive], tuple([x._array for x, _ in alive])
        moved = [variable for variable, _ in runs._before]
        return Step(optimizer, variables, moved, self._sources, programs(self._pieces, handed), handed, ready)


def _minimized(*arrays: Array, step: Step) -> tuple[Array, ...]:
    return step(*arrays)


optimizer_minimize = effect("optimizer_minimize", _minimized, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)


def _guarded(writer: Writer, record: Record) -> bool:
    """Leaves the instruction as it is, as long as the optimizer's options are what they were."""
    writer.guards.append(record.params["step"].holds)
    return False


EXPANSIONS[optimizer_minimize] = _guarded
