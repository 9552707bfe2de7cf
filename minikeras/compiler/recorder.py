"""Recording: an interpreter at the bottom of the stack keeps a Record of each operation of one run; these are the program.

It notices what could differ in the next run (a value that leaves for Python, a Variable that is made): then there is none.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import BatchedTensor, Before, IndexedSlices, Primitive, Record, State, Tensor, Variable, Write, call_place
from ..core.arrays import is_array, namespace, to_numpy
from ..core.stack import BOTTOM, Frame, Interpreter
from ..core.tensor import Operand, next_key
from ..core.variable import VariablePart, assigned, restore, snapshot
from ..errors import CompileError
from ..nn_ops.loop_body import PARTS
from ..types import Array
from .guards import PLAIN as CONSTANTS
from .guards import same
from .ir import PLAIN, Program, Slot, changed_by

ASSIGNMENTS = (Write.ASSIGN, Write.ADD, Write.SUBTRACT)


class ProgramComparison:
    """Compares the instructions of a run with those of another program, one by one."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._slots = {one.key: one.key for one in program.arguments}

    def difference(self, place: int, record: Record) -> str | None:
        """The difference of an instruction from the other program's at this place, as text; None if they are the same."""
        if place >= len(self.program.records):
            return f"one ends, and the other goes on with {record.primitive.name}"
        other, name = self.program.records[place], record.primitive.name
        pairs = ((other.inputs, record.inputs), (other.params, record.params), (other.outputs, record.outputs))
        if (other.primitive is record.primitive or other.primitive.name == name) and all(self._alike(*pair) for pair in pairs):
            return None
        return f"{other.primitive.name} of {_shown(other)} and then {name} of {_shown(record)}"

    def ends_as(self, program: Program) -> bool:
        """True if a program, its instructions compared already, has as many as the other one and the same results."""
        alike = len(program.records) == len(self.program.records) and program.structure == self.program.structure
        return alike and self._alike(list(self.program.results), list(program.results))

    def gives(self, program: Program) -> bool:
        """True if a whole program has the same instructions and results."""
        self._slots = {x.key: y.key for x, y in zip(self.program.arguments, program.arguments, strict=False)}
        records = enumerate(program.records)
        return all(self.difference(place, record) is None for place, record in records) and self.ends_as(program)

    def _alike(self, one: Any, other: Any, depth: int = 8) -> bool:
        """True if operands, parameters or constants are the same; other objects are compared by their class alone."""
        kind = type(one)
        if kind is Slot and type(other) is Slot:
            if (one.shape, one.dtype) != (other.shape, other.dtype) or (one.array is None) != (other.array is None):
                return False
            return self._alike(one.array, other.array) and self._slots.setdefault(one.key, other.key) == other.key
        if same(one, other) or not depth:
            return True
        if kind is not type(other) or isinstance(one, (Variable, type, types.CodeType, np.generic, *CONSTANTS)):
            return False
        if is_array(one):
            return one.shape == other.shape and one.dtype == other.dtype and _bytes(one) == _bytes(other)
        if hasattr(kind, "programs"):  # of the step of a method that needs the loss
            sweeps, others = one.programs(), other.programs()
            names = [[(name, r.primitive.name) for name in found for r in found[name].records] for found in (sweeps, others)]
            return names[0] != names[1] or all(ProgramComparison(sweeps[name]).gives(others[name]) for name in sweeps)
        if kind in PARTS:
            one, other = PARTS[kind](one), PARTS[kind](other)
        if isinstance(one, (list, tuple)):
            return len(one) == len(other) and all(self._alike(x, y, depth - 1) for x, y in zip(one, other, strict=True))
        return True


def _shown(record: Record) -> str:
    """The operands of an instruction, constants by their values."""
    held = [getattr(x, "array", None) for x in record.inputs]
    return f"({', '.join(f'{x if one is None else one!r:.40}' for x, one in zip(record.inputs, held, strict=True))})"


def _bytes(array: Any) -> bytes:
    return repr(array.tolist()).encode() if array.dtype == object else to_numpy(array).tobytes()


