"""Carrying out a list of kernels, by one thread or by several that share each kernel's parts. The loops are in LLVM's language:
Python only begins a run, so that it costs one call.

All threads go through the same instructions. A part belongs to the thread that claims it first, and a thread looks at its own
part first, so a thread that wakes late is not waited for: the others do its work. What a part computes does not depend on who
does it. Threads wait for the last part of an instruction before they begin the next, spinning; between runs they sleep.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.forks import ForkSafeLock
from ....core.ownership import Owned, called_with_others
from ....parallel.threads import thread_count
from ....types import Array
from . import jit

COUNT, INSTRUCTIONS, ADDRESSES, GENERATION, MARKS, FAILED, PARTS, WORKERS = range(8)
MAILBOXES, STEPS, LAST, DONE, MOVED, MOVES, FLUSHES = range(8, 15)
"""What a job is made of: integers of 64 bits."""
_LOCK, _JOB, _THREAD, _BUSY, _STOP, _ACQUIRE, _RELEASE, _TAKEN = range(8)
"""What a mailbox is made of: how a worker is told of a job. The first one's TAKEN says whether a job has the workers."""
MARK = 16
"""Integers for each part: by whom it was claimed and that it is done, two lines of the cache apart from others."""
SPINS = 2000
"""Looks of a thread that waits, some 50 us, after which it lets others run: on a busy machine it may be them it waits for."""
MAILBOX = 16
"""Integers of a mailbox."""

_LOAD_FIELD = r"""%\1.place = getelementptr i64, ptr %\4, i64 \3
  %\1 = load \2, ptr %\1.place"""
"""What `%name = load type, FIELD of %pointer` stands for."""
_LOAD_JOB = """%count = load i64, ptr %job
  %table = load ptr, INSTRUCTIONS of %job
  %addresses = load ptr, ADDRESSES of %job"""
_LOAD_INSTRUCTION = """%row = mul i64 %i, 3
  %at = getelementptr i64, ptr %table, i64 %row
  %function = load ptr, ptr %at
  %q1 = getelementptr i64, ptr %at, i64 1
  %operands = load ptr, ptr %q1
  %q2 = getelementptr i64, ptr %at, i64 2
  %parts = load i64, ptr %q2"""
