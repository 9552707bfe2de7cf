"""Loops of programs that NumPy carries out, with NumPy's bits: plain arithmetic as machine code, other functions by NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....parallel import in_parallel, thread_count
from ....types import Array
from ...ir import Slot
from ...loop_ir.elements import Made, elements_launch
from ...loop_ir.strided import spread
from ...loops import Body, Code, Step
from ...planning import address_of
from ...render.llvm import NestKernel
from ..numpy.blocks import writing
from . import jit
from .calls import known
from .runner import Job
from .segment import WAKING

EXACT = {
    *("add", "subtract", "multiply", "divide", "negative", "square", "reciprocal", "sqrt", "absolute", "astype", "where"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_not"),
    *("floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite"),
}
"""Functions with one right result, as IEEE 754 has it. It leaves open the sign of a maximum of 0.0 and -0.0."""
WORTHWHILE = 3
"""The fewest calls of NumPy that one of machine code takes the place of."""


class Stage(NamedTuple):
    """Steps of a body that are taken together.

    Attributes:
        reads, writes: the registers that it takes from before it and hands on.
        function: of NumPy, for a single step; it writes into its last argument. None for plain arithmetic.
        address, sizes: the machine code of arithmetic, and its operands behind the arrays.
        seconds: its time on one thread, roughly.
    """

    reads: Sequence[int]
    writes: Sequence[int]
    function: Callable[..., Any] | None = None
    address: int = 0
    sizes: Sequence[int] = ()
    seconds: float = 0.0


class Scratch(NamedTuple):
    """The memory of one call: an array for each register between stages, and for each stage its arrays and its job."""

    threads: int
    arrays: dict[int, Array]
    jobs: list[Any]


class CompiledLoop:
    """A body over arrays of certain shapes, by as many threads as there are. Several calls at once go on side by side.

    Args:
        body: the operations on each element.
        shape: of the outputs.
        operands: their shapes; None for Python numbers.
    """

    def __init__(self, body: Body, shape: tuple[int, ...], operands: Sequence[Any]) -> None:
        self._shape, self._shapes, count = shape, [*operands, *[shape] * len(body.outputs)], len(operands)
        self._stages, dtypes = list(_stages_of(body, shape, operands)), body.dtypes
        self._literals = dict(body.literals)
        self._handed = {register: dtypes[register] for stage in self._stages[:-1] for register in stage.writes}
        """The dtypes of registers between stages."""
        made = {register: number for number, register in enumerate(body.outputs, count) if register in self._stages[-1].writes}
        self._at = dict(enumerate(range(count))) | made
        """The positions of registers among the arrays of a call."""
        self._copied = [(one, number) for number, one in enumerate(body.outputs, count) if self._at.get(one) != number]
        self._idle: list[Scratch] = []

    def __call__(self, *arrays: Any) -> bool:
        """Write the outputs, which come last and may have the memory of operands of their shape; False for arrays with gaps."""
        for x, shape in zip(arrays, self._shapes, strict=True):
            if shape is not None and not (x.shape == shape and x.flags.c_contiguous):
                return False
        scratch, held = self._scratch(thread_count()), []
        for stage, (given, job) in zip(self._stages, scratch.jobs, strict=True):
            if stage.function is not None:
                _by_numpy(stage.function, [self._value(one, arrays, scratch) for one in (*stage.reads, *stage.writes)])
                continue
            addresses = []
            for position in given:
                x = arrays[position]
                if type(x) in (int, float):
                    held.append(x := np.asarray(float(x)))
                addresses.append(address_of(x))
            job.addresses[: len(given)] = addresses
            job()
        for register, position in self._copied:
            arrays[position][...] = self._value(register, arrays, scratch)
        self._idle.append(scratch)
        return True

    def _value(self, register: int, arrays: Sequence[Any], scratch: Scratch) -> Any:
        if register in self._at:
            return arrays[self._at[register]]
        return scratch.arrays[register] if register in self._handed else self._literals[register]

    def _scratch(self, threads: int) -> Scratch:
        while self._idle:
            try:
                if (found := self._idle.pop()).threads == threads:
                    return found
            except IndexError:  # another thread took it
                break
        arrays = {register: np.empty(self._shape, dtype) for register, dtype in self._handed.items()}
        jobs: list[Any] = []
        for stage in self._stages:
            places = [*stage.reads, *stage.writes]
            given = [one for one in places if one not in arrays]  # their addresses come first
            known = [one for one in places if one in arrays]
            addresses = np.array([*[0 for _ in given], *[address_of(arrays[one]) for one in known]], np.int64)
            parts = threads if stage.seconds > WAKING else 1
            instruction = stage.address, [*map([*given, *known].index, places), *stage.sizes], parts
            job = Job([instruction], addresses) if stage.function is None else None
            jobs.append(([self._at[one] for one in given] if job else [], job))
        return Scratch(threads, arrays, jobs)


def _by_numpy(function: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """A function of NumPy that writes into its last argument, by several threads if all have one shape."""
    y = arrays[-1]
    if any(getattr(x, "shape", y.shape) != y.shape for x in arrays):
        function(*arrays)
        return
    flat = [x.reshape(-1) if isinstance(x, np.ndarray) else x for x in arrays]
    in_parallel(lambda start, stop: function(*[x[start:stop] if isinstance(x, np.ndarray) else x for x in flat]), y.size)


def _is_exact(step: Step, literals: dict[int, Any]) -> bool:
    bounded = step.function in ("maximum", "minimum") and any(literals.get(register) for register in step.operands)
    return step.dtype.kind in "fb" and (step.function in EXACT or bounded)


def _turns(body: Body) -> dict[int, int]:
    """The turn of each step: even turns are arithmetic, as late as its readers allow, odd ones functions of NumPy."""
    literals, turns = dict(body.literals), dict[int, int]()
    exact = {step.register for step in body.steps if _is_exact(step, literals)}
    for step in body.steps:
        first = max([turns.get(register, 0) for register in step.operands])
        turns[step.register] = first + first % 2 if step.register in exact else first | 1
    last = max(turns.values())
    latest = dict.fromkeys(body.outputs, last + last % 2)
    for step in reversed(body.steps):
        own = turns[step.register]
        if step.register in exact:
            own = turns[step.register] = latest.get(step.register, own)
        for register in step.operands:
            latest[register] = min(latest.get(register, own), own - own % 2)
    return turns


def _stages_of(body: Body, shape: tuple[int, ...], operands: Sequence[Any]) -> Iterator[Stage]:
    """The stages of a body, in order."""
    turns = _turns(body)
    for turn in sorted(set(turns.values())):
        own = [step for step in body.steps if turns[step.register] == turn]
        if turn % 2:
            for step in own:
                yield Stage(step.operands, [step.register], writing(step.function))
        else:
            later = {register for step in body.steps if turns[step.register] > turn for register in step.operands}
            writes = [step.register for step in own if step.register in {*later, *body.outputs}]
            yield _arithmetic(body, shape, operands, own, writes)


def _arithmetic(
    body: Body, shape: tuple[int, ...], operands: Sequence[Any], steps: Sequence[Step], writes: Sequence[int]
) -> Stage:
    """Steps of plain arithmetic as machine code."""
    taken, dtypes = (*body.numbers, *steps), body.dtypes
    made = {*[step.register for step in taken], *dict(body.literals)}
    reads = sorted({register for step in taken for register in step.operands} - made)
    code = Code([dtypes[register] for register in reads])
    own = body._replace(steps=tuple(steps), outputs=tuple(writes))
    part = code.body(code.inlined(own, dict(zip(reads, code.elements(), strict=True))))
    given = [operands[register] if register < len(operands) else shape for register in reads]
    accesses = [spread(Slot(n, one, part.inputs[n]), shape) for n, one in enumerate(given)]
    results = [Slot(len(reads) + n, shape, dtypes[register]) for n, register in enumerate(writes)]
    stored = [Made(register, spread(y, shape)) for register, y in zip(part.outputs, results, strict=True)]
    launch = elements_launch(part, shape, accesses, stored)
    assert launch is not None
    (address,) = jit.addresses([NestKernel(launch.nest)])
    return Stage(reads, writes, None, address, launch.sizes, launch.seconds)


def compiled_loop(body: Body, shape: tuple[int, ...], operands: Sequence[Any]) -> CompiledLoop | None:
    """The loop of a body for operands of these shapes; None if it would save too little, or if there is no machine code."""
    if not known(body) or any(step.dtype.kind not in "fb" for step in body.steps):
        return None
    turns = list(_turns(body).values())
    arithmetic = [turn for turn in turns if turn % 2 == 0]
    single = [number for number, one in enumerate(operands) if math.prod(one or ()) == 1]
    numbers = len(arithmetic) < len(turns) and (body.early(single) or body.numbers)
    saves = len(arithmetic) >= WORTHWHILE * max(len(set(arithmetic)), 1)
    return CompiledLoop(body, shape, operands) if saves and not numbers else None
