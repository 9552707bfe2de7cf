"""What two calls of a function must share so that one recording serves both.

Key idea: tensors and arrays differ from call to call, so only their shape, dtype, device and the order of their axes in memory
count; all else is a fact of the recording: numbers and strings by value, Variables, models and other objects by identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..arrays import creation_namespace, is_array, namespace
from ..core import Tensor, convert_to_tensor
from ..core.tensor import Masked
from ..types import Array, TensorShape, as_dtype

_BY_VALUE = (int, bool, str, bytes, type(None), complex)


class Unrecordable(Exception):
    """An argument for which a function runs eagerly; the message says what it is."""


def key_of(values: Sequence[Any], tensors: list[Tensor]) -> Hashable:
    """The signature of positional arguments; their tensors are appended to `tensors`.

    Raises:
        Unrecordable: for tensors that stand for more than their values.
    """
    return creation_namespace() is np, tuple([_described(value, tensors) for value in values])


def _described(value: Any, tensors: list[Tensor]) -> Hashable:
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        array = value._array
        host = type(array) is np.ndarray or namespace(array) is np
        return array.shape, array.dtype, host and (array.flags.c_contiguous or _order(array))
    if kind is tuple:
        return kind, tuple([_described(one, tensors) for one in value])
    if kind in _BY_VALUE:
        return kind, value
    if kind is dict and not value:  # the keywords of most calls
        return dict
    if kind is float:
        return kind, value.hex()  # tells -0.0 from 0.0, and a NaN is itself
    if nest.is_nested(value):
        if isinstance(value, Mapping):
            return kind, tuple(value), tuple([_described(value[name], tensors) for name in nest.keys(value)])
        return kind, tuple([_described(one, tensors) for one in value])
    if is_array(value) and (value.dtype.kind in "biufc" or value.dtype.kind == "V"):
        return _described(convert_to_tensor(value), tensors)
    if isinstance(value, Masked):
        raise Unrecordable("a tensor with a mask")
    if isinstance(value, Tensor):
        raise Unrecordable(f"a tensor that is a {kind.__name__.lower()} of another one")
    return kind, id(value)


def _order(array: Array) -> tuple[int, ...]:
    """The axes in the order of their strides: sums go along memory, so it decides about their last bits."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))


def substituted(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same argument with other tensors in place of its own, in the order of `key_of`."""
    if type(value) is Tensor:
        return next(tensors)
    if nest.is_nested(value):
        return nest.map_structure(lambda leaf: substituted(leaf, tensors), value)
    return next(tensors) if is_array(value) and value.dtype.kind in "biufcV" else value


def fitted(signature: Sequence[Any], args: Sequence[Any], name: str) -> list[Any]:
    """Arguments as tensors of an `input_signature`.

    Raises:
        TypeError: if number, shape or dtype differ from it.
    """
    if len(args) != len(signature):
        raise TypeError(f"{name}: the input_signature has {len(signature)} arguments, the call {len(args)}.")
    return [_fitting(spec, value, name) for spec, value in zip(signature, args, strict=True)]


def _fitting(spec: Any, value: Any, name: str) -> Any:
    if nest.is_nested(spec):
        leaves = nest.flatten_up_to(spec, value)
        return nest.pack(spec, [_fitting(one, leaf, name) for one, leaf in zip(nest.flatten(spec), leaves, strict=True)])
    if not hasattr(spec, "shape"):
        return value
    wanted = None if spec.dtype is None else as_dtype(spec.dtype)
    tensor = value if type(value) is Tensor else convert_to_tensor(value, wanted)
    sizes = None if spec.shape is None else tuple(TensorShape(spec.shape))
    fits = sizes is None or (
        len(sizes) == tensor.ndim and all(one in (None, size) for one, size in zip(sizes, tensor.shape, strict=True))
    )
    if not fits or (wanted is not None and wanted != tensor.dtype):
        shown = f"{wanted.name if wanted else 'any'}{'' if sizes is None else list(sizes)}"
        raise TypeError(
            f"Python inputs incompatible with input_signature: {name} takes {shown}, found "
            f"{tensor.dtype.name}{list(tensor.shape)}."
        )
    return tensor
