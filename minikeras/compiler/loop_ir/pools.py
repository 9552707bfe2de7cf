"""Folds of the elements under windows, and their gradients: pools, and convolutions with a group for each channel.

All sizes but the batch are known beforehand. Convolutions, whose sums are too small for products of matrices, are of x (batch,
*sizes, channels), kernel (*window, 1, channels * times) and g (batch, *places, channels * times).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .expression import Array, Axis, Expr, all_of, apply, cast, lift, maximum, where
from .nest import For, Nest, Store, loops
from .windows import BATCH, Windows, lanes, line_under, outer_taps, spread

MOST_TAPS = 32
"""Elements of the largest window whose fold is one expression."""
CHOICES = np.dtype(np.int32)


def fold(w: Windows, op: str, dtype: np.dtype[Any]) -> Nest:
    """y (batch, *places, channels): op is "maximum", "add", or "first", the number of the first largest element.

    With "pick", an array `chosen` holds the number of the element of each window that is taken.
    """
    x, chosen = Array("x", dtype), Array("chosen", CHOICES)
    y = Array("y", CHOICES if op == "first" else dtype)
    line, place, c = Axis(BATCH * w.lines), Axis(w.wide), Axis(w.channels)
    at = (line * w.wide + place) * w.channels + c
    parts = under_window(w, x, line, place, c, -math.inf if op in ("maximum", "first") else 0.0)
    if op == "pick":
        parts = [where(apply("equal", chosen[at], number), part, 0.0) for number, part in enumerate(parts)]
    value = _first_largest(parts) if op == "first" else functools.reduce(maximum if op == "maximum" else operator.add, parts)
    inner = [place, c] if w.channels >= 8 else [c, place]
    inner[0].value = "sequential"
    arrays = [x, chosen, y] if op == "pick" else [x, y]
    return Nest(f"{op}_in_windows", arrays, [BATCH], For(line, loops(inner, [Store(y, at, value)])))


def under_window(w: Windows, x: Array, line: Axis, place: Axis, channel: Expr, other: float) -> list[Expr]:
    """The array's element under each element of a window, and a number where there is none."""
    found = []
    for taps in np.ndindex(*w.window):
        under = line_under(w, line, taps[:-1])
        at = w.under(len(w.sizes) - 1, place, taps[-1])
        inside = all_of([under.inside, w.inside(len(w.sizes) - 1, at)])
        found.append(x.where(inside, under.start + at * w.channels + channel, other))
    return found


def _first_largest(parts: Sequence[Expr]) -> Expr:
    largest, chosen = parts[0], lift(0, CHOICES)
    for number, part in enumerate(parts[1:], 1):
        larger = largest < part
        chosen, largest = where(larger, lift(number, CHOICES), chosen), where(larger, part, largest)
    return chosen


def put(w: Windows, dtype: np.dtype[Any], chooses: bool) -> Nest:
    """x (batch, *sizes, channels): the sum of g over all elements of its window, or at the `chosen` one."""
    g, chosen, x = Array("g", dtype), Array("chosen", CHOICES), Array("x", dtype)
    image, length = Axis(BATCH), math.prod(w.sizes) * w.channels
    zero = Axis(length)

    def value(place: Expr, tap: Expr, channel: Expr) -> Expr:
        at = place * w.channels + channel
        return where(apply("equal", chosen[at], cast(tap, CHOICES)), g[at], 0.0) if chooses else g[at]

    clear = [] if w.is_covered else [For(zero, [Store(x, image * length + zero, 0)])]
    lines = Axis(w.lines, "sequential")
    body = [*clear, *loops([lines], spread(w, x, image * w.lines + lines, lift(0), lift(w.wide), value))]
    return Nest("put_into_windows", [g, chosen, x] if chooses else [g, x], [BATCH], For(image, body))


# A group for each channel ----------------------------------------------------------------------------------------------------


def convolution_of_channels(w: Windows, times: int, dtype: np.dtype[Any]) -> Nest:
    """y: for each output the sum over a window of its channel."""
    x, kernel, y = [Array(name, dtype) for name in ("x", "kernel", "y")]
    line, place, o = Axis(BATCH * w.lines), Axis(w.wide, "sequential"), lanes(w.channels * times)
    taps = enumerate(under_window(w, x, line, place, o // times, 0.0))
    parts = [part * kernel[o + tap * w.channels * times] for tap, part in taps]
    at = (line * w.wide + place) * (w.channels * times) + o
    store = Store(y, at, sum(parts[1:], start=parts[0]))
    return Nest("convolve_channels", [x, kernel, y], [BATCH], For(line, loops([place, o], [store])))


def channels_by_input(w: Windows, times: int, dtype: np.dtype[Any]) -> Nest:
    """x: each place adds its value for a channel, times the kernel, to the elements under its window."""
    g, kernel, x = [Array(name, dtype) for name in ("g", "kernel", "x")]
    image, line, length = Axis(BATCH), Axis(w.lines, "sequential"), math.prod(w.sizes) * w.channels
    zero = Axis(length)

    def value(place: Expr, tap: Expr, channel: Expr) -> Expr:
        outputs = [channel * times + t for t in range(times)]
        parts = [g[(place * w.channels) * times + o] * kernel[(tap * w.channels) * times + o] for o in outputs]
        return sum(parts[1:], start=parts[0])

    clear = For(zero, [Store(x, image * length + zero, 0)])
    added = loops([line], spread(w, x, image * w.lines + line, lift(0), lift(w.wide), value))
    return Nest("spread_channels", [g, kernel, x], [BATCH], For(image, [clear, *added]))


def channels_by_kernel(w: Windows, times: int, dtype: np.dtype[Any], parts: int) -> Nest:
    """Partial sums (parts, *window, 1, channels * times) of x times g."""
    x, g, sums = [Array(name, dtype) for name in ("x", "g", "sums")]
    part, lines, outputs = Axis(parts), BATCH * w.lines, w.channels * times
    first = part * lines // parts
    line, taps, last, o = Axis((part + 1) * lines // parts - first, "sequential"), outer_taps(w), w.last_tap, lanes(outputs)
    zero = Axis(w.taps * outputs)
    under = line_under(w, first + line, taps)
    start, number = w.reach(last, lift(0), lift(w.wide))
    place = Axis(where(under.inside, number, 0), "sequential")
    at = under.start + w.under(len(w.sizes) - 1, start + place, last) * w.channels + o // times
    value = x[at] * g[((first + line) * w.wide + start + place) * outputs + o]
    offset = part * (w.taps * outputs)
    added = Store(sums, offset + (under.tap + last) * outputs + o, value, adds=True)
    body = [For(zero, [Store(sums, offset + zero, 0)]), *loops([line, *taps, last, place, o], [added])]
    return Nest("correlate_channels", [x, g, sums], [BATCH], For(part, body))
