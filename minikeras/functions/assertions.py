"""Assertions about values, shapes and dtypes, which a compiled function makes in each run. Each gives None or raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from ..absent import hide_imports
from ..core import Primitive, Tensor, check_values
from ..core.ops import arithmetic
from ..errors import InvalidArgumentError, ShapeError
from ..types import DTypeLike, TensorLike, as_dtype
from .catalogue import name_like_definition
from .elementwise import cast
from .operands import integer, tensor, tensors

_DOCUMENTATION = """Check that {what} for every element; shapes are broadcast.

Raises:
    InvalidArgumentError: with `message`, and the first place where it does not hold.

>>> tf.debugging.{name}({sample})
"""


def _hold(name: str, what: str, holds: Tensor, message: str | None) -> None:
    """Refuse a bool tensor that is not true everywhere."""

    def test(values: np.ndarray[Any, Any]) -> None:
        if not values.all():
            where = f" at index {np.argwhere(~values)[0].tolist()} of {list(values.shape)}" if values.ndim else ""
            raise InvalidArgumentError(f"{message or ''} {name}: {what} does not hold{where}.".lstrip())

    check_values(holds, test)


class AssertionOfTwo(Protocol):
    """An assertion about the elements of two tensors."""

    def __call__(
        self, x: TensorLike, y: TensorLike, message: str | None = None, summarize: Any = None, name: str | None = None
    ) -> None: ...


class AssertionOfOne(Protocol):
    """An assertion about the elements of a tensor."""

    def __call__(self, x: TensorLike, message: str | None = None, summarize: Any = None, name: str | None = None) -> None: ...


def _of_two(relation: Primitive, name: str, what: str, sample: str) -> AssertionOfTwo:
    """The assertion that a relation holds between the elements of two tensors."""

    def function(
        x: TensorLike, y: TensorLike, message: str | None = None, summarize: Any = None, name: str | None = None
    ) -> None:
        a, b = tensors(x, y)
        _hold(function.__name__, what, relation(a, b), message)

    return name_like_definition(function, name, __name__, _DOCUMENTATION.format(what=what, name=name, sample=sample))


def _of_sign(relation: Primitive, name: str, what: str, sample: str) -> AssertionOfOne:
    """The assertion that a relation holds between the elements of a tensor and 0."""

    def function(x: TensorLike, message: str | None = None, summarize: Any = None, name: str | None = None) -> None:
        value = tensor(x)
        _hold(function.__name__, what, relation(value, 0), message)

    return name_like_definition(function, name, __name__, _DOCUMENTATION.format(what=what, name=name, sample=sample))


assert_equal = _of_two(arithmetic.equal, "assert_equal", "x = y", "[1, 2], [1, 2]")
assert_none_equal = _of_two(arithmetic.not_equal, "assert_none_equal", "x != y", "[1, 2], [2, 1]")
assert_less = _of_two(arithmetic.less, "assert_less", "x < y", "[1, 2], 3")
assert_less_equal = _of_two(arithmetic.less_equal, "assert_less_equal", "x <= y", "[1, 2], 2")
assert_greater = _of_two(arithmetic.greater, "assert_greater", "x > y", "[1, 2], 0")
assert_greater_equal = _of_two(arithmetic.greater_equal, "assert_greater_equal", "x >= y", "[1, 2], 1")
assert_positive = _of_sign(arithmetic.greater, "assert_positive", "x > 0", "[1, 2]")
assert_non_negative = _of_sign(arithmetic.greater_equal, "assert_non_negative", "x >= 0", "[0, 1]")
assert_negative = _of_sign(arithmetic.less, "assert_negative", "x < 0", "[-1, -2]")
assert_non_positive = _of_sign(arithmetic.less_equal, "assert_non_positive", "x <= 0", "[0, -1]")


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike = None,
    atol: TensorLike = None,
    message: str | None = None,
    summarize: Any = None,
    name: str | None = None,
) -> None:
    """Check that |x - y| <= atol + rtol |y| for every element; both tolerances are 10 times the dtype's precision by default.

    >>> tf.debugging.assert_near([1.0, 2.0], [1.0, 2.0000002])
    """
    a, b = tensors(x, y)
    usual = 10.0 * float(a.dtype.info.eps) if a.dtype.is_differentiable else 0
    limit = (usual if atol is None else atol) + (usual if rtol is None else rtol) * arithmetic.absolute(b)
    _hold("assert_near", "|x - y| <= atol + rtol |y|", arithmetic.absolute(a - b) <= limit, message)


def Assert(condition: TensorLike, data: Any, summarize: Any = None, name: str | None = None) -> None:
    """Check that all elements of a condition are true.

    Args:
        condition: bool tensor.
        data: a list of what the error shows beside it.

    Raises:
        InvalidArgumentError: else.

    >>> tf.debugging.Assert(tf.constant(True), ["fine"])
    """
    shown = [one for one in data if isinstance(one, (str, int, float))]
    _hold("Assert", "the condition", cast(condition, "bool"), " ".join(map(str, shown)))


# Shapes and dtypes ----------------------------------------------------------------------------------------------------


def _refuse_unless(good: bool, name: str, message: str | None, found: str, kind: type[Exception] = ShapeError) -> None:
    if not good:
        raise kind(f"{message or ''} {name}: {found}".lstrip())


def assert_rank(x: TensorLike, rank: int, message: str | None = None, name: str | None = None) -> None:
    """Check that a tensor has `rank` axes.

    >>> tf.debugging.assert_rank([[1.0]], 2)
    """
    shape = tensor(x).shape
    _refuse_unless(len(shape) == integer(rank), "assert_rank", message, f"needs {rank} axes, found shape {shape}.")


def assert_rank_at_least(x: TensorLike, rank: int, message: str | None = None, name: str | None = None) -> None:
    """Check that a tensor has `rank` axes or more.

    >>> tf.debugging.assert_rank_at_least([[1.0]], 1)
    """
    shape = tensor(x).shape
    _refuse_unless(
        len(shape) >= integer(rank), "assert_rank_at_least", message, f"needs {rank} axes or more, found shape {shape}."
    )


def assert_rank_in(x: TensorLike, ranks: Iterable[int], message: str | None = None, name: str | None = None) -> None:
    """Check that the number of a tensor's axes is one of `ranks`.

    >>> tf.debugging.assert_rank_in([[1.0]], (1, 2))
    """
    shape, allowed = tensor(x).shape, [integer(rank) for rank in ranks]
    _refuse_unless(len(shape) in allowed, "assert_rank_in", message, f"needs {allowed} axes, found shape {shape}.")


def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Check that a tensor has no axes.

    >>> tf.debugging.assert_scalar(1.0)
    """
    assert_rank(tensor, 0, message)


