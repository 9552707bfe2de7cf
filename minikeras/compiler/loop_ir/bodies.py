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
