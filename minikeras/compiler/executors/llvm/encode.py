"""From the instructions of a program to kernels over places in a list of addresses; the rest stays calls of NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Record, only_checks, operations
from ....core.ops.shaping import split_keys
from ....nn_ops.scan import loop
from ....types import Array
from ...ir import Program, Slot, outputs_of, slots_in, slots_of
from ...loop_ir.contractions import Contraction, contraction_of
from ...loop_ir.elements import Made, copy_launch, elements_launch
from ...loop_ir.fusion import Target, fuse_groups
from ...loop_ir.groups import ROOM, Domain, axes_of, group, is_reduction, loop_of, rows_nest
from ...loop_ir.operations import contraction, launches
from ...loop_ir.reductions import copy_body
from ...loop_ir.strided import Access, Launch, contiguous, spread, view_of
from ...loops import KINDS, Body, elementwise_body
from ...render.llvm import NestKernel
from ...variable_storage import flatten, part
from ..numpy.blocks import copied, put
from ..numpy.lowering import Bind, Call, CallLowering, FlattenKernel, LoweredOp, ReadFlat, View
from .calls import KernelCall, can_loop
from .functions import has_type, is_known
from .phases import in_phases
from .products import way_of
from .scans import KernelScan, scan_of

BOUND = 1 << 12
"""Bytes from which an argument is read in place: copying fewer takes no longer than asking for their address."""
NARROW = 16
"""Columns from which a loop reads a part of a matrix where it lies; narrower ones are copied, and looped over as one row."""
LARGEST_TOTAL = 1 << 17
"""Elements of the largest loop that also sums over all, which one thread carries out; threads share other sums."""
SUMS = operations.reduce_sum, operations.reduce_mean, operations.reduce_max
"""Reductions at the end of a loop."""


def _takes(record: Record, body: Body | None, alone: bool = False) -> bool:
    """True if there is a kernel for a loop with a body, or for a reduction at its end, or of an operand as it is."""
    if any(y.order is not None or y.xp is not np for y in slots_of(record) if y.shape is not None):
        return False
    if body is not None:
        return can_loop(body, math.prod(outputs_of(record)[0].shape))
    x, domain = record.inputs[0], Domain(record.inputs[0].shape, axes_of(record))
    known = domain.is_by_rows if record.primitive is operations.reduce_max else record.primitive in SUMS
    return x.dtype.itemsize >= 4 and known and (alone or bool(domain.kept) or math.prod(x.shape) < LARGEST_TOTAL)


TARGET = Target(KINDS, _takes, lambda domain: domain.is_by_rows and NARROW <= math.prod(domain.folded) <= ROOM, keeps=True)


def encode(program: Program) -> list[LoweredOp]:
    """The calls that carry out a program, as kernels where there are any."""
    encoder = Encoder(program)
    given, records = {slot.key for slot in program.arguments}, fuse_groups(program, TARGET).records
    # Checks of arguments first, so that they do not split a segment.
    for record in sorted(records, key=lambda one: not (only_checks(one.primitive) and one.inputs[0].key in given)):
        encoder.encode(record)
    return in_phases(list(encoder.calls()))


def _as_a_whole(program: Program) -> tuple[Program, list[LoweredOp]]:
    """A program that becomes one segment, and its calls; results with gaps are copied."""
    program = in_usual_order(program)
    encoder = Encoder(program, whole=True)
    makers = {y.key: record for record in program.records for y in outputs_of(record)}
    for record in fuse_groups(program, TARGET).records:
        encoder.encode(record)
    results = [encoder.operand(x, makers[x.key]) if x.key in makers and x.key in encoder.views else x for x in program.results]
    encoder.wanted = {x.key for x in results}
    return Program(program.arguments, program.records, results, None), in_phases(list(encoder.calls()))


def has_kernels(calls: Sequence[LoweredOp]) -> bool:
    """True if kernels carry out any of the calls."""
    return any(isinstance(call, Call) and isinstance(call.function, (NestKernel, KernelScan)) for call in calls)


def in_usual_order(program: Program) -> Program:
    """The program with elementwise results and sums in C order, also where NumPy's are transposed.

    The sum over the rows of many matrices becomes a sum also where it was written as `einsum`.
    """
    renamed: dict[int, Slot] = {}
    records = []
    for record in program.records:
        outputs, operands = outputs_of(record), [renamed.get(x.key, x) for x in slots_in(record.inputs)]
        if record.primitive is operations.einsum and (record.params["terms"], record.params["result"]) == (("nij",), "nj"):
            record = Record(operations.reduce_sum, record.inputs, {"axes": (-2,), "keepdims": False}, record.outputs)
        freed = any(y.order is not None for y in outputs) and all(x.order is None for x in operands)
        if freed and (record.primitive in SUMS or elementwise_body(record)[1] is not None):
            found = tuple([Slot(y.key, y.shape, y.dtype, y.xp, y.fixed, y.array) for y in outputs])
            renamed |= {y.key: y for y in found}
            given = found if type(record.outputs) is tuple else found[0]
            record = Record(record.primitive, record.inputs, record.params, given)
        records.append(record)
    return program.with_records(records, renamed)


class Encoder(CallLowering):
    """Turns instructions into kernels where there are any, the others into calls of NumPy.

    Args:
        program: of these instructions.
        whole: whether all is to be one segment, numbers included, like a training step, whose changes one call writes.
    """

    def __init__(self, program: Program, whole: bool = False) -> None:
        super().__init__(program)
        constants = [slot for slot in program.slots() if isinstance(slot.array, np.ndarray) and slot.shape]
        self.addressed: set[int] = {slot.key for slot in constants if slot.array.flags.c_contiguous}
        """Slots that lie without gaps in memory whose address is known before the run."""
        self.made: set[int] = set()
        """Slots that kernels write."""
        self._transposed: dict[int, Slot] = {}
        """Matrices that are transposes of others."""
        self._reshaped: dict[int, Slot] = {}
        """Arguments, by the keys of what they are in other shapes."""
        self.views: dict[int, Access] = {}
        """The places of slots that are views with gaps, or in another order."""
        self._copies: dict[tuple[int, Any], Slot] = {}
        self._arguments = {slot.key for slot in program.arguments}
        self.wanted = {x.key for x in slots_in(program.results)}
        """Results, which are read although no call does."""
        self._trains = any("optimizer" in record.params for record in program.records)
        self._is_whole = whole or self._trains
        self._staged: dict[int, list[LoweredOp]] = {}
        """The calls that copy operands to a known address, by the key of the operand."""

    def encode(self, record: Record) -> None:
        """Write the calls of one instruction."""
        if record.primitive is group:
            if not self._group(record.params["members"], record.outputs):
                for one in record.params["members"]:
                    self.encode(one)
            return
        encode = _encoders().get(record.primitive)
        slots = slots_of(record)
        if all(x.xp is np for x in slots) and (
            encode(self, record) if encode is not None else self.nests(record) or self._elementwise(record)
        ):
            return
        if record.primitive is operations.reshape and (x := record.inputs[0]).key in self.views:
            record = Record(record.primitive, [self.operand(x, record)], record.params, record.outputs)
        self.lower(record)

    def lower(self, record: Record) -> None:
        """Write the calls of NumPy for an instruction."""
        first = len(self.found)
        super().lower(record)
        for call in self.found[first:]:
            self._note(call)

    def _note(self, call: LoweredOp) -> None:
        """Remember the places of results."""
        if isinstance(call, View):
            (x,), (y,), primitive = call.operands, call.results, call.record.primitive
            if primitive in (operations.transpose, operations.strided_slice):
                if primitive is operations.transpose and x.order is None:
                    axes = [axis % len(x.shape) for axis in call.record.params["perm"]]  # others stay in front
                    if axes[-2:] == [len(x.shape) - 1, len(x.shape) - 2] and axes[:-2] == sorted(axes[:-2]):
                        self._transposed[y.key] = x
                known = x.key in self.addressed or x.key in self._arguments or x.key in self._reshaped
                if known and y.shares and 0 not in y.shape and y.shape != () and x.order is None and is_known(x.dtype):
                    found = view_of(call.record)
                    self.views |= {} if found is None else {y.key: found}
            elif primitive in (operations.reshape, part) and x.key in self.addressed and x.array is None and y.shape != ():
                self.addressed.add(y.key)  # the plan knows no memory of constants
            elif primitive is operations.reshape and (x.key in self._arguments or x.key in self._reshaped):
                self._reshaped[y.key] = x
        elif isinstance(call, Call):
            self.addressed.update(y.key for y in call.results if y.shape not in ((), None) and y.order is None)
        elif isinstance(call, (FlattenKernel, ReadFlat)):
            self.addressed.update(y.key for y in call.results)

    def operand(self, x: Slot, record: Record, dtype: np.dtype[Any] | None = None) -> Slot:
        """The slot, or another with its values, contiguous, in a dtype if one is wanted."""
        wanted = dtype or (np.dtype(np.float64) if x.dtype is float else x.dtype)
        if x.key in self.addressed and x.dtype == wanted:
            return x
        if x.key in self._reshaped:  # a copied operand is contiguous, so it is the same memory
            source = self.operand(self._reshaped[x.key], record, wanted)
            return Slot(source.key, x.shape, source.dtype)
        found = self._copies.get((x.key, wanted))
        if found is None and x.key in self.views and x.dtype == wanted:
            access, found = self.views[x.key], self.temporary(x.shape, wanted)
            self.add_nest(copy_launch(access._replace(slot=self.operand(access.slot, record)), found), record)
        elif found is None and x.array is not None:
            found = self.constant(np.ascontiguousarray(x.array, wanted).reshape(x.shape))
        elif found is None:
            found = self.temporary(x.shape or (), wanted)
            self.addressed.add(found.key)
            binds = bool(x.shape) and x.bytes >= BOUND and x.dtype == found.dtype
            brought = Bind(x, found, record) if binds else Call(copied if x.shape else put, [x], [found], record)
            self._staged.setdefault(x.key, []).append(brought)
        self._copies[x.key, wanted] = found
        return found

    def constant(self, array: Array) -> Slot:
        """A slot with the same values in each run."""
        slot = self.temporary(array.shape, array.dtype)
        slot.array = array
        self.addressed.add(slot.key)
        return slot

    def matrix(self, x: Slot, record: Record, dtype: np.dtype[Any]) -> tuple[Slot, bool]:
        """A matrix, or a stack of them, as a product takes it, and whether it is stored transposed."""
        base = self._transposed.get(x.key)
        if base is None or (x.key in self.addressed and x.dtype == dtype):
            return self.operand(x, record, dtype), False
        found, turned = self.matrix(base, record, dtype)
        return found, not turned

    def contract(self, x: Contraction, factors: Sequence[Slot], record: Record) -> None:
        """Write a product. Each thread of BLAS packs what all threads need: the smaller factor."""
        m, n, _ = x.product
        by_rows = m > n or not way_of(record.outputs.dtype, x.product).blas
        self.add_nest(x.launch(factors, record.outputs, by_rows), record)

    def calls(self) -> Iterator[LoweredOp]:
        """All calls but views that nothing reads; operands are copied early, where they do not split a segment."""
        waiting = dict(self._staged)
        made = {y.key for call in self.found for y in call.results}
        read = self.wanted | {x.key for calls in waiting.values() for call in calls for x in slots_in(call.operands)}
        for call in reversed(self.found):
            if not isinstance(call, View) or call.results[0].key in read:
                read |= {x.key for x in slots_in(call.operands)}
        for key in [key for key in waiting if key not in made]:
            yield from waiting.pop(key)
        for call in self.found:
            if not isinstance(call, View) or call.results[0].key in read:
                yield call
            for y in call.results:
                yield from waiting.pop(y.key, ())

    def add(self, call: KernelCall) -> None:
        """Write a call, whose results then lie at a known address."""
        self.found.append(call)
        self.addressed.update(y.key for y in call.results)
        self.made.update(y.key for y in call.results)

    def scan(self, record: Record) -> bool:
        """A loop over a step that consists of kernels alone."""
        results = outputs_of(record)
        if len(slots_in(record.inputs)) < len(record.inputs) or any(y.order is not None or not y.bytes for y in results):
            return False
        found = scan_of(_as_a_whole, self._trains, **record.params)
        if found is None:
            return False
        call = Call(found, record.inputs, results, record)
        self.found.append(call)
        self._note(call)
        return True

    # Loops -----------------------------------------------------------------------------------------------------------------

    def _elementwise(self, record: Record) -> bool:
        shape, body = elementwise_body(record)
        if body is None or not body.steps:
            return False
        slots = slots_in(record.inputs)
        if not any(x.key in self.addressed for x in slots) and (len(body.steps) == 1 or shape == ()) and not self._is_whole:
            return False  # nothing would be saved
        if not can_loop(body, math.prod(shape)) or any(y.order is not None for y in outputs_of(record)):
            return False
        return self.add_loop(record, body, shape, [self._access(x, shape, record) for x in slots])

    def _access(self, x: Slot, shape: tuple[int, ...], record: Record) -> Access:
        """The elements of an operand of a loop: where they lie, if they are parts of rows that are long enough for a vector."""
        view = self.views.get(x.key) if x.key not in self.addressed and x.shape == shape else None
        if view is None or view.strides[-1] != 1 or x.shape[-1] < NARROW:
            return spread(self.operand(x, record), shape)
        return view._replace(slot=self.operand(view.slot, record))

    def nests(self, record: Record) -> bool:
        """Write the nests of an instruction, if it has any."""
        slots = [*slots_in(record.inputs), *outputs_of(record)]
        takes = all(has_type(x.dtype) for x in slots if x.shape is not None)
        takes = takes and all(y.order is None for y in outputs_of(record))
        found = launches(record, self.temporary) if takes else None
        for one in found or ():
            self._add_launch(one, record)
        return found is not None

    def _add_launch(self, launch: Launch, record: Record) -> None:
        """Write a nest, and copies of operands that lie elsewhere."""
        dtypes = [array.dtype for array in launch.nest.arrays]
        operands = [self.operand(x, record, dtype) for x, dtype in zip(launch.operands, dtypes, strict=False)]
        self.add(KernelCall(launch, operands, record))

    def _group(self, members: Sequence[Record], outputs: Sequence[Slot]) -> bool:
        """Write a loop, if there is one, and reductions of its results, or of an operand; of rows also what reads these."""
        sums = [one for one in members if one.primitive in SUMS]
        domain = Domain(sums[0].inputs[0].shape, axes_of(sums[0]))
        if domain.is_by_rows:
            self._add_launch(rows_nest(domain, members, outputs), members[0])
            return True
        body, operands, results = loop_of(members)
        registers = {y.key: register for y, register in zip(results, body.outputs, strict=True)}
        made = [Made(registers[y.key], spread(y, domain.shape)) for y in outputs if y.key in registers]
        kept, means = iter(contiguous(domain.kept)), list[Record]()
        strides = tuple([0 if axis in domain.axes else next(kept) for axis in range(len(domain.shape))])
        for one in sums:
            total = one.outputs
            if one.primitive is operations.reduce_mean:
                total = self.temporary(total.shape, total.dtype)
                means.append(Record(operations.divide, [total, math.prod(domain.folded)], {}, one.outputs))
            made.append(Made(registers[one.inputs[0].key], Access(total, 0, strides)))
        accesses = [self._access(x, domain.shape, members[0]) for x in operands]
        if not self.add_loop(members[0], body, domain.shape, accesses, made):
            return False
        for mean in means:
            self.encode(mean)
        return True

    def add_nest(self, launch: Launch, record: Record) -> None:
        """Write a nest whose operands lie at known addresses."""
        self.add(KernelCall(launch, launch.operands, record))

    def add_loop(
        self, record: Record, body: Body, shape: tuple[int, ...], accesses: Sequence[Access], made: Sequence[Made] = ()
    ) -> bool:
        """Write a loop; by default it makes the results of the instruction."""
        outputs = zip(body.outputs, outputs_of(record), strict=True)
        made = made or [Made(register, spread(y, shape)) for register, y in outputs]
        launch = elements_launch(body, shape, accesses, made)
        if launch is not None:
            self.add_nest(launch, record)
        return launch is not None

    def repeat(self, record: Record, x: Slot, result: Slot) -> bool:
        """An array repeated along axes, if its memory is known, or that of an argument, or nothing is to split a segment."""
        if result.order is not None or 0 in result.shape or not is_known(x.dtype):
            return False
        if not (self._is_whole or x.key in self.addressed or x.key in self._arguments):
            return False
        return self.add_loop(record, copy_body(x.dtype, x.dtype), result.shape, [spread(self.operand(x, record), result.shape)])

    def reduce(self, record: Record) -> bool:
        """A reduction along neighbouring axes of an operand as it is."""
        return is_reduction(record) and _takes(record, None, alone=True) and self._group([record], outputs_of(record))


# Rows: by primitive -------------------------------------------------------------------------------------------------------


def _product(encoder: Encoder, record: Record) -> bool:
    a, b = record.inputs
    y = record.outputs
    if not (isinstance(a, Slot) and isinstance(b, Slot)) or min(len(a.shape), len(b.shape)) < 2 or y.order is not None:
        return False
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    members = math.prod(y.shape[:-2])
    if y.dtype not in (np.float32, np.float64) or max(m * members, n, k) >= 1 << 31:
        return False
    if len(y.shape) > 2 and (0 in (*a.shape, *b.shape) or any(math.prod(x.shape[:-2]) not in (1, members) for x in (a, b))):
        return False
    terms, shapes = list[str](), list[tuple[int, ...]]()
    factors, turned = zip(*[encoder.matrix(x, record, y.dtype) for x in (a, b)], strict=True)
    for x, flag, letters in zip((a, b), turned, ("ij", "jk"), strict=True):
        stack = [members] if math.prod(x.shape[:-2]) > 1 else []
        terms.append("n" * len(stack) + letters[:: -1 if flag else 1])
        shapes.append((*stack, *x.shape[-2:][:: -1 if flag else 1]))
    found = contraction_of(terms, "nik" if members > 1 else "ik", shapes)
    assert found is not None
    encoder.contract(found[0], factors, record)
    return True


def _einsum(encoder: Encoder, record: Record) -> bool:
    """A product, or one for each point of some axes."""
    found = contraction(record)
    if record.outputs.order is not None or found is None or 0 in found[0].sizes.values():
        return False
    encoder.contract(found[0], [encoder.operand(x, record) for x in found[1]], record)
    return True


def _split(encoder: Encoder, record: Record) -> bool:
    """Slices along an axis, which are views."""
    (x,) = record.inputs
    for y, key in zip(outputs_of(record), split_keys(**record.params), strict=True):
        encoder.encode(Record(operations.strided_slice, [x], {"key": key, "shape": tuple(x.shape)}, y))
    return True


def _flatten(encoder: Encoder, record: Record) -> bool:
    """A flat array: a kernel copies the pieces that no other kernel writes directly into it."""
    pieces = list[Any]()
    for x in record.inputs:
        if x.key in encoder.addressed and (x.key not in encoder.made or any(x is one for one in pieces)):
            access, x = Access(x, 0, contiguous(x.shape)), encoder.temporary(x.shape, x.dtype)
            encoder.add_nest(copy_launch(access, x), record)
        pieces.append(x)
    encoder.lower(Record(record.primitive, pieces, record.params, record.outputs))
    return True


@functools.cache
def _encoders() -> dict[Any, Callable[[Encoder, Record], bool]]:
    return {
        operations.matrix_product: _product,
        **dict.fromkeys(SUMS, Encoder.reduce),
        operations.broadcast_to: lambda encoder, one: encoder.repeat(one, one.inputs[0], one.outputs),
        operations.einsum: _einsum,
        operations.split_along: _split,
        flatten: _flatten,
        loop: Encoder.scan,
    }
