"""`scan`: a loop over a recorded step as one operation, with its derivatives; each is a loop over a step derived from that one.

What does not depend on what is carried is computed for all steps at once, before the loop or after it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..core import ForwardAccumulator, IndexedSlices, Primitive, Tape, Tensor, checked, convert_to_tensor, namespace, operations
from ..core.batch import Batch, BatchedTensor
from ..core.ops.arithmetic import add
from ..core.ops.contractions import matrix_product
from ..core.ops.indexing import getitem
from ..core.ops.shaping import reshape, stack, swap_last, transpose
from ..core.stack import BOTTOM, Frame, current, interpreters, on_top, only_shapes, unrolls_loops
from ..types import Array, TensorLike
from .loop_body import BodyRecorder, BodyValue, Instruction, LoopBody, Unrepeatable, interned, is_fixed, needed, record, replay

Step = Callable[[list[Any], list[Any]], tuple[Sequence[Any], Sequence[Any]]]
"""Maps carried values and slices to the next carried values and the outputs of the step."""

_MOST = 2**28
"""Results of more bytes than this are not computed for all steps at once."""


def scan(
    step: Step, carried: Sequence[Tensor], sliced: Sequence[Tensor], length: int, reverse: bool = False, trusted: bool = False
) -> tuple[list[Any], list[Any]]:
    """Repeat a step; returns the final carried values, and the outputs of the steps stacked along a new first axis.

    The step is recorded, by one run of it or, unless it is `trusted`, by two that must do the same. A step that a recording
    cannot repeat, since it draws, assigns, or asks for values, runs as often as there are steps.

    Args:
        step: see `Step`.
        carried: the first values.
        sliced: tensors whose first axis has the size `length`.
        length: the number of steps.
        reverse: whether to begin with the last slice; its outputs stand last.
        trusted: whether it is known to do the same each time.

    Raises:
        Unrepeatable: if there are no steps, and none can be recorded to tell the shapes.
    """
    if length and unrolls_loops():
        return _one_by_one(step, carried, sliced, length, reverse)
    try:
        outer, state = current(), [x.array for x in carried]
        slices = [x.array[-1 if reverse else 0, ...] if length else _no_slice(x.array) for x in sliced]
        body, constants, following = record(step, outer, state, slices)
        if not trusted and length > 1:
            again = [x.array[-2 if reverse else 1, ...] for x in sliced]
            other, others, _ = record(step, outer, [x.array for x in following], again)
            if not same_step(body, constants, other, others):
                raise Unrepeatable("the second step differs from the first")
    except Unrepeatable:
        if not length:
            raise
        return _one_by_one(step, carried, sliced, length, reverse)
    if only_shapes():
        xp, values = namespace(*state, *slices), [body.values[place] for place in body.results[len(carried) :]]
        return following, [Tensor(xp.zeros((length, *(one.shape or ())), dtype=one.dtype)) for one in values]
    return run(body, carried, sliced, constants, length, reverse)


def _no_slice(array: Array) -> Array:
    return namespace(array).zeros(array.shape[1:], dtype=array.dtype)


def same_step(body: LoopBody, constants: Sequence[Tensor], other: LoopBody, others: Sequence[Tensor]) -> bool:
    """True if two recorded steps compute the same."""
    return body == other and all(map(_same, constants, others))


def _same(one: Tensor, other: Tensor) -> bool:
    """True if two constants of a step have the same values."""
    while isinstance(one, BatchedTensor) and isinstance(other, BatchedTensor) and one.batch is other.batch:
        one, other = one.stacked, other.stacked
    if one.key == other.key or one.array is other.array:
        return True
    alike = type(one) is type(other) is Tensor and one.shape == other.shape and one.dtype == other.dtype
    return alike and bool((one.array == other.array).all())


def _one_by_one(
    step: Step, carried: Sequence[Any], sliced: Sequence[Tensor], length: int, reverse: bool
) -> tuple[list[Any], list[Any]]:
    """The loop in Python, for a step that cannot be recorded."""
    rows: list[Any] = [None] * length
    for i in range(length)[:: -1 if reverse else 1]:
        carried, outputs = step(list(carried), [getitem(x, i) for x in sliced])
        carried, rows[i] = list(map(convert_to_tensor, carried)), list(map(convert_to_tensor, outputs))
    return list(carried), [stack(column) for column in zip(*rows, strict=True)]


# Carrying it out ------------------------------------------------------------------------------------------------------


def _loop(xp: ModuleType, *arrays: Array, body: LoopBody, length: int, reverse: bool) -> tuple[Array, ...]:
    count, split = len(body.carried), len(body.carried) + len(body.sliced)
    steps, values = body.steps(xp), body.filled(arrays)
    carried, given = list(arrays[:count]), list(zip(body.sliced, arrays[count:split], strict=True))
    rows = [
        (place, xp.zeros((length, *(body.values[place].shape or ())), dtype=body.values[place].dtype))
        for place in body.results[count:]
    ]
    for i in range(length)[:: -1 if reverse else 1]:
        for place, array in zip(body.carried, carried, strict=True):
            values[place] = array
        for place, array in given:
            values[place] = array[i, ...]
        for function, operands, params, outputs, several in steps:
            found = function(*[values[place] for place in operands], **params)
            if several:
                for place, array in zip(outputs, found, strict=True):
                    values[place] = array
            else:
                values[outputs[0]] = found
        for place, whole in rows:
            whole[i] = values[place]
        carried = [values[place] for place in body.results[:count]]
    if xp is not np:  # on a device results without gaps
        carried = [array.copy() for array in carried]
    return *carried, *[whole for _, whole in rows]


def run(
    body: LoopBody, carried: Sequence[Any], sliced: Sequence[Any], constants: Sequence[Any], length: int, reverse: bool
) -> tuple[list[Any], list[Any]]:
    """The loop over a body; instructions that depend on no carried value come before it, for all steps at once."""
    once, before, inner = _divided(body, length)
    batch = Batch(length)
    values = body.filled([*carried, *(BatchedTensor(x, batch) for x in sliced), *constants])
    replay(once, values)
    with batch:
        replay(before, values)
    whole = [batch.stack_of(values[place]) for place in inner.sliced]
    count = len(body.carried)
    last: list[Any] = list(carried)
    if inner.carried or inner.results:
        last, rows = _carried_out(inner, carried, whole, [values[place] for place in inner.constants], length, reverse)
        for place, y in zip(inner.results[count:], rows, strict=True):
            values[place] = BatchedTensor(y, batch)
    return last, [batch.stack_of(values[place]) for place in body.results[count:]]


def _carried_out(
    body: LoopBody, carried: Sequence[Any], sliced: Sequence[Any], constants: Sequence[Any], length: int, reverse: bool
) -> tuple[list[Any], list[Any]]:
    """The loop as one operation; if a tape watches, it also gives all values of each step that its derivative needs."""
    operands, several = [*carried, *sliced, *constants], len(body.results)
    if _is_watched(operands):
        outputs = (True,) * (several - len(body.carried))
        smooth = [i for i, x in enumerate(operands) if i >= len(carried) and x.dtype.is_differentiable]
        body = _with(body, _reversed(body, outputs, tuple(smooth)).saved)
    outputs = loop(*operands, body=body, length=length, reverse=reverse)
    return list(outputs[: len(carried)]), list(outputs[len(carried) : several])


def _is_watched(operands: Sequence[Any]) -> bool:
    """True if a tape on the stack tracks one of these operands."""
    keys = set()
    for x in operands:
        while isinstance(x, BatchedTensor):
            keys.add(x.key)
            x = x.stacked
        keys.add(x.key)
    return any([isinstance(one, Tape) and not keys.isdisjoint(one.tracked) for one in interpreters()])


@functools.lru_cache(maxsize=256)
def _divided(body: LoopBody, length: int) -> tuple[list[Instruction], list[Instruction], LoopBody]:
    """A body in three parts: instructions that are the same in each step, those that depend on slices alone, and the loop."""
    parts: tuple[list[Instruction], ...] = ([], [], [])
    in_loop, of_slices = set(body.carried), set(body.sliced)
    for one in body.instructions:
        if in_loop.isdisjoint(one.operands) and of_slices.isdisjoint(one.operands):
            parts[0].append(one)
        elif in_loop.isdisjoint(one.operands) and _can_be_stacked(body, one, length):
            of_slices.update(one.outputs)
            parts[1].append(one)
        else:
            in_loop.update(one.outputs)
            parts[2].append(one)
    count = len(body.carried)
    results = [*body.results[:count], *dict.fromkeys(place for place in body.results[count:] if place in in_loop)]
    used = {i for one in parts[2] for i in one.operands}.union(results)
    same = {y for one in parts[0] for y in one.outputs}.union(body.constants)
    sliced, constants = sorted(of_slices & used), sorted(same & used)
    return parts[0], parts[1], LoopBody(body.values, body.carried, sliced, constants, parts[2], results)


def _can_be_stacked(body: LoopBody, one: Instruction, length: int) -> bool:
    """True if an operation may be done for all steps at once, which a check may whatever its size."""
    if one.primitive is checked:
        return True
    return one.primitive.batching != "loop" and all(
        length * math.prod(value.shape or ()) * value.dtype.itemsize <= _MOST for value in [body.values[y] for y in one.outputs]
    )


# Derivatives ----------------------------------------------------------------------------------------------------------


def _with(body: LoopBody, saved: Sequence[int]) -> LoopBody:
    """The body that also gives these values of each step."""
    given = body.results[len(body.carried) :]
    more = [place for place in saved if place not in given]
    return body.giving([*body.results, *more]) if more else body


class _Reverse(NamedTuple):
    """The step of the backward loop.

    Attributes:
        body: carries the cotangents of what is carried, then sums of cotangents of constants; its slices are those of the loop
            (`sliced`, by their places), `saved` values of it, then the cotangents of what it gives.
        sliced, constants: the places among the operands of the loop of what the step needs.
        saved: the numbers of the values of the loop that it needs.
        more: constants that the rules have made.
        found: for each operand asked for, the positions of its parts among what each step gives, of a product two, whose rows
            are multiplied for all steps at once; none if its sum is carried.
    """

    body: LoopBody
    sliced: tuple[int, ...]
    saved: tuple[int, ...]
    constants: tuple[int, ...]
    more: tuple[Tensor, ...]
    found: dict[int, list[tuple[int, ...]]]


def _is_smooth(x: Tensor) -> bool:
    return bool(x.dtype.is_differentiable)


@functools.lru_cache(maxsize=256)
def _reversed(body: LoopBody, given: tuple[bool, ...], wanted: tuple[int, ...]) -> _Reverse:
    """The step of the backward loop: the forward step once more and its backward sweep, less what is saved or not needed."""
    recorder, tape, count, places = BodyRecorder(), Tape(False), len(body.carried), body.operands
    operands = [recorder.zeros(body.values[place]) for place in places]
    values = body.filled(operands)
    smooth = [i for i, x in enumerate(operands[:count]) if _is_smooth(x)]
    sources = [operands[i] for i in (*smooth, *wanted)]
    tape.tracked.update([x.key for x in sources])
    with on_top(Frame(tape, recorder.frame())):
        replay(body.instructions, values)
    own = {recorder.number(x): place for place, x in enumerate(values) if isinstance(x, Tensor)}
    start = len(recorder.instructions)
    arriving = [recorder.zeros(body.values[body.results[i]]) for i in smooth]
    chosen = [place for place, is_given in zip(body.results[count:], given, strict=True) if is_given]
    outside = [recorder.zeros(body.values[place]) for place in chosen]
    with on_top(recorder.frame()):
        seeds: dict[int, Any] = {}
        targets = [*(values[body.results[i]] for i in smooth), *(values[place] for place in chosen)]
        for y, g in zip(targets, [*arriving, *outside], strict=True):
            seeds[y.key] = add(seeds[y.key], g) if y.key in seeds else g
        cotangents = tape.gradients(seeds, [x.key for x in sources], bare=False)
        dense = {key: g.read_value() if isinstance(g, IndexedSlices) else g for key, g in cotangents.items()}
        following = [dense[x.key] if x.key in dense else operations.zeros_like(x) for x in sources[: len(smooth)]]
    made = {y: one for one in recorder.instructions[start:] for y in one.outputs}
    sums: list[Tensor] = []
    outputs: list[int] = []
    found: dict[int, list[tuple[int, ...]]] = {}
    for i, x in zip(wanted, sources[len(smooth) :], strict=True):
        if x.key not in dense:
            continue
        number, is_slice = recorder.number(dense[x.key]), i < count + len(body.sliced)
        parts = [(number,)] if is_slice else _products(number, made, recorder.values)
        found[i] = [tuple(range(len(outputs) + 2 * k, len(outputs) + 2 * k + len(part))) for k, part in enumerate(parts)]
        outputs += [y for part in parts for y in part]
        if not parts:
            sums.append(recorder.zeros(body.values[places[i]]))
            with on_top(recorder.frame()):
                following.append(add(sums[-1], dense[x.key]))
    results, sweep = [*map(recorder.number, following), *outputs], recorder.instructions[start:]
    known = {recorder.number(x): i for i, x in enumerate(operands)}
    used = {i for one in needed(sweep, results) for i in one.operands}.union(results)
    inputs = {recorder.number(x) for x in (*arriving, *outside, *sums)}
    inputs |= {y for one in sweep for y in one.outputs}
    before = [place for place in sorted(used - inputs) if recorder.values[place].shape is not None]
    slices = [place for place in before if count <= known.get(place, -1) < count + len(body.sliced)]
    constants = [place for place in before if known.get(place, -1) >= count + len(body.sliced)]
    more = [place for place in before if place in recorder.constants]
    saved = [place for place in before if place not in {*slices, *constants, *more}]
    step = LoopBody(
        recorder.values,
        [recorder.number(x) for x in (*arriving, *sums)],
        [*slices, *saved, *map(recorder.number, outside)],
        [*constants, *more],
        sweep,
        results,
    )
    return _Reverse(
        step,
        tuple(known[place] for place in slices),
        tuple(own[place] for place in saved),
        tuple(known[place] for place in constants),
        tuple(recorder.constants[place] for place in more),
        found,
    )


def _products(number: int, made: dict[int, Instruction], values: Sequence[BodyValue]) -> list[tuple[int, int]]:
    """A cotangent as a sum of products of matrices, each by the rows of its two factors; none if it is something else."""
    one = made.get(number)
    if one is not None and one.primitive is add and all(values[i].shape == values[number].shape for i in one.operands):
        parts = [_products(i, made, values) for i in one.operands]
        return [pair for part in parts for pair in part] if all(parts) else []
    if one is not None and one.primitive is matrix_product:
        left, right = made.get(one.operands[0]), one.operands[1]
        if left is not None and left.primitive is transpose and left.params["perm"] == (-1, -2):
            a, b = (values[i].shape for i in (left.operands[0], right))
            if a is not None and b is not None and a[:-1] == b[:-1]:
                return [(left.operands[0], right)]
    return []


def _vjp(wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The backward loop."""
    body, length, reverse = params["body"], params["length"], params["reverse"]
    bare = not any(isinstance(x, Tensor) for x in inputs)
    if bare:
        inputs, y, g = [[None if x is None else Tensor(x) for x in xs] for xs in (inputs, y, g)]
    count = len(body.carried)
    back = _reversed(body, tuple(part is not None for part in g[count:]), tuple(i for i in wanted if i >= count))
    rows = dict(zip(body.results[count:], y[count:], strict=True))
    if not rows.keys() >= set(back.saved):  # no tape has watched: the loop once more
        whole = _with(body, back.saved)
        outputs = loop(*inputs, body=whole, length=length, reverse=reverse)
        rows = dict(zip(whole.results[count:], outputs[count:], strict=True))
    smooth = [i for i in range(count) if _is_smooth(inputs[i])]
    arriving = [operations.zeros_like(y[i]) if g[i] is None else g[i] for i in smooth]
    sums = [inputs[i] for i, parts in back.found.items() if not parts]
    last, outputs = run(
        back.body,
        [*arriving, *map(operations.zeros_like, sums)],
        [*(inputs[i] for i in back.sliced), *(rows[place] for place in back.saved), *(x for x in g[count:] if x is not None)],
        [*(inputs[i] for i in back.constants), *back.more],
        length,
        not reverse,
    )
    found: dict[int, Any] = dict(zip(smooth, last, strict=False))
    added = iter(last[len(smooth) :])
    for i, parts in back.found.items():
        terms = [outputs[part[0]] if len(part) == 1 else _product_of_rows(*(outputs[k] for k in part)) for part in parts]
        found[i] = functools.reduce(add, terms) if terms else next(added)
    result = [found.get(i) for i in wanted]
    return [None if x is None else x.array for x in result] if bare else result


