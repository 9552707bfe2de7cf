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
        """The distance, in elements, from one point of neighbouring axes to the next; 0 along an axis that it does not have."""
        behind = self.letters.partition(letters[-1])[2] if letters else ""
        return math.prod([sizes[one] for one in behind]) if letters[-1:] in self.letters else 0

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

    def launch(self, factors: Sequence[Slot], y: Slot, by_rows: bool = True) -> Launch:
        """The products of two slots; threads share the points of `each`, or rows or columns of y."""
        terms = self.a, self.b, self.c
        lines = [term.lines(self.sizes) or (0, False) for term in terms]
        nest = product(y.dtype, lines[0][1], lines[1][1], by_rows, len(self.each))
        numbers = [*[self.sizes[letter] for letter in self.each], *self.product, *[line for line, _ in lines]]
        numbers += [term.stride(letter, self.sizes) for term in terms for letter in self.each]
        seconds = self.extent(self.each) * math.prod(self.product) * y.dtype.itemsize / 2e11
        return Launch(nest, factors, [y], numbers, seconds, most=self.product)


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
    both = "".join(one for one in result if one in terms[0] and one in terms[1])
    for swapped, each in ((False, both), (True, both), (False, result[:1] + both.replace(result[:1], ""))):
        first, second = terms[::-1] if swapped else terms
        m, k = ["".join(one for one in first if one not in each and (one in second) is shared) for shared in (False, True)]
        n = "".join(one for one in second if one not in first + each)
        found = Contraction(each, Term(first, m, k), Term(second, k, n), Term(result, m, n), sizes)
        a, b, c = [term.lines(sizes) for term in (found.a, found.b, found.c)]
        if set(m + n) <= set(result) and a and b and c and not c[1]:
            return found, swapped
    return None


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
