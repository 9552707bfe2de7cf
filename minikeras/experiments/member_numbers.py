"""Numbers of a formula that differ from member to member: in its loop over elements they become arrays.

Among themselves they are float64, as Python's floats are for one member, and only what meets an element takes the element's
dtype: so each member has the bits that it has alone.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.loops import Body, Code, Step
from ..layout import Layout
from ..types import Array

Coefficient = tuple[int, Any]
"""The register of a number, and the dtype in which it meets elements."""


class MemberBody(NamedTuple):
    """A loop's body for the elements of all members.

    Attributes:
        single: the body for the elements of one, with Python numbers.
        arrays: how many of its inputs are elements; the rest are numbers.
        coefficients: what elements meet of its numbers.
        body: the same steps, with an input for each coefficient after the elements.
    """

    single: Body
    arrays: int
    coefficients: tuple[Coefficient, ...]
    body: Body

    def values(self, numbers: Sequence[Array]) -> list[Array]:
        """The coefficients for the numbers that the body takes, given as float64 arrays with an element for each member."""
        registers = dict(enumerate(numbers, self.arrays)) | dict(self.single.literals)
        for step in self.single.numbers:
            registers[step.register] = getattr(operator, step.function)(*[registers[one] for one in step.operands])
        return [np.asarray(registers[register], dtype) for register, dtype in self.coefficients]


def with_member_numbers(single: Body) -> MemberBody | None:
    """The body in which each number may be another one for each member; None where the bits would be others: NumPy's power of
    one exponent is not that of many.
    """
    arrays = sum(dtype is not float for dtype in single.inputs)
    numbers = {*range(arrays, len(single.inputs)), *(step.register for step in single.numbers)}
    meets = [_dtypes_of_operands(single, step) for step in single.steps]
    found = {
        (register, dtype): None
        for step, dtypes in zip(single.steps, meets, strict=True)
        for register, dtype in zip(step.operands, dtypes, strict=True)
        if register in numbers
    }
    if any(step.function == "power" and not numbers.isdisjoint(step.operands) for step in single.steps):
        return None
    coefficients = tuple(found)
    code = Code([*single.inputs[:arrays], *(dtype for _, dtype in coefficients)])
    elements = code.elements()
    values: dict[int, Any] = dict(enumerate(elements[:arrays])) | dict(single.literals)
    known = dict(zip(coefficients, elements[arrays:], strict=True))
    for step, dtypes in zip(single.steps, meets, strict=True):
        operands = [known[pair] if pair in known else values[pair[0]] for pair in zip(step.operands, dtypes, strict=True)]
        values[step.register] = code.step(step.function, operands, step.dtype)
    return MemberBody(single, arrays, coefficients, code.body([values[register] for register in single.outputs]))


def with_average(body: Body, arrays: int) -> Body:
    """A formula's body that also moves an average of the weight: a <- m a + (1 - m) w, with the new weight w.

    Args:
        body: with `arrays` elements and then numbers as inputs. The new one has a behind the elements and m at the end.
    """
    code = Code([*body.inputs[:arrays], body.inputs[1], *body.inputs[arrays:], float])
    elements: list[Any] = list(code.elements())
    average, momentum = elements[arrays], elements[-1]
    results: list[Any] = list(code.inlined(body, [*elements[:arrays], *elements[arrays + 1 : -1]]))
    return code.body([*results, average * momentum + results[0] * (1.0 - momentum)])


def _dtypes_of_operands(body: Body, step: Step) -> list[Any]:
    """The dtypes that NumPy gives the operands of a step, so that numbers are rounded as it rounds them."""
    if step.function in ("where", "astype"):
        return [step.dtype] * len(step.operands)
    known, literals = body.dtypes, dict(body.literals)
    kinds = [known.get(one, type(literals.get(one, 0.0))) for one in step.operands]
    return list(getattr(np, step.function).resolve_dtypes((*kinds, None)))[: len(kinds)]


def laid_out(values: Array, layout: Layout) -> Array:
    """One number for each member at every element of flattened whole Variables."""
    flat = np.empty(layout.size, values.dtype)
    for part, shape in zip(layout.slices, layout.shapes, strict=True):
        flat[part].reshape(shape[0], -1 if 0 not in shape else 0)[...] = values[:, None]
    return flat
