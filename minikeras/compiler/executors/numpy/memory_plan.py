"""Which memory each value of a program has: decided once, before the first run.

Most lie in an arena that is kept. What leaves the program, a result or a Variable's value, is an array of its own in each run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....types import Array
from ...ir import Program, Slot, slots_in
from ...planning.arena import Interval, allocate
from ...planning.flat_variables import flats_of, variables_of
from ...planning.liveness import lifetimes, touched
from .calls import AssignFlat, Bind, Call, Flatten, Kernel, Lowered, ReadFlat, View

LIMIT = 1 << 25
"""Bytes: a larger result is not kept between the runs."""
LARGE = 1 << 16
"""Bytes: a run drops an array at least as large after its last use, if it is not kept."""


class FlatAccess(NamedTuple):
    """The calls that read and assign the same flattened Variables; either may be missing."""

    reading: ReadFlat | None
    writing: AssignFlat | None


class MemoryPlan:
    """Where the values of a program lie.

    Attributes:
        views: by key, what is a view of memory that is there before the run. Bases come before views.
        bound: keys of values that lie in memory of the caller.
        reads, writes: keys of flat arrays that are read from Variables, and that are assigned to them.
        flat: the calls that read and assign flattened Variables.
        fresh: keys of values that calls write into an array made in each run.
        exported: keys of values in the arena that leave the program, as copies.
        copied: keys of views that are copied in each run: numbers, and what leaves the program of a Variable.
        arena: where all others lie.
        placed: by key, the values in the arena, with the byte where each begins.
    """

    def __init__(self, program: Program, calls: Sequence[Lowered]) -> None:
        self._calls = calls
        self._results = {x.key for x in slots_in(program.results)}
        self._written = {y.key: y for call in calls if isinstance(call, Call) for y in call.results}
        self.reads = {y.key for call in calls if isinstance(call, ReadFlat) for y in call.results}
        self.writes = {x.key for call in calls if isinstance(call, AssignFlat) for x in flats_of(call.record)}
        self.bound = {y.key for call in calls if isinstance(call, Bind) for y in call.results}
        self.flat = _accesses(calls)
        self.copied: set[int] = set()
        self.views: dict[int, View] = {}
        self._roots: dict[int, int] = {}
        self._find_views()
        self._find_what_leaves()
        self._inside = self._placed_inside()
        self.arena = allocate(self._intervals())
        self.placed = self._placed()

    def root(self, key: int) -> int:
        """The value that another one is a view of; itself for one that is no view."""
        return self._roots.get(key, key)

    def _find_views(self) -> None:
        """Try each view on an array like its operand."""
        shapes: dict[int, Array] = {}
        for call in self._calls:
            if not isinstance(call, (Bind, View)):
                continue
            (x,), (y,) = call.operands, call.results
            if isinstance(call, Bind):  # without gaps it is the operand's memory, which lives as long
                self._roots[y.key] = self.root(x.key)
                continue
            if x.key not in self._written and x.key not in self.reads and x.key not in self.views:
                continue
            if y.shape == ():  # a number is handled faster than an array of one
                self.copied.add(y.key)
                continue
            base = shapes[x.key] if x.key in shapes else arranged(np.empty(math.prod(x.shape), x.dtype), x)
            view = call.function(base)
            if not view.size or (view.base is not None and np.may_share_memory(view, base)):
                shapes[y.key], self.views[y.key], self._roots[y.key] = view, call, self.root(x.key)

    def _find_what_leaves(self) -> None:
        """Give the results of the program, and what an instruction lets escape, arrays of their own."""
        leaving = set(self._results)
        for call in self._calls:
            if isinstance(call, Kernel) and not isinstance(call, AssignFlat) and call.escapes:
                leaving |= {x.key for x in slots_in(call.operands)}
        roots = {self.root(key) for key in leaving}
        addressed = [call for call in self._calls if isinstance(call, Call) and call.addressed]
        needed = {self.root(x.key) for call in addressed for x in touched(call)}
        self.exported = (roots & needed) - self.reads - self.writes
        own = {key for key, y in self._written.items() if key in roots or y.shape in ((), None) or y.bytes > LIMIT}
        self.fresh = own - self.writes - needed
        self.copied |= {key for key in leaving if self.root(key) in self.reads}
        self.copied |= {key for key in leaving if key != self.root(key) and self.root(key) in self.exported}
        self.views = {key: view for key, view in self.views.items() if self.root(key) not in self.fresh}

    def _placed_inside(self) -> dict[int, tuple[Slot, int]]:
        """What is written right where it lies in a flat array: that array, and the offset in it."""
        found: dict[int, tuple[Slot, int]] = {}
        for call in self._calls:
            if not isinstance(call, Flatten):
                continue
            (whole,), layout = call.results, call.record.params["layout"]
            for x, start in zip(call.operands, layout.starts, strict=True):
                free = x.key in self._written and not any(x.key in taken for taken in (self.fresh, self.writes, found))
                if free and x.dtype == layout.dtype and call.operands.count(x) == 1:
                    found[x.key] = whole, start * layout.dtype.itemsize
        return found

    def _owner(self, key: int) -> int:
        """The value in whose piece of the arena another one lies."""
        root = self.root(key)
        return self._inside[root][0].key if root in self._inside else root

    def _intervals(self) -> Iterator[Interval]:
        """The lifetimes of what lies in the arena, with the values whose memory each may take."""
        lives = lifetimes(self._calls, self._owner)
        for key in {self._owner(key) for key in self.exported} & lives.keys():  # copied when their segment is over
            lives[key] = lives[key]._replace(dies=len(self._calls))
        found: set[int] = self.fresh | self.writes
        for call in self._calls:
            for number, y in enumerate(call.results if isinstance(call, (Call, Flatten)) else ()):
                owner = self._inside[y.key][0] if y.key in self._inside else y
                if y.key in found or owner.key in found:
                    continue
                found.add(owner.key)
                donors = self._donors(call, number) if isinstance(call, Call) and owner is y else ()
                yield Interval(owner.key, owner.bytes, *lives[owner.key], donors)

    def _donors(self, call: Call, number: int) -> Sequence[int]:
        """The operands over which a result may be written if this is their last use."""
        y = call.results[number]
        operands = slots_in(call.operands)
        return [
            x.key
            for x in (call.operands[position] for position in call.may_alias[number])
            if isinstance(x, Slot)
            and (x.shape, x.dtype, x.order) == (y.shape, y.dtype, y.order)
            and not any(other is not x and self.root(other.key) == x.key for other in operands)
        ]

    def _placed(self) -> dict[int, tuple[Slot, int]]:
        slots = self._written | {y.key: y for call in self._calls if isinstance(call, Flatten) for y in call.results}
        own = {key: (slots[key], start) for key, start in self.arena.offsets.items()}
        return own | {key: (slots[key], own[whole.key][1] + start) for key, (whole, start) in self._inside.items()}

    # What runs ask ------------------------------------------------------------------------------------------------------------

    def access(self, call: ReadFlat | AssignFlat) -> int:
        """Which of `flat` a call belongs to."""
        return next(number for number, access in enumerate(self.flat) if any(call is one for one in access))

    def lies_inside(self, slot: Slot, whole: Slot) -> bool:
        """Whether a value is written right where it lies in that flat array."""
        return slot.key in self._inside and self._inside[slot.key][0] is whole

    def runs(self, view: View) -> bool:
        """Whether a view is made in each run."""
        (y,) = view.results
        return y.key not in self.views or y.key in self.copied

    def read_from_python(self) -> set[int]:
        """The values whose arrays calls from Python read."""
        found: set[int] = set()
        for call in self._calls:
            seen = self.runs(call) if isinstance(call, View) else not isinstance(call, AssignFlat)
            if seen and not (isinstance(call, Call) and call.addressed):
                found |= {x.key for x in slots_in(call.operands)}
        return found

    def dropped(self) -> dict[int, list[int]]:
        """By the position of a call, the keys of large arrays that have their last use there.

        What kernels read is left: it ends with the run, and no call may stand between kernels that are to be one.
        """
        kept = self._results | self.views.keys() | self.writes | self.reads | self.placed.keys() | self.bound
        slots = {x.key: x for call in self._calls for x in touched(call)}
        found: dict[int, list[int]] = {}
        for key, (_, dies) in lifetimes(self._calls).items():
            if key not in kept and slots[key].array is None and slots[key].bytes >= LARGE:
                found.setdefault(dies, []).append(key)
        return found


def _accesses(calls: Sequence[Lowered]) -> list[FlatAccess]:
    """The calls that read and assign the same Variables, in pairs: a program may do so several times."""
    found: dict[Any, list[Any]] = {}
    for number, kind in enumerate((ReadFlat, AssignFlat)):
        turns: Counter[Any] = Counter()
        for call in calls:
            if isinstance(call, kind):
                group = tuple([variable.key for variable in variables_of(call.record)])
                found.setdefault((group, turns[group]), [None, None])[number] = call
                turns[group] += 1
    return [FlatAccess(*pair) for pair in found.values()]


def arranged(flat: Array, slot: Slot) -> Array:
    """Memory of as many elements as an array of the slot's shape, its axes in the slot's order."""
    if slot.order is None:
        return flat.reshape(slot.shape)
    inverse = np.argsort(slot.order)
    return flat.reshape([slot.shape[axis] for axis in slot.order]).transpose(inverse)
