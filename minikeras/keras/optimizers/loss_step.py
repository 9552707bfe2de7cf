"""The step of an optimizer that is given the loss, in a compiled function: its sweeps are recorded, decisions stay in Python.

A step asks for named sweeps - loss and gradient, products, the loss elsewhere - and decides by their numbers what to ask next.
Each becomes a program, which takes its operands from outside or from an earlier sweep; the step is one instruction.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...compiler import Program
from ...compiler.executors import Executable, by_numpy
from ...compiler.ir import Slot, outputs_of
from ...compiler.passes import optimized
from ...compiler.recorder import Recorder
from ...core import Primitive, Snapshot, State, Tensor, Variable, decide, effect, restore, snapshot
from ...core.stack import BOTTOM, Frame, Interpreter, current, evaluate, perform, switch
from ...derivatives.output_curvature import rows_decided
from ...errors import CompileError
from ...nn_ops import streams
from ...ranks import rows_here
from ...types import Array

Sweep = Callable[..., Sequence[Any]]
"""Carries out a sweep, given its name, the function, and Tensors for that."""

RUNS = ("record", "gradients", "acceleration", "value", "value_and_gradient")
"""Sweeps that run the loss: each from the state before the first of them."""


def run_directly(name: str, function: Sweep, *given: Tensor) -> Sequence[Any]:
    """Run the function of a sweep directly."""
    return function(*given)


def runs_loss(name: str) -> bool:
    """True if a sweep runs the loss; its name may have a member's number in front."""
    return name.rpartition("/")[2] in RUNS


def run_step(optimizer: Any, loss_fn: Callable[[], Any], variables: Sequence[Variable]) -> Tensor:
    """Take a step, as one instruction where a compiled step is being recorded; the loss before the step.

    Args:
        optimizer: has `loss_and_changes`, and `sweeps`, the names of what each step asks for.
        loss_fn, variables: as in `minimize`.

    Raises:
        RuntimeError: on a part of a batch, whose loss is not that of the whole.
    """
    rows_here().need_all(type(optimizer).__name__)
    frame = current()
    outer, runs = frame.interpreter, Repeatable(loss_fn)
    recorder = outer if isinstance(outer, Recorder) and frame.below is BOTTOM else None
    sweeps = None
    if recorder is not None and recorder.refusal is None and optimizer.sweeps is not None:
        sweeps = SweepRecorder(recorder)
    else:
        decide(optimizer.iterations)
    if recorder is not None:
        recorder.keep([*variables, *optimizer.variables])
        switch(BOTTOM)  # a step asks for many values, and takes short ways where no interpreter listens
    try:
        loss, changes = optimizer.loss_and_changes(loss_fn, variables, runs, sweeps or run_directly)
        optimizer.commit(changes)
    finally:
        switch(frame)
        if recorder is not None:
            for variable, array in runs.before:
                recorder.before.setdefault(variable.key, (variable, array))
    step = sweeps and sweeps.step(optimizer, variables, runs, loss)
    return (
        loss
        if sweeps is None or step is None
        else perform(optimizer_minimize, list(sweeps.captured.values()), {"step": step})[0]
    )


# Repeating ------------------------------------------------------------------------------------------------------------


class Repeatable:
    """A function without arguments whose every run starts from the same state.

    Args:
        function: what to run.
        assigned: the Variables that it assigns, if they are known; else the first run is watched.

    Attributes:
        before: what those Variables held before the first run.

    >>> from minikeras.keras.optimizers.loss_step import Repeatable
    >>> count = tf.Variable(0)
    >>> run = Repeatable(lambda: count.assign_add(1).numpy())
    >>> int(run()), int(run()), int(count)
    (1, 1, 1)
    """

    def __init__(self, function: Callable[[], Any], assigned: Sequence[Variable] | None = None) -> None:
        self._function, self._assigned = function, assigned
        self.before: Snapshot = []
        self._after: Snapshot = []
        self._stream: tuple[Any, Any] | None = None

    def __call__(self) -> Any:
        """Run the function."""
        return self.again(self._function)

    def _first(self, function: Callable[[], Any]) -> Any:
        stream = streams.global_stream()
        start, watcher = stream.state, Assignments(self._assigned or ())
        try:
            with watcher if self._assigned is None else contextlib.nullcontext():
                result = function()
        except BaseException:
            restore(watcher.before)
            stream.state = start
            raise
        self.before = watcher.before
        self._after = snapshot(variable for variable, _ in watcher.before)
        self._stream = start, stream.state
        return result

    def again(self, function: Callable[[], Any]) -> Any:
        """Run another function, such as a part of the first one, from the state before the first run."""
        if self._stream is None:
            return self._first(function)
        stream = streams.global_stream()
        restore(self.before)
        stream.state, end = self._stream
        try:
            return function()
        finally:
            restore(self._after)
            stream.state = end


