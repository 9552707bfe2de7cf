"""Convolutions with a group for each channel: sums of elements times numbers, too small for matrix products.

x (batch, *sizes, channels), kernel (*window, 1, channels * times), g (batch, *places, channels * times).
"""

from __future__ import annotations

import math
from typing import Any

from .expression import Array, Axis, Expr, lift, where
from .nest import For, Nest, Store, loops
from .pools import under_window
from .windows import BATCH, Windows, lanes, line_under, outer_taps, spread


def convolution(w: Windows, times: int, dtype: Any) -> Nest:
    """y: for each output the sum over a window of its channel."""
    x, kernel, y = [Array(name, dtype) for name in ("x", "kernel", "y")]
    line, place, o = Axis(BATCH * w.lines), Axis(w.wide, "sequential"), lanes(w.channels * times)
    taps = enumerate(under_window(w, x, line, place, o // times, 0.0))
    parts = [part * kernel[o + tap * w.channels * times] for tap, part in taps]
    at = (line * w.wide + place) * (w.channels * times) + o
    store = Store(y, at, sum(parts[1:], start=parts[0]))
    return Nest("convolve_channels", [x, kernel, y], [BATCH], For(line, loops([place, o], [store])))


def by_input(w: Windows, times: int, dtype: Any) -> Nest:
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


def by_kernel(w: Windows, times: int, dtype: Any, parts: int) -> Nest:
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
