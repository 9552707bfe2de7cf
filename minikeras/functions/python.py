"""Python's own functions and its clock, beside tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

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