def _product_of_rows(a: TensorLike, b: TensorLike) -> Any:
    """The sum over all steps of a'b, as one product whose rows are those of all steps."""
    return matrix_product(swap_last(_rows(a)), _rows(b))


def _rows(x: TensorLike) -> Any:
    """(steps, ..., rows, columns) as (..., steps * rows, columns)."""
    rank = len(x.shape)
    if rank > 3:
        x = transpose(x, perm=(*range(1 - rank, -2), -rank, -2, -1))
    return reshape(x, shape=(x.shape[-3] * x.shape[-2], x.shape[-1]), rank=3)


def _jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The loop over values and tangents at once."""
    body, length, reverse = params["body"], params["length"], params["reverse"]
    bare = not any(isinstance(x, Tensor) for x in inputs)
    if bare:
        inputs, tangents = [[None if x is None else Tensor(x) for x in xs] for xs in (inputs, tangents)]
    count, split = len(body.carried), len(body.carried) + len(body.sliced)
    moving = tuple(i for i, t in enumerate(tangents) if i >= count and t is not None)
    forward, more = _forward(body, moving)
    smooth = [i for i in range(count) if _is_smooth(inputs[i])]
    first = [operations.zeros_like(inputs[i]) if tangents[i] is None else tangents[i] for i in smooth]
    last, rows = run(
        forward,
        [*inputs[:count], *first],
        [*inputs[count:split], *(tangents[i] for i in moving if i < split)],
        [*inputs[split:], *(tangents[i] for i in moving if i >= split), *more],
        length,
        reverse,
    )
    moved, others = iter(last[count:]), iter(rows)
    found = [next(moved) if i in smooth else None for i in range(count)]
    found += [next(others) if body.values[place].dtype.kind in "fcV" else None for place in body.results[count:]]
    return tuple([None if x is None else x.array for x in found]) if bare else tuple(found)


@functools.lru_cache(maxsize=256)
def _forward(body: LoopBody, moving: tuple[int, ...]) -> tuple[LoopBody, list[Tensor]]:
    """The step on values and on tangents of carried values and further operands, and the constants of its rules."""
    recorder = BodyRecorder()
    count, split = len(body.carried), len(body.carried) + len(body.sliced)
    operands = [recorder.zeros(body.values[place]) for place in body.operands]
    values = body.filled(operands)
    smooth = [i for i in range(count) if _is_smooth(operands[i])]
    directions = {i: recorder.zeros(body.values[body.operands[i]]) for i in (*smooth, *moving)}
    accumulator = ForwardAccumulator([operands[i] for i in directions], list(directions.values()))
    with on_top(recorder.frame()):
        with accumulator:
            replay(body.instructions, values)
        results = [values[place] for place in body.results]
        moved = [accumulator.jvp(x, "zero") if _is_smooth(x) else None for x in results]
    outputs = [*results[:count], *(moved[i] for i in smooth), *(x for x in moved[count:] if x is not None)]
    sliced = [*operands[count:split], *(directions[i] for i in moving if i < split)]
    fixed = [*operands[split:], *(directions[i] for i in moving if i >= split)]
    return _with_constants(recorder, [*operands[:count], *(directions[i] for i in smooth)], sliced, fixed, outputs)


def _with_constants(
    recorder: BodyRecorder, carried: Sequence[Tensor], sliced: Sequence[Tensor], constants: Sequence[Tensor], results: Any
) -> tuple[LoopBody, list[Tensor]]:
    """A derived body: all of these are its operands, and behind them the constants that rules have made."""
    numbers = [recorder.number(x) for x in results]
    made = recorder.constants
    fixed = [*map(recorder.number, constants), *made]
    ends = [recorder.number(x) for x in carried], [recorder.number(x) for x in sliced]
    return LoopBody(recorder.values, *ends, fixed, recorder.instructions, numbers), list(made.values())


def _batched(batch: Any, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The loop over stacks: carried values always become stacks; slices and constants stay as they are."""
    body = params["body"]
    count, split = len(body.carried), len(body.carried) + len(body.sliced)
    held = tuple(batch.holds(x) for x in inputs)
    stacked, more = _of_stacks(body, batch.size, held)
    carried = [batch.full(x) for x in inputs[:count]]
    sliced = [_axes_swapped(x.stacked) if batch.holds(x) else x for x in inputs[count:split]]
    constants = [x.stacked if batch.holds(x) else x for x in inputs[split:]]
    found = primitive(*carried, *sliced, *constants, *more, **{**params, "body": stacked})
    return (*found[:count], *map(_axes_swapped, found[count:]))


