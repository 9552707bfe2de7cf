"""The signature that two calls of a function must share so that one recording serves both.

It holds shape, dtype, device and the order of axes in memory of tensors and arrays; numbers, strings and containers by value;
other objects by identity, whose state is guarded as facts of the recording (`compiler/guards.py`). The part of a batch that the
calls compute on (`ranks.py`) belongs to it too.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import inspect
import io
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor
from ..core.arrays import BARE, chosen_device, creation_namespace, device_name, is_array, namespace
from ..ranks import rows_here
from ..types import Array, TensorSpec, as_dtype

_BY_VALUE = (int, bool, str, bytes, type(None), complex)


class Unrecordable(Exception):
    """An argument for which a function runs eagerly; the message says what it is."""


def key_of(values: Sequence[Any], tensors: list[Tensor]) -> Hashable:
    """The signature of positional arguments; their tensors are appended to `tensors`.

    Raises:
        Unrecordable: for tensors that stand for more than their values.
    """
    found: list[Hashable] = []
    host = creation_namespace() is np
    for value in values:
        # The usual argument without a call: 0.3 us of a step of 40.
        if type(value) is Tensor and type(array := value.array) is np.ndarray and value.attached is None:
            tensors.append(value)
            found.append((array.shape, array.dtype, array.flags.c_contiguous or _order(array)))
        elif type(value) is dict and not value:  # the keywords of most calls
            found.append(dict)
        else:
            count = len(tensors)
            found.append(_described(value, tensors))
            host = host and all([type(one.array) in BARE for one in tensors[count:]])
    device = None if host else chosen_device()  # `tf.identity` moves tensors there
    return device, rows_here(), tuple(found)


def _described(value: Any, tensors: list[Tensor]) -> Hashable:
    kind = type(value)
    if kind is Tensor:
        if value.attached is not None:
            raise Unrecordable("a tensor with a mask")
        tensors.append(value)
        array = value.array
        host = namespace(array) is np
        return array.shape, array.dtype, (array.flags.c_contiguous or _order(array)) if host else device_name(array)
    if kind is tuple:
        return kind, tuple([_described(one, tensors) for one in value])
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, value.hex()  # tells -0.0 from 0.0, and a NaN is itself
    if nest.is_nested(value):
        if isinstance(value, Mapping):
            return kind, tuple(value), tuple([_described(value[name], tensors) for name in nest.keys(value)])
        return kind, tuple([_described(one, tensors) for one in value])
    if is_array(value) and (value.dtype.kind in "biufc" or value.dtype.kind == "V"):
        return _described(convert_to_tensor(value), tensors)
    if isinstance(value, Tensor):
        raise Unrecordable(f"a tensor that is a {kind.__name__.lower()} of another one")
    return kind, _content(value, kind)


def _content(value: Any, kind: type) -> Hashable:
    """The key of an argument that is neither a tensor nor a nest of them: its values, as far as they are known."""
    if isinstance(value, (set, frozenset, collections.deque)):
        return value.maxlen if isinstance(value, collections.deque) else None, _constants(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, array.array):
        return value.typecode, value.tobytes()
    if isinstance(value, slice):
        return value.start, value.stop, value.step
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, _constants(value.flat) if value.dtype.hasobject else value.tobytes()
    if hasattr(kind, "__next__") and not isinstance(value, io.IOBase):
        raise Unrecordable(f"a {kind.__name__}, which gives something else each time")
    if dataclasses.is_dataclass(value) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return _constants(getattr(value, field.name) for field in dataclasses.fields(value))
    if hasattr(kind, "as_list"):
        return repr(value)
    hashed: Any = kind.__hash__
    own_hash = hashed not in (None, object.__hash__)
    return value if own_hash and kind.__module__.partition(".")[0] in sys.stdlib_module_names else id(value)


def _constants(values: Any) -> Hashable:
    """The key of values, tensors among them by identity."""
    return tuple([id(value) if isinstance(value, Tensor) or is_array(value) else _described(value, []) for value in values])


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


def written_back(given: Any, used: Any, tensors: Mapping[int, Tensor]) -> bool:
    """Repeat on a container the changes that a function made to the copy it was given; True if there were any.

    Args:
        given, used: an argument, and what `substituted` made of it.
        tensors: by the identity of a tensor in `used` the one that it stands for.
    """
    if not nest.is_nested(given) or given is used:
        return False
    before, after = (dict(one if isinstance(one, Mapping) else enumerate(one)) for one in (given, used))
    after = {key: tensors.get(id(one), one) for key, one in after.items()}
    deep = [key for key, one in after.items() if nest.is_nested(one) and nest.is_nested(before.get(key))]
    wrote = any([written_back(before[key], after[key], tensors) for key in deep])
    after |= {key: before[key] for key in deep}
    if list(before) == list(after) and all(before[key] is one or is_array(before[key]) for key, one in after.items()):
        return wrote
    held: Any = given
    held.clear()
    if isinstance(given, Mapping):
        held.update(after)
    else:
        held.extend(after.values())
    return True


def bound(
    parameters: inspect.Signature, signature: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position, those of an `input_signature` as tensors of it, and the keyword-only arguments.

    Parameters beyond the `input_signature` have their defaults; the first of a method, `self`, is no part of it.

    Raises:
        TypeError: if number, names, shape or dtype differ from it.
    """
    first = next(iter(parameters.parameters), "")
    own = int(first in ("self", "cls"))
    count = len(signature)
    try:
        given = parameters.bind(*args, **kwargs)
    except TypeError as error:
        found = len(args) + len(kwargs) - own
        raise TypeError(f"{name}: {error}; the input_signature has {count} arguments, the call {found}.") from error
    given.apply_defaults()
    values = list(given.args)
    if not len(args) - own <= count <= len(values) - own:
        raise TypeError(f"{name}: the input_signature has {count} arguments, the call {len(values) - own}.")
    fitting = [_fitting(spec, value, name) for spec, value in zip(signature, values[own : own + count], strict=True)]
    return [*values[:own], *fitting, *values[own + count :]], dict(given.kwargs)


def _fitting(spec: Any, value: Any, name: str) -> Any:
    if nest.is_nested(spec):
        leaves = nest.flatten_up_to(spec, value)
        return nest.pack(spec, [_fitting(one, leaf, name) for one, leaf in zip(nest.flatten(spec), leaves, strict=True)])
    if not hasattr(spec, "shape"):
        return value
    tensor = value if type(value) is Tensor else convert_to_tensor(value, spec.dtype and as_dtype(spec.dtype))
    wanted = TensorSpec(spec.shape, spec.dtype or tensor.dtype)
    if not wanted.is_compatible_with(tensor):
        shown = f"{wanted.dtype.name}{'' if wanted.shape is None else list(wanted.shape)}"
        raise TypeError(
            f"Python inputs incompatible with input_signature: {name} takes {shown}, found "
            f"{tensor.dtype.name}{list(tensor.shape)}."
        )
    return tensor