class Assignments(Interpreter):
    """An interpreter that notes which Variables are assigned, and what they held before.

    >>> from minikeras.keras.optimizers.loss_step import Assignments
    >>> v = tf.Variable(1.0)
    >>> with Assignments() as noted:
    ...     _ = v.assign(2.0)
    >>> [(variable is v, float(array)) for variable, array in noted.before]
    [(True, 1.0)]
    """

    def __init__(self, assigned: Iterable[Variable] = ()) -> None:
        self.before = snapshot(assigned)
        self._known: set[int] = set()

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Ask below: an assignment is no operation, the stack is only notified of it."""
        if below is BOTTOM and not primitive.effect:
            return evaluate(primitive, inputs, params)
        return below.interpreter.process(primitive, inputs, params, below.below)

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Note an assignment that is about to happen, or the first value of a Variable made within the run."""
        if State.OPERANDS in primitive.writes and outputs.key not in self._known:
            self._known.add(outputs.key)
            self.before.append((outputs, outputs.array))


# Recording -------------------------------------------------------------------------------------------------------------


class KeptSweep(NamedTuple):
    """The program of a sweep, which also keeps the values that other sweeps read.

    Attributes:
        given, read, kept: keys of its arguments, of all values that it reads, and of those that it keeps for other sweeps.
        results: the number of results for the caller.
        replay: the compiled program, from the values that it reads to the results and the values that it keeps.
    """

    given: list[int]
    read: list[int]
    kept: list[int]
    results: int
    replay: Executable


def _made(sweep: Program) -> dict[int, Slot]:
    """Slots that a sweep computes."""
    return {slot.key: slot for record in sweep.records for slot in outputs_of(record)}


def _needed(sweep: Program) -> dict[int, Slot]:
    """Slots that a sweep reads and does not compute itself, without constants."""
    inputs, made = [x for record in sweep.records for x in record.inputs], _made(sweep)
    read = [x for x in (*sweep.arguments, *inputs, *sweep.results) if isinstance(x, Slot)]
    return {x.key: x for x in read if x.array is None and x.key not in made}


def compiled(sweep: Program, wanted: set[int]) -> KeptSweep:
    """A recorded sweep as a program that keeps the values that are wanted elsewhere."""
    needed, kept = _needed(sweep), [slot for key, slot in _made(sweep).items() if key in wanted]
    count = len(sweep.results)
    program = optimized(Program(list(needed.values()), sweep.records, [*sweep.results, *kept], None))
    for slot, result in zip(kept, program.results[count:], strict=True):
        slot.array = result.array  # a value that became constant is constant for later sweeps too
    given = [slot.key for slot in sweep.arguments]
    return KeptSweep(given, list(needed), [slot.key for slot in kept], count, by_numpy(program))