class Recorder(Interpreter):
    """The interpreter. Its Records are in `records`, over Slots instead of Tensors.

    Args:
        arguments: Tensors that differ in later runs.
        strict: whether to raise, not only to give up, where Python asks for a value that differs in the next run.
        frozen: whether Variables are constants.
        first: the program of the run before, if this one is to be compared with it.

    Attributes:
        refusal: the reason why there is no program, or None.
        repeats: whether there was an earlier run with a program.
        born: whether the run made a Variable: then it was the run that builds, and the next one is recorded.
        before: the values of Variables before the run changed them; the first values of those that it made.
    """

    keeps_run = sees_all = True
    """It stays on the stack where custom gradients hide their insides from tapes."""

    def __init__(self, arguments: Sequence[Tensor], strict: bool, frozen: bool = False, first: Program | None = None) -> None:
        self.records: list[Record] = []
        self.refusal: str | None = None
        self.born = False
        self.before = Before()
        self._streams: Any = _streams().states()
        self._own_streams: dict[int, tuple[Any, Any]] = {}
        self._strict, self._frozen = strict, frozen
        self.repeats = first is not None
        self._comparison = None if first is None else ProgramComparison(first)
        self._departure: str | None = None
        self._within = False
        self._slots: dict[int, Slot] = {}
        self._holders: dict[int, tuple[Callable[[], Array], Slot]] = {}
        """Slots by the identity of their array, which may be gone: a Tensor made of that of another one is the same value."""
        self._count = 0
        self.arguments = [self._new(x, False) for x in arguments]
        self._start = next_key()

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Ask below, and keep a Record."""
        if primitive.effect:
            self._keep_state(primitive, inputs, params)
        if self._within or self.refusal is not None:
            return below.interpreter.process(primitive, inputs, params, below.below)
        if below is BOTTOM and primitive.registered and not primitive.effect and not self._frozen:
            outputs = BOTTOM.process(primitive, inputs, params)  # one of the package's own operations
            self._keep(primitive, inputs, params, outputs)
            return outputs
        self._within = primitive.effect  # an effect itself repeats the operations within it
        try:
            outputs = below.interpreter.process(primitive, inputs, params, below.below)
        finally:
            self._within = False
        if self._frozen and State.OPERANDS in primitive.reads:
            for y in outputs if type(outputs) is tuple else (outputs,):
                self._slots[y.key] = self._number(y, True, True)
        else:
            self._keep(primitive, inputs, params, outputs)
        return outputs

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Keep assignments and checks; give up where Python sees a value that may differ next time."""
        assigns = State.OPERANDS in primitive.writes
        if assigns:
            if params["conversion"].makes:
                self.before[outputs.key] = outputs, params["array"]
            self.before.setdefault(outputs.key, (outputs, outputs.array))
        if self._within or self.refusal is not None:
            return
        if not primitive.repeatable:
            what = params.get("conversion", "a result whose shape or number of steps depends on values")
            if any(not self.is_fixed(x) for x in inputs):
                self.refuse(f"{what} of a tensor" if primitive.escapes else what)
        elif assigns:
            self._assign(inputs, params, outputs)
        elif primitive.effect:
            self._keep(primitive, inputs, params, ())

    def refuse(self, reason: str, located: bool = True) -> None:
        """Give up: there will be no program. With `located` the reason is in the user's line that runs now.

        Raises:
            CompileError: if the recorder is strict.
        """
        self.refusal = f"{reason}, at {call_place('numpy')}" if located else reason
        self.records = []
        if self._strict:
            raise CompileError(
                f"This function cannot be recorded: {self.refusal}. Python would decide once, for all later calls. Use tf "
                "operations such as tf.where in place of Python's if, float() and .numpy(), or let the function run eagerly: "
                "without jit_compile=True, or with run_eagerly=True for a model."
            )

    def keep(self, variables: Iterable[Variable]) -> None:
        """Remember the values of Variables that an effect is going to change unseen."""
        for variable in variables:
            self.before.setdefault(variable.key, (variable, variable.array))

    def _keep_state(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any]) -> None:
        """Remember the state that an effect may change: Variables, a stream."""
        self.keep(changed_by(primitive, inputs, params))
        stream = getattr(params.get("source"), "__self__", None)
        if isinstance(stream, _streams().Stream):
            self._own_streams.setdefault(id(stream), (stream, stream.state))

    def put_back(self) -> bool:
        """Restore Variables and random streams to their state before the run; Variables that it made get their first values.

        The recording is over: arrays of the run can be freed.

        Returns:
            True if that was done; False if another thread has updated one of the Variables meanwhile, which would be lost.
        """
        done = self.before.put_back()
        if done:
            _put_back((), self._own_streams.values(), self._streams)
        self.before.clear()
        self._holders.clear()
        return done

    def state(self) -> Callable[[], Callable[[], None]]:
        """A function that snapshots the state that the run has changed, and returns a function that restores it."""
        variables, streams = [one for one, _ in self.before.values()], [one for one, _ in self._own_streams.values()]

        def read() -> Callable[[], None]:
            own = [(stream, stream.state) for stream in streams]
            return functools.partial(_put_back, snapshot(variables), own, _streams().states())

        return read

    def _assign(self, inputs: Sequence[Any], params: dict[str, Any], variable: Variable) -> None:
        how = params["conversion"]
        if how.makes:
            self.born = True
        elif how in ASSIGNMENTS:
            value = inputs[0] if inputs else Tensor(params["array"])
            self._append(Record(assigned, [variable, self._input(value)], {"conversion": how}, ()))
        else:
            self.refuse(f"{how} of variable '{variable.name}'")

    def _keep(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any) -> None:
        given = [self._input(x) for x in inputs]
        fixed = not primitive.effect and all(not isinstance(x, Variable) and getattr(x, "fixed", True) for x in given)
        several = type(outputs) is tuple
        results = outputs if several else (outputs,)
        made = tuple([self._new(y, fixed) for y in results])
        for slot, y in zip(made, results, strict=True):
            slot.shares = any(_share(x, y) for x in inputs)
            if slot.dtype.kind == "O" and not (slot.shares and slot.shape):  # NumPy makes bare elements of text, not arrays
                self.refuse("a result of text")
                return
        self._append(Record(primitive, given, params, made if several else made[0]))

    def _append(self, record: Record) -> None:
        """Keep a Record; the first that differs from the run before is reported with the user's line that runs now."""
        if self._comparison is not None and self._departure is None:
            difference = self._comparison.difference(len(self.records), record)
            self._departure = difference and f"{difference}, at {call_place('numpy')}"
        self.records.append(record)

    def departure(self, program: Program) -> str | None:
        """The first difference of this run, which gave a program, from the one before; None without one."""
        if self._departure is None and self._comparison is not None and not self._comparison.ends_as(program):
            return "another number of operations, or another result"
        return self._departure

    def _input(self, x: Any) -> Any:
        """The Slot of a Tensor; a Variable or number as it is."""
        while type(x) is BatchedTensor:
            x = x.stacked
        return self.slot(x) if isinstance(x, Tensor) else x

    def slot(self, x: Tensor) -> Slot:
        """The Slot of a Tensor. One that the run has not made is a constant."""
        found = self._slots.get(x.key)
        if found is None and x.key > self._start:
            array, holder = self._holders.get(id(x.array), (lambda: None, None))
            found = holder if array() is x.array else None
        if found is None:
            found = self._number(x, True, True)
        self._slots[x.key] = found
        return found

    def _new(self, x: Tensor, fixed: bool) -> Slot:
        """The Slot of a result or an argument."""
        slot = self._slots[x.key] = self._number(x, fixed, False)
        if type(x.array) is not np.bool_:  # there are only two of it
            # A weak reference, so that a recorded run takes no more memory than another; NumPy's scalars have none.
            holder = weakref.ref(x.array) if isinstance(x.array, np.ndarray) else lambda array=x.array: array
            self._holders[id(x.array)] = holder, slot
        return slot

    def _number(self, x: Tensor, fixed: bool, constant: bool) -> Slot:
        self._count += 1
        array = x.array
        slot = Slot(self._count - 1, tuple(array.shape), array.dtype, namespace(array), fixed, array if constant else None)
        slot.order = _order(array)
        return slot

    def is_fixed(self, x: Any) -> bool:
        """True if a value depends on no argument, Variable or random number."""
        if isinstance(x, Variable) or type(x) is BatchedTensor:
            return False
        return not isinstance(x, Tensor) or self.slot(x).fixed

    def result(self, leaf: Any) -> Any:
        """The program's result for one leaf of the function's result; gives up if there can be none."""
        if isinstance(leaf, Variable) or type(leaf) in PLAIN:
            return leaf
        if type(leaf) in (Tensor, VariablePart) and leaf.attached is None:
            return self.slot(leaf)
        kind = "a tensor with a mask" if isinstance(leaf, Tensor) else type(leaf).__name__
        if isinstance(leaf, IndexedSlices):
            kind = "IndexedSlices (tf.convert_to_tensor makes a tensor of it)"
        self.refuse(f"the function returns {kind}")
        return None


