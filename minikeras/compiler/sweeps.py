"""Backward sweeps of tapes as programs: `core/sweep_plans.py` asks for one when it has seen the same sweep often enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import Record, Tensor
from ..core.backward import sweep
from ..core.gradient_arguments import seeds_of
from ..core.layout import Layout
from ..core.operand import Operand
from ..core.registry import operations
from ..core.sweep_plans import Sweep
from ..forks import ForkSafeLock
from ..types import Array
from .executors.numpy.builder import build
from .executors.numpy.lowering import lowered
from .ir import Program, slots_in, slots_of
from .passes.pipeline import optimized
from .planning.flat_variables import FlatBuffer, unused_buffer
from .recorder import Recorder

FLAT = 1 << 15
"""Elements of all results from which they lie in one flat array, which an optimizer's step then need not copy together."""

Computation = Callable[[list[Record], Callable[[Any], Any], set[int]], list[Any]]


class CompiledSweep:
    """A backward sweep as a program of the arrays that its rules read; its arguments are the arrays of a `Sweep`."""

    def __init__(self, program: Program) -> None:
        results = slots_in(program.results)
        read = {x.key for record in program.records for x in slots_of(record)} | {x.key for x in results}
        self._read = [number for number, slot in enumerate(program.arguments) if slot.key in read]
        arguments = [program.arguments[number] for number in self._read]
        program = Program(arguments, program.records, program.results, None)
        self._run = build(program, lowered(program))
        self._layout: Layout | None = None
        self._buffers: list[FlatBuffer] = []
        self._lock = ForkSafeLock()
        if len(results) > 1 and len({x.dtype for x in results}) == 1 and self._run.fills_memory:
            layout = Layout([x.shape for x in results], results[0].dtype)
            self._layout = layout if layout.size >= FLAT else None

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        """The cotangents of the sources, Tensors or None."""
        arguments = [arrays[number] for number in self._read]
        return self._run(arguments) if self._layout is None else self._run(arguments, self._memory(self._layout))

    def _memory(self, layout: Layout) -> list[Array]:
        """Pieces of a flat array that nothing else refers to."""
        with self._lock:
            return list(unused_buffer(self._buffers, layout, 1).pieces)

    @property
    def bytes(self) -> int:
        """The memory that it works in."""
        flat = 0 if self._layout is None else self._layout.size * self._layout.dtype.itemsize
        return self._run.bytes + flat * len(self._buffers)


def compiled_sweep(
    records: Sequence[Record], asked: Sweep, targets: Sequence[Any], sources: Sequence[Any], tracked: set[int]
) -> CompiledSweep | None:
    """The plan of a sweep; None if it cannot be repeated.

    Rows of a gradient that are looked up stay in pieces on the way back only where nothing records, so they have no plan.
    """

    def swept(records: Sequence[Record], stand_in: Callable[[Any], Any], watched: set[int]) -> list[Any]:
        ends, keys = [stand_in(x) for x in targets], [stand_in(x).key for x in sources]
        seeds = seeds_of(None, ends, None, keys, False, watched)
        known = [key for key in keys if key in watched or key in seeds]
        found = sweep(records, seeds, known, False)
        return [found.get(key) for key in keys]

    return compiled_plan(records, asked, tracked, swept)


def compiled_plan(records: Sequence[Record], asked: Sweep, tracked: set[int], compute: Computation) -> CompiledSweep | None:
    """What follows from Records alone as a program, found by recording it once; None if it cannot be repeated.

    Args:
        records, asked, tracked: of a tape, and what `describe` says of them.
        compute: from Records over stand-ins, what gives the stand-in of a Tensor or Variable, and the keys of those that are
            tracked, to the results.
    """
    tensors = [Tensor(array) for array in asked.arrays]

    def stand_in(x: Any) -> Any:
        return tensors[asked.numbers[x.key]] if isinstance(x, Operand) else x

    copies = [
        Record(
            record.primitive,
            [stand_in(x) for x in record.inputs],
            record.params,
            tuple(map(stand_in, record.outputs)) if type(record.outputs) is tuple else stand_in(record.outputs),
        )
        for record in records
    ]
    watched = {tensors[number].key for key, number in asked.numbers.items() if key in tracked}
    with Recorder(tensors, strict=False) as recorder:
        results = [recorder.result(x) for x in compute(copies, stand_in, watched)]
    if recorder.refusal is not None or any(record.primitive is operations.add_rows for record in recorder.records):
        return None
    return CompiledSweep(optimized(Program(recorder.arguments, recorder.records, results, None)))
