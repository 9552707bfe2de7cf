"""The primitives in ONNX's operators: by element, along an axis, by matrix products, moving elements, convolutions, pools.

A size that is not fixed is read from a tensor when the model runs; in a reshape one such size is left to the operator.

Here channels are last, in ONNX second: kernels are transposed once, values by transposes of which neighbours cancel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...nn_ops.convolution import SamePadding
from .graph import Rule, Site, Size

_SAME_NAME = (
    "acos acosh add asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos cosh equal erf exp floor "
    "greater less log reciprocal relu round sigmoid sign sin sinh softplus sqrt tan tanh"
)
"""Primitives whose operator has the same inputs and meaning, and the same name but for its capitals."""

_OTHER_NAME = (
    "IsInf=IsInf IsNan=IsNaN absolute=Abs greater_equal=GreaterOrEqual less_equal=LessOrEqual logical_and=And logical_not=Not "
    "logical_or=Or logical_xor=Xor matrix_product=MatMul maximum=Max minimum=Min multiply=Mul negative=Neg power=Pow "
    "select=Where subtract=Sub"
)
"""Primitive and the operator with the same inputs and the same meaning."""

_REDUCTIONS = (
    "reduce_euclidean_norm=ReduceL2 reduce_logsumexp=ReduceLogSumExp reduce_max=ReduceMax reduce_mean=ReduceMean "
    "reduce_min=ReduceMin reduce_prod=ReduceProd reduce_sum=ReduceSum"
)


def _rows(text: str) -> dict[str, str]:
    return dict(row.split("=") for row in text.split())


def _direct(operator: str) -> Rule:
    return lambda s: s.add(operator, *s.names)


def _first(s: Site) -> str:
    return s.names[0]


def _divide(s: Site) -> str:
    a, b = s.names
    if s.dtype.kind in "iu":  # a true quotient, where ONNX's of integers is cut off
        a, b = s.cast(a, s.result.dtype), s.cast(b, s.result.dtype)
    return s.add("Div", a, b)


def _floor_divide(s: Site) -> str:
    a, b = s.names
    if s.dtype.kind in "iu":  # the operator cuts off toward zero; what remains of a by Mod has the sign of b
        return s.add("Div", s.add("Sub", a, s.add("Mod", a, b)), b)
    return s.add("Floor", s.add("Div", a, b))


def _floor_modulus(s: Site) -> str:
    a, b = s.names
    if s.dtype.kind in "iu":
        return s.add("Mod", a, b)
    return s.add("Sub", a, s.add("Mul", s.add("Floor", s.add("Div", a, b)), b))


def _squared(s: Site, name: str) -> str:
    return s.add("Mul", name, name)


def _unless_zero(s: Site, tested: str, value: str) -> str:
    """`value`, but 0 where `tested` is 0."""
    return s.add("Where", s.add("Equal", tested, s.number(0)), s.number(0), value)


def _product_with_log(shift: bool) -> Rule:
    def rule(s: Site) -> str:
        a, b = s.names
        return _unless_zero(s, a, s.add("Mul", a, s.add("Log", s.add("Add", b, s.number(1)) if shift else b)))

    return rule


def _zero_to_the_side_of(position: int, operator: str) -> Rule:
    """The operator of both inputs, but 0 where the one at `position` is 0."""
    return lambda s: _unless_zero(s, s.names[position], s.add(operator, *s.names))


def _filled(number: int) -> Rule:
    return lambda s: s.add("Expand", s.number(number, s.result.dtype), s.graph.sizes(s.result.shape))


def _reduction(operator: str) -> Rule:
    def rule(s: Site) -> str:
        if not s.params["axes"]:
            return s.add("Abs" if operator == "ReduceL2" else "Identity", s.names[0])
        if operator == "ReduceMean" and s.dtype.kind != "f":
            raise s.refused(f"of {s.dtype.name}, for which there is no translation to ONNX; cast it to a float dtype")
        return s.add(operator, s.names[0], s.integers(s.params["axes"]), keepdims=int(s.params["keepdims"]))

    return rule


def _truth(operator: str) -> Rule:
    """All or any of bools, as the least or greatest of 0 and 1."""

    def rule(s: Site) -> str:
        number = s.cast(s.names[0], "int32")
        return s.cast(s.add(operator, number, s.integers(s.params["axes"]), keepdims=int(s.params["keepdims"])), "bool")

    return rule


def _extreme_place(operator: str) -> Rule:
    return lambda s: s.cast(s.add(operator, s.names[0], axis=s.params["axis"], keepdims=0), s.params["dtype"])


def _along_axis(operator: str) -> Rule:
    return lambda s: s.add(operator, s.names[0], axis=s.params["axis"])


def _cumsum(s: Site) -> str:
    axis = s.graph.constant(np.asarray(s.params["axis"], "int64"))
    exclusive, reverse = int(s.params["exclusive"]), int(s.params["reverse"])
    return s.add("CumSum", s.names[0], axis, exclusive=exclusive, reverse=reverse)


def _sorted(s: Site) -> list[str]:
    axis = s.params.get("axis", -1)
    count = s.integers((s.params.get("k", s.x.shape[axis]),))
    return s.graph.add_all("TopK", 2, s.names[0], count, axis=axis, largest=int(s.params.get("descending", True)), sorted=1)


def _one_hot(s: Site) -> str:
    given: Any = s.params
    column = s.add("Unsqueeze", s.names[0], s.integers((-1,)))
    classes = s.graph.constant(np.arange(s.fixed(given["depth"]), dtype=s.x.dtype))
    on, off = (s.number(given[name], given["dtype"]) for name in ("on", "off"))
    return s.add("Where", s.add("Equal", column, classes), on, off)


def _einsum(s: Site) -> str:
    batched = [len(x.shape) > len(term) for x, term in zip(s.tensors, s.params["terms"], strict=True)]
    terms = [("..." if more else "") + term for term, more in zip(s.params["terms"], batched, strict=True)]
    result = ("..." if any(batched) else "") + s.params["result"]
    return s.add("Einsum", *s.names, equation=f"{','.join(terms)}->{result}")


RULES: dict[str, Rule] = {
    **{name: _direct(name.title().replace("_", "")) for name in _SAME_NAME.split()},
    **{name: _direct(operator) for name, operator in _rows(_OTHER_NAME).items()},
    **{name: _reduction(operator) for name, operator in _rows(_REDUCTIONS).items()},
    "IsFinite": lambda s: s.add("Not", s.add("Or", s.add("IsNaN", *s.names), s.add("IsInf", *s.names))),
    "affine": lambda s: s.add("Add", s.add("MatMul", *s.names[:2]), s.names[2]),
    "argmax": _extreme_place("ArgMax"),
    "argmin": _extreme_place("ArgMin"),
    **dict.fromkeys(("argsort", "largest_places"), lambda s: s.cast(_sorted(s)[1], "int32")),
    "cast": lambda s: s.cast(s.names[0], s.result.dtype),
    "cbrt": lambda s: s.add("Mul", s.add("Sign", *s.names), s.add("Pow", s.add("Abs", *s.names), s.number(1 / 3))),
    "conj": _first,
    "cumsum": _cumsum,
    "divide": _divide,
    "divide_no_nan": _zero_to_the_side_of(1, "Div"),
    "einsum": _einsum,
    "elu": lambda s: s.add("Elu", *s.names, alpha=float(s.params["alpha"])),
    "erfc": lambda s: s.add("Sub", s.number(1), s.add("Erf", *s.names)),
    "exp2": lambda s: s.add("Pow", s.number(2), *s.names),
    "expm1": lambda s: s.add("Sub", s.add("Exp", *s.names), s.number(1)),
    "floor_divide": _floor_divide,
    "floor_modulus": _floor_modulus,
    "hypot": lambda s: s.add("Sqrt", s.add("Add", _squared(s, s.names[0]), _squared(s, s.names[1]))),
    "identity": _first,
    "leaky_relu": lambda s: s.add("LeakyRelu", *s.names, alpha=float(s.params["alpha"])),
    "log10": lambda s: s.add("Div", s.add("Log", *s.names), s.number(math.log(10))),
    "log1p": lambda s: s.add("Log", s.add("Add", s.names[0], s.number(1))),
    "log2": lambda s: s.add("Div", s.add("Log", *s.names), s.number(math.log(2))),
    "log_softmax": _along_axis("LogSoftmax"),
    "multiply_no_nan": _zero_to_the_side_of(1, "Mul"),
    "ndtr": lambda s: s.add(
        "Mul", s.add("Add", s.add("Erf", s.add("Mul", *s.names, s.number(math.sqrt(0.5)))), s.number(1)), s.number(0.5)
    ),
    "not_equal": lambda s: s.add("Not", s.add("Equal", *s.names)),
    "one_hot": _one_hot,
    "ones_like": _filled(1),
    "real": _first,
    "reduce_all": _truth("ReduceMin"),
    "reduce_any": _truth("ReduceMax"),
    "relu6": lambda s: s.add("Clip", s.names[0], s.number(0), s.number(6)),
    "rsqrt": lambda s: s.add("Reciprocal", s.add("Sqrt", *s.names)),
    "softmax": _along_axis("Softmax"),
    "sort": lambda s: _sorted(s)[0],
    "split_along": lambda s: s.graph.add_all(
        "Split", len(s.params["sizes"]), s.names[0], s.integers(s.params["sizes"]), axis=s.params["axis"]
    ),
    "square": lambda s: _squared(s, s.names[0]),
    "squared_difference": lambda s: _squared(s, s.add("Sub", *s.names)),
    "stop_gradient": _first,
    "xdivy": _zero_to_the_side_of(0, "Div"),
    "xlog1py": _product_with_log(shift=True),
    "xlogy": _product_with_log(shift=False),
    "zeros_like": _filled(0),
}


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


def _roll(s: Site) -> str:
    name, axes = s.names[0], s.params["axis"]
    for shift, axis in zip(s.params["shift"], axes if isinstance(axes, tuple) else (axes,), strict=True):
        start = s.fixed(s.x.shape[axis]) - shift % max(s.x.shape[axis], 1)
        parts = (_sliced(s, name, {axis: slice(start, None)}), _sliced(s, name, {axis: slice(None, start)}))
        name = s.add("Concat", *parts, axis=axis)
    return name


def _sliced(s: Site, name: str, parts: dict[int, slice]) -> str:
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


RULES |= {
    "broadcast_to": _broadcast_to,
    "concat": lambda s: s.add("Concat", *s.names, axis=s.params["axis"]),
    "gather_nd": lambda s: s.add("GatherND", s.names[0], s.cast(s.names[1], "int64")),
    **dict.fromkeys(("gather_rows", "look_up"), lambda s: s.add("Gather", *s.names, axis=s.params["axis"])),
    "overwrite_nd": lambda s: s.add("ScatterND", s.names[0], s.cast(s.names[1], "int64"), s.names[2]),
    "pad": _pad,
    "reshape": _reshape,
    "roll": _roll,
    "scatter_nd": _scatter_nd,
    "stack_along": _stack,
    "strided_slice": _strided_slice,
    "take_along": _take_along,
    "tile": lambda s: s.add(
        "Tile", s.names[0], s.graph.sizes((1,) * (len(s.x.shape) - len(s.params["multiples"])) + s.params["multiples"])
    ),
    "transpose": _transpose,
}


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
    """The padding before each axis, then the padding after each."""
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
    """The output padding of each axis: its size in one of the runs, less the part that the windows reach."""
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


RULES |= {
    "convolve": _convolve,
    "max_pool": _max_pool,
    "spread_windows": _spread,
    "window_spread": _window_spread,
    "window_sum": _window_sum,
}
