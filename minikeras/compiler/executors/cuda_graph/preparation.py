"""Preparation of a program of a device before its nodes are made."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core import Record
from ....core.arrays import namespace
from ....core.variable import read_variable
from ....layout import Layout
from ...ir import Program, Slot, outputs_of, slots_in
from ...loops import loop
from ...planning import part
from .lt import ALIGNMENT


def rounded(size: int) -> int:
    """A size rounded up to the alignment of pieces of memory."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def on_host(recorded: Program, twin: Program, optimized: Program) -> set[int]:
    """The keys of values that lie on the host in a program of a device: keys of random streams, counters.

    Args:
        recorded: the program as it was recorded.
        twin: the same over slots of NumPy.
        optimized: that after passes. They keep slots, but give keys that have become free to others.
    """
    pairs = [(old, new) for old, new in zip(recorded.slots(), twin.slots(), strict=True) if old.shape is not None]
    elsewhere = {id(new) for old, new in pairs if old.xp is not np}
    there = {id(new) for old, new in pairs if old.xp is np}
    recorded_ones = elsewhere | there
    found = {slot.key for slot in optimized.slots() if id(slot) in there}
    for record in optimized.records:
        operands = slots_in(record.inputs)
        host = all(x.key in found or x.array is not None for x in operands) and any(x.key in found for x in operands)
        if record.primitive.effect and not record.inputs:  # a value that Python makes for a pass
            host = all(id(y) not in recorded_ones and y.shape is not None for y in outputs_of(record))
        if record.primitive is read_variable:
            host = namespace(record.inputs[0].array) is np
        if host:
            found |= {y.key for y in outputs_of(record) if id(y) not in elsewhere}
    return found


def with_aligned_flats(program: Program) -> Program:
    """The program with gaps in its flat arrays, so that each part of them can be a factor of a product.

    Elements in the gaps are computed like all others, and nothing reads them. Flat arrays that some instruction uses as more
    than a list of parts stay without gaps.
    """
    flats = _flat_slots(program)
    if flats is None:
        return program

    def placed(x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(placed, x))
        flat = flats.get(x.key) if isinstance(x, Slot) else None
        return x if flat is None else Slot(x.key, (flat.aligned.size,), x.dtype)

    records = []
    for record in program.records:
        params = record.params
        if "layout" in params:
            params = params | {"layout": _flat(params["layout"]).aligned}
        elif record.primitive is part and (flat := flats.get(record.inputs[0].key)) is not None:
            params = params | {"start": flat.aligned.starts[flat.packed.starts.index(params["start"])]}
        records.append(Record(record.primitive, list(map(placed, record.inputs)), params, placed(record.outputs)))
    return program.with_records(records)


class _Flat(NamedTuple):
    """The layouts of a flat array: without gaps, and with them."""

    packed: Layout
    aligned: Layout


def _flat(layout: Layout) -> _Flat:
    return _Flat(layout, Layout(layout.shapes, layout.dtype, ALIGNMENT // layout.dtype.itemsize))


def _flat_slots(program: Program) -> dict[int, _Flat] | None:
    """By key, all flat arrays; None if one of them is more than a list of parts somewhere."""
    found: dict[int, _Flat] = {}
    for record in program.records:
        slots = slots_in(record.inputs)
        known = [found[x.key] for x in slots if x.key in found]
        if "layout" in record.params:
            flat = _flat(record.params["layout"])
            found |= {x.key: flat for x in (*slots_in(record.inputs), *outputs_of(record)) if x.shape == (flat.packed.size,)}
        elif record.primitive is loop and known:
            others = [x for x in slots if x.key not in found and x.shape not in (None, ())]
            starts = {tuple(flat.packed.starts) for flat in known}
            if len(starts) > 1 or (others and len(known[0].packed.shapes) > 1):
                return None
            found |= {y.key: known[0] for y in outputs_of(record)}
        elif record.primitive is not part and known:
            return None
    return None if any(isinstance(x, Slot) and x.key in found for x in program.results) else found
