"""Contractions of two arrays, as in `einsum`: one matrix product for each point of the axes shared by both and the result."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from ..ir import Slot
from .expression import Array, Axis, lift, size
from .nest import LINE, For, Matrix, Nest, Part, Product
from .strided import Launch, coordinates, place

Sizes = dict[str, int]
"""The length of each axis, by its letter."""


class Term(NamedTuple):
    """An array of a contraction as matrices.

    Attributes:
        letters: of its axes, in the order in which they lie in memory.
        rows, columns: those of a matrix.
    """

    letters: str
    rows: str
    columns: str

    def stride(self, letters: str, sizes: Sizes) -> int:
        """The distance, in elements, from one point of neighbouring axes to the next."""
        return math.prod([sizes[one] for one in self.letters[self.letters.index(letters[-1]) + 1 :]]) if letters else 1

    def lines(self, sizes: Sizes) -> tuple[int, bool] | None:
        """The distance of lines, and whether lines are columns; None if its elements do not lie in lines."""
        if any(letters not in self.letters for letters in (self.rows, self.columns)):
            return None
        height, width = [math.prod(map(sizes.__getitem__, letters)) for letters in (self.rows, self.columns)]
        below, beside = [self.stride(letters, sizes) for letters in (self.rows, self.columns)]
        if beside == 1 or width == 1:
            return max(below, width), False
        return (max(beside, height), True) if below == 1 or height == 1 else None


class Contraction(NamedTuple):
    """c = a b for each point of `each`."""

    each: str
    a: Term
    b: Term
    c: Term
    sizes: Sizes

    def extent(self, letters: str) -> int:
        """The number of points of axes."""
        return math.prod([self.sizes[one] for one in letters])

    @property
    def product(self) -> tuple[int, int, int]:
        """m, n and k."""
        return self.extent(self.a.rows), self.extent(self.b.columns), self.extent(self.a.columns)


def contraction_of(terms: Sequence[str], result: str, shapes: Sequence[Sequence[int]]) -> tuple[Contraction, bool] | None:
    """The products, and whether the second array is the first factor; None if some axis is no part of a product.

    Leading axes beyond the letters of a term are a batch: they come first in the result.
    """
    if len(terms) != 2 or any(len(set(one)) < len(one) for one in (*terms, result)):
        return None
    more = [len(shape) - len(term) for term, shape in zip(terms, shapes, strict=True)]
    spare = "".join([one for one in ascii_letters if one not in "".join((*terms, result))])[: max(more)]
    terms, result = [spare[max(more) - n :] + term for n, term in zip(more, terms, strict=True)], spare + result
    pairs = [pair for term, shape in zip(terms, shapes, strict=True) for pair in zip(term, shape, strict=True)]
    sizes = dict(pairs)
    if any(sizes[letter] != n for letter, n in pairs):  # an axis of size 1 is broadcast
        return None
    for swapped in (False, True):
        first, second = terms[::-1] if swapped else terms
        each = "".join(one for one in result if one in first and one in second)
        m, k = ["".join(one for one in first if one not in each and (one in second) is shared) for shared in (False, True)]
        n = "".join(one for one in second if one not in first)
        found = Contraction(each, Term(first, m, k), Term(second, k, n), Term(result, m, n), sizes)
        a, b, c = [term.lines(sizes) for term in (found.a, found.b, found.c)]
        if set(m + n) <= set(result) and a and b and c and not c[1]:
            return found, swapped
    return None


class Lines(NamedTuple):
    """A matrix of a product, or one for each point of some axes.

    Attributes:
        slot: of its elements.
        line: elements from a row to the next.
        is_turned: whether it is stored transposed.
        steps: elements from a matrix to the next along each of these axes.
    """

    slot: Slot
    line: int
    is_turned: bool = False
    steps: Sequence[int] = ()


def product_launch(
    sizes: tuple[int, int, int], factors: Sequence[Lines], y: Lines, each: Sequence[int], seconds: float, by_rows: bool = True
) -> Launch:
    """y (m, n) = a b for each point of axes of these lengths; threads share these points, or rows or columns of y."""
    matrices = (*factors, y)
    nest = product(y.slot.dtype, *[one.is_turned for one in factors], by_rows, len(each))
    numbers = [*each, *sizes, *[one.line for one in matrices], *[step for one in matrices for step in one.steps]]
    return Launch(nest, [one.slot for one in factors], [y.slot], numbers, seconds, most=sizes)


@functools.cache
def product(dtype: np.dtype[Any], a_is_turned: bool, b_is_turned: bool, by_rows: bool, axes: int = 0) -> Nest:
    """The nest. Its sizes are the lengths of axes, m, n, k, the distances of lines, and the steps of each array along axes."""
    lengths, arrays = [size(f"length{axis}") for axis in range(axes)], [Array(name, dtype) for name in "abc"]
    m, n, k, start, stop = [size(name) for name in ("m", "n", "k", "start", "stop")]
    lines = [size(f"line_{one.name}") for one in arrays]
    steps = [[size(f"step{axis}_{one.name}") for axis in range(axes)] for one in arrays]
    t = Axis(math.prod(lengths, start=lift(1)))
    row, height = (start, stop - start) if by_rows and not axes else (lift(0), m)
    column, width = (lift(0), n) if by_rows or axes else (start, stop - start)
    firsts = row * (1 if a_is_turned else lines[0]), column * (lines[1] if b_is_turned else 1), row * lines[2] + column
    starts = [place(own, coordinates(t, lengths)) + first for own, first in zip(steps, firsts, strict=True)]
    turned = a_is_turned, b_is_turned, False
    a, b, c = [Matrix(*one) for one in zip(arrays, starts, lines, turned, strict=True)]
    one = Product((height, width, k), a, b, c)
    grid = For(t, [one]) if axes else Part(m if by_rows else n, start, stop, [one], LINE)
    return Nest("product", arrays, [*lengths, m, n, k, *lines, *[x for own in steps for x in own]], grid)