def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> None:
    """Check the shapes of tensors; a letter stands for the same size wherever it occurs.

    Args:
        shapes: pairs (tensor, shape), or a dict of them by `tensor.ref()`; a shape is a list of sizes, of letters, and of None
            or '.' for any size. It may begin or end with '...' or '*' for any axes.

    >>> tf.debugging.assert_shapes([(tf.ones([2, 3]), ("N", "D")), (tf.ones([3]), ("D",))])
    """
    known: dict[Any, int] = {}
    for x, wanted in shapes.items() if hasattr(shapes, "items") else shapes:
        found = list(tensor(x.deref() if hasattr(x, "deref") else x).shape)
        symbols = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
        problem = f"a tensor of shape {found} is not {symbols}"
        if symbols and symbols[0] in (..., "...", "*"):
            symbols = symbols[1:]
            found = found[len(found) - len(symbols) :] if len(found) >= len(symbols) else found
        elif symbols and symbols[-1] in (..., "...", "*"):
            symbols = symbols[:-1]
            found = found[: len(symbols)]
        _refuse_unless(len(found) == len(symbols), "assert_shapes", message, f"{problem}.")
        for symbol, size in zip(symbols, found, strict=True):
            if symbol in (None, "."):
                continue
            expected = int(symbol) if hasattr(symbol, "__index__") else known.setdefault(symbol, size)
            _refuse_unless(size == expected, "assert_shapes", message, f"{problem}: {symbol!r} is {expected} and {size}.")


def assert_type(tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Check that a tensor has the dtype `tf_type`.

    >>> tf.debugging.assert_type(tf.constant(1), tf.int32)
    """
    found = _tensor(tensor).dtype
    _refuse_unless(
        found == as_dtype(tf_type), "assert_type", message, f"needs {as_dtype(tf_type).name}, found {found.name}.", TypeError
    )


_tensor = tensor


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Check that a tensor holds integers.

    >>> tf.debugging.assert_integer(1)
    """
    dtype = tensor(x).dtype
    _refuse_unless(dtype.is_integer, "assert_integer", message, f"needs integers, found {dtype.name}.", TypeError)


def assert_same_float_dtype(tensors: Any = None, dtype: DTypeLike = None) -> Any:
    """The one floating dtype that tensors have, or `dtype`; float32 if nothing is given.

    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant(2.0)])
    tf.float32
    """
    found = {_tensor(one).dtype.name for one in tensors or []} | ({as_dtype(dtype).name} if dtype is not None else set())
    kind = as_dtype(min(found, default="float32"))
    if len(found) > 1 or not kind.is_floating:
        raise ValueError(f"assert_same_float_dtype: needs one floating dtype, found {sorted(found)}. Use tf.cast.")
    return kind


def assert_proper_iterable(values: Any) -> None:
    """Check that `values` can be iterated over and is no single tensor, array or text.

    >>> tf.debugging.assert_proper_iterable([1, 2])
    """
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)) or hasattr(values, "dtype"):
        raise TypeError(f"assert_proper_iterable: needs a list or the like, found {type(values).__name__}.")


def is_numeric_tensor(tensor: Any) -> bool:
    """True for a Tensor or a Variable of numbers.

    >>> tf.debugging.is_numeric_tensor(tf.constant(1.0)), tf.debugging.is_numeric_tensor("text")
    (True, False)
    """
    return hasattr(tensor, "key") and tensor.dtype not in ("bool", "string")


hide_imports(globals(), "AssertionOfOne", "AssertionOfTwo")
