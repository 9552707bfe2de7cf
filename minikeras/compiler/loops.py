"""Loops: the operations on each element, as straight-line code.

The code is traced from a kernel, which runs once on `Traced` elements that note the operations on them. A kernel that reads
shapes, sums or branches on values is no loop: tracing fails.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core import Primitive, Record, operations
from ..core.arrays.namespaces import ALLOWED_NAMES, namespace
from ..errors import InvalidArgumentError
from ..layout import Layout
from ..types import Array
from .ir import Slot, instruction, slots_in

FUNCTIONS = frozenset(
    function.__name__  # np.abs is called 'absolute'
    for name in ALLOWED_NAMES
    if isinstance(function := getattr(np, name, None), np.ufunc) and function.nout == 1
) | {"floor_divide", "remainder", "reciprocal", "logical_not"}
"""NumPy's elementwise functions that a body may use, beside 'where' and 'astype'."""

KINDS = "fiub"
"""Kinds of dtypes that bodies are traced for: all but complex numbers and, of kind "V", bfloat16."""

_OF_BOOLS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"}
"""The functions of NumPy's `&`, `|`, `^` and `~` for bools."""

_POWERS = {2: "square", 0.5: "sqrt", -1: "reciprocal"}
"""The function of NumPy's `**` for some exponents; for any other it is `power`."""


T = TypeVar("T")


class Untraceable(Exception):
    """Raised where a kernel is no loop."""


class Step(NamedTuple):
    """One operation on elements.

    Attributes:
        register: of its result.
        function: one of `FUNCTIONS`, 'where' or 'astype'; for Python numbers a name of `operator`.
        operands: registers.
        dtype: of the result; `float` for a Python number.
    """

    register: int
    function: str
    operands: tuple[int, ...]
    dtype: Any


