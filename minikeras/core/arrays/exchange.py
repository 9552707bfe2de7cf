"""Arrays of other libraries as NumPy's or CuPy's own, in the same memory where that is possible."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ...types import Array
from .devices import creation_namespace, device

_HOST, _GPU = (1, 3), (2, 13)
"""Numbers of DLPack for memory that the CPU reads (3: pinned) and that CUDA reads (13: managed)."""

_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


def is_foreign(value: Any) -> bool:
    """Whether another library's array, series or image is to be adopted."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def adopt(value: Any) -> Array:
    """The numbers of a foreign array as an ndarray, or as a CuPy array if they are on a GPU; not copied if they can be shared.

    Raises:
        ValueError: if neither way works, with what the other library said.
    """
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    try:
        return _shared(value)
    except _REFUSALS as error:
        reason = error  # of bfloat16, for example; some libraries still give an ndarray
    with contextlib.suppress(*_REFUSALS):
        if hasattr(value, "__array__"):
            return np.asarray(value)
    raise _refused(value, reason) from reason


def from_capsule(capsule: Any) -> Array:
    """The array in a bare DLPack capsule, which does not say where it lies: on the current device, it is assumed."""
    xp = creation_namespace()
    return xp.from_dlpack(_Capsule(capsule, (_HOST if xp is np else _GPU)[0]))


def _shared(value: Any) -> Array:
    kind, index = value.__dlpack_device__()
    if kind in _HOST:
        return np.from_dlpack(value)
    if kind in _GPU:
        with device(f"GPU:{index}"):
            return creation_namespace().from_dlpack(value)
    raise BufferError(f"device type {int(kind)} of DLPack is neither CPU nor CUDA")


def _refused(value: Any, reason: Exception) -> ValueError:
    kind = type(value)
    return ValueError(
        f"a {kind.__module__}.{kind.__name__} cannot become a tensor: {str(reason).rstrip('.')}. "
        "Bring it to the CPU, detach it from its gradient and cast it to a dtype of NumPy first."
    )


class _Capsule:
    """A capsule, in the form in which libraries take it."""

    def __init__(self, capsule: Any, kind: int) -> None:
        self._capsule, self._kind = capsule, kind

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0
