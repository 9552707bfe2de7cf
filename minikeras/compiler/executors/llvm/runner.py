"""Execution of a list of kernels, by one thread or by several that share each kernel's parts. The loops are in LLVM's language:
Python only begins a run, so that it costs one call.

All threads go through the same instructions. A part belongs to the thread that claims it first, and a thread looks at its own
part first, so no thread waits for one that wakes late: the others do its work. The result of a part does not depend on the
thread. Threads wait for the last part of an instruction before they begin the next, spinning; between runs they sleep.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core import ForkSafeLock, Owned, called_with_others
from ....parallel import thread_count
from ....types import Array
from . import jit
from .functions import Instructions, Value, function_text

COUNT, INSTRUCTIONS, ADDRESSES, GENERATION, MARKS, PARTS, WORKERS = range(7)
MAILBOXES, STEPS, LAST, DONE, MOVED, MOVES, FLUSHES = range(7, 14)
"""Fields of a job: integers of 64 bits."""
_LOCK, _JOB, _THREAD, _BUSY, _STOP, _ACQUIRE, _RELEASE, _TAKEN = range(8)
"""Fields of a mailbox, by which a worker is told of a job. TAKEN of the first one says whether a job has the workers."""
MARK = 16
"""Integers for each part: the marks of its claim and its end, two cache lines apart from others."""
SPINS = 2000
"""Polls of a waiting thread, some 50 us, before it yields: on a busy machine it may be waiting for the other threads."""
MAILBOX = 16
"""Integers of a mailbox."""


def _text() -> str:
    """All functions of the loops: `run` is called by Python, `work` by each thread that waits for jobs."""
    functions: dict[str, Callable[[Instructions], Value | None]] = {
        "internal void @wait(ptr %cell, i64 %generation)": _wait,
        "internal void @alone(ptr %job)": _alone,
        "internal void @pass(ptr %job, i64 %thread, i64 %generation)": _pass,
        "internal void @share(ptr %job, i64 %thread)": _share,
        "internal void @advance(ptr %job)": _advance,
        "i64 @run(ptr %job, i64 %references)": _run,
        "void @work(ptr %box)": _work,
    }
    yields = [] if os.name == "nt" else ["declare i32 @sched_yield()"]
    return "\n".join([jit.pause()[1], *yields, jit.flushing(FLUSHES), *(_function(*one) for one in functions.items())])


def _function(head: str, body: Callable[[Instructions], Value | None]) -> str:
    """A function whose body returns the value that it ends with, or nothing."""
    to = Instructions()
    result = body(to)
    return function_text(head, to, "void" if result is None else f"i64 {result}")


def _at(to: Instructions, start: Value, number: Value | int) -> Value:
    """The address of an integer some places behind another one."""
    return to.add(f"getelementptr i64, ptr {start}, i64 {number}")


def _field(to: Instructions, start: Value, number: int, kind: str = "i64") -> Value:
    """A field of a job or a mailbox that does not change while it is used."""
    return to.add(f"load {kind}, ptr {_at(to, start, number)}")


def _look(to: Instructions, place: Value, order: str = "acquire") -> Value:
    """An integer that other threads write."""
    return to.add(f"load atomic i64, ptr {place} {order}, align 8")


def _tell(to: Instructions, place: Value, value: Value | int, order: str = "release", kind: str = "i64") -> None:
    """Write an integer that other threads read."""
    to.do(f"store atomic {kind} {value}, ptr {place} {order}, align 8")


def _is(to: Instructions, condition: str, a: Value, b: Value | int) -> Value:
    return to.add(f"icmp {condition} i64 {a}, {b}")


def _more(to: Instructions, a: Value, b: Value | int = 1) -> Value:
    return to.add(f"add i64 {a}, {b}")


def _times(to: Instructions, a: Value, b: Value | int) -> Value:
    return to.add(f"mul i64 {a}, {b}")


def _wait(to: Instructions) -> None:
    """Wait until a cell holds a generation, or a later one: by spinning, and yielding after a while."""
    with to.loop() as turn:
        turn.leave(_is(to, "sge", _look(to, "%cell"), "%generation"))
        to.do(jit.pause()[0])
        with to.when(_is(to, "sgt", turn.index, SPINS)):
            if os.name != "nt":
                to.add("call i32 @sched_yield()")


@contextlib.contextmanager
def _instructions(to: Instructions) -> Iterator[tuple[Value, Value, Callable[[Value], None]]]:
    """For each instruction of a job its number, its parts, and a function that runs a part."""
    count, table = _field(to, "%job", COUNT), _field(to, "%job", INSTRUCTIONS, "ptr")
    addresses = _field(to, "%job", ADDRESSES, "ptr")
    with to.loop(stop=count) as one:
        at = _at(to, table, _times(to, one.index, 3))
        kernel, operands, parts = _field(to, at, 0, "ptr"), _field(to, at, 1, "ptr"), _field(to, at, 2)
        given = f"ptr {operands}, ptr {addresses}"
        yield one.index, parts, lambda c: to.do(f"call void {kernel}({given}, i64 {c}, i64 {parts})")


def _alone(to: Instructions) -> None:
    """All parts of all instructions in order."""
    with _instructions(to) as (_, parts, carry_out), to.loop(stop=parts) as part:
        carry_out(part.index)


def _pass(to: Instructions) -> None:
    """The work of a thread in a step: of each instruction the parts that are free, its own first, then wait for all."""
    marks, most = _field(to, "%job", MARKS, "ptr"), _field(to, "%job", PARTS)
    with _instructions(to) as (i, parts, carry_out):
        block = _times(to, i, most)

        def mark(c: Value) -> Value:
            return _at(to, marks, _times(to, _more(to, block, c), MARK))

        with to.loop(stop=parts) as turn:
            c = to.add(f"srem i64 {_more(to, '%thread', turn.index)}, {parts}")
            own = mark(c)
            old = _look(to, own, "monotonic")
            with to.when(_is(to, "slt", old, "%generation")):
                pair = to.add(f"cmpxchg ptr {own}, i64 {old}, i64 %generation acq_rel monotonic")
                with to.when(to.add(f"extractvalue {{ i64, i1 }} {pair}, 1")):
                    carry_out(c)
                    _tell(to, _at(to, own, MARK // 2), "%generation")
        with to.loop(stop=parts) as other:
            to.do(f"call void @wait(ptr {_at(to, mark(other.index), MARK // 2)}, i64 %generation)")


def _share(to: Instructions) -> None:
    """The work of a worker on a job: pass after pass, each when the caller has begun it."""
    cell = _at(to, "%job", GENERATION)
    first, last = _look(to, cell), _field(to, "%job", LAST)
    with to.loop(first) as step:
        to.do(f"call void @pass(ptr %job, i64 %thread, i64 {step.index})")
        step.leave(_is(to, "sge", step.index, last))
        to.do(f"call void @wait(ptr {cell}, i64 {_more(to, step.index)})")


def _advance(to: Instructions) -> None:
    """Let addresses advance to the inputs of the next step."""
    addresses, moves = _field(to, "%job", ADDRESSES, "ptr"), _field(to, "%job", MOVES, "ptr")
    with to.loop(stop=_field(to, "%job", MOVED)) as one:
        at = _at(to, moves, _times(to, one.index, 2))
        cell = _at(to, addresses, _field(to, at, 0))
        to.do(f"store i64 {_more(to, _field(to, cell, 0), _field(to, at, 1))}, ptr {cell}")


def _run(to: Instructions) -> Value:
    """All steps of a job: shared with the workers if no other job has them, else alone."""
    control, given = to.add("alloca i64"), to.add("alloca i64")
    with to.when(_is(to, "ne", "%references", 0)):
        to.do("ret i64 -1")
    generation, done = [_at(to, "%job", number) for number in (GENERATION, DONE)]
    before = _field(to, "%job", GENERATION)
    first, final = _more(to, before), _more(to, before, _field(to, "%job", STEPS))
    to.do(f"store i64 {final}, ptr {_at(to, '%job', LAST)}\n  store i64 0, ptr {done}\n  store i64 0, ptr {given}")
    every, mailboxes = _field(to, "%job", WORKERS), _field(to, "%job", MAILBOXES, "ptr")
    taken = _at(to, mailboxes, _TAKEN)
    with to.when(_is(to, "sgt", every, 0)):
        pair = to.add(f"cmpxchg ptr {taken}, i64 0, i64 1 seq_cst seq_cst")
        with to.when(to.add(f"extractvalue {{ i64, i1 }} {pair}, 1")):
            to.do(f"store i64 {every}, ptr {given}")
    workers = _field(to, given, 0)
    shared, single = _is(to, "sgt", workers, 0), _is(to, "sle", workers, 0)
    to.do(f"call void @flush(ptr %job, ptr {control})")
    _tell(to, generation, first)
    with to.loop(stop=workers) as one:
        box = _at(to, mailboxes, _times(to, one.index, MAILBOX))
        _tell(to, _at(to, box, _JOB), "%job", "seq_cst", "ptr")
        lock = _field(to, box, _LOCK, "ptr")  # a late worker has not taken it, and only a lock that is held is released
        to.add(f"call i32 {_field(to, box, _ACQUIRE, 'ptr')}(ptr {lock}, i32 0)")
        to.do(f"call void {_field(to, box, _RELEASE, 'ptr')}(ptr {lock})")
    with to.loop(first) as step:
        with to.when(shared):
            to.do(f"call void @pass(ptr %job, i64 0, i64 {step.index})")
        with to.when(single):
            to.do("call void @alone(ptr %job)")
        to.do(f"store i64 {_more(to, _field(to, '%job', DONE))}, ptr {done}")
        step.leave(_is(to, "sge", step.index, final))
        to.do("call void @advance(ptr %job)")
        _tell(to, generation, _more(to, step.index))
    with to.loop(stop=workers) as one:
        box = _at(to, mailboxes, _times(to, one.index, MAILBOX))
        _tell(to, _at(to, box, _JOB), "null", "seq_cst", "ptr")
        with to.loop() as turn:
            turn.leave(_is(to, "eq", _look(to, _at(to, box, _BUSY), "seq_cst"), 0))
            to.do(jit.pause()[0])
    to.do(f"call void @restore(ptr {control})")
    with to.when(shared):
        _tell(to, taken, 0, "seq_cst")
    return "0"


def _work(to: Instructions) -> None:
    """The main loop of a worker: it sleeps until its mailbox holds a job, and ends when it is told to."""
    control = to.add("alloca i64")
    lock, acquire, thread = _field(to, "%box", _LOCK, "ptr"), _field(to, "%box", _ACQUIRE, "ptr"), _field(to, "%box", _THREAD)
    busy = _at(to, "%box", _BUSY)
    with to.loop() as turn:
        to.add(f"call i32 {acquire}(ptr {lock}, i32 1)")
        _tell(to, busy, 1, "seq_cst")
        job = to.add(f"load atomic ptr, ptr {_at(to, '%box', _JOB)} seq_cst, align 8")
        with to.when(to.add(f"icmp ne ptr {job}, null")):
            to.do(f"call void @flush(ptr {job}, ptr {control})")
            to.do(f"call void @share(ptr {job}, i64 {thread})")
            to.do(f"call void @restore(ptr {control})")
        _tell(to, busy, 0, "seq_cst")
        turn.leave(_is(to, "ne", _look(to, _at(to, "%box", _STOP), "seq_cst"), 0))


Instruction = tuple[int, Sequence[int], int]
"""The address of a kernel, its operands and the number of its parts."""


class Job:
    """Instructions over one list of addresses, ready to be carried out any number of times, by one call at a time.

    Args:
        instructions: to be carried out.
        addresses: of arrays, as integers; read at each run.
        holds: whether other threads of Python wait until a run has ended, as they do for 5 ms in any case.
        moves: places among the addresses, and the bytes by which each advances from step to step.
        flushes: whether subnormal numbers count as 0.

    Attributes:
        alone: arrays that are written only if nothing else refers to them at the moment when the run begins.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        addresses: Array,
        holds: bool = False,
        moves: Sequence[tuple[int, int]] = (),
        flushes: bool = False,
    ) -> None:
        self._operands = [np.array(operands, np.int64) for _, operands, _ in instructions]
        self.parts = max([parts for *_, parts in instructions], default=1)
        self._table = np.array(
            [
                [function, operands.ctypes.data, parts]
                for (function, _, parts), operands in zip(instructions, self._operands, strict=True)
            ],
            np.int64,
        ).reshape(-1, 3)
        self.addresses, self._moves = addresses, np.array(moves, np.int64).reshape(-1, 2)
        self._marks = np.zeros(MARK * (self.parts * len(instructions) + 1), np.int64)
        self._head = np.zeros(16, np.int64)
        self._head[COUNT], self._head[INSTRUCTIONS] = len(instructions), self._table.ctypes.data
        self._head[ADDRESSES], self._head[PARTS] = addresses.ctypes.data, self.parts
        self._head[MARKS] = -(-self._marks.ctypes.data // 64) * 64
        self._head[FLUSHES] = flushes
        self._head[STEPS], self._head[MOVED], self._head[MOVES] = 1, len(moves), self._moves.ctypes.data
        self._place = self._head.ctypes.data
        self.alone: Sequence[tuple[Owned, int]] = ()
        self._run = _entries().run_holding if holds else _entries().run
        self._team: _Team | None = None

    def __call__(self) -> bool:
        """Carry the instructions out; False, and nothing was done, if something else refers to the arrays of `alone`."""
        if self.parts > 1 and (team := _team()) is not self._team:
            self._head[MAILBOXES], self._head[WORKERS] = team.mailboxes.ctypes.data, team.workers
            self._team = team
        status: int = called_with_others(self._run, self._place, self.alone) if self.alone else self._run(self._place, 0)
        return status == 0

    @property
    def steps(self) -> int:
        """The number of steps in a run."""
        return int(self._head[STEPS])

    @steps.setter
    def steps(self, count: int) -> None:
        self._head[STEPS] = count

    @property
    def done(self) -> int:
        """The number of steps that the last run has carried out."""
        return int(self._head[DONE])

    def forget(self) -> None:
        """Reset the count of steps, in case the next run does not even begin."""
        self._head[DONE] = 0


class _Team:
    """Threads that wait for jobs, beside the calling one. One job at a time takes them; another runs without them.

    Args:
        workers: their number.
    """

    def __init__(self, workers: int) -> None:
        api, work = ctypes.pythonapi, _entries().work
        for function in (api.PyThread_allocate_lock, api.PyThread_acquire_lock, api.PyThread_release_lock):
            function.restype = ctypes.c_void_p
        api.PyThread_acquire_lock.argtypes = ctypes.c_void_p, ctypes.c_int
        self.workers = workers
        self.mailboxes = np.zeros((workers, MAILBOX), np.int64)
        for number, box in enumerate(self.mailboxes):
            lock = api.PyThread_allocate_lock()
            api.PyThread_acquire_lock(lock, 1)
            box[_LOCK], box[_THREAD] = lock, number + 1
            box[_ACQUIRE] = ctypes.cast(api.PyThread_acquire_lock, ctypes.c_void_p).value or 0
            box[_RELEASE] = ctypes.cast(api.PyThread_release_lock, ctypes.c_void_p).value or 0
            threading.Thread(target=work, args=(box.ctypes.data,), name=f"minikeras-kernels-{number + 1}", daemon=True).start()

    def stop(self) -> None:
        """Let the threads end, after the job that has taken them."""
        for box in self.mailboxes:
            lock, box[_STOP] = ctypes.c_void_p(int(box[_LOCK])), 1
            ctypes.pythonapi.PyThread_acquire_lock(lock, 0)
            ctypes.pythonapi.PyThread_release_lock(lock)
        _stopped.append(self)  # the threads read this memory until they have ended


_starting = ForkSafeLock()
_current: _Team | None = None
_stopped: list[_Team] = []


class _Entries(NamedTuple):
    """The entry points for Python: `run(job, others)` without and with Python's lock, and `work(mailbox)` without."""

    run: Any
    run_holding: Any
    work: Any


@functools.cache
def _entries() -> _Entries:
    run, work = jit.functions(_text(), ["run", "work"])
    return _Entries(
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(run),
        ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(run),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work),
    )


def _team() -> _Team:
    """The team of as many workers as `thread_count()` wants beside the caller."""
    global _current
    wanted = thread_count() - 1
    team = _current
    if team is not None and team.workers == wanted:
        return team
    with _starting:
        if _current is not None:
            _current.stop()
        _current = team = _Team(wanted)
    return team


def _after_fork() -> None:
    """Drop the team: a child process has none of its parent's threads."""
    global _current
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