class Body(NamedTuple):
    """Straight-line code for one element. Registers are numbered: the inputs first.

    Two are equal if they are the same code, so that they serve as keys of kernels: 2 and 2.0, or 0.0 and -0.0, are different.

    Attributes:
        inputs: dtypes of the inputs; `float` for a Python number that may differ from run to run.
        literals: Python numbers by register.
        numbers: steps on Python numbers alone, done once for all elements.
        steps: all other steps.
        outputs: registers of the results.
    """

    inputs: tuple[Any, ...]
    literals: tuple[tuple[int, Any], ...]
    numbers: tuple[Step, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    @property
    def _told_apart(self) -> tuple[Any, ...]:
        literals = tuple([(register, type(x), repr(x)) for register, x in self.literals])
        return self.inputs, literals, self.numbers, self.steps, self.outputs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self._told_apart == other._told_apart

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._told_apart)

    @property
    def dtypes(self) -> dict[int, Any]:
        """The dtypes of inputs and steps, by register."""
        return dict(enumerate(self.inputs)) | {step.register: step.dtype for step in self.steps}

    def early(self, single: Iterable[int]) -> list[Step]:
        """The steps that only read numbers and `single` inputs, and give no output: they need to compute only one element."""
        known = {*single, *dict(self.literals), *(step.register for step in self.numbers)}
        known |= {number for number, dtype in enumerate(self.inputs) if dtype is float}
        found = []
        for step in self.steps:
            if known.issuperset(step.operands) and step.register not in self.outputs:
                known.add(step.register)
                found.append(step)
        return found

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The results for whole arrays, in arrays of their own."""
        registers: dict[int, Any] = dict(enumerate(values)) | dict(self.literals)
        steps, xp = (*self.numbers, *self.steps), namespace(*values)
        last = {register: position for position, step in enumerate(steps) for register in step.operands}
        for position, step in enumerate(steps):
            registers[step.register] = on_arrays(step, xp)(*[registers[register] for register in step.operands])
            for register in {*step.operands} - {*self.outputs}:
                if last[register] == position:  # free a value that no later step reads
                    del registers[register]
        return tuple([registers[register] for register in self.outputs])

    def __repr__(self) -> str:
        literals = dict(self.literals)

        def shown(register: int) -> str:
            return repr(literals[register]) if register in literals else f"r{register}"

        lines = [
            f"r{step.register} = {step.function}({', '.join(map(shown, step.operands))})"
            for step in (*self.numbers, *self.steps)
        ]
        return f"{'; '.join(lines)} -> {', '.join(map(shown, self.outputs))}"


def on_arrays(step: Step, xp: ModuleType) -> Callable[..., Any]:
    """A step as a function of whole arrays, or of Python numbers."""
    if step.dtype is float:
        function: Callable[..., Any] = getattr(operator, step.function)
        return function
    if step.function == "astype":
        return lambda x: x.astype(step.dtype)
    found: Callable[..., Any] = getattr(xp, step.function)
    return found


class Traced(NDArrayOperatorsMixin):
    """Stands for one element while a kernel is traced."""

    __slots__ = ("code", "dtype", "register")
    shape: tuple[int, ...] = ()

    def __init__(self, code: Code, register: int, dtype: Any) -> None:
        self.code, self.register, self.dtype = code, register, dtype

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        """The element in another dtype."""
        wanted = np.dtype(dtype)
        if self.dtype.kind == "c" and wanted.kind != "c":
            raise Untraceable("the real part of complex numbers")
        return self if wanted == self.dtype else self.code.step("astype", (self,), wanted)

    def sum(self) -> Traced:
        """The sum over all elements of its array, where bodies may have such sums."""
        return self.code.total(self)

    def __pow__(self, exponent: Any) -> Traced:
        if isinstance(exponent, Traced) and exponent.dtype is float:
            raise Untraceable("a power that each run may have another one of")
        if exponent == 1:
            return self
        short = None if isinstance(exponent, Traced) else _POWERS.get(exponent)
        return self.code.apply("power", self, exponent) if short is None else self.code.apply(short, self)

    __ipow__ = __pow__  # NumPy's `**=` takes the same short ways

    def __rpow__(self, base: Any) -> Traced:
        return self.code.apply("power", base, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        in_place = options.pop("out", operands[:1])[0] is operands[0]
        if method != "__call__" or options or not in_place or ufunc.__name__ not in FUNCTIONS:
            raise Untraceable(f"{ufunc.__name__} of elements")
        of_bools = all(isinstance(x, Traced) and x.dtype == np.bool_ for x in operands)
        return self.code.apply(_OF_BOOLS.get(ufunc.__name__, ufunc.__name__) if of_bools else ufunc.__name__, *operands)

    def __array_function__(self, function: Callable[..., Any], types: Any, operands: Any, options: Any) -> Any:
        if function is np.where and len(operands) == 3:
            return self.code.step("where", operands, np.result_type(*[_kind(x) for x in operands[1:]]))
        if function in (np.zeros_like, np.ones_like) and not any(options.values()):
            return int(function is np.ones_like)  # a Python number takes the dtype of the other operand
        raise Untraceable(f"{function.__name__} of elements")

    def __bool__(self) -> bool:
        raise Untraceable("a branch on values")

    __float__ = __int__ = __index__ = __bool__


NUMBERS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "negative": "neg"}
"""Functions of Python numbers alone: the operator whose result is a Python number too."""


class Code:
    """A body in the making. It may read `sums` if they are given: the summed elements, by the register of the sum."""

    def __init__(self, inputs: Sequence[Any], sums: dict[int, Traced] | None = None) -> None:
        self.inputs, self._sums = tuple(inputs), sums
        self.literals: dict[int, Any] = {}
        self.numbers: list[Step] = []
        self.steps: list[Step] = []
        self._count = len(self.inputs)
        self._known: dict[Any, int] = {}

    def elements(self) -> list[Traced]:
        """The traced elements of the inputs."""
        return [Traced(self, register, dtype) for register, dtype in enumerate(self.inputs)]

    def apply(self, function: str, *operands: Any) -> Traced:
        """A step of one of NumPy's functions."""
        kinds = [x.dtype if isinstance(x, Traced) else type(x) for x in operands]
        if all(kind is float or kind is int for kind in kinds):  # NumPy calls its own float64 equal to Python's float
            if function not in NUMBERS:
                raise Untraceable(f"{function} of Python numbers")
            return self.step(NUMBERS[function], operands, float)
        if any(kind is bool for kind in kinds):
            raise Untraceable("a Python bool among arrays")
        resolved = getattr(np, function).resolve_dtypes((*kinds, None))
        return self.step(function, operands, resolved[-1])

    def step(self, function: str, operands: Sequence[Any], dtype: Any) -> Traced:
        """Add a step, or return an equal one that is there already."""
        registers = tuple([self._register(x) for x in operands])
        key = function, registers, dtype
        if key not in self._known:
            self._known[key] = self._count
            (self.numbers if dtype is float else self.steps).append(Step(self._count, function, registers, dtype))
            self._count += 1
        return Traced(self, self._known[key], dtype)

    def _register(self, x: Any) -> int:
        if isinstance(x, Traced):
            return x.register
        if type(x) not in (float, int):
            raise Untraceable(f"a {type(x).__name__} among elements")
        key = type(x), repr(x)
        if key not in self._known:
            self._known[key] = self._count
            self.literals[self._count] = x
            self._count += 1
        return self._known[key]

    def total(self, x: Traced) -> Traced:
        """A sum over elements, which is not an elementwise step."""
        if self._sums is None:
            raise Untraceable("a sum of elements")
        register, self._count = self._count, self._count + 1
        self._sums[register] = x
        return Traced(self, register, x.dtype)

    def inlined(self, body: Body, operands: Sequence[Any] | Mapping[int, Any]) -> list[Traced]:
        """Add the steps of another body, for these operands, in order or by register; its results."""
        values: dict[int, Any] = dict(operands if isinstance(operands, Mapping) else enumerate(operands)) | dict(body.literals)
        for step in (*body.numbers, *body.steps):
            values[step.register] = self.step(step.function, [values[register] for register in step.operands], step.dtype)
        return [values[register] for register in body.outputs]

    def body(self, outputs: Sequence[Any]) -> Body:
        """The finished body."""
        if not all(isinstance(y, Traced) and y.dtype is not float for y in outputs):
            raise Untraceable("a result that no element takes part in")
        registers = tuple([y.register for y in outputs])
        return Body(self.inputs, tuple(self.literals.items()), tuple(self.numbers), tuple(self.steps), registers)


