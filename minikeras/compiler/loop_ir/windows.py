"""Windows over axes of an array, and convolutions as matrix products of patches: those of a tile of places lie in scratch.

As in `nn_ops/convolution.py`: x (batch, *sizes, channels), kernel (*window, channels / groups, outputs), g (batch, *places,
outputs). All but the batch is known when a nest is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import Record
from .expression import Array, Axis, Expr, all_of, apply, converted, lift, maximum, minimum, size, where
from .nest import For, Matrix, Nest, Product, Statement, Store, loops
from .strided import contiguous, place

Sizes = tuple[int, ...]

Value = Callable[[Expr, Expr, Expr], Expr]

ROWS = 256
"""Most rows of a tile."""
SCRATCH = 1 << 19
"""Bytes of the patches of a tile, which stay in the cache."""
LARGEST = 1 << 20
"""Bytes of scratch above which there is no nest."""
PARTIAL = 1 << 20
"""Bytes of partial sums of a gradient by the kernel; there are at least 4, for as many threads, and at most 16."""

BATCH = size("batch")


class Windows(NamedTuple):
    """Windows over all axes but the batch's and the channels'.

    Attributes:
        sizes: of the axes.
        window: the size of a window along each axis.
        strides: from a window to the next.
        padding: before and after each axis.
        dilation: from an element of a window to the next.
        places: windows along each axis.
        channels: of the array.
        groups: parts of the channels that have windows of their own.
    """

    sizes: Sizes
    window: Sizes
    strides: Sizes
    padding: tuple[Sizes, ...]
    dilation: Sizes
    places: Sizes
    channels: int
    groups: int = 1

    @property
    def taps(self) -> int:
        """The number of elements of a window."""
        return math.prod(self.window)

    @property
    def lines(self) -> int:
        """The number of lines of places in an image."""
        return math.prod(self.places[:-1])

    @property
    def wide(self) -> int:
        """The number of places in a line."""
        return self.places[-1]

    @property
    def is_padded(self) -> bool:
        """True if an element of a window may lie outside."""
        return any(map(any, self.padding))

    @property
    def last_tap(self) -> Axis:
        """The elements of a window in the last axis."""
        return Axis(self.window[-1], "sequential")

    @property
    def is_depthwise(self) -> bool:
        """True if each channel is a group."""
        return self.groups == self.channels > 1

    @property
    def is_disjoint(self) -> bool:
        """True if each element lies under one window at most."""
        taken = [(width - 1) * spread + 1 for width, spread in zip(self.window, self.dilation, strict=True)]
        return all(step >= size for step, size in zip(self.strides, taken, strict=True))

    @property
    def is_covered(self) -> bool:
        """True if each element lies under exactly one window."""
        covered = tuple([n * width for n, width in zip(self.places, self.window, strict=True)]) == self.sizes
        return covered and self.window == self.strides and not self.is_padded

    def under(self, axis: int, place: Any, tap: Any) -> Expr:
        """The coordinate under an element of a window."""
        return lift(place * self.strides[axis] + tap * self.dilation[axis] - self.padding[axis][0])

    def inside(self, axis: int, at: Expr) -> Expr:
        """The condition that a coordinate lies within the array."""
        if not any(self.padding[axis]):
            return all_of([])
        return all_of([at >= 0, at < self.sizes[axis]])

    def element(self, x: Array, names: Sequence[Expr], taps: Sequence[Any], missing: Any = 0) -> Expr:
        """The element of an array under one of the window, by image, place and channel; a number where there is none."""
        at = [self.under(axis, *pair) for axis, pair in enumerate(zip(names[1:-1], taps, strict=True))]
        exists = all_of([self.inside(axis, one) for axis, one in enumerate(at)])
        return x.where(exists, place(contiguous((1, *self.sizes, self.channels)), [names[0], *at, names[-1]]), missing)

    def number(self, taps: Sequence[Any], dtype: Any) -> Expr:
        """The number of an element of the window."""
        return converted(place(contiguous(self.window), taps), dtype)

    def reached(self, g: Array, names: Sequence[Expr], taps: Sequence[Any], behind: Sequence[int]) -> Expr:
        """The element at the place from which one of the window reaches coordinates; 0 where there is none.

        The names are an image, coordinates, and those along axes behind that of the places, of these lengths.
        """
        rank = 1 + len(self.window)
        exists, at = self.reaching(names[1:rank], taps)
        return g.where(exists, place(contiguous((1, *self.places, *behind)), [names[0], *at, *names[rank:]]), 0)

    def reaching(self, names: Sequence[Expr], taps: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
        """The place from which an element of the window reaches coordinates: whether it exists, and its own coordinates."""
        found, tests = [], []
        for axis, (at, tap, count) in enumerate(zip(names, taps, self.places, strict=True)):
            step, distance = self.strides[axis], at + self.padding[axis][0] - tap * self.dilation[axis]
            kept = where(distance >= 0, distance, 0)
            found.append(kept // step)
            tests += [distance >= 0, found[-1] < count]
            tests += [apply("equal", kept % step, 0)] if step > 1 else []
        return all_of(tests), found

    def reach(self, tap: Any, first: Any, columns: Any) -> tuple[Expr, Expr]:
        """The places of a line, from `first` on, in which an element of the window lies inside: start and number."""
        step, (before, _), spread = self.strides[-1], self.padding[-1], self.dilation[-1]
        if not any(self.padding[-1]):
            return lift(0), lift(columns)
        low = maximum(before - tap * spread + (step - 1), 0) // step
        high = maximum(self.sizes[-1] + before - tap * spread + (step - 1), 0) // step
        start = maximum(low - first, 0)
        return start, maximum(minimum(high - first, columns) - start, 0)


def windows_of(record: Record, window: Sequence[int], image: Sequence[int], places: Sequence[int]) -> Windows:
    """The windows of an instruction over an array of one shape, whose places are the axes of an array of another one."""
    params, axes = record.params, slice(-len(window) - 1, -1)
    strides, padding, dilation = [tuple(params[name]) for name in ("strides", "padding", "dilation")]
    sizes, count = tuple(image[axes]), tuple(places[axes])
    return Windows(sizes, tuple(window), strides, padding, dilation, count, image[-1], params.get("groups", 1))


class Line(NamedTuple):
    """A line of places of an image, and an element of windows in the axes before the last.

    Attributes:
        start: index of the first element of the array's line under it.
        inside: whether there is such a line.
        tap: the number of the element, times the width of the window.
    """

    start: Expr
    inside: Expr
    tap: Expr


def line_under(w: Windows, line: Any, taps: Sequence[Axis]) -> Line:
    """The line of the array under these elements of the windows at a line of places, which is counted over all images."""
    at, found = lift(line), list[Expr]()
    for count in reversed(w.places[:-1]):
        at, found = at // count, [at % count, *found]  # the rest is the image
    number, inside = lift(0), []
    for axis, (own, tap) in enumerate(zip(found, taps, strict=True)):
        under = w.under(axis, own, tap)
        inside.append(w.inside(axis, under))
        at, number = at * w.sizes[axis] + under, number * w.window[axis] + tap
    return Line(at * (w.sizes[-1] * w.channels), all_of(inside), number * w.window[-1])


def outer_taps(w: Windows) -> list[Axis]:
    """The elements of a window in all axes but the last."""
    return [Axis(width, "sequential") for width in w.window[:-1]]


def lanes(extent: int) -> Axis:
    """An axis for vectors, if it is long enough."""
    return Axis(extent, "parallel" if extent >= 8 else "sequential")


# Tiles of places -------------------------------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """Places whose patches are made together: some lines, or a part of one.

    Attributes:
        most_lines, most_columns: the most lines of a tile, and the most places in each.
        blocks: the number of tiles side by side in a line.
    """

    most_lines: int
    most_columns: int
    blocks: int

    @property
    def rows(self) -> int:
        """The most places of a tile."""
        return self.most_lines * self.most_columns

    def number(self, lines: Any) -> Expr:
        """The number of tiles for so many lines."""
        return (lift(lines) + (self.most_lines - 1)) // self.most_lines * self.blocks

    def at(self, number: Any, lines: Any, wide: int) -> tuple[Expr, Expr, Expr, Expr]:
        """The first line and place of a tile, and their numbers in it."""
        line = lift(number) // self.blocks * self.most_lines
        column = lift(number) % self.blocks * self.most_columns if self.blocks > 1 else lift(0)
        columns = minimum(wide - column, self.most_columns) if self.blocks > 1 else lift(wide)
        return line, column, minimum(lines - line, self.most_lines) if self.most_lines > 1 else lift(1), columns


def tile_of(w: Windows, itemsize: int) -> Tile | None:
    """Tiles that stay in the cache; None if a few patches are too long for that."""
    inner = w.taps * w.channels
    rows = max(min(ROWS, SCRATCH // (inner * itemsize)), 8)
    blocks = -(-w.wide // rows)
    wide = -(-w.wide // blocks)
    beside = ((wide - 1) * w.strides[-1] + (w.window[-1] - 1) * w.dilation[-1] + 1) * w.channels
    if (rows * inner + beside) * itemsize > LARGEST:
        return None
    return Tile(max(1, rows // wide) if blocks == 1 else 1, wide, blocks)


class Patches:
    """The windows of a tile as rows of a matrix in scratch: (places, groups, *window, channels / groups).

    Args:
        w: the windows.
        x: the array.
        tile: the places of a tile.
    """

    def __init__(self, w: Windows, x: Array, tile: Tile) -> None:
        self.w, self.x, self.inner = w, x, w.taps * w.channels
        self.rows = Array("patches", x.dtype, tile.rows * self.inner)
        self._beside = (tile.most_columns - 1) * w.strides[-1] + (w.window[-1] - 1) * w.dilation[-1] + 1
        self._padded = Array("padded", x.dtype, self._beside * w.channels)
        self.scratch = [self.rows, self._padded] if w.is_padded else [self.rows]

    def matrix(self, group: Any, turned: bool = False) -> Matrix:
        """The windows of a group."""
        return Matrix(self.rows, group * (self.inner // self.w.groups), self.inner, turned)

    def statements(self, place: tuple[Expr, Expr, Expr, Expr]) -> list[Statement]:
        """Fill the rows with the windows at the places of a tile."""
        w, (first, column, count, columns) = self.w, place
        line, taps, beside = Axis(count, "sequential"), outer_taps(w), Axis(columns, "sequential")
        under = line_under(w, first + line, taps)
        source, start, before = self.x, under.start + column * (w.strides[-1] * w.channels), list[Statement]()
        if w.is_padded:
            before = self._padded_line(under, column * w.strides[-1] - w.padding[-1][0])
            source, start = self._padded, lift(0)
        row = (line * columns + beside) * self.inner
        return loops([line, *taps], [*before, *loops([beside], self._row(row, under.tap, source, start, beside))])

    def _row(self, row: Expr, tap: Expr, source: Array, start: Expr, place: Axis) -> list[Statement]:
        """Copy the elements under a line of the window into a part of a row."""
        w, own = self.w, self.w.channels // self.w.groups
        start = start + place * (w.strides[-1] * w.channels)
        if w.groups == 1 and (w.dilation[-1] == 1 or w.window[-1] == 1):
            c = lanes(w.window[-1] * own)
            return loops([c], [Store(self.rows, row + tap * own + c, source[start + c])])
        t, group, c = Axis(w.window[-1], "sequential"), Axis(w.groups, "sequential"), lanes(own)
        to = row + group * (w.taps * own) + (tap + t) * own + c
        return loops([t, group, c], [Store(self.rows, to, source[start + t * (w.dilation[-1] * w.channels) + group * own + c])])

    def _padded_line(self, under: Line, first: Expr) -> list[Statement]:
        """Copy a line of the array from a column on, zeros where there is none."""
        w, many = self.w, lift(self._beside)
        start = where(under.inside, minimum(maximum(0 - first, 0), many), many)
        stop = where(under.inside, maximum(minimum(w.sizes[-1] - first, many), start), many)
        before, within, after = [Axis(n * w.channels) for n in (start, stop - start, many - stop)]
        copied = self.x[under.start + (first + start) * w.channels + within]
        return [
            For(before, [Store(self._padded, before, 0)]),
            For(within, [Store(self._padded, start * w.channels + within, copied)]),
            For(after, [Store(self._padded, stop * w.channels + after, 0)]),
        ]


# Convolutions ----------------------------------------------------------------------------------------------------------------


def convolution(w: Windows, outputs: int, tile: Tile, dtype: np.dtype[Any]) -> Nest:
    """y (batch, *places, outputs) = patches of x times the kernel."""
    x, kernel, y = [Array(name, dtype) for name in ("x", "kernel", "y")]
    patches, lines, t, group = Patches(w, x, tile), BATCH * w.lines, Axis(tile.number(BATCH * w.lines)), _groups(w)
    place = line, column, count, columns = tile.at(t, lines, w.wide)
    sizes, own = (count * columns, outputs // w.groups, patches.inner // w.groups), outputs // w.groups
    result = Matrix(y, (line * w.wide + column) * outputs + group * own, outputs)
    product = Product(sizes, patches.matrix(group), Matrix(kernel, group * own, outputs), result)
    body = [*patches.statements(place), *loops([group], [product])]
    return Nest("convolve", [x, kernel, y], [BATCH], For(t, body), patches.scratch)


def by_kernel(w: Windows, outputs: int, tile: Tile, dtype: np.dtype[Any], parts: int) -> Nest:
    """Partial sums (parts, *window, channels / groups, outputs) of the transpose of patches of x times g."""
    x, g, sums = [Array(name, dtype) for name in ("x", "g", "sums")]
    patches, lines, part, group = Patches(w, x, tile), BATCH * w.lines, Axis(parts), _groups(w)
    tiles, own, inner = tile.number(lines), outputs // w.groups, patches.inner // w.groups
    first = part * tiles // parts
    t, zero = Axis((part + 1) * tiles // parts - first, "sequential"), Axis(inner * outputs)
    place = line, column, count, columns = tile.at(first + t, lines, w.wide)
    factor = Matrix(g, (line * w.wide + column) * outputs + group * own, outputs)
    result = Matrix(sums, part * (inner * outputs) + group * own, outputs)
    product = Product((inner, own, count * columns), patches.matrix(group, turned=True), factor, result, adds=True)
    clear = For(zero, [Store(sums, part * (inner * outputs) + zero, 0)])
    body = [clear, For(t, [*patches.statements(place), *loops([group], [product])])]
    return Nest("correlate", [x, g, sums], [BATCH], For(part, body), patches.scratch)


def total(parts: int, length: int, dtype: np.dtype[Any]) -> Nest:
    """y (length) = the sum of so many arrays."""
    x, y, at = Array("x", dtype), Array("y", dtype), Axis(length)
    value = sum([x[at + part * length] for part in range(1, parts)], start=x[at])
    return Nest("total", [x, y], [], For(at, [Store(y, at, value)]))


def by_input(w: Windows, outputs: int, tile: Tile, dtype: np.dtype[Any]) -> Nest:
    """x (batch, *sizes, channels): each place adds its row of g, times the kernel, to the elements under its window."""
    g, kernel, x = [Array(name, dtype) for name in ("g", "kernel", "x")]
    image, group, inner, own = Axis(BATCH), _groups(w), w.taps * w.channels, outputs // w.groups
    w_own = w.channels // w.groups
    rows = Array("rows", dtype, tile.rows * inner)
    length = math.prod(w.sizes) * w.channels
    zero, t = Axis(length), Axis(tile.number(w.lines), "sequential")
    line, column, count, columns = tile.at(t, w.lines, w.wide)
    factor = Matrix(g, ((image * w.lines + line) * w.wide + column) * outputs + group * own, outputs)
    result = Matrix(rows, group * (inner // w.groups), inner)
    sizes = (count * columns, inner // w.groups, own)
    product = Product(sizes, factor, Matrix(kernel, group * own, outputs, turned=True), result)
    offset = (image * w.lines + line) * w.wide + column  # of the first place of the tile

    def value(place: Expr, tap: Expr, channel: Expr) -> Expr:
        inside = channel % w_own + channel // w_own * (w.taps * w_own) if w.groups > 1 else channel
        return rows[(place - offset) * inner + tap * w_own + inside]

    several = Axis(count, "sequential")
    added = loops([several], spread(w, x, image * w.lines + line + several, column, columns, value))
    body = [*loops([group], [product]), *added]
    clear = For(zero, [Store(x, image * length + zero, 0)])
    return Nest("spread", [g, kernel, x], [BATCH], For(image, [clear, For(t, body)]), [rows])


def spread(w: Windows, x: Array, line: Expr, first: Expr, columns: Expr, value: Value) -> list[Statement]:
    """Add `value(place, tap, channel)`, places counted over all, to the elements under the windows of a line from a place on.

    Where windows are disjoint the value is stored.
    """
    taps, last, c = outer_taps(w), w.last_tap, lanes(w.channels)
    under = line_under(w, line, taps)
    start, number = w.reach(last, first, columns)
    place = Axis(where(under.inside, number, 0), "sequential")
    column = first + start + place
    at = under.start + w.under(len(w.sizes) - 1, column, last) * w.channels + c
    add = Store(x, at, value(line * w.wide + column, under.tap + last, c), adds=not w.is_disjoint)
    return loops([*taps, last, place, c], [add])


def _groups(w: Windows) -> Axis:
    return Axis(w.groups, "sequential")
