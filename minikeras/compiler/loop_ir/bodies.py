"""Traced bodies (compiler/loops.py) as expressions, with NumPy's rules for the dtypes of operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..loops import KINDS, NUMBERS, Body, Step
from .expression import TRUTH, Expr, cast

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
    found = _Inlined(body, values if isinstance(values, Mapping) else dict(enumerate(values)))
    return [found.operand(register, found.dtypes[register]) for register in body.outputs]


class _Inlined:
    """A body's registers as expressions."""

    def __init__(self, body: Body, values: Mapping[int, Expr]) -> None:
        self._literals: dict[int, Any] = {register: x for register, x in body.literals if register not in values}
        self._known: dict[int, Expr] = dict(values)
        self._kinds: dict[int, Any] = dict(enumerate(body.inputs)) | {register: type(x) for register, x in body.literals}
        for step in (*body.numbers, *body.steps):
            self._known[step.register] = self._number(step) if step.dtype is float else self._result(step)
            self._kinds[step.register] = step.dtype

    @property
    def dtypes(self) -> dict[int, Any]:
        """The dtypes of registers that are not literals."""
        return {register: x.dtype for register, x in self._known.items()}

    def operand(self, register: int, dtype: np.dtype[Any]) -> Expr:
        """A register in a dtype; a literal takes it directly."""
        if register in self._literals:
            return constant(self._literals[register], dtype)
        return converted(self._known[register], dtype)

    def _number(self, step: Step) -> Expr:
        return Expr(_UFUNCS[step.function], tuple([self.operand(one, NUMBER) for one in step.operands]), NUMBER)

    def _result(self, step: Step) -> Expr:
        if step.function == "astype":
            return self.operand(step.operands[0], step.dtype)
        if step.function == "where":
            condition, *chosen = step.operands
            return Expr("where", (self.operand(condition, TRUTH), *[self.operand(x, step.dtype) for x in chosen]), step.dtype)
        *wanted, result = getattr(np, step.function).resolve_dtypes((*[self._kinds[one] for one in step.operands], None))
        if step.function.startswith("logical"):
            wanted = [TRUTH] * len(wanted)
        if result != step.dtype or any(one != wanted[0] for one in wanted):
            raise NoNest(f"{step.function} of several dtypes")
        operands = [self.operand(one, dtype) for one, dtype in zip(step.operands, wanted, strict=True)]
        return Expr(step.function, tuple(operands), result)


def converted(x: Expr, dtype: np.dtype[Any]) -> Expr:
    """An expression in a dtype; a constant takes it directly."""
    return constant(x.value, dtype) if x.op == "constant" and x.dtype != dtype else cast(x, dtype)
