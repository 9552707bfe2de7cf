"""Python's own functions, its clock and `tf.print` beside tensors; names of TensorFlow's graphs, which refuse in eager mode."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NoReturn

import numpy as np

from .. import nest
from ..core import BOTTOM, State, Tensor, Variable, convert_to_tensor, current, effect, notify, perform, to_numpy
from ..core.batch import _values
from ..errors import InvalidArgumentError
from ..types import DTypeLike, TensorLike, as_dtype
from .operands import tensor


def py_function(func: Callable[..., Any], inp: Any, Tout: DTypeLike, name: str | None = None) -> Any:
    """Results of `func` for Tensors, as Tensors of dtypes that are announced. Gradients go through what it computes with them.

    Args:
        func: a function of as many Tensors.
        inp: a list of them.
        Tout: the dtype of the result, or a list of dtypes for as many results; [] for none.

    Raises:
        InvalidArgumentError: for other results than `Tout` says. Arrays of NumPy are converted to numbers of their kind, or
            from integers to floats, as in TensorFlow.

    >>> print(tf.py_function(lambda x: x * 2.0, [3.0], tf.float32).numpy())
    6.0
    """
    return _announced("py_function", func(*map(tensor, inp)), Tout)


def numpy_function(func: Callable[..., Any], inp: Any, Tout: DTypeLike, stateful: bool = True, name: str | None = None) -> Any:
    """As `py_function`, for a function of NumPy arrays. Without gradients.

    >>> print(tf.numpy_function(lambda x: x[::-1], [[3.0, 1.0]], tf.float32).numpy())
    [1. 3.]
    """
    return _announced("numpy_function", func(*[np.asarray(tensor(one).numpy()) for one in inp]), Tout)


def _announced(name: str, found: Any, wanted: Any) -> Any:
    """The results as Tensors of the dtypes that were announced."""
    several = isinstance(wanted, (list, tuple))
    results = list(found) if several and isinstance(found, (list, tuple)) else [] if found is None else [found]
    kinds = [as_dtype(getattr(one, "dtype", one)).name for one in (wanted if several else [wanted])]
    converts = name == "py_function"
    given = [
        kind if not hasattr(one, "dtype") or (converts and _holds(kind, one)) else as_dtype(one.dtype).name
        for one, kind in zip_longest(results, kinds)
    ]
    if given != kinds or len(results) != len(kinds):
        raise InvalidArgumentError(f"{name}: Tout announces {kinds}, but the function gave {given}.")
    tensors = [convert_to_tensor(one, kind) for one, kind in zip(results, kinds, strict=True)]
    return tensors if several else tensors[0]


def _holds(kind: str | None, found: Any) -> bool:
    """True if NumPy's array is of integers, floats or complex numbers, and the dtype of these or of later ones of the three."""
    if kind is None or isinstance(found, (Tensor, Variable)):
        return False
    own, wanted = [(one.is_integer, one.is_floating, one.is_complex) for one in (as_dtype(found.dtype), as_dtype(kind))]
    return any(own) and any(wanted) and own.index(True) <= wanted.index(True)


_clock = effect("timestamp", lambda: np.float64(time.time()), reads=(State.STREAM,), writes=(State.STREAM,))


def timestamp(name: str | None = None) -> Tensor:
    """The float64 seconds since 1970; in a `tf.function` the time of each call.

    >>> tf.timestamp().dtype
    tf.float64
    """
    now: Tensor = perform(_clock, (), {})
    return now


# Names that TensorFlow has for its graphs only, and that refuse in eager mode, there as here.


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", **options: Any) -> NoReturn:
    """Refuses: without a tape nothing was recorded.

    Raises:
        RuntimeError: always.

    >>> try:
    ...     tf.gradients(tf.constant(1.0), tf.constant(1.0))
    ... except RuntimeError as error:
    ...     print(error)
    tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.
    """
    raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")


def hessians(ys: Any, xs: Any, **options: Any) -> NoReturn:
    """Refuses, as `gradients` does; `tf.autodiff.hessian` and `tape.hessian` give second derivatives.

    Raises:
        RuntimeError: always.

    >>> try:
    ...     tf.hessians(tf.constant(1.0), tf.constant(1.0))
    ... except RuntimeError as error:
    ...     print(str(error)[-55:])
    tf.autodiff.hessian, or hessian() of a tf.GradientTape.
    """
    raise RuntimeError(
        "tf.hessians is not supported when eager execution is enabled: tf.gradients, which it is made of, is not either. "
        "Use tf.GradientTape instead: tf.autodiff.hessian, or hessian() of a tf.GradientTape."
    )