def _kind(x: Any) -> Any:
    if isinstance(x, Traced):
        return np.float64(0.0) if x.dtype is float else x.dtype
    return x


def traced(function: Callable[..., Any], inputs: Sequence[Any], kinds: str = KINDS) -> Body | None:
    """The body of `function(elements)`, which returns an element or a tuple of them; None if it is no loop.

    Args:
        function: a kernel or a formula.
        inputs: the dtypes of its arguments; `float` for a Python number that may differ from run to run.
        kinds: the kinds of dtypes that there are loops for.
    """
    code = Code(inputs)
    if any(dtype is not float and dtype.kind not in kinds for dtype in code.inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = function(*code.elements())
        return code.body(result if type(result) is tuple else (result,))
    except (Untraceable, InvalidArgumentError, TypeError, AttributeError, ValueError, IndexError):
        return None


class Pass(NamedTuple):
    """A body, and the positions of its inputs among those of all passes."""

    body: Body
    reads: tuple[int, ...]


def traced_passes(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Pass] | None:
    """The bodies of passes over the elements of arrays, where `function` may take sums over all; None if it does more.

    The last one gives the results. Each earlier one gives elements whose sums are further inputs of the later ones.

    >>> unit = traced_passes(lambda x, y: x / np.sqrt((y * y).sum()), [np.dtype("f4")] * 2)
    >>> for one in unit:
    ...     print(one.reads, one.body)
    (1,) r1 = multiply(r0, r0) -> r1
    (0, 2) r2 = sqrt(r1); r3 = divide(r0, r2) -> r3
    """
    sums = dict[int, Traced]()
    code = Code(inputs, sums)
    try:
        with np.errstate(all="ignore"):
            result = function(*code.elements())
        body = code.body(result if type(result) is tuple else (result,))
        operands = {step.register: step.operands for step in (*body.numbers, *body.steps)}
        turns: dict[int, int] = {}
        """The number of passes before a register is known."""
        for register in sorted([*operands, *sums]):
            read = operands.get(register) or (sums[register].register,)
            turns[register] = (register in sums) + max([turns.get(one, 0) for one in read])
        known = dict(enumerate(body.inputs))
        found: list[Pass] = []
        for turn in range(1, 1 + max([turns[register] for register in sums], default=0)):
            own = {register: x for register, x in sums.items() if turns[register] == turn}
            found.append(_needed(body._replace(outputs=tuple([x.register for x in own.values()])), known))
            known |= {register: x.dtype for register, x in own.items()}
        return [*found, _needed(body, known)]
    except (Untraceable, InvalidArgumentError, TypeError, AttributeError, ValueError, IndexError):
        return None


def _needed(body: Body, known: Mapping[int, Any]) -> Pass:
    """A body without the steps that its results do not need, from those of the known registers that they need."""
    needed = set(body.outputs)
    for step in (*reversed(body.steps), *reversed(body.numbers)):
        needed |= {*step.operands} if step.register in needed else set()
    given = {number: register for number, register in enumerate(known) if register in needed}
    code = Code([known[register] for register in given.values()])
    numbers, steps = [tuple([step for step in some if step.register in needed]) for some in (body.numbers, body.steps)]
    smaller = body._replace(numbers=numbers, steps=steps)
    return Pass(code.body(code.inlined(smaller, dict(zip(given.values(), code.elements(), strict=True)))), tuple(given))


_bodies: dict[Any, Any] = {}
"""The bodies of the package's primitives and optimizers, each traced once."""
KEPT = 1024
"""The most bodies, before all are dropped: literal numbers and options that change from program to program make new ones."""


def kept(key: Any, trace: Callable[[], T]) -> T:
    """The body, or bodies, by a key that holds all dependencies, traced if it is not known."""
    try:
        found: T = _bodies[key]
        return found
    except KeyError:
        body = trace()
    if len(_bodies) >= KEPT:
        _bodies.clear()
    _bodies[key] = body
    return body


def body_of(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], kinds: str = KINDS) -> Body | None:
    """The body of a primitive for operands of these dtypes; literal Python numbers among them stay what they are.

    >>> import numpy as np
    >>> from minikeras.core.registry import operations
    >>> print(body_of(operations.relu, [np.dtype("f4")], {}))
    r2 = maximum(r0, 0) -> r2
    """
    if getattr(operations, primitive.name, None) is not primitive:  # another primitive's kernel may read values that change
        return _body_of(primitive, inputs, params, kinds)
    key = primitive, tuple([x if isinstance(x, np.dtype) else (type(x), repr(x)) for x in inputs]), repr(params), kinds
    return kept(key, lambda: _body_of(primitive, inputs, params, kinds))