_RUNNER = """
define internal void @wait(ptr %cell, i64 %generation) {
entry:
  br label %look
look:
  %turns = phi i64 [ 0, %entry ], [ %more, %spin ], [ %more, %yield ]
  %now = load atomic i64, ptr %cell acquire, align 8
  %done = icmp sge i64 %now, %generation
  br i1 %done, label %out, label %spin
spin:
  PAUSE
  %more = add i64 %turns, 1
  %long = icmp sgt i64 %more, SPINS
  br i1 %long, label %yield, label %look
yield:
  YIELD
  br label %look
out:
  ret void
}

define internal i64 @alone(ptr %job) {
entry:
  LOAD_JOB
  br label %instruction
instruction:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %begin, label %done
begin:
  LOAD_INSTRUCTION
  br label %part
part:
  %c = phi i64 [ 0, %begin ], [ %other, %fine ]
  %left = icmp slt i64 %c, %parts
  br i1 %left, label %work, label %next
work:
  %status = call i64 %function(ptr %operands, ptr %addresses, i64 %c, i64 %parts)
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %failed, label %fine
fine:
  %other = add i64 %c, 1
  br label %part
next:
  %following = add i64 %i, 1
  br label %instruction
done:
  ret i64 0
failed:
  %place = add i64 %i, 1
  ret i64 %place
}

define internal void @pass(ptr %job, i64 %thread, i64 %generation) {
entry:
  LOAD_JOB
  %marks = load ptr, MARKS of %job
  %failed = getelementptr i64, ptr %job, i64 FAILED
  %most = load i64, PARTS of %job
  br label %instruction
instruction:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %begin, label %done
begin:
  LOAD_INSTRUCTION
  %block = mul i64 %i, %most
  br label %turn
turn:
  %k = phi i64 [ 0, %begin ], [ %k1, %taken ]
  %left = icmp slt i64 %k, %parts
  br i1 %left, label %look, label %waiting
look:
  %sum = add i64 %thread, %k
  %c = srem i64 %sum, %parts
  %number = add i64 %block, %c
  %offset = mul i64 %number, MARK_SIZE
  %mark = getelementptr i64, ptr %marks, i64 %offset
  %old = load atomic i64, ptr %mark monotonic, align 8
  %free = icmp slt i64 %old, %generation
  br i1 %free, label %claim, label %taken
claim:
  %pair = cmpxchg ptr %mark, i64 %old, i64 %generation acq_rel monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %ready, label %taken
ready:
  %stopped = load atomic i64, ptr %failed monotonic, align 8
  %go = icmp eq i64 %stopped, 0
  br i1 %go, label %work, label %finished
work:
  %status = call i64 %function(ptr %operands, ptr %addresses, i64 %c, i64 %parts)
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %fail, label %finished
fail:
  %place = add i64 %i, 1
  store atomic i64 %place, ptr %failed monotonic, align 8
  br label %finished
finished:
  %cell = getelementptr i64, ptr %mark, i64 HALF
  store atomic i64 %generation, ptr %cell release, align 8
  br label %taken
taken:
  %k1 = add i64 %k, 1
  br label %turn
waiting:
  %w = phi i64 [ 0, %turn ], [ %w1, %wait ]
  %any = icmp slt i64 %w, %parts
  br i1 %any, label %wait, label %next
wait:
  %wnumber = add i64 %block, %w
  %woffset = mul i64 %wnumber, MARK_SIZE
  %wmark = getelementptr i64, ptr %marks, i64 %woffset
  %wcell = getelementptr i64, ptr %wmark, i64 HALF
  call void @wait(ptr %wcell, i64 %generation)
  %w1 = add i64 %w, 1
  br label %waiting
next:
  %following = add i64 %i, 1
  br label %instruction
done:
  ret void
}

define internal void @share(ptr %job, i64 %thread) {
entry:
  %cell = getelementptr i64, ptr %job, i64 GENERATION
  %first = load atomic i64, ptr %cell acquire, align 8
  %last = load i64, LAST of %job
  %failed = getelementptr i64, ptr %job, i64 FAILED
  br label %step
step:
  %generation = phi i64 [ %first, %entry ], [ %following, %on ]
  call void @pass(ptr %job, i64 %thread, i64 %generation)
  %stopped = load atomic i64, ptr %failed acquire, align 8
  %fine = icmp eq i64 %stopped, 0
  %more = icmp slt i64 %generation, %last
  %goes = and i1 %fine, %more
  br i1 %goes, label %on, label %out
on:
  %following = add i64 %generation, 1
  call void @wait(ptr %cell, i64 %following)
  br label %step
out:
  ret void
}

define internal void @advance(ptr %job) {
entry:
  %addresses = load ptr, ADDRESSES of %job
  %count = load i64, MOVED of %job
  %moves = load ptr, MOVES of %job
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %move ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %move, label %out
move:
  %row = mul i64 %i, 2
  %at = getelementptr i64, ptr %moves, i64 %row
  %place = load i64, ptr %at
  %q = getelementptr i64, ptr %at, i64 1
  %stride = load i64, ptr %q
  %cell = getelementptr i64, ptr %addresses, i64 %place
  %old = load i64, ptr %cell
  %new = add i64 %old, %stride
  store i64 %new, ptr %cell
  %next = add i64 %i, 1
  br label %look
out:
  ret void
}

define i64 @run(ptr %job, i64 %references) {
entry:
  %seen = icmp ne i64 %references, 0
  br i1 %seen, label %refused, label %begin
refused:
  ret i64 -1
begin:
  %p3 = getelementptr i64, ptr %job, i64 GENERATION
  %before = load i64, ptr %p3
  %first = add i64 %before, 1
  %steps = load i64, STEPS of %job
  %final = add i64 %before, %steps
  %pl = getelementptr i64, ptr %job, i64 LAST
  store i64 %final, ptr %pl
  %pd = getelementptr i64, ptr %job, i64 DONE
  store i64 0, ptr %pd
  %p5 = getelementptr i64, ptr %job, i64 FAILED
  store atomic i64 0, ptr %p5 release, align 8
  %all = load i64, WORKERS of %job
  %mailboxes = load ptr, MAILBOXES of %job
  %taken = getelementptr i64, ptr %mailboxes, i64 TAKEN
  %control = alloca i64
  %any = icmp sgt i64 %all, 0
  br i1 %any, label %take, label %prepare
take:
  %pair = cmpxchg ptr %taken, i64 0, i64 1 seq_cst seq_cst
  %got = extractvalue { i64, i1 } %pair, 1
  %given = select i1 %got, i64 %all, i64 0
  br label %prepare
prepare:
  %workers = phi i64 [ 0, %begin ], [ %given, %take ]
  %shared = icmp sgt i64 %workers, 0
  call void @flush(ptr %job, ptr %control)
  store atomic i64 %first, ptr %p3 release, align 8
  br label %waking
waking:
  %w = phi i64 [ 0, %prepare ], [ %w1, %wake ]
  %more = icmp slt i64 %w, %workers
  br i1 %more, label %wake, label %step
wake:
  %wo = mul i64 %w, MAILBOX_SIZE
  %box = getelementptr i64, ptr %mailboxes, i64 %wo
  %slot = getelementptr i64, ptr %box, i64 JOB
  store atomic ptr %job, ptr %slot seq_cst, align 8
  %lock = load ptr, ptr %box
  %takes = load ptr, ACQUIRE of %box
  %held = call i32 %takes(ptr %lock, i32 0)  ; a worker that is late has not taken it, and only a lock that is held is released
  %wakes = load ptr, RELEASE of %box
  call void %wakes(ptr %lock)
  %w1 = add i64 %w, 1
  br label %waking
step:
  %generation = phi i64 [ %first, %waking ], [ %following, %advance ]
  br i1 %shared, label %together, label %single
single:
  %status = call i64 @alone(ptr %job)
  store atomic i64 %status, ptr %p5 monotonic, align 8
  br label %carried
together:
  call void @pass(ptr %job, i64 0, i64 %generation)
  br label %carried
carried:
  %stopped = load atomic i64, ptr %p5 acquire, align 8
  %fine = icmp eq i64 %stopped, 0
  br i1 %fine, label %done, label %leaving
done:
  %sofar = load i64, ptr %pd
  %now = add i64 %sofar, 1
  store i64 %now, ptr %pd
  %goes = icmp slt i64 %generation, %final
  br i1 %goes, label %advance, label %leaving
advance:
  call void @advance(ptr %job)
  %following = add i64 %generation, 1
  store atomic i64 %following, ptr %p3 release, align 8
  br label %step
leaving:
  %v = phi i64 [ 0, %carried ], [ 0, %done ], [ %v1, %left ]
  %others = icmp slt i64 %v, %workers
  br i1 %others, label %withdraw, label %out
withdraw:
  %vo = mul i64 %v, MAILBOX_SIZE
  %vbox = getelementptr i64, ptr %mailboxes, i64 %vo
  %vslot = getelementptr i64, ptr %vbox, i64 JOB
  store atomic ptr null, ptr %vslot seq_cst, align 8
  %vbusy = getelementptr i64, ptr %vbox, i64 BUSY
  br label %still
still:
  %busy = load atomic i64, ptr %vbusy seq_cst, align 8
  %works = icmp ne i64 %busy, 0
  br i1 %works, label %spin, label %left
spin:
  PAUSE
  br label %still
left:
  %v1 = add i64 %v, 1
  br label %leaving
out:
  call void @restore(ptr %control)
  br i1 %shared, label %release, label %end
release:
  store atomic i64 0, ptr %taken seq_cst, align 8
  br label %end
end:
  %result = load atomic i64, ptr %p5 acquire, align 8
  ret i64 %result
}

define void @work(ptr %box) {
entry:
  %lock = load ptr, ptr %box
  %slot = getelementptr i64, ptr %box, i64 JOB
  %thread = load i64, THREAD of %box
  %busy = getelementptr i64, ptr %box, i64 BUSY
  %stop = getelementptr i64, ptr %box, i64 STOP
  %control = alloca i64
  %acquire = load ptr, ACQUIRE of %box
  br label %sleep
sleep:
  %got = call i32 %acquire(ptr %lock, i32 1)
  store atomic i64 1, ptr %busy seq_cst, align 8
  %job = load atomic ptr, ptr %slot seq_cst, align 8
  %withdrawn = icmp eq ptr %job, null
  br i1 %withdrawn, label %rest, label %begin
begin:
  call void @flush(ptr %job, ptr %control)
  call void @share(ptr %job, i64 %thread)
  call void @restore(ptr %control)
  br label %rest
rest:
  store atomic i64 0, ptr %busy seq_cst, align 8
  %ends = load atomic i64, ptr %stop seq_cst, align 8
  %last = icmp ne i64 %ends, 0
  br i1 %last, label %out, label %sleep
out:
  ret void
}
"""