class SweepRecorder(Recorder):
    """Carries out sweeps and records each; of a repeated sweep, the last run.

    Args:
        outer: the recorder of the function in which the step is taken. Values that it has recorded are operands here.

    Attributes:
        captured: the Tensors from outside by the keys of their Slots.
    """

    def __init__(self, outer: Recorder) -> None:
        super().__init__([], False)
        self._outer = outer
        self.captured: dict[int, Tensor] = {}
        self._given: set[int] = set()
        self._recorded: dict[str, Program] = {}
        self._made: dict[str, list[weakref.ref[Tensor]]] = {}
        """The results of each sweep by its name. Those that stay alive were handed out by the loss function: where it puts
        Tensors, only Python knows."""
        self._earlier: list[weakref.ref[Tensor]] = []
        self._sweep = ""

    def __call__(self, name: str, function: Sweep, *given: Tensor) -> Sequence[Any]:
        self._earlier += self._made.get(name, [])
        self.records, self._made[name], self._sweep = [], [], name
        self._given.update(x.key for x in given)
        with self:
            results = function(*given)
            if self.refusal is None:
                slots = [self.slot(x) if isinstance(x, Tensor) else x for x in results]
                self._recorded[name] = Program([self.slot(x) for x in given], self.records, slots, None)
        return results

    def slot(self, x: Tensor) -> Slot:
        """As of any recorder, but a value that the outer recorder knows is no constant."""
        found = super().slot(x)
        if found.array is not None:
            source = None if x.key in self._given else self._outer.slot(x)
            if source is None or source.array is None:
                found.array, found.fixed = None, source is not None and source.fixed
            if source is not None and source.array is None:
                self.captured[found.key] = x
        return found

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Keep a Record, and weak references to the results."""
        within = self._within
        outputs = super().process(primitive, inputs, params, below)
        if self.refusal is None and not within:
            several = outputs if type(outputs) is tuple else (outputs,)
            self._made[self._sweep] += map(weakref.ref, several)
        return outputs

    def refuse(self, reason: str, located: bool = True) -> None:
        """Give up, here and outside."""
        self.refusal = reason
        self._outer.refuse(reason, located)

    def step(self, optimizer: Any, variables: Sequence[Variable], runs: Repeatable, loss: Tensor) -> RecordedStep | None:
        """The whole step, ready to be repeated; None if it cannot be recorded, which the outer recorder then knows."""
        self._outer.born |= self.born
        if self.born or self.refusal is not None:
            return None
        missing = [name for name in optimizer.sweeps if not any(one.split(" ")[0] == name for one in self._recorded)]
        ended = f"the first step of {optimizer.name} ended before it asked for {missing}, which later ones may need"
        if missing and not self._outer.repeats:  # else the run before has them all
            self.refuse(ended)
            return None
        alive = self._alive_outside(loss)
        if alive is None:
            self.refuse("the loss function hands out tensors of each of its runs, or its gradient does")
            return None
        handed, ready = [self.slot(x) for x in alive], tuple([x.array for x in alive])
        assigned = [variable for variable, _ in runs.before]
        wanted = {slot.key for slot in handed}.union(*map(_needed, self._recorded.values()))
        sweeps = {name: compiled(sweep, wanted) for name, sweep in self._recorded.items()}
        step = RecordedStep(optimizer, variables, assigned, list(self.captured), sweeps, handed, [ready])
        if missing and step.decided:
            self.refuse(ended)
        return step

    def _alive_outside(self, loss: Tensor) -> list[Tensor] | None:
        """The loss, and the Tensors that runs of the loss have handed out; None if a later step might hand out others."""
        found = [loss]
        runs: set[int] = set()
        """The positions, in a run, of the results that it has handed out: no program tells several runs in a list apart."""
        if any(ref() is not None for ref in self._earlier):
            return None
        for name, made in self._made.items():
            alive = {place: x for place, ref in enumerate(made) if (x := ref()) is not None and x is not loss}
            doubtful = not runs_loss(name) or not runs.isdisjoint(alive)
            if alive and (doubtful or any(type(x.array) is np.bool_ for x in alive.values())):
                return None
            runs.update(alive)
            found += alive.values()
        return found


# Replay ----------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RecordedStep:
    """A whole step, as a function of its operands from outside.

    Attributes:
        optimizer, variables: whose step it is, and the Variables that it changes.
        assigned: Variables that the loss assigns.
        sources: keys of the operands from outside.
        sweeps: by name.
        handed: the results: the loss, and Tensors that runs of the loss function have handed out.
        ready: the values of these in the recorded run, which is done already.
    """

    optimizer: Any
    variables: Sequence[Variable]
    assigned: Sequence[Variable]
    sources: Sequence[int]
    sweeps: Mapping[str, KeptSweep]
    handed: Sequence[Slot]
    ready: list[tuple[Array, ...]]

    def __post_init__(self) -> None:
        self.name = self.optimizer.name
        self.decided = any(one.primitive is rows_decided for sweep in self.programs().values() for one in sweep.records)
        """True if a sweep decided by numbers, which may decide otherwise in a later step; that one then raises `Outdated`."""

    def __str__(self) -> str:
        return "\n\n".join(f"{name}:\n{program}" for name, program in self.programs().items())

    def programs(self) -> dict[str, Program]:
        """The program of each sweep by its name."""
        return {name: sweep.replay.program for name, sweep in self.sweeps.items()}

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """One more step; the first call gives the results of the recorded one, which is done already."""
        if self.ready:
            return self.ready.pop()
        values, done = dict(zip(self.sources, arrays, strict=True)), set[str]()
        runs = Repeatable(lambda: None, self.assigned)

        def carry_out(name: str, function: Any, *given: Tensor) -> Sequence[Any]:
            if name not in self.sweeps:
                raise CompileError(
                    f"{self.name} asks for the sweep {name!r}, which its recorded step did without and its `sweeps` do not "
                    "name. Name there what every step asks for; if that differs from step to step, let `sweeps` be None."
                )
            sweep = self.sweeps[name]
            values.update(zip(sweep.given, [x.array for x in given], strict=True))
            operands = [values[key] for key in sweep.read]
            results = runs.again(lambda: sweep.replay(operands)) if runs_loss(name) else sweep.replay(operands)
            values.update(zip(sweep.kept, [x.array for x in results[sweep.results :]], strict=True))
            done.add(name)
            return results[: sweep.results]

        _, changes = self.optimizer.loss_and_changes(None, self.variables, None, carry_out)
        shown = {slot.key for slot in self.handed}
        for name, sweep in self.sweeps.items():
            if name not in done and not shown.isdisjoint(sweep.kept):  # a step that ended early: its last run was another one
                carry_out(name, None)
        self.optimizer.commit(changes)
        return tuple([values[slot.key] if slot.array is None else slot.array for slot in self.handed])


optimizer_minimize = effect(
    "optimizer_minimize",
    lambda *arrays, step: step(*arrays),
    reads=(State.VARIABLES,),
    writes=(State.VARIABLES,),
    escapes=True,
)
