"""Expressions: the scalar at one point of the loops around it, by the names of NumPy's functions. Traced bodies
(compiler/loops.py) become expressions with NumPy's rules for the dtypes of operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..loops import KINDS, NUMBERS, Body, Step

INDEX = np.dtype(np.int64)
TRUTH = np.dtype(bool)
PREDICATES = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite"}
"""Functions whose results are bools; those of bools are too."""
_OF_BOOLS = {f"bitwise_{name}": f"logical_{name}" for name in ("and", "or", "xor")}


def _operator(function: str, swapped: bool = False) -> Callable[[Expr, Any], Expr]:
    """The method of a Python operator."""

    def method(self: Expr, other: Any) -> Expr:
        name = _OF_BOOLS.get(function, function) if self.dtype == TRUTH else function
        return apply(name, *((other, self) if swapped else (self, other)))

    return method


class Expr:
    """A scalar for each point of the loops around it. Two are the same only if they are one object.

    Integers that are divided, or whose remainder is taken, are at least 0.

    Attributes:
        op: a ufunc's name, "where", "astype", "view", its bits in another dtype, or a leaf's: "constant",
            "size", "axis", "register", "load".
        args: the operands; the index of a load.
        dtype: of the scalar.
        value: of a constant its number, of a size its name, of a load its Array, of an axis its kind.
    """

    __slots__ = ("args", "dtype", "op", "value")

    def __init__(self, op: str, args: tuple[Expr, ...] = (), dtype: Any = INDEX, value: Any = None) -> None:
        self.op, self.args, self.dtype, self.value = op, args, np.dtype(dtype), value

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __floordiv__, __mod__ = _operator("divide"), _operator("floor_divide"), _operator("remainder")
    __lt__, __le__, __gt__, __ge__ = [_operator(name) for name in ("less", "less_equal", "greater", "greater_equal")]
    __and__, __or__, __xor__ = [_operator(f"bitwise_{name}") for name in ("and", "or", "xor")]
    __lshift__, __rshift__ = _operator("left_shift"), _operator("right_shift")

    def __invert__(self) -> Expr:
        return apply("logical_not", self)

    @property
    def number(self) -> Any:
        """The number of a constant; None for any other expression."""
        return self.value if self.op == "constant" else None


def lift(x: Any, dtype: np.dtype[Any] = INDEX) -> Expr:
    """An expression; a Python number becomes a constant."""
    return x if isinstance(x, Expr) else Expr("constant", (), dtype, x)


_FOLDED: dict[str, Callable[[int, int], int]] = {
    **{"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b},
    **{"floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "minimum": min, "maximum": max},
}
_NEUTRAL = {("add", 0), ("subtract", 0), ("multiply", 1), ("floor_divide", 1)}
"""Functions, and their neutral second operands."""


def apply(op: str, *args: Any) -> Expr:
    """A function of operands of one dtype; Python numbers take that of the others. Functions of known integers are folded."""
    dtype = next((one.dtype for one in args if isinstance(one, Expr)), INDEX)
    operands = tuple([lift(one, dtype) for one in args])
    if any(one.dtype != dtype for one in operands):
        raise TypeError(f"{op} of {[one.dtype.name for one in operands]}: convert them to one dtype by `cast`.")
    if dtype == INDEX and op in _FOLDED:
        a, b = operands
        if a.number is not None and b.number is not None:
            return lift(_FOLDED[op](a.number, b.number))
        if (op, b.number) in _NEUTRAL:
            return a
        if (op, a.number) in (("add", 0), ("multiply", 1)):
            return b
        if (op == "multiply" and 0 in (a.number, b.number)) or (op, b.number) == ("remainder", 1):
            return lift(0)
    return Expr(op, operands, TRUTH if op in PREDICATES else dtype)


def minimum(a: Any, b: Any) -> Expr:
    """The smaller one."""
    return apply("minimum", a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The larger one; NaN if one is NaN."""
    return apply("maximum", a, b)


def where(condition: Expr, a: Any, b: Any) -> Expr:
    """a where the condition holds, else b."""
    if condition.number is not None:
        return lift(a if condition.number else b)
    known = a if isinstance(a, Expr) else b
    dtype = known.dtype if isinstance(known, Expr) else INDEX
    return Expr("where", (condition, lift(a, dtype), lift(b, dtype)), dtype)


def all_of(conditions: list[Expr]) -> Expr:
    """The conjunction of conditions, without those that are known to hold."""
    found = Expr("constant", (), TRUTH, True)
    for one in conditions:
        if one.number is True:
            continue
        found = one if found.number is True else found & one
    return found


def bound(x: Expr) -> int | None:
    """An upper bound of a size, which is at least 0; None if none is known."""
    if x.op == "constant":
        return int(x.value)
    known = [one for one in map(bound, x.args) if one is not None]
    if x.op == "minimum":
        return min(known, default=None)
    return math.prod(known) if x.op == "multiply" and len(known) == 2 else None


def cast(x: Expr, dtype: Any) -> Expr:
    """The scalar in another dtype, as `astype`."""
    return x if x.dtype == dtype else Expr("astype", (x,), dtype)


def size(name: str) -> Expr:
    """An integer that is given when the nest is carried out."""
    return Expr("size", (), INDEX, name)


def bits(x: Expr) -> Expr:
    """A float64 whose bits are those of an integer."""
    return Expr("view", (x,), np.float64)