def _text() -> str:
    """The loops, with places filled in, and with what tells a processor that a thread spins."""
    values = {"JOB": _JOB, "THREAD": _THREAD, "BUSY": _BUSY, "STOP": _STOP, "ACQUIRE": _ACQUIRE, "RELEASE": _RELEASE}
    values |= {"TAKEN": _TAKEN, "MARK_SIZE": MARK, "MAILBOX_SIZE": MAILBOX, "HALF": MARK // 2}
    values |= {"INSTRUCTIONS": INSTRUCTIONS, "ADDRESSES": ADDRESSES, "GENERATION": GENERATION, "MARKS": MARKS}
    values |= {"FAILED": FAILED, "PARTS": PARTS, "WORKERS": WORKERS, "MAILBOXES": MAILBOXES}
    values |= {"STEPS": STEPS, "LAST": LAST, "DONE": DONE, "MOVED": MOVED, "MOVES": MOVES, "FLUSHES": FLUSHES}
    pause, declaration = jit.pause()
    give_way, other = ("", "") if os.name == "nt" else ("%others = call i32 @sched_yield()", "\ndeclare i32 @sched_yield()\n")
    loops = _RUNNER.replace("PAUSE", pause).replace("YIELD", give_way).replace("SPINS", str(SPINS))
    text = declaration + other + jit.flushing() + loops
    text = text.replace("LOAD_JOB", _LOAD_JOB).replace("LOAD_INSTRUCTION", _LOAD_INSTRUCTION)
    text = re.sub(r"%(\w+) = load (\w+), (\w+) of %(\w+)", _LOAD_FIELD, text)
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f" {name}\n", f" {values[name]}\n")
    return text