def _body_of(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], kinds: str) -> Body | None:
    def kernel(*elements: Any) -> Any:
        given = iter(elements)
        operands = [next(given) if isinstance(x, np.dtype) else x for x in inputs]
        return primitive.kernel(np)(*operands, **params)

    dtypes = [x for x in inputs if isinstance(x, np.dtype)]
    return traced(kernel, dtypes, kinds) if dtypes and primitive.elementwise else None


@instruction(batching="align")
def loop(xp: ModuleType, *values: Any, body: Body) -> tuple[Any, ...]:
    """An instruction of a program: a body for all elements of its operands, broadcast like NumPy."""
    return body(*values)


def elementwise_body(record: Record, kinds: str = KINDS) -> tuple[tuple[int, ...], Body | None]:
    """The shape and the body of an elementwise instruction on NumPy's arrays, of these kinds of dtypes."""
    if record.primitive is loop:
        return record.outputs[0].shape, record.params["body"]
    y = record.outputs
    if not record.primitive.elementwise or type(y) is tuple or y.xp is not np:
        return (), None
    slots = slots_in(record.inputs)
    shapes = [x.shape for x in slots if x.shape is not None]
    if len(shapes) < len(slots) or np.broadcast_shapes(*shapes) != y.shape:
        return (), None
    body = body_of(record.primitive, [x.dtype if isinstance(x, Slot) else x for x in record.inputs], record.params, kinds)
    if body is None or body.dtypes[body.outputs[0]] != y.dtype:
        return (), None
    return y.shape, body


def loop_of(record: Record, kinds: str = KINDS) -> tuple[tuple[int, ...], Body | None]:
    """As `elementwise_body`, for loops that pay: a single element is computed faster without a loop."""
    shape, body = elementwise_body(record, kinds)
    return (shape, body) if shape != () else ((), None)


# Flat arrays of parts -------------------------------------------------------------------------------------------------

# Passes over flat arrays that know the boundaries of their parts: bodies read numbers of parts, and results are summed.
#
# So a norm of each gradient, or of all, needs no pass over memory for each of them.


class SumScope(StrEnum):
    """The scope of a sum over elements."""

    PART = "part"
    ALL = "all"


@instruction()
def loop_of_parts(xp: ModuleType, *values: Array, body: Body, layout: Layout, sums: SumScope | None) -> tuple[Array, ...]:
    """A body for all elements of flat arrays of one `layout`.

    Operands of shape (parts, 1) have a number for each part, those without axes one for all. With `sums` results are added up:
    over each part, of shape (parts, 1), or over all, without axes.
    """
    numbers = np.zeros(layout.size, np.intp)
    for number, part in enumerate(layout.slices):
        numbers[part] = number
    given = [x[numbers, 0] if getattr(x, "ndim", 0) == 2 else x for x in values]
    results = body(*given)
    if sums is None:
        return results
    totals = [xp.stack([y[part].sum() for part in layout.slices]).reshape(-1, 1) for y in results]
    return tuple(totals if sums is SumScope.PART else [total.sum() for total in totals])


def sums_shape(layout: Layout, sums: SumScope) -> tuple[int, ...]:
    """The shape of such a sum."""
    return (len(layout.shapes), 1) if sums is SumScope.PART else ()


def is_of_parts(shape: Sequence[int] | None) -> bool:
    """True if an operand has a number for each part."""
    return shape is not None and len(shape) == 2