def recorded(function: Callable[[Sequence[Tensor]], Sequence[Tensor]], given: Sequence[Tensor]) -> Program | None:
    """A function of Tensors as a program; None if it does what a program cannot repeat. What it assigns is put back."""
    with Recorder(given, strict=False) as recorder:
        try:
            results = [recorder.slot(result) for result in function(given)]
        finally:
            recorder.put_back()
    if recorder.refusal is not None or recorder.born:
        return None
    return Program(recorder.arguments, recorder.records, results, None)


def _put_back(variables: Iterable[tuple[Variable, Array]], streams: Iterable[tuple[Any, Any]], states: Any) -> None:
    restore(variables)
    for stream, state in streams:
        stream.state = state
    _streams().set_states(states)


def _streams() -> Any:
    """The random streams, loaded when they are first used: their hashlib takes 2 ms of the import."""
    from ..nn_ops import streams as random

    return random


def _order(array: Array) -> tuple[int, ...] | None:
    """The order of axes in which an array lies in memory without gaps, unless it is the usual one or there is none."""
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous or array.base is not None:
        return None
    order = tuple(np.argsort([-stride for stride in array.strides], kind="stable").tolist())
    return order if array.transpose(order).flags.c_contiguous else None


def _share(x: Any, y: Tensor) -> bool:
    """True if a result is an operand's array or a view of it; an array that is not NumPy's is taken to be one."""
    if not isinstance(x, Operand):
        return False
    a, b = x.array, y.array
    if not isinstance(b, np.ndarray):
        return not isinstance(b, np.generic)
    return a is b or (b.base is not None and isinstance(a, np.ndarray) and np.may_share_memory(a, b))
