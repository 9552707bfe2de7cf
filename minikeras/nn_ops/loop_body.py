"""The step of a loop as a small program, recorded by a run of a function, and carried out without it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..core import Primitive, State, Tensor, checked, convert_to_tensor, innermost, is_array, read_variable, to_numpy
from ..core.stack import BOTTOM, Frame, Interpreter, interpreters, on_top, only_shapes, perform
from ..errors import InvalidArgumentError
from ..types import Array, TensorLike


class Unrepeatable(Exception):
    """Raised where a step does something that a recorded one could not repeat."""


class BodyValue(NamedTuple):
    """One value of a body: shape and dtype of an array, or a Python number, whose shape is None."""

    shape: tuple[int, ...] | None
    dtype: Any
    number: Any = None


class Instruction(NamedTuple):
    """A primitive, the numbers of the values that it is given, its parameters, and the numbers of its results."""

    primitive: Primitive
    operands: tuple[int, ...]
    params: dict[str, Any]
    outputs: tuple[int, ...]
    several: bool


class LoopBody:
    """The instructions of one step of a loop, over numbered values.

    Two bodies are equal if they do the same, so what is derived from one is found again for the next.

    Args:
        values: shape and dtype of each value, by its number.
        carried: the values that a step hands to the next one.
        sliced: the values of which each step gets its slice.
        constants: the values that are the same in each step.
        instructions: in their order.
        results: the next carried values, in the order of `carried`, and then the outputs of each step.
    """

    __slots__ = ("__weakref__", "_key", "_steps", "carried", "constants", "instructions", "results", "sliced", "values")

    def __init__(
        self,
        values: Sequence[BodyValue],
        carried: Sequence[int],
        sliced: Sequence[int],
        constants: Sequence[int],
        instructions: Iterable[Instruction],
        results: Sequence[int],
    ) -> None:
        self.values, self.carried, self.sliced, self.constants = tuple(values), tuple(carried), tuple(sliced), tuple(constants)
        self.results = tuple(results)
        self.instructions = tuple(needed(instructions, self.results))
        self._steps: dict[int, Any] = {}
        plain = [(one.shape, str(one.dtype), type(one.number), repr(one.number)) for one in self.values]
        done = [(one.primitive, one.operands, fingerprint(one.params), one.outputs) for one in self.instructions]
        self._key = (tuple(plain), self.carried, self.sliced, self.constants, tuple(done), self.results)

    def __eq__(self, other: Any) -> bool:
        return self is other or (isinstance(other, LoopBody) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def name(self) -> str:
        """The program in one line, as it is shown within a program that holds the loop."""
        lines = [
            f"{', '.join(f'r{y}' for y in one.outputs)}{' = ' * bool(one.outputs)}{one.primitive.name}"
            f"({', '.join(map(self._shown, one.operands))})"
            for one in self.instructions
        ]
        return f"{'; '.join(lines)} -> {', '.join(f'r{y}' for y in self.results)}"

    def _shown(self, number: int) -> str:
        value = self.values[number]
        return f"r{number}" if value.shape is not None else repr(value.number)

    def steps(self, xp: ModuleType) -> list[tuple[Callable[..., Any], tuple[int, ...], dict[str, Any], tuple[int, ...], bool]]:
        """The instructions with their functions for arrays of a library."""
        found = self._steps.get(id(xp))
        if found is None:
            chosen = [one.primitive.on_numpy if xp is np else one.primitive.on(xp) for one in self.instructions]
            found = [(function, *one[1:]) for function, one in zip(chosen, self.instructions, strict=True)]
            self._steps[id(xp)] = found
        return found

    @property
    def operands(self) -> tuple[int, ...]:
        """The values that a loop is given: first those that are carried, then slices, then constants."""
        return (*self.carried, *self.sliced, *self.constants)

    def filled(self, operands: Iterable[Any]) -> list[Any]:
        """A list with a place for each value, in which the operands stand, and Python numbers."""
        values = [one.number for one in self.values]
        for place, x in zip(self.operands, operands, strict=True):
            values[place] = x
        return values

    def giving(self, results: Sequence[int]) -> LoopBody:
        """The same steps with other results."""
        return LoopBody(self.values, self.carried, self.sliced, self.constants, self.instructions, results)


PARTS: dict[type, Callable[[Any], Any]] = {
    types.FunctionType: lambda one: (
        *(one.__code__, [cell.cell_contents for cell in one.__closure__ or ()], one.__defaults__, one.__kwdefaults__),
    ),
    functools.partial: lambda one: (one.func, one.args, one.keywords),
    dict: lambda one: [*one, *one.values()],
    slice: lambda one: (one.start, one.stop, one.step),
}
"""By type, what a value is made of: two that are made of the same do the same, such as a test that each step defines."""


def fingerprint(value: Any, depth: int = 8) -> Hashable:
    """A key of a parameter, by value where it has one, else by identity: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    kind = type(value)
    if kind in PARTS:
        value = list(PARTS[kind](value))
    if isinstance(value, (list, tuple)) and depth:
        return kind, tuple([fingerprint(one, depth - 1) for one in value])
    if is_array(value):
        return kind, value.shape, value.dtype.str, to_numpy(value).tobytes()
    if isinstance(value, (float, complex, np.inexact)):
        return kind, repr(value)
    try:
        hash(value)
    except TypeError:
        return kind, id(value)
    return kind, value


