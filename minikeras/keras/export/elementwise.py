"""The primitives that compute element by element, along an axis or by matrix products, in ONNX's operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .graph import Rule, Site

_SAME_NAME = (
    "acos acosh add asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos cosh equal erf exp floor "
    "greater less log reciprocal relu round sigmoid sign sin sinh softplus sqrt tan tanh"
)
"""Primitives whose operator has the same inputs and meaning, and the same name but for its capitals."""

_OTHER_NAME = {
    "IsInf": "IsInf",
    "IsNan": "IsNaN",
    "absolute": "Abs",
    "greater_equal": "GreaterOrEqual",
    "less_equal": "LessOrEqual",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "matrix_product": "MatMul",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "power": "Pow",
    "select": "Where",
    "subtract": "Sub",
}
"""Primitive to the operator with the same inputs and the same meaning."""

_REDUCTIONS = {
    "reduce_euclidean_norm": "ReduceL2",
    "reduce_logsumexp": "ReduceLogSumExp",
    "reduce_max": "ReduceMax",
    "reduce_mean": "ReduceMean",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_sum": "ReduceSum",
}


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
    """The elements in order and their places."""
    axis = s.params["axis"]
    length = s.integers((s.x.shape[axis],))
    return s.graph.add_all("TopK", 2, s.names[0], length, axis=axis, largest=int(s.params["descending"]), sorted=1)


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
    **{name: _direct(operator) for name, operator in _OTHER_NAME.items()},
    **{name: _reduction(operator) for name, operator in _REDUCTIONS.items()},
    "IsFinite": lambda s: s.add("Not", s.add("Or", s.add("IsNaN", *s.names), s.add("IsInf", *s.names))),
    "affine": lambda s: s.add("Add", s.add("MatMul", *s.names[:2]), s.names[2]),
    "argmax": _extreme_place("ArgMax"),
    "argmin": _extreme_place("ArgMin"),
    "argsort": lambda s: s.cast(_sorted(s)[1], "int32"),
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
    "square": lambda s: _squared(s, s.names[0]),
    "squared_difference": lambda s: _squared(s, s.add("Sub", *s.names)),
    "stop_gradient": _first,
    "xdivy": _zero_to_the_side_of(0, "Div"),
    "xlog1py": _product_with_log(shift=True),
    "xlogy": _product_with_log(shift=False),
    "zeros_like": _filled(0),
}
