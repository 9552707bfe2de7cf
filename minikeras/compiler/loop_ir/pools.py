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

from .expression import Array, Axis, Expr, apply, cast, lift, maximum, where
from .nest import For, Nest, Store, loops
from .reductions import neutral
from .strided import contiguous, coordinates, place
from .windows import BATCH, Value, Windows, lanes, line_under, outer_taps, spread

MOST_TAPS = 32
"""Elements of the largest window whose fold is one expression."""
CHOICES = np.dtype(np.int32)


def fold(w: Windows, op: str, dtype: np.dtype[Any]) -> Nest:
    """y (batch, *places, channels): op is "maximum", "add", or "first", the number of the first largest element.

    With "pick", an array `chosen` holds the number of the element of each window that is taken.
    """
    x, chosen = Array("x", dtype), Array("chosen", CHOICES)
    y = Array("y", CHOICES if op == "first" else dtype)
    line, beside, c = Axis(BATCH * w.lines), Axis(w.wide), Axis(w.channels)
    names = [*coordinates(line, (1, *w.places[:-1])), beside, c]
    parts = [pooled(w, op, x, names, taps, chosen) for taps in np.ndindex(*w.window)]
    value = _first_largest(parts) if op == "first" else functools.reduce(maximum if op == "maximum" else operator.add, parts)
    inner = [beside, c] if w.channels >= 8 else [c, beside]
    inner[0].value = "sequential"
    at = (line * w.wide + beside) * w.channels + c
    arrays = [x, chosen, y] if op == "pick" else [x, y]
    return Nest(f"{op}_in_windows", arrays, [BATCH], For(line, loops(inner, [Store(y, at, value)])))


def pooled(w: Windows, op: str, x: Array, names: Sequence[Expr], taps: Sequence[Any], chosen: Array | None = None) -> Expr:
    """The value of an element of the window at an image, a place and a channel, which is to be folded."""
    element = w.element(x, names, taps, neutral("maximum", x.dtype) if op in ("maximum", "first") else 0)
    if op != "pick" or chosen is None:
        return element
    own = chosen[place(contiguous((1, *w.places, w.channels)), names)]
    return where(apply("equal", own, w.number(taps, chosen.dtype)), element, 0)


def _first_largest(parts: Sequence[Expr]) -> Expr:
    largest, chosen = parts[0], lift(0, CHOICES)
    for number, part in enumerate(parts[1:], 1):
        larger = largest < part
        chosen, largest = where(larger, lift(number, CHOICES), chosen), where(larger, part, largest)
    return chosen


def put(w: Windows, dtype: np.dtype[Any], chooses: bool) -> Nest:
    """x (batch, *sizes, channels): the sum of g over all elements of its window, or at the `chosen` one."""
    g, chosen, x = Array("g", dtype), Array("chosen", CHOICES), Array("x", dtype)

    def value(place: Expr, tap: Expr, channel: Expr) -> Expr:
        at = place * w.channels + channel
        return where(apply("equal", chosen[at], cast(tap, CHOICES)), g[at], 0.0) if chooses else g[at]

    return _spread("put_into_windows", w, [g, chosen, x] if chooses else [g, x], value)


def _spread(name: str, w: Windows, arrays: Sequence[Array], value: Value) -> Nest:
    """The last array: each place adds its values to the elements under its window."""
    image, line, length, x = Axis(BATCH), Axis(w.lines, "sequential"), math.prod(w.sizes) * w.channels, arrays[-1]
    zero = Axis(length)
    clear = [] if w.is_covered else [For(zero, [Store(x, image * length + zero, 0)])]
    added = loops([line], spread(w, x, image * w.lines + line, lift(0), lift(w.wide), value))
    return Nest(name, arrays, [BATCH], For(image, [*clear, *added]))


# A group for each channel ----------------------------------------------------------------------------------------------------


def convolution_of_channels(w: Windows, times: int, dtype: np.dtype[Any]) -> Nest:
    """y: for each output the sum over a window of its channel."""
    x, kernel, y = [Array(name, dtype) for name in ("x", "kernel", "y")]
    line, beside, o = Axis(BATCH * w.lines), Axis(w.wide, "sequential"), lanes(w.channels * times)
    names = [*coordinates(line, (1, *w.places[:-1])), beside, o // times]
    taps = enumerate(np.ndindex(*w.window))
    parts = [w.element(x, names, own, 0) * kernel[o + tap * w.channels * times] for tap, own in taps]
    at = (line * w.wide + beside) * (w.channels * times) + o
    store = Store(y, at, sum(parts[1:], start=parts[0]))
    return Nest("convolve_channels", [x, kernel, y], [BATCH], For(line, loops([beside, o], [store])))


def channels_by_input(w: Windows, times: int, dtype: np.dtype[Any]) -> Nest:
    """x: each place adds its value for a channel, times the kernel, to the elements under its window."""
    g, kernel, x = [Array(name, dtype) for name in ("g", "kernel", "x")]

    def value(place: Expr, tap: Expr, channel: Expr) -> Expr:
        outputs = [channel * times + t for t in range(times)]
        parts = [g[(place * w.channels) * times + o] * kernel[(tap * w.channels) * times + o] for o in outputs]
        return sum(parts[1:], start=parts[0])

    return _spread("spread_channels", w, [g, kernel, x], value)


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