@functools.lru_cache(maxsize=256)
def _of_stacks(body: LoopBody, size: int, held: tuple[bool, ...]) -> tuple[LoopBody, list[Tensor]]:
    """The step on stacks of `size` values, and the constants of its rules."""
    recorder, batch = BodyRecorder(), Batch(size)
    count, split = len(body.carried), len(body.carried) + len(body.sliced)
    stacks = [i < count or is_stack for i, is_stack in enumerate(held)]
    known = [body.values[place] for place in body.operands]
    known = [one._replace(shape=(size, *(one.shape or ()))) if stack else one for one, stack in zip(known, stacks, strict=True)]
    given = [recorder.zeros(one) for one in known]
    values = body.filled([BatchedTensor(x, batch) if stack else x for x, stack in zip(given, stacks, strict=True)])
    with on_top(recorder.frame()):
        with batch:
            replay(body.instructions, values)
        results = [batch.stack_of(values[place]) for place in body.results]
    return _with_constants(recorder, given[:count], given[count:split], given[split:], results)


def _axes_swapped(x: TensorLike) -> Any:
    """The first two axes swapped: steps and stack."""
    rank = len(x.shape)
    return transpose(x, perm=(1 - rank, -rank, *range(2 - rank, 0)))


loop = Primitive(
    "scan",
    lambda xp: functools.partial(_loop, xp),
    vjp=_vjp,
    jvp=_jvp,
    uniform=False,
    batching=_batched,
    partial=True,
)


# Loops with a condition whose steps can be counted before them ---------------------------------------------------------
#
# Each is one `scan`, whose slices are the integers that decide.


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