def needed(instructions: Iterable[Instruction], results: Iterable[int]) -> list[Instruction]:
    """The instructions on which results depend, and checks, in their order."""
    wanted, kept = set(results), []
    for one in reversed(list(instructions)):
        if one.primitive is checked or not wanted.isdisjoint(one.outputs):
            wanted.update(one.operands)
            kept.append(one)
    return kept[::-1]


def replay(instructions: Iterable[Instruction], values: list[Any]) -> list[Any]:
    """Carry out instructions on Tensors; every interpreter on the stack sees them. The list is filled and returned."""
    for one in instructions:
        operands = [values[i] for i in one.operands]
        if one.primitive is checked:
            operands = [innermost(x) for x in operands]
        found = perform(one.primitive, operands, one.params)
        for place, y in zip(one.outputs, found if one.several else (found,), strict=True):
            values[place] = y
    return values


class BodyRecorder(Interpreter):
    """Keeps what happens in one step, computed on examples of what it is given.

    What the step takes from elsewhere (Tensors, Variables that it reads) becomes a constant.

    Args:
        outer: the stack around the loop, on which Variables are read; None where there is none to read.

    Attributes:
        values, instructions: as in `LoopBody`.
        constants: the Tensors from elsewhere, by the numbers of their values.
    """

    keeps_run = keeps_step = sees_all = True

    def __init__(self, outer: Frame | None = None) -> None:
        self.outer, self.only_shapes = outer, only_shapes()
        self.values: list[BodyValue] = []
        self.instructions: list[Instruction] = []
        self.constants: dict[int, Tensor] = {}
        self._numbers: dict[Any, int] = {}
        self._holders: dict[int, tuple[Array, int]] = {}
        self._read: dict[int, Tensor] = {}

    def example(self, array: Array) -> Tensor:
        """A value that the step is given, with this example of it."""
        return self._known(Tensor(array[...]))

    def zeros(self, value: BodyValue) -> Tensor:
        """A value that the step is given, of a shape and dtype."""
        return self.example(np.zeros(value.shape or (), value.dtype))

    def frame(self) -> Frame:
        """The stack on which the step runs: hidden from all others."""
        return Frame(self, BOTTOM)

    def number(self, x: TensorLike) -> int:
        """The number of a value; a Tensor that is not known is a constant."""
        if not isinstance(x, Tensor):
            key = (type(x), repr(x))
            if key not in self._numbers:
                self._numbers[key] = self._new(BodyValue(None, None, x))
            return self._numbers[key]
        found = self._numbers.get(x.key)
        if found is None:
            array, holder = self._holders.get(id(x.array), (None, 0))
            if array is not None and array is x.array:  # a Tensor made of another one's array is the same value
                return holder
            self._known(x)
            found = self._numbers[x.key]
            self.constants[found] = x
        return found

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Compute on the examples, and keep an instruction."""
        if primitive is read_variable and self.outer is not None:
            variable = inputs[0]
            if variable.key not in self._read:
                with on_top(self.outer):
                    self._read[variable.key] = perform(primitive, inputs, params)
            return self._read[variable.key]
        if primitive is checked:  # of the loop's values, when there are some
            return self._check(inputs, params)
        if primitive.effect or not primitive.repeatable or State.OPERANDS in primitive.reads:
            raise Unrepeatable(primitive.name)
        operands = tuple(map(self.number, inputs))
        outputs = self._computed(primitive, [Tensor(x.array) if isinstance(x, Tensor) else x for x in inputs], params)
        several = type(outputs) is tuple
        made = outputs if several else (outputs,)
        for y in made:
            self._known(y)
        self.instructions.append(Instruction(primitive, operands, params, tuple([self.number(y) for y in made]), several))
        return outputs

    def _computed(self, primitive: Primitive, inputs: list[Any], params: dict[str, Any]) -> Any:
        """The results on examples; where the operation refuses zeros, as matrices to be inverted, the results on NaN."""
        try:
            return BOTTOM.process(primitive, inputs, params)
        except InvalidArgumentError:
            if self.outer is not None:  # values of the user's
                raise
            undefined = [_not_a_number(x) if isinstance(x, Tensor) and x.dtype.is_differentiable else x for x in inputs]
            return BOTTOM.process(primitive, undefined, params)

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Refuse what leaves for Python, and functions with a gradient of their own."""
        if primitive is not checked:
            raise Unrepeatable(primitive.name)
        self._check([innermost(x) for x in inputs], params)

    def _check(self, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[()]:
        """Keep a test of values, which may refuse them."""
        self.instructions.append(Instruction(checked, tuple(map(self.number, inputs)), params, (), True))
        return ()

    def assign(self, variable: Any, value: TensorLike, how: Any, below: Frame) -> bool:
        """Refuse it, before it happens."""
        raise Unrepeatable(str(how))

    def is_fixed(self, x: Tensor) -> bool:
        """True if a Tensor is a constant of the step, and fixed outside of the loop too."""
        if self.outer is None or (x.key in self._numbers and self._numbers[x.key] not in self.constants):
            return False
        with on_top(self.outer):
            return is_fixed(x)

    def body(
        self, carried: Sequence[Tensor], sliced: Sequence[Tensor], results: Sequence[Any]
    ) -> tuple[LoopBody, list[Tensor]]:
        """The body over these values, and its constants."""
        numbers = [self.number(x) for x in results]
        ends = ([self.number(x) for x in carried], [self.number(x) for x in sliced])
        used = {i for one in needed(self.instructions, numbers) for i in one.operands}.union(numbers)
        constants = [number for number in self.constants if number in used]
        body = LoopBody(self.values, *ends, constants, self.instructions, numbers)
        return interned(body), [self.constants[number] for number in constants]

    def _known(self, x: Tensor) -> Tensor:
        array = x.array
        self._numbers[x.key] = self._new(BodyValue(tuple(array.shape), array.dtype))
        self._holders[id(array)] = array, self._numbers[x.key]
        return x

    def _new(self, value: BodyValue) -> int:
        self.values.append(value)
        return len(self.values) - 1


def _not_a_number(x: Tensor) -> Tensor:
    return Tensor(np.full(x.shape, np.nan, x.array.dtype))


def is_fixed(x: Tensor) -> bool:
    """True if a Tensor has the same value each time that the recordings on this thread's stack are repeated."""
    return all([one.is_fixed(x) for one in interpreters()])


@functools.lru_cache(maxsize=256)
def interned(body: LoopBody) -> LoopBody:
    """The first of the bodies that do the same."""
    return body


def record(
    step: Callable[[list[Tensor], list[Tensor]], tuple[Sequence[Any], Sequence[Any]]],
    outer: Frame,
    carried: Sequence[Array],
    sliced: Sequence[Array],
) -> tuple[LoopBody, list[Tensor], list[Tensor]]:
    """One step as a body, with its constants, and the carried examples that it gives.

    Args:
        step: maps carried values and slices to the next carried values and the outputs of the step.
        outer: the stack around the loop.
        carried, sliced: examples.

    Raises:
        Unrepeatable: if a recorded step could not repeat it, or it carries on other shapes or dtypes than it was given.
    """
    recorder = BodyRecorder(outer)
    given, slices = [recorder.example(x) for x in carried], [recorder.example(x) for x in sliced]
    with on_top(recorder.frame()):
        following, outputs = step(list(given), list(slices))
        results = [convert_to_tensor(x) for x in (*following, *outputs)]
    for x, y in zip(given, results, strict=False):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise Unrepeatable(f"what is carried changes from {x.dtype.name}{x.shape} to {y.dtype.name}{y.shape}")
    body, constants = recorder.body(given, slices, results)
    return body, constants, [Tensor(y.array) for y in results[: len(given)]]
