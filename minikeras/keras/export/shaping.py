"""The primitives that move elements, in ONNX's operators.

A size that is not fixed is read from a tensor when the model runs; in a reshape one such size is left to the operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Rule, Site
from .inference import Size

_FAR = np.iinfo("int64").max
"""Behind the end of every axis."""


def _lead(s: Site) -> tuple[Any, ...]:
    """The sizes in front of the axes that `rank` counts."""
    return s.x.shape[: len(s.x.shape) - s.params["rank"]]


def _reshape(s: Site) -> str:
    shape = _lead(s) + s.params["shape"]
    free = [size for size in shape if isinstance(size, Size)]
    found_out = next((size for size in free if not s.graph.knows(size)), free[0] if len(free) == 1 else None)
    if found_out is not None and 0 not in shape:
        shape = tuple(-1 if size is found_out else size for size in shape)
    return s.add("Reshape", s.names[0], s.graph.sizes(shape), allowzero=int(0 in shape))


def _transpose(s: Site) -> str:
    lead = len(s.x.shape) - len(s.params["perm"])
    order = [*range(lead), *(len(s.x.shape) + axis for axis in s.params["perm"])]
    return s.graph.transposed(s.names[0], order)


def _broadcast_to(s: Site) -> str:
    lead, name, shape = _lead(s), s.names[0], s.params["shape"]
    own = s.x.shape[len(lead) :]
    new = len(shape) - len(own)
    if lead and new:
        name = s.add("Unsqueeze", name, s.integers(tuple(range(len(lead), len(lead) + new))))
    # The operator keeps an axis where 1 is asked for, so sizes that stay as they are need not be known.
    wanted = [1 if size == kept else size for size, kept in zip(shape, (1,) * new + own, strict=True)]
    return s.add("Expand", name, s.graph.sizes([1] * len(lead) + wanted))


def _stack(s: Site) -> str:
    axis = s.integers((s.params["axis"],))
    return s.add("Concat", *[s.add("Unsqueeze", name, axis) for name in s.names], axis=s.params["axis"])


def _pad(s: Site) -> str:
    before, after = zip(*s.params["paddings"], strict=True)
    lead = (0,) * (len(s.x.shape) - len(before))
    return s.add("Pad", s.names[0], s.integers(lead + before + lead + after), s.number(s.params["value"]))


def _tile(s: Site) -> str:
    lead = (1,) * (len(s.x.shape) - len(s.params["multiples"]))
    return s.add("Tile", s.names[0], s.graph.sizes(lead + s.params["multiples"]))


def _roll(s: Site) -> str:
    name, axes = s.names[0], s.params["axis"]
    for shift, axis in zip(s.params["shift"], axes if isinstance(axes, tuple) else (axes,), strict=True):
        start = s.fixed(s.x.shape[axis]) - shift % max(s.x.shape[axis], 1)
        parts = (_sliced(s, name, {axis: slice(start, None)}), _sliced(s, name, {axis: slice(None, start)}))
        name = s.add("Concat", *parts, axis=axis)
    return name


def _sliced(s: Site, name: str, parts: dict[int, slice]) -> str:
    """Slices of some axes."""
    if not parts:
        return name
    bounds = []
    for part in parts.values():
        step = 1 if part.step is None else part.step
        start, stop = (0, _FAR) if step > 0 else (_FAR, -_FAR)
        bounds.append((start if part.start is None else part.start, stop if part.stop is None else part.stop, step))
    starts, stops, steps = zip(*bounds, strict=True)
    return s.add("Slice", name, *map(s.integers, (starts, stops, tuple(parts), steps)))


def _strided_slice(s: Site) -> str:
    key, rank = s.params["key"], len(s.x.shape)
    described = sum(1 for part in key if part is not None and part is not Ellipsis)
    parts: dict[int, slice] = {}
    removed, added = [], []
    axis = place = 0
    for part in key if Ellipsis in key else (*key, Ellipsis):
        if part is Ellipsis:
            axis, place = axis + rank - described, place + rank - described
        elif part is None:
            added.append(place)
            place += 1
        elif isinstance(part, slice):
            if part != slice(None):
                parts[axis] = part
            axis, place = axis + 1, place + 1
        else:
            parts[axis] = slice(part, None if s.fixed(part) == -1 else part + 1)
            removed.append(axis)
            axis += 1
    name = _sliced(s, s.names[0], parts)
    name = s.add("Squeeze", name, s.integers(removed)) if removed else name
    return s.add("Unsqueeze", name, s.integers(added)) if added else name


def _gather(s: Site) -> str:
    return s.add("Gather", *s.names, axis=s.params["axis"])


def _take_along(s: Site) -> str:
    x, indices = s.tensors
    axis = len(x.shape) + s.params["axis"]
    if x.shape[:axis] + x.shape[axis + 1 :] != indices.shape[:axis] + indices.shape[axis + 1 :]:
        raise s.refused("with indices that are broadcast, for which there is no translation to ONNX")
    return s.add("GatherElements", *s.names, axis=axis)


def _scatter_nd(s: Site) -> str:
    updates, indices = s.names
    zeros = s.add("Expand", s.number(0), s.graph.sizes(s.params["shape"]))
    return s.add("ScatterND", zeros, s.cast(indices, "int64"), updates, reduction="add")


def _overwrite_nd(s: Site) -> str:
    x, indices, updates = s.names
    return s.add("ScatterND", x, s.cast(indices, "int64"), updates)


RULES: dict[str, Rule] = {
    "broadcast_to": _broadcast_to,
    "concat": lambda s: s.add("Concat", *s.names, axis=s.params["axis"]),
    "gather_nd": lambda s: s.add("GatherND", s.names[0], s.cast(s.names[1], "int64")),
    "gather_rows": _gather,
    "look_up": _gather,
    "overwrite_nd": _overwrite_nd,
    "pad": _pad,
    "reshape": _reshape,
    "roll": _roll,
    "scatter_nd": _scatter_nd,
    "stack_along": _stack,
    "strided_slice": _strided_slice,
    "take_along": _take_along,
    "tile": _tile,
    "transpose": _transpose,
}