def register(dtype: Any) -> Expr:
    """A variable, which `Fold` writes."""
    return Expr("register", (), dtype)


class Axis(Expr):
    """The index of a loop: 0, 1, ... below its extent.

    Args:
        extent: a number, or an expression of sizes and of the axes around it.
        kind: "parallel", where no point reads or writes elements that another one writes; "reduced", where points share only
            registers; "sequential" if their order counts.
    """

    __slots__ = ()

    def __init__(self, extent: Any, kind: str = "parallel") -> None:
        super().__init__("axis", (lift(extent),), INDEX, kind)

    @property
    def extent(self) -> Expr:
        """The number of its points."""
        return self.args[0]

    @property
    def kind(self) -> str:
        """The dependence between its points."""
        return str(self.value)


class Array:
    """Flat memory without gaps.

    Args:
        name: for the reader.
        dtype: of its elements.
        scratch: the number of elements that each part of the work has for itself; 0 for an array that is given.
    """

    __slots__ = ("dtype", "name", "scratch")

    def __init__(self, name: str, dtype: np.dtype[Any], scratch: int = 0) -> None:
        self.name, self.dtype, self.scratch = name, np.dtype(dtype), scratch

    def __getitem__(self, index: Any) -> Expr:
        return Expr("load", (lift(index),), self.dtype, self)

    def where(self, inside: Expr, index: Any, other: Any) -> Expr:
        """The element where the index is `inside`, else a number; an index outside may be anything."""
        return where(inside, self[where(inside, index, 0)], other) if inside.op != "constant" else self[index]


class ScratchView(Array):
    """The memory of a scratch array as elements of another dtype."""

    __slots__ = ("of",)

    def __init__(self, name: str, dtype: np.dtype[Any], of: Array) -> None:
        super().__init__(name, dtype, of.scratch * of.dtype.itemsize // np.dtype(dtype).itemsize)
        self.of = of


class IntTable(Array):
    """Whole numbers that a nest holds itself.

    Args:
        name: for the reader.
        numbers: its elements.
    """

    __slots__ = ("numbers",)

    def __init__(self, name: str, numbers: Sequence[int]) -> None:
        super().__init__(name, INDEX)
        self.numbers = np.array(numbers, INDEX)


# Bodies of loops ------------------------------------------------------------------------------------------------------

DTYPES = KINDS + "V"
"""Kinds of dtypes that there are nests for: those of all bodies, and bfloat16."""

NUMBER = np.dtype(np.float64)
"""The dtype of Python numbers."""
_UFUNCS = {operator: ufunc for ufunc, operator in NUMBERS.items()}


class NoNest(Exception):
    """Raised for an instruction without a nest, with the reason; another executor takes it."""


def constant(number: Any, dtype: np.dtype[Any]) -> Expr:
    """A number in a dtype, as `astype` converts it.

    >>> constant(-1, np.dtype("uint8")).value
    255
    """
    dtype = np.dtype(dtype)
    value = (
        int(np.asarray(number).astype(dtype)) if dtype.kind in "iu" else bool(number) if dtype.kind == "b" else float(number)
    )
    return Expr("constant", (), dtype, value)


def inlined(body: Body, values: Sequence[Expr] | Mapping[int, Expr]) -> list[Expr]:
    """The results of a body for these operands; a Python number that differs from run to run is a float64.

    Args:
        body: straight-line code.
        values: of its inputs, or by register, then also of literals that must not become constants.

    Raises:
        NoNest: if a function takes operands of several dtypes.
    """
    known: dict[int, Expr] = dict(values if isinstance(values, Mapping) else enumerate(values))
    literals = {register: x for register, x in body.literals if register not in known}
    kinds: dict[int, Any] = dict(enumerate(body.inputs)) | {register: type(x) for register, x in body.literals}

    def operand(register: int, dtype: np.dtype[Any]) -> Expr:
        return constant(literals[register], dtype) if register in literals else converted(known[register], dtype)

    for step in (*body.numbers, *body.steps):
        wanted = _wanted(step, [kinds[one] for one in step.operands])
        operands = tuple([operand(*pair) for pair in zip(step.operands, wanted, strict=True)])
        kinds[step.register], result = step.dtype, NUMBER if step.dtype is float else step.dtype
        found = Expr(_UFUNCS[step.function] if step.dtype is float else step.function, operands, result)
        known[step.register] = operands[0] if step.function == "astype" else found
    return [known[register] for register in body.outputs]


def _wanted(step: Step, kinds: Sequence[Any]) -> list[Any]:
    """The dtypes to which the operands of a step are converted."""
    if step.dtype is float:
        return [NUMBER] * len(kinds)
    if step.function == "astype":
        return [step.dtype]
    if step.function == "where":
        return [TRUTH, step.dtype, step.dtype]
    *wanted, result = getattr(np, step.function).resolve_dtypes((*kinds, None))
    if step.function.startswith("logical"):
        wanted = [TRUTH] * len(wanted)
    if result != step.dtype or any(one != wanted[0] for one in wanted):
        raise NoNest(f"{step.function} of several dtypes")
    return wanted


def converted(x: Expr, dtype: np.dtype[Any]) -> Expr:
    """An expression in a dtype; a constant takes it directly."""
    return constant(x.value, dtype) if x.op == "constant" and x.dtype != dtype else cast(x, dtype)