Instruction = tuple[int, Sequence[int], int]
"""The address of a kernel, its operands and the number of its parts."""


class Job:
    """Instructions over one list of addresses, ready to be carried out any number of times, by one call at a time.

    Args:
        instructions: what is carried out.
        addresses: of arrays, as integers; what they are at a run counts.
        holds: whether other threads of Python wait until a run has ended, as they do for 5 ms in any case.
        moves: places among the addresses, and how many bytes each moves on from step to step.
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

    def __call__(self) -> int:
        """Carry the instructions out; 0, or the number of that which found an index outside its row, counted from 1.

        Returns:
            -1, and nothing was done, if something refers to what is to be written alone.
        """
        if self.parts > 1 and (team := _team()) is not self._team:
            self._head[MAILBOXES], self._head[WORKERS] = team.mailboxes.ctypes.data, team.workers
            self._team = team
        return int(called_with_others(self._run, self._place, self.alone) if self.alone else self._run(self._place, 0))

    @property
    def steps(self) -> int:
        """How many times a run carries the instructions out."""
        return int(self._head[STEPS])

    @steps.setter
    def steps(self, count: int) -> None:
        self._head[STEPS] = count

    @property
    def done(self) -> int:
        """How many steps the last run has carried out."""
        return int(self._head[DONE])

    def forget(self) -> None:
        """Count the steps of the next run from nothing, should that not even begin."""
        self._head[DONE] = 0


class _Team:
    """Threads that wait for jobs, beside the one that has them. One job at a time takes them; another goes on alone.

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
        _stopped.append(self)  # their memory is read until they have ended


_starting = ForkSafeLock()
_current: _Team | None = None
_stopped: list[_Team] = []


class _Entries(NamedTuple):
    """What is called from Python: `run(job, others)` without and with Python's lock, and `work(mailbox)` without."""

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
    """As many workers as `thread_count()` wants beside the caller."""
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
    """A child process has none of its parent's threads."""
    global _current
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
