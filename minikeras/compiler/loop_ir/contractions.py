"""Contractions of two arrays, as in `einsum`: one matrix product for each point of the axes shared by both and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from .expression import Array, Axis, Expr, lift, size
from .nest import For, Matrix, Nest, Product

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
        if set(m + n) <= set(result) and _lies_well(found):
            return found, swapped
    return None


def _lies_well(x: Contraction) -> bool:
    lines = [term.lines(x.sizes) for term in (x.a, x.b, x.c)]
    return None not in lines and not (lines[2] or (0, True))[1]


def contraction(x: Contraction, dtype: np.dtype[Any]) -> Nest:
    """All products; the length of the first axis is a size of the nest."""
    count, arrays = size("count"), [Array(name, dtype) for name in "abc"]
    t = Axis(count * x.extent(x.each[1:]))
    places, rest = dict[str, Expr](), lift(t)
    for letter in reversed(x.each[1:]):
        places[letter], rest = rest % x.sizes[letter], rest // x.sizes[letter]
    places[x.each[0]] = rest
    matrices = []
    for array, term in zip(arrays, (x.a, x.b, x.c), strict=True):
        start = lift(0)
        for letter, at in places.items():
            start = start + at * term.stride(letter, x.sizes)
        line, turned = term.lines(x.sizes) or (0, False)
        matrices.append(Matrix(array, start, line, turned))
    a, b, c = matrices
    return Nest("contract", arrays, [count], For(t, [Product(x.product, a, b, c)]))
