"""A step of second order that was recorded: its decisions are Python's, its sweeps are programs.

Key idea: `plan` is carried out as ever, but the sweep it is given looks up a program by name. Arrays that one sweep makes and
another one reads lie in a dict by the keys of their Slots, so a product goes on from the record of the loss, as it does on a
tape. Before: `sweeps.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ....arrays import random as streams
from ....compiler import Program
from ....compiler.executors.base import NUMPY, Executable
from ....compiler.ir import outputs_of
from ....compiler.passes.pipeline import optimized
from ....compiler.recorder import Slot
from ....compiler.tracing.watch import unwatched
from ....core import Record, Tensor, Variable
from ....core.state import restore
from ....errors import CompileError
from ....types import Array

RUNS = ("record", "gradients", "value", "value_and_gradient")
"""Sweeps that run the loss: each from the state before the first of them."""


def runs_loss(name: str) -> bool:
    """Whether a sweep is such a run."""
    return name.rpartition("/")[2] in RUNS


class Piece(NamedTuple):
    """One sweep as it was recorded.

    Attributes:
        given: Slots of the Tensors that it is called with.
        records: its instructions.
        results: Slots of what it returns, None for None.
    """

    given: Sequence[Slot]
    records: Sequence[Record]
    results: Sequence[Slot | None]

    def made(self) -> dict[int, Slot]:
        """What its instructions write."""
        return {slot.key: slot for record in self.records for slot in outputs_of(record)}

    def needed(self) -> dict[int, Slot]:
        """What it reads from elsewhere."""
        made, inputs = self.made(), [x for record in self.records for x in record.inputs]
        read = [x for x in (*self.given, *inputs, *self.results) if isinstance(x, Slot)]
        return {x.key: x for x in read if x.array is None and x.key not in made}


class Replayable(NamedTuple):
    """One sweep, ready to run.

    Attributes:
        given, read, kept: keys of what it is called with, of all that it reads, and of what it leaves for others.
        results: how many of its results are for the caller.
        replay: from what it reads to results and what it leaves.
    """

    given: Sequence[int]
    read: Sequence[int]
    kept: Sequence[int]
    results: int
    replay: Executable


@unwatched
def programs(pieces: Mapping[str, Piece], handed: Sequence[Slot]) -> dict[str, Replayable]:
    """Every piece as a program that leaves what the others read, and what is handed to others outside."""
    wanted = {slot.key for slot in handed}.union(*[piece.needed() for piece in pieces.values()])
    found = {}
    for name, piece in pieces.items():
        needed, kept = piece.needed(), [slot for key, slot in piece.made().items() if key in wanted]
        program = optimized(Program(list(needed.values()), piece.records, [*piece.results, *kept], None))
        for slot, result in zip(kept, program.results[len(piece.results) :], strict=True):
            slot.array = result.array  # what turned out to be constant is so for the sweeps that follow
        given, keys = [slot.key for slot in piece.given], [slot.key for slot in kept]
        found[name] = Replayable(given, list(needed), keys, len(piece.results), NUMPY.compile(program))
    return found


def options_of(optimizer: Any) -> list[Any]:
    """The plain options of an optimizer, then those of its members."""
    return [optimizer._plain_options(), *[options_of(member) for member in getattr(optimizer, "optimizers", [])]]


class Step:
    """All of a step, as a function of what comes from outside.

    Args:
        optimizer, variables: whose step, and what it changes.
        moved: Variables that the loss assigns.
        sources: keys of what comes from outside.
        sweeps: by name.
        handed: what others see: the loss, and Tensors that runs of the loss function have put somewhere.
        ready: that of the recorded run.
    """

    def __init__(
        self,
        optimizer: Any,
        variables: Sequence[Variable],
        moved: Sequence[Variable],
        sources: Sequence[int],
        sweeps: Mapping[str, Replayable],
        handed: Sequence[Slot],
        ready: tuple[Array, ...],
    ) -> None:
        self.optimizer, self.variables, self.moved, self.sources = optimizer, variables, moved, sources
        self.sweeps, self._handed, self._ready = sweeps, handed, [ready]
        self.name = optimizer.name
        shown = {slot.key for slot in handed}
        self._leaving = {name for name, sweep in sweeps.items() if not shown.isdisjoint(sweep.kept)}
        """Sweeps that make what is handed on."""
        self._options = options_of(optimizer)

    def __str__(self) -> str:
        """The programs of its sweeps, each under its name."""
        return "\n\n".join(f"{name}:\n{sweep.replay.program}" for name, sweep in self.sweeps.items())

    def holds(self) -> bool:
        """Whether the optimizer's options are still the same; with others it may ask for other sweeps."""
        return bool(options_of(self.optimizer) == self._options)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """One more step; the first call gives the results of the recorded one, which is done already."""
        if self._ready:
            return self._ready.pop()
        replayed = Replayed(self, dict(zip(self.sources, arrays, strict=True)))
        _, changes = self.optimizer.plan(None, self.variables, None, replayed)
        for name in self._leaving - replayed.done:  # a step that ended early: its last run of the loss was another one
            replayed(name, None)
        self.optimizer.commit(changes)
        return tuple([replayed.values[slot.key] if slot.array is None else slot.array for slot in self._handed])


class Replayed:
    """Sweeps by their programs, in one step.

    Attributes:
        values: arrays by the keys of their Slots.
        done: names of sweeps that were carried out.
    """

    def __init__(self, step: Step, values: dict[int, Array]) -> None:
        self._step, self.values = step, values
        self.done: set[str] = set()
        self._before, self._after = self._state(), None

    def __call__(self, name: str, function: Any, *given: Tensor) -> Sequence[Any]:
        """One sweep."""
        sweep = self._step.sweeps.get(name)
        if sweep is None:
            raise CompileError(
                f"{self._step.name} asks for the sweep {name!r}, which its recorded step did without and its `sweeps` do not "
                "name. Name there what every step asks for; if that differs from step to step, let `sweeps` be None."
            )
        self.done.add(name)
        self.values.update(zip(sweep.given, [x._array for x in given], strict=True))
        arrays = [self.values[key] for key in sweep.read]
        results = self._again(sweep.replay, arrays) if runs_loss(name) else sweep.replay(arrays)
        self.values.update(zip(sweep.kept, [x._array for x in results[sweep.results :]], strict=True))
        return results[: sweep.results]

    def _again(self, replay: Executable, arrays: Sequence[Array]) -> list[Any]:
        """A run of the loss from the state before the first one; the state after that one stays, as in `Repeatable`."""
        self._put(self._before)
        try:
            results = replay(arrays)
            self._after = self._after or self._state()
        finally:
            self._put(self._after or self._before)
        return results

    def _state(self) -> Any:
        return [variable._array for variable in self._step.moved], streams.global_stream().state

    def _put(self, state: Any) -> None:
        restore(zip(self._step.moved, state[0], strict=True))
        streams.global_stream().state = state[1]
