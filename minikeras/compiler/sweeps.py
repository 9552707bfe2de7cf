"""Backward sweeps of tapes as programs: a sweep that tapes have carried out several times becomes a plan.

A plan holds for Records of the same primitives, parameters, operands, shapes, dtypes and layouts, and keeps no array of theirs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import ForkSafeLock, Operand, Outdated, Record, Tensor, operations, seeds_of, sweep
from ..core.arrays import BARE
from ..errors import MinikerasError
from ..types import Array
from .executors import Executable, by_numpy
from .ir import Program
from .passes import optimized
from .recorder import Recorder

Plan = Callable[[Sequence[Array]], list[Any]]
"""The cotangents of the sources, Tensors or None, by the arrays of a `SweepQuery`."""

SIGHTINGS = 6
"""The number of sweeps before one is compiled, which takes as long as some fifty sweeps."""
PLANS = 32
"""The most plans that are kept, those used last."""
PAYS = 50
"""The uses of a plan that pay for compiling it; if one is dropped earlier, others wait for twice as many sightings."""
WAIT = 10 * PAYS
"""The most sightings that a sweep waits for: then compiling takes a tenth of the time at most, whatever comes in turns."""
BYTES = 1 << 28
"""The most bytes that the buffers of all kept plans may take."""
RECORDS = 4096
"""The most Records of a tape that has a plan."""

Computation = Callable[[list[Record], Callable[[Any], Any], set[int]], list[Any]]

_PLAIN = (type(None), type(...), bool, int, str, bytes)
_INT = frozenset([int])


class SweepQuery(NamedTuple):
    """A backward sweep that is asked of a tape.

    Attributes:
        key: equal for two sweeps that one plan can carry out.
        arrays: of the operands and results of the Records, in the order of their first use.
        numbers: by key of a Tensor or Variable its position among the arrays.
    """

    key: Hashable
    arrays: list[Array]
    numbers: dict[int, int]


def describe(records: Sequence[Record], targets: Iterable[Any], sources: Iterable[Any], tracked: set[int]) -> SweepQuery | None:
    """The sweep from targets, with seeds of ones, to sources; None if it can have no plan.

    There is none for operations of the user's, which may do something else each time, and for arrays of other libraries.
    """
    if len(records) > RECORDS:
        return None
    key: list[Any] = []
    arrays: list[Array] = []
    numbers: dict[int, int] = {}
    note, known = key.append, numbers.get
    for record in records:
        primitive, outputs = record.primitive, record.outputs
        if not primitive.registered or primitive.vjp is None:
            return None
        note(primitive)
        if record.params and not _constants(record.params, key):
            return None
        for x in record.inputs:
            if isinstance(x, Operand):
                number = known(x.key)
                if number is not None:
                    note(number)
                elif not _add(x, key, arrays, numbers):
                    return None
            elif not _constant(x, key):
                return None
        for y in outputs if type(outputs) is tuple else (outputs,):
            numbers[y.key] = len(arrays)
            array = y.array
            note(array.shape)
            arrays.append(array)
    for asked in (targets, sources):
        note(None)
        for x in asked:
            number = known(x.key)
            if number is None:
                if not _add(x, key, arrays, numbers):
                    return None
                number = numbers[x.key]
            note(number)
            note(x.key in tracked)
    return SweepQuery(tuple(key), arrays, numbers)


def _add(x: Operand, key: list[Any], arrays: list[Array], numbers: dict[int, int]) -> bool:
    """Give an operand that no Record has made the next number; True if it is an array of NumPy."""
    array = x.array
    if type(array) not in BARE:
        return False
    numbers[x.key] = len(arrays)
    arrays.append(array)
    key += (array.shape, array.dtype, array.strides)
    return True


def _constants(params: dict[str, Any], key: list[Any]) -> bool:
    """Note the parameters of a Record; True if they are the same in each sweep with the plan."""
    for name, value in params.items():
        key.append(name)
        if type(value) is tuple and _INT.issuperset(map(type, value)):  # axes, shapes: most of all
            key.append(value)
        elif not _constant(value, key):
            return False
    return True


def _constant(value: Any, key: list[Any]) -> bool:
    """Note a number, or a nest of numbers, if equality means that they are the same; True if noted."""
    kind = type(value)
    if kind is float:
        key.append(value.hex())  # tells -0.0 from 0.0, and a NaN is itself
    elif kind in _PLAIN:
        key += (kind, value)
    elif kind is tuple or kind is list:
        key += (kind, len(value))
        return all([_constant(one, key) for one in value])
    elif kind is slice:
        key.append(kind)
        return all([_constant(one, key) for one in (value.start, value.stop, value.step)])
    elif isinstance(value, np.dtype):
        key.append(value)
    else:
        return False
    return True


class SweepPlans:
    """The plans of this process, and the number of sightings of sweeps without one.

    >>> plans = SweepPlans()
    >>> sweep = SweepQuery("key", [], {})
    >>> made = [plans.find(sweep, lambda: lambda arrays: [1.0]) is not None for _ in range(SIGHTINGS + 1)]
    >>> made[SIGHTINGS - 1 :]
    [False, True]
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self.clear()

    def clear(self) -> None:
        """Drop all plans and counts."""
        self._plans: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._seen: OrderedDict[Hashable, int] = OrderedDict()
        self._latest: _Entry | None = None
        self._wanted = SIGHTINGS

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, sweep: SweepQuery, make: Callable[[], Any]) -> Plan | None:
        """The plan of a sweep; None if it has none, or was not seen often enough.

        Args:
            sweep: the query.
            make: compiles a plan; None if there can be none.
        """
        entry = self._plans.get(sweep.key)
        if entry is None:
            with self._lock:  # count a sighting
                count = self._seen[sweep.key] = self._seen.pop(sweep.key, 0) + 1
                while len(self._seen) > 4 * PLANS:
                    self._seen.popitem(last=False)
            return self._made(sweep, make) if count > self._wanted else None
        entry.uses += 1
        if entry is not self._latest:  # mostly it is, and needs no lock
            with self._lock:
                if sweep.key in self._plans:
                    self._plans.move_to_end(sweep.key)
                self._latest = entry
        return entry.plan

    def _made(self, sweep: SweepQuery, make: Callable[[], Any]) -> Plan | None:
        plan = make()  # not with the lock held: other threads sweep on
        with self._lock:
            self._seen.pop(sweep.key, None)
            self._plans[sweep.key] = self._latest = _Entry(plan)
            while len(self._plans) > PLANS or (
                len(self._plans) > 1 and sum(getattr(one.plan, "bytes", 0) for one in self._plans.values()) > BYTES
            ):
                _, gone = self._plans.popitem(last=False)
                # More alternating shapes than there may be plans would be compiled again and again.
                self._wanted = max(SIGHTINGS, self._wanted // 2) if gone.uses > PAYS else min(2 * self._wanted + 1, WAIT)
        return plan


class _Entry:
    """A plan, or None where there can be none, and the number of its uses."""

    __slots__ = ("plan", "uses")

    def __init__(self, plan: Plan | None) -> None:
        self.plan, self.uses = plan, 0


def compiled_plan(records: Sequence[Record], asked: SweepQuery, tracked: set[int], compute: Computation) -> Executable | None:
    """A computation that depends on Records alone as a program of a query's arrays, by recording it once; None if it cannot be
    repeated.

    Rows of a gradient that are looked up stay in pieces on the way back only where nothing records, so they have no plan.
    """
    tensors = [Tensor(array) for array in asked.arrays]

    def stand_in(x: Any) -> Any:
        return tensors[asked.numbers[x.key]] if isinstance(x, Operand) else x

    copies = []
    for record in records:
        outputs = tuple(map(stand_in, record.outputs)) if type(record.outputs) is tuple else stand_in(record.outputs)
        copies.append(Record(record.primitive, [stand_in(x) for x in record.inputs], record.params, outputs))
    watched = {tensors[number].key for key, number in asked.numbers.items() if key in tracked}
    with Recorder(tensors, strict=False) as recorder:
        results = [recorder.result(x) for x in compute(copies, stand_in, watched)]
    if recorder.refusal is not None or any(record.primitive is operations.add_rows for record in recorder.records):
        return None
    return by_numpy(optimized(Program(recorder.arguments, recorder.records, results, None)))


def _unless_refused(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function; None if a rule refuses values, there is none, or a plan no longer holds."""
    try:
        return function(*arguments)
    except (LookupError, MinikerasError, Outdated, ValueError, TypeError, OverflowError, np.linalg.LinAlgError):
        return None


plans = SweepPlans()


def computed_by_plan(
    records: Sequence[Record],
    targets: Sequence[Any],
    sources: Sequence[Any],
    tracked: set[int],
    compute: Computation,
    name: tuple[Hashable, ...] = (),
) -> list[Any] | None:
    """The results of a computation on Records of a tape by a plan, Tensors or None; None if there is no plan.

    Args:
        records, tracked: of a tape.
        targets, sources: what the computation starts from, and what it asks for.
        compute: from Records over stand-ins, the function from a Tensor or Variable to its stand-in, and the keys of tracked
            stand-ins, to the results.
        name: of the computation; empty for the sweep from targets to sources.
    """
    asked = describe(records, targets, sources, tracked)
    if asked is None:
        return None
    if name:
        asked = asked._replace(key=(*name, asked.key))
    # Where a rule refuses these values, the computation without a plan raises the usual error.
    plan = plans.find(asked, lambda: _unless_refused(compiled_plan, records, asked, tracked, compute))
    return None if plan is None else _unless_refused(plan, asked.arrays)


def planned_gradients(
    records: Sequence[Record], targets: Sequence[Any], sources: Sequence[Any], tracked: set[int]
) -> list[Any] | None:
    """The cotangents of the sources by a plan, Tensors or None; None if there is no plan."""

    def swept(records: Sequence[Record], stand_in: Callable[[Any], Any], watched: set[int]) -> list[Any]:
        ends, keys = [stand_in(x) for x in targets], [stand_in(x).key for x in sources]
        seeds = seeds_of(None, ends, None, keys, False, watched)
        known = [key for key in keys if key in watched or key in seeds]
        found = sweep(records, seeds, known, False)
        return [found.get(key) for key in keys]

    return computed_by_plan(records, targets, sources, tracked, swept)