def executing_eagerly() -> bool:
    """True: Python runs every function, also one that is recorded for later calls.

    >>> tf.executing_eagerly()
    True
    """
    return True


def no_op(name: str | None = None) -> None:
    """Do nothing: an operation listed elsewhere as one to be run has run already.

    >>> tf.no_op()
    """


def group(*inputs: Any, name: str | None = None) -> None:
    """Do nothing: the operations have run already.

    >>> tf.group(tf.constant(1.0))
    """


def control_dependencies(control_inputs: Any) -> contextlib.AbstractContextManager[None]:
    """A context in which everything runs as usual: after what was written before it.

    >>> with tf.control_dependencies([tf.no_op()]):
    ...     print(tf.constant(1.0).numpy())
    1.0
    """
    return contextlib.nullcontext()


def init_scope() -> contextlib.AbstractContextManager[None]:
    """A context in which everything runs as usual: there is no graph to leave.

    >>> with tf.init_scope():
    ...     print(tf.constant(1.0).numpy())
    1.0
    """
    return contextlib.nullcontext()


# `tf.print`, which prints in each run of a compiled function.

printed = effect("print", lambda *arrays, show: show([to_numpy(one) for one in arrays]) or (), escapes=True)
"""Stands on the stack for what is shown of the values of tensors."""


def print_(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: str | None = None
) -> None:
    """Print text, numbers, tensors and nests of them: in a compiled function in each run, in the first twice with LLVM.

    Args:
        inputs: what to print.
        output_stream: a stream such as sys.stdout, or 'file://' and a path, to which is appended; sys.stderr by default.
        summarize: number of elements shown at the beginning and at the end of each axis; -1 for all.
        sep, end: between and behind what is printed.

    >>> import sys
    >>> tf.print("loss", tf.constant([1.0, 2.5]), output_stream=sys.stdout)
    loss [1 2.5]
    """
    to_file = isinstance(output_stream, str)
    if to_file and not output_stream.startswith("file://"):
        raise ValueError(f"tf.print: output_stream must be a stream, or 'file://' and a path, found {output_stream!r:.80}.")
    given = list(inputs)
    leaves = nest.flatten(given)
    tensors = [convert_to_tensor(leaf) for leaf in leaves if isinstance(leaf, (Tensor, Variable))]

    def show(arrays: list[np.ndarray[Any, Any]]) -> None:
        values = iter(arrays)
        filled = [
            Shown(text(next(values), summarize, quoted=all(leaf is not one for one in given)))
            if isinstance(leaf, (Tensor, Variable))
            else leaf
            for leaf in leaves
        ]
        line = sep.join(map(str, nest.pack(given, filled))) + end
        if to_file:
            with open(output_stream.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(line)
        else:
            (output_stream or sys.stderr).write(line)

    tell(tensors, show)


def tell(tensors: list[Tensor], show: Callable[[list[np.ndarray[Any, Any]]], None]) -> None:
    """Give the values of tensors to a function; in a compiled function in each run."""
    show([_values(one) for one in tensors])
    frame = current()
    if frame is not BOTTOM:
        notify(frame, printed, tuple(tensors), {"show": show}, ())


class Shown(str):
    """A text that stands in a nest as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def text(array: Any, count: int, depth: int = 1, quoted: bool = False) -> str:
    """The elements of an array as TensorFlow prints them; text within an array or a nest has quotes.

    >>> text(np.arange(8), 2)
    '[0 1 ... 6 7]'
    """
    if isinstance(array, (str, bytes)):
        plain = array if isinstance(array, str) else array.decode(errors="replace")
        return f'"{plain}"' if quoted else plain
    if array.ndim == 0:
        return text(array.item(), count, depth, quoted) if array.dtype.kind == "O" else _number(array.item(), array.dtype)
    short = 0 <= 2 * count < len(array)
    rows = [text(row, count, depth + 1, True) for row in ([*array[:count], *array[len(array) - count :]] if short else array)]
    if short:
        rows.insert(count, "...")
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return "[" + between.join(rows) + "]"


def _number(value: TensorLike, dtype: DTypeLike) -> str:
    """A number: a float with few digits if these tell it from all others, else with as many as always do."""
    if not isinstance(value, float):
        return str(int(value) if isinstance(value, bool) else value)
    few, enough, kind = (15, 17, np.float64) if dtype == "float64" else (6, 9, np.float32)
    short = f"{value:.{few}g}"
    return short if value != value or kind(float(short)) == value else f"{value:.{enough}g}"
