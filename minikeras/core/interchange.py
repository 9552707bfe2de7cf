"""How Tensors and Variables get into NumPy, PyTorch, JAX and other libraries without a copy: as arrays marked read-only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..types import Array
from .registry import operations

_FLAGGED = (1, 0)
"""The first version of DLPack that can say that memory is read-only."""

_SHARED = "biufc"
"""Kinds of elements that other libraries know: not strings, nor bfloat16, which NumPy takes for raw bytes."""


class Shared:
    """The part of Tensors and Variables that other libraries ask for their numbers."""

    __slots__ = ()
    _array: Array
    dtype: Any

    def _shared(self, how: str) -> Array:
        """The array, after notifying the interpreters that it leaves; NumPy's scalars as arrays without axes."""
        operations.leave(self, how)
        return np.asarray(self._array) if isinstance(self._array, np.generic) else self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self._shared("a NumPy function")
        if copy is False and not isinstance(array, np.ndarray):
            raise ValueError("A tensor on a GPU cannot become a NumPy array without a copy; leave out copy=False.")
        return np.array(_read_only(to_numpy(array)), dtype=dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        array = self._shared("DLPack")
        if array.dtype.kind not in _SHARED:
            raise BufferError(
                f"A tensor of dtype {self.dtype.name} cannot be shared by DLPack. Cast it: tf.cast(x, 'float32')."
            )
        if isinstance(array, np.ndarray):
            flagged = max_version is not None and tuple(max_version) >= _FLAGGED
            backward = min(array.strides, default=0) < 0  # PyTorch and JAX have no negative strides, JAX no gaps either
            if backward or not (flagged or (array.flags.forc and array.flags.writeable)):
                array = array.copy()
            elif flagged:
                array = _read_only(array)
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return array.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def _interface(self, name: str) -> dict[str, Any]:
        """NumPy's or CUDA's description of the array by its address, read-only; a missing attribute if there is none."""
        array = self._array
        found = None if isinstance(array, np.generic) or array.dtype.kind not in _SHARED else getattr(array, name, None)
        if found is None:
            raise AttributeError(f"a tensor of dtype {self.dtype.name} on this device has no {name}.")
        self._shared("a NumPy function" if name == "__array_interface__" else name)
        return {**found, "data": (found["data"][0], True)}

    def __dlpack_device__(self) -> tuple[int, int]:
        array = self._array
        return (np.asarray(array) if isinstance(array, np.generic) else array).__dlpack_device__()


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view
