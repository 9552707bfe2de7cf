"""Convolutions and pools, in ONNX's operators.

Here channels are last, in ONNX second: kernels are transposed once, values by transposes of which neighbours cancel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...nn_ops.convolution import SamePadding
from .graph import Rule, Site
from .inference import Size


def _channels_second(s: Site, name: str, rank: int) -> str:
    return s.graph.transposed(name, [0, rank - 1, *range(1, rank - 1)])


def _channels_last(s: Site, name: str, rank: int) -> str:
    return s.graph.transposed(name, [0, *range(2, rank), 1])


def _rank(s: Site) -> int:
    rank = len(s.params["strides"]) + 2
    if len(s.x.shape) != rank:
        raise s.refused("of more than one batch axis, for which there is no translation to ONNX")
    return rank


def _placed(s: Site, window: tuple[int, ...]) -> dict[str, Any]:
    """Window, strides, dilation and padding as attributes."""
    strides, dilation, padding = (s.params[name] for name in ("strides", "dilation", "padding"))
    attributes = {"kernel_shape": list(s.fixed(window)), "strides": list(strides)}
    if max(dilation) > 1:
        attributes["dilations"] = list(dilation)
    rows = list(zip(s.x.shape[1:-1], s.result.shape[1:-1], strides, strict=True))
    if any(isinstance(size, Size) and not isinstance(count, Size) for size, count, _ in rows):
        raise s.refused(f"with strides {strides} until nothing is left of an axis that is not fixed; give the axis a size")
    if isinstance(padding, SamePadding) and any(isinstance(size, Size) and step > 1 for size, _, step in rows):
        if "dilations" in attributes:
            raise s.refused("with strides and dilation along an axis that is not fixed; give the axis a size")
        return attributes | {"auto_pad": "SAME_UPPER"}
    return attributes | {"pads": _pads(s)}


def _pads(s: Site) -> list[int]:
    """What is added in front of each axis, then behind each."""
    before, after = zip(*s.fixed(s.params["padding"]), strict=True)
    return [*before, *after]


def _convolve(s: Site) -> str:
    rank, kernel = _rank(s), s.tensors[1]
    x, weights = s.names
    kernels = s.graph.transposed(weights, [rank - 1, rank - 2, *range(rank - 2)])
    options = _placed(s, kernel.shape[:-2])
    y = s.add("Conv", _channels_second(s, x, rank), kernels, group=s.params["groups"], **options)
    return _channels_last(s, y, rank)


def _spread(s: Site) -> str:
    """The transpose of a convolution."""
    rank, kernel, given = _rank(s), s.tensors[1], s.params
    g, weights = s.names
    more, again = (_added_at_the_end(s, kernel.shape[:-2], run) for run in ("first", "second"))
    if more != again:
        raise s.refused("with options that depend on a size that is not fixed; give the axis a size")
    options = {"strides": list(given["strides"]), "dilations": list(given["dilation"]), "pads": _pads(s)}
    kernels = s.graph.transposed(weights, [rank - 1, rank - 2, *range(rank - 2)])
    y = s.add("ConvTranspose", _channels_second(s, g, rank), kernels, group=given["groups"], output_padding=more, **options)
    return _channels_last(s, y, rank)


def _added_at_the_end(s: Site, window: tuple[int, ...], run: str) -> list[int]:
    """How much larger than what the windows reach each axis was in one of the runs."""
    given = s.params
    sizes, places = ([getattr(n, run, n) for n in several] for several in (given["sizes"], s.x.shape[1:-1]))
    rows = zip(sizes, places, window, given["strides"], given["padding"], given["dilation"], strict=True)
    return [size - (step * (n - 1) + (k - 1) * spread + 1 - sum(pair)) for size, n, k, step, pair, spread in rows]


def _window_spread(s: Site) -> str:
    """Elements repeated, the only use that a model makes of it."""
    window, lead = s.params["window"], len(s.x.shape) - len(s.params["window"]) - 1
    if window != s.params["strides"] or any(map(any, s.params["padding"])):
        raise s.refused("with windows that do not lie side by side, for which there is no translation to ONNX")
    scales = s.graph.constant(np.asarray([1] * lead + [*window, 1], "float32"))
    return s.add(
        "Resize", s.names[0], "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    )


def _max_pool(s: Site) -> str:
    rank = _rank(s)
    y = s.add("MaxPool", _channels_second(s, s.names[0], rank), **_placed(s, s.params["window"]))
    return _channels_last(s, y, rank)


def _window_sum(s: Site) -> str:
    rank, window = _rank(s), s.params["window"]
    if max(s.params["dilation"]) > 1:
        raise s.refused("with dilation, for which there is no translation to ONNX")
    options = _placed(s, window)
    mean = s.add("AveragePool", _channels_second(s, s.names[0], rank), count_include_pad=1, **options)
    return _channels_last(s, s.add("Mul", mean, s.number(math.prod(window))), rank)


RULES: dict[str, Rule] = {
    "convolve": _convolve,
    "max_pool": _max_pool,
    "spread_windows": _spread,
    "window_spread": _window_spread,
    "window_sum": _window_sum,
}
