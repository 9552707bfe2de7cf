"""The passes over a program before it is compiled, in their order. Each takes a program and returns one with the same bits.

The last one is here: elementwise instructions of one shape that feed each other become one loop, which reads and writes memory
once. A group ends where another instruction needs one of its results, so nothing is moved past its reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import Record
from ..ir import Program, Slot, outputs_of, slots_in
from ..loops import KINDS, Body, Code, elementwise_body, loop, loop_of
from .forward_state import forward_state, read_together
from .inlining import inline_composites
from .simplification import eliminate_common_subexpressions, eliminate_dead_code, fold_constants, remove_identities

LONGEST = 48
"""The most steps of a loop; the intermediate values of more would not fit the fast memory."""


class _Group:
    """Instructions over the elements of one shape that become one loop; no other open group reads their results."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.members: list[tuple[Record, Body]] = []
        self.made: set[int] = set()
        self.read: set[int] = set()
        self.steps = 0

    def add(self, record: Record, body: Body) -> None:
        self.members.append((record, body))
        self.made.update(y.key for y in outputs_of(record))
        self.read.update(x.key for x in slots_in(record.inputs))
        self.steps += len(body.steps)


def fuse(program: Program, kinds: str = KINDS, graphs: bool = False) -> Program:
    """The program with elementwise chains fused into loops, of these kinds of dtypes.

    With `graphs`, where each instruction costs a kernel launch, neighbours that share no value become one loop too, and so do
    those of a single element.

    >>> @tf.function
    ... def step(x):
    ...     return tf.exp(x * 2.0) + 1.0
    >>> _ = step(tf.zeros([2]))
    >>> print(fuse(step.program(tf.zeros([2]))).records[0])  # doctest: +ELLIPSIS
    %3:float32[2] = loop(%0:float32[2], body=r2 = multiply(r0, 2.0); r3 = exp(r2); r5 = add(r3, 1.0) -> r5)
    """
    readers, find = readers_of(program), elementwise_body if graphs else loop_of
    kept: list[Record] = []
    groups: list[_Group] = []

    def close(group: _Group) -> None:
        groups.remove(group)
        kept.extend(_merged(group, readers))

    for record in program.records:
        shape, body = find(record, kinds)
        read = {x.key for x in slots_in(record.inputs)}
        for group in [one for one in groups if one.made & read and (body is None or one.shape != shape)]:
            close(group)
        if body is None:
            kept.append(record)
            continue
        joined = _Group(shape)
        for group in [one for one in groups if one.shape == shape and (graphs or (one.made | one.read) & read)]:
            if joined.steps + group.steps + len(body.steps) > LONGEST:
                close(group)
                continue
            groups.remove(group)
            for member in group.members:
                joined.add(*member)
        joined.add(record, body)
        groups.append(joined)
    for group in list(groups):
        close(group)
    return program.with_records(kept)


def readers_of(program: Program) -> dict[int, list[Any]]:
    """For each slot the instructions that read it; None stands for the caller."""
    readers: dict[int, list[Any]] = {x.key: [None] for x in slots_in(program.results)}
    for record in program.records:
        for x in slots_in(record.inputs):
            readers.setdefault(x.key, []).append(record)
    return readers


def _merged(group: _Group, readers: dict[int, list[Any]]) -> list[Record]:
    """One loop for a group; a group of one instruction stays as it is, a group without readers vanishes."""
    if len(group.members) == 1:
        return [group.members[0][0]]
    own = {id(record) for record, _ in group.members}
    inputs: dict[int, Slot] = {}
    for record, _ in group.members:
        inputs |= {x.key: x for x in slots_in(record.inputs) if x.key not in group.made}
    code = Code([x.dtype for x in inputs.values()])
    values: dict[int, Any] = dict(zip(inputs, code.elements(), strict=True))
    for record, body in group.members:
        found = code.inlined(body, [values[x.key] for x in slots_in(record.inputs)])
        values |= {y.key: value for y, value in zip(outputs_of(record), found, strict=True)}
    made = [y for record, _ in group.members for y in outputs_of(record)]
    outputs = [y for y in made if any(id(reader) not in own for reader in readers.get(y.key, ()))]  # that others read
    body = code.body([values[y.key] for y in outputs])
    return [Record(loop, list(inputs.values()), {"body": body}, tuple(outputs))] if outputs else []


SIMPLIFICATIONS: tuple[Callable[[Program], Program], ...] = (
    remove_identities,
    fold_constants,
    eliminate_common_subexpressions,
    eliminate_dead_code,
)
PASSES = (*SIMPLIFICATIONS, inline_composites, read_together, forward_state, fuse)


def simplified(program: Program) -> Program:
    """The program without redundant computations."""
    for run_pass in SIMPLIFICATIONS:
        program = run_pass(program)
    return program


def optimized(program: Program, kinds: str = KINDS, graphs: bool = False, native: bool = False) -> Program:
    """The program after all passes.

    Args:
        kinds: the kinds of dtypes that the executor has loops for.
        graphs: whether each instruction costs a kernel launch: elementwise neighbours become one loop even if they share no
            value, and sums over each of several flattened arrays become one.
        native: whether loops become kernels, in which a select costs nothing.
    """
    program = read_together(inline_composites(simplified(program), graphs, native))
    return fuse(forward_state(program, graphs), kinds, graphs)
