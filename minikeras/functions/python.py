"""Python's own functions and its clock beside tensors, and names of TensorFlow's graphs, which refuse in eager mode."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NoReturn

import numpy as np

from ..core import Tensor, convert_to_tensor
from ..core.effects import State, effect
from ..core.stack import perform
from ..errors import InvalidArgumentError
from ..types import as_dtype
from .publish import tensor


def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None = None) -> Any:
    """What `func` gives for Tensors, as Tensors of dtypes that are announced. Gradients go through what it computes with them.

    Args:
        func: a function of as many Tensors.
        inp: a list of them.
        Tout: the dtype of the result, or a list of dtypes for as many results; [] for none.

    Raises:
        InvalidArgumentError: for other results than `Tout` says.

    >>> print(tf.py_function(lambda x: x * 2.0, [3.0], tf.float32).numpy())
    6.0
    """
    return _announced("py_function", func(*map(tensor, inp)), Tout)


def numpy_function(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
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
    given = [as_dtype(one.dtype).name if hasattr(one, "dtype") else kind for one, kind in zip_longest(results, kinds)]
    if given != kinds or len(results) != len(kinds):
        raise InvalidArgumentError(f"{name}: Tout announces {kinds}, but the function gave {given}.")
    tensors = [convert_to_tensor(one, kind) for one, kind in zip(results, kinds, strict=True)]
    return tensors if several else tensors[0]


_clock = effect("timestamp", lambda: np.float64(time.time()), reads=(State.STREAM,), writes=(State.STREAM,))


def timestamp(name: str | None = None) -> Tensor:
    """The float64 seconds since 1970; in a `tf.function` those of each call.

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
    """Nothing; what is listed elsewhere as an operation to be run has run already.

    >>> tf.no_op()
    """


def group(*inputs: Any, name: str | None = None) -> None:
    """Nothing, since the operations have run.

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
