"""Collective operations on Tensors and Variables. They are recorded in compiled steps and carried out in each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..arrays import namespace, to_device, to_numpy
from ..core import Tensor, Variable, convert_to_tensor
from ..core.effects import State, effect
from ..core.stack import perform
from ..errors import InvalidArgumentError, ShapeError
from ..functions.shaping import concat, reshape
from ..types import Array
from .communicator import OPERATIONS
from .world import world

_COUNTED = re.compile(r"_\d+(?=[/_]|$)")


def _reduced(array: Array, *, operation: str) -> Array:
    ranks = world()
    result = ranks.all_reduce(to_numpy(array), "sum" if operation == "mean" else operation)
    if operation == "mean":
        result = (result / ranks.size).astype(result.dtype)
    return to_device(result, namespace(array))


reduced = effect("all_reduce", _reduced, reads=(State.VARIABLES,))


def all_reduce(x: Any, op: str = "sum") -> Tensor:
    """The sum, mean, maximum or minimum of what all ranks give; the same bits on each. It has no derivative.

    Args:
        x: a tensor of one shape and dtype on all ranks; bool for 'max' (any) and 'min' (all).
        op: 'sum', 'mean', 'max' or 'min'.

    Raises:
        InvalidArgumentError: for another operation, or the mean of integers.

    >>> print(tf.distribute.all_reduce([1.0, 2.0], "mean").numpy())
    [1. 2.]
    """
    tensor = convert_to_tensor(x)
    if op not in (*OPERATIONS, "mean"):
        raise InvalidArgumentError(f"all_reduce: op must be 'sum', 'mean', 'max' or 'min', found {op!r}.")
    if (op == "mean" and not tensor.dtype.is_floating) or tensor.dtype.kind in "OUS":
        raise InvalidArgumentError(f"all_reduce: there is no {op} of {tensor.dtype.name}; cast it to a float first.")
    result: Tensor = perform(reduced, (tensor,), {"operation": op})
    return result


def all_reduce_together(tensors: Sequence[Any], op: str = "sum") -> list[Any]:
    """`all_reduce` of many tensors by one operation for each dtype; None stays None.

    >>> a, _, b = tf.distribute.all_reduce_together([[1.0], None, [[2.0, 3.0]]])
    >>> print(a.numpy(), b.numpy())
    [1.] [[2. 3.]]
    """
    found = {place: convert_to_tensor(one) for place, one in enumerate(tensors) if one is not None}
    results: list[Any] = [None] * len(tensors)
    for kind in {one.dtype.name: None for one in found.values()}:
        chosen = {place: one for place, one in found.items() if one.dtype.name == kind}
        flat, start = all_reduce(concat([reshape(one, [-1]) for one in chosen.values()], 0), op), 0
        for place, one in chosen.items():
            end = start + one.shape.num_elements()
            results[place], start = reshape(flat[start:end], one.shape), end
    return results


def broadcast_variables(variables: Iterable[Variable], root: int = 0) -> None:
    """Give Variables the values that they have on one rank, such as the first weights, or those of a checkpoint.

    Raises:
        ShapeError: on every rank, if the Variables differ in number, shape or dtype.

    >>> v = tf.Variable([1.0, 2.0])
    >>> tf.distribute.broadcast_variables([v])
    """
    ranks, listed = world(), list(variables)
    check_alike(listed)
    for kind in {variable.dtype.name: None for variable in listed}:
        chosen = [variable for variable in listed if variable.dtype.name == kind]
        flat = np.concatenate([to_numpy(variable._array).reshape(-1) for variable in chosen])
        flat, start = ranks.broadcast(flat, root), 0
        for variable in chosen:
            size = int(np.prod(variable.shape, dtype=int))
            variable.assign(Tensor(flat[start : start + size].reshape(variable.shape)))
            start += size


def check_alike(variables: Sequence[Variable]) -> None:
    """Refuse Variables that are not the same in number, shape and dtype on all ranks; each rank says which differ."""
    described = [f"{_name_of(one)} {one.dtype.name}{list(one.shape)}" for one in variables]
    ranks = world()
    marks = np.array([hash_of(line) for line in described] + [len(described)], np.int64)
    counts = ranks.all_gather(marks[-1:]).ravel()
    if len(set(counts.tolist())) > 1:
        raise ShapeError(f"the ranks have {counts.tolist()} Variables; all must build the same model.")
    found = ranks.all_gather(marks)
    for place, line in enumerate(described):
        column = found[:, place]
        if (column != column[0]).any():
            others = [number for number in range(ranks.size) if column[number] != column[ranks.rank]]
            raise ShapeError(
                f"on rank {ranks.rank} Variable {place} is {line}, on the ranks {others} it is another. All ranks must build "
                "the same model."
            )


def _name_of(variable: Variable) -> str:
    """The path or name without the numbers that a process counts up ('dense_3')."""
    return _COUNTED.sub("", getattr(variable, "path", None) or variable.name.removesuffix(":0"))


def hash_of(text: str) -> int:
    """A number of 63 bits that texts share only by accident, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
