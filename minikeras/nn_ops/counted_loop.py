"""Loops with a condition whose steps can be counted before them: one `scan`, whose slices are the integers that decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import convert_to_tensor
from ..core.arrays import namespace
from ..core.ops.shaping import stack
from ..core.stack import BOTTOM, current, interpreters, on_top, only_shapes, unrolls_loops
from ..core.tensor import Tensor
from .loop_body import LoopBody, interned, is_fixed, needed, record, replay
from .scan import run, same_step

Turn = Callable[[list[Any]], tuple[Sequence[Any], Any]]
"""Maps the carried values to the next carried values, and tells whether there is another step after this one."""

_FUSED = 256
"""Most elementwise instructions of all steps for which few loops over elements are faster than one loop over steps."""


def counted_loop(turn: Turn, first: Sequence[Any], most: int | None = None) -> list[Any] | None:
    """The final carried values of a loop, if it is recorded and can be one operation; None if Python has to carry it out.

    It can if integer scalars decide about each step, and their first values are known while the program is recorded. They are
    computed for all steps at once, before the loop.

    Args:
        turn: asks the condition, then takes a step.
        first: the first carried values, Tensors or integers.
        most: the greatest number of steps.
    """
    if not any([one.keeps_run for one in interpreters()]) or only_shapes() or unrolls_loops():
        return None
    if not all(type(x) is int or isinstance(x, Tensor) for x in first):
        return None
    carried = list(map(convert_to_tensor, first))
    if namespace(*(x.array for x in carried)) is not np:  # a graph of kernels has no loops: Python would carry out each step
        return None
    try:
        body, constants = _recorded(turn, carried)
    except Exception:  # whatever Tensors are not fit for; the loop in Python says it where it still happens
        return None
    found = None if body is None else _counted(body, carried, constants, most)
    if body is None or found is None:
        return None
    rows, ends = found
    if not rows:
        return carried
    if len(rows) * len(body.instructions) <= _FUSED and all(one.primitive.elementwise for one in body.instructions):
        return None
    following = dict(zip(body.carried, body.results, strict=False))
    others = [place for place in body.carried if place not in ends]
    inner = LoopBody(body.values, others, [*ends], body.constants, body.instructions, [following[place] for place in others])
    kept = [x for place, x in zip(body.carried, carried, strict=True) if place not in ends]
    with on_top(BOTTOM):
        slices = [stack(list(column)) for column in zip(*rows, strict=True)]
    last, _ = run(interned(inner), kept, slices, constants, len(rows), False)
    ends.update(zip(others, last, strict=True))
    return [ends[place] for place in body.carried]


def _recorded(turn: Turn, carried: Sequence[Tensor]) -> tuple[LoopBody | None, list[Tensor]]:
    """The step, whose last result is the condition before it, with its constants; None if the next step does something else."""

    def step(values: list[Tensor], _: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        following, going = turn(values)
        return following, [going]

    outer = current()
    body, constants, following = record(step, outer, [x.array for x in carried], [])
    other, others, _ = record(step, outer, [x.array for x in following], [])
    return (body if same_step(body, constants, other, others) else None), constants


def _counted(
    body: LoopBody, carried: Sequence[Tensor], constants: Sequence[Tensor], most: int | None
) -> tuple[list[list[Tensor]], dict[int, Tensor]] | None:
    """The values that decide in each step, and in the end, by place; None if other values have a part in them."""
    following = dict(zip(body.carried, body.results, strict=False))
    given, going = dict(zip(body.operands, [*carried, *constants], strict=True)), body.results[-1]
    silent = [one for one in body.instructions if not one.primitive.effect]
    deciding: list[int] = []
    while True:
        wanted = {going, *(following[place] for place in deciding)}
        part = needed(silent, wanted)
        read = wanted.union(*(one.operands for one in part)) & given.keys()
        more = [place for place in body.carried if place in read and place not in deciding]
        if not more:
            break
        deciding += more
    whole = all(not body.values[place].shape and body.values[place].dtype.kind in "iub" for place in (*deciding, going))
    if not whole or not all(type(given[place]) is Tensor and is_fixed(given[place]) for place in read):
        return None
    values = body.filled(given.values())
    rows: list[list[Tensor]] = []
    with on_top(BOTTOM):
        while most is None or len(rows) < most:
            replay(part, values)
            if not values[going].array:
                break
            rows.append([values[place] for place in deciding])
            for place, x in zip(deciding, [values[following[place]] for place in deciding], strict=True):
                values[place] = x
    return rows, {place: values[place] for place in deciding}
