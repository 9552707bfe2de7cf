"""Collective operations on Tensors and Variables. They are recorded in compiled steps and carried out in each."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import Primitive, State, Tensor, Variable, convert_to_tensor, effect, namespace, perform, to_device, to_numpy
from ..derivatives.flat import flatten, unflatten
from ..errors import InvalidArgumentError, ShapeError
from ..functions import cast, divide_no_nan, one_hot, ones_like, reduce_sum, reshape, square, stack, unstack
from ..layout import Layout
from ..nn_ops.nn import masked_fill
from ..ranks import Communicator, rows_here, world
from ..types import Array
from .communicator import OPERATIONS, nccl_ranks

_COUNTED = re.compile(r"_\d+(?=[/_]|$)")


def _reduced(array: Array, *, operation: str, rows: int | None = None, weighted: bool = False) -> Array:
    ranks = world()
    given, group = _with_group(ranks, [array])
    given = given[0] * rows if weighted and rows is not None else given[0]
    result = group.all_reduce(given, "sum" if operation == "mean" else operation)
    divisor = (ranks.size if operation == "mean" else 1) * (max(rows, 1) if weighted and rows is not None else 1)
    if divisor != 1:
        result = np.divide(result, divisor, out=None if result is given else result, casting="unsafe")
    return to_device(result, namespace(array))


def _with_group(ranks: Communicator, arrays: Sequence[Array]) -> tuple[list[Array], Communicator]:
    """The arrays and the ranks' operations on them: NCCL's where all lie on a GPU; MPI's, with copies on the host, else."""
    group = nccl_ranks(ranks, arrays)
    return ([to_numpy(one) for one in arrays], ranks) if group is None else (list(arrays), group)


def _vjp(wanted: Sequence[int], g: Any, y: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    if params["operation"] not in ("sum", "mean"):
        return [None]
    return [reduced(g, **{**params, "weighted": not params.get("weighted", False)})]


def _jvp(tangents: Sequence[Any], y: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return reduced(*tangents, **params) if params["operation"] in ("sum", "mean") else None


reduced = Primitive(
    "all_reduce",
    lambda xp: _reduced,
    vjp=_vjp,
    jvp=_jvp,
    uniform=False,
    batching="keep",
    effect=True,
    reads=(State.RANKS,),
    registered=False,
)
"""An effect with a derivative: a sum over the ranks is its own transpose.

What ranks compute on parts of a batch enters a mean that is weighted by `rows`, and so do the cotangents there: `weighted` sums
are those of each rank times its rows, divided by the rows of the one that gets it. The two kinds of sums are transposes of one
another. None, outside of parts, weighs all ranks alike.
"""


def in_pairs(parts: Sequence[Any]) -> Any:
    """The sum of a power of two of parts, of neighbours first: the same bits however many of them were added up before.

    >>> in_pairs([1.0, 2.0, 3.0, 4.0])
    10.0
    """
    while len(parts) > 1:
        parts = [one + other for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _combined(*arrays: Array, shares: Sequence[float], weighted: int, pairs: bool) -> tuple[Array, ...]:
    """See `combine`."""
    count = len(arrays) // len(shares)
    scaled: Counter[Any] = Counter()
    for array in arrays[:weighted]:
        scaled[array.dtype] += array.size

    def added_up(group: Communicator, flat: Array) -> Array:
        parts = list(flat.reshape(len(shares), -1))
        for part, share in zip(parts, shares, strict=True):
            part[: scaled[flat.dtype]] *= flat.dtype.type(share)
        own = in_pairs(parts)
        return in_pairs(list(group.all_gather(own))) if pairs else group.all_reduce(own, "sum")

    return tuple(exchanged(arrays, added_up, count))


def exchanged(
    arrays: Sequence[Array], exchange: Callable[[Communicator, Array], Array], count: int | None = None
) -> list[Array]:
    """The arrays that `exchange` makes of arrays, by one operation for each dtype: those of one go as one vector.

    Args:
        arrays: those of several parts, one after another.
        exchange: from such a vector to one like that of the first part.
        count: the number of arrays of a part; None for all.
    """
    found: dict[int, Array] = {}
    for kind in {array.dtype: None for array in arrays}:
        chosen = [array for array in arrays if array.dtype == kind]
        first = [place for place, array in enumerate(arrays[:count]) if array.dtype == kind]
        given, group = _with_group(world(), chosen)
        flat = exchange(group, np.concatenate([array.reshape(-1) for array in given]))
        pieces = Layout(arrays[place].shape for place in first).pieces(flat)
        found |= {place: to_device(piece, namespace(arrays[place])) for place, piece in zip(first, pieces, strict=True)}
    return [found[place] for place in range(len(found))]


combined = effect("combine", _combined, reads=(State.RANKS,))


def combine(parts: Sequence[Sequence[Tensor]], shares: Sequence[float], weighted: int, pairs: bool) -> tuple[Tensor, ...]:
    """The sums of the tensors of all parts of a batch, by one collective operation for each dtype.

    Args:
        parts: for each part that this rank computes as many tensors, in one order.
        shares: the share of each of these parts in the rows of the batch.
        weighted: the number of tensors, from the first on, that are multiplied by the share before.
        pairs: whether neighbouring parts are added up first, so that the sum does not depend on which rank computes which.
    """
    found: tuple[Tensor, ...] = perform(
        combined, [one for part in parts for one in part], {"shares": tuple(shares), "weighted": weighted, "pairs": pairs}
    )
    return found


def all_reduce(x: Any, op: str = "sum") -> Tensor:
    """The sum, mean, maximum or minimum of the tensors of all ranks; the same bits on each.

    Sums and means are differentiated: the gradient of a value is the sum over the ranks, all of which must ask for it. Maximum
    and minimum have no derivative.

    Args:
        x: a tensor of one shape and dtype on all ranks; bool for 'max' (any) and 'min' (all) alone, complex for the others.
        op: 'sum', 'mean', 'max' or 'min'.

    Raises:
        InvalidArgumentError: for another operation, or one that the dtype has not, such as the mean of integers.
        RuntimeError: where a rank computes several shards one after another, which cannot wait for each other.

    >>> print(tf.distribute.all_reduce([1.0, 2.0], "mean").numpy())
    [1. 2.]
    """
    tensor = convert_to_tensor(x)
    if op not in (*OPERATIONS, "mean"):
        raise InvalidArgumentError(f"all_reduce: op must be 'sum', 'mean', 'max' or 'min', found {op!r}.")
    if tensor.dtype.kind in {"mean": "biuOUS", "sum": "bOUS"}.get(op, "cOUS"):
        raise InvalidArgumentError(f"all_reduce: there is no {op} of {tensor.dtype.name}; cast it first.")
    here = rows_here()
    here.check_exchange("all_reduce")
    weights = {} if here.rows is None else {"rows": here.rows}
    result: Tensor = perform(reduced, (tensor,), {"operation": op, **weights})
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
        places = [place for place, one in found.items() if one.dtype.name == kind]
        chosen = [found[place] for place in places]
        for place, one in zip(places, unflatten(all_reduce(flatten(chosen), op), chosen), strict=True):
            results[place] = one
    return results


def broadcast_variables(variables: Iterable[Variable], root_rank: int = 0) -> None:
    """Give Variables the values that they have on one rank, such as the first weights, or those of a checkpoint.

    Raises:
        InvalidArgumentError: if there is no such rank.
        ShapeError: on every rank, if the Variables differ in number, shape or dtype.

    >>> v = tf.Variable([1.0, 2.0])
    >>> tf.distribute.broadcast_variables([v])
    """
    ranks, listed = world(), list(variables)
    if root_rank not in range(ranks.size):
        raise InvalidArgumentError(
            f"broadcast_variables: root_rank must be one of the ranks 0 to {ranks.size - 1}, found {root_rank!r}."
        )
    check_alike(listed)
    arrays = exchanged([to_numpy(variable.array) for variable in listed], lambda group, flat: group.broadcast(flat, root_rank))
    for variable, array in zip(listed, arrays, strict=True):
        variable.assign(Tensor(array))


def check_alike(variables: Sequence[Variable]) -> None:
    """Refuse Variables that are not the same in number, shape and dtype on all ranks; each rank says which differ."""
    names = [getattr(one, "path", None) or one.name.removesuffix(":0") for one in variables]
    described = [  # without the numbers that a process counts up ('dense_3')
        f"{_COUNTED.sub('', name)} {one.dtype.name}{list(one.shape)}" for name, one in zip(names, variables, strict=True)
    ]
    ranks = world()
    counts = ranks.all_gather(np.array([len(described)])).ravel().tolist()
    if len(set(counts)) > 1:
        raise ShapeError(f"the ranks have {counts} Variables; all must build the same model.")
    if (found := first_difference(described)) is not None:
        place, others = found
        raise ShapeError(
            f"on rank {ranks.rank} Variable {place} is {described[place]}, on the ranks {others} it is another. All ranks must "
            "build the same model."
        )


def first_difference(lines: Sequence[str]) -> tuple[int, list[int]] | None:
    """The first place where the ranks' lines differ or one has no more, and the ranks whose line there is not this rank's."""
    ranks = world()
    most = int(ranks.all_reduce(np.array([len(lines)]), "max")[0])
    marks = ranks.all_gather(np.array([*map(hash_of, lines), *[0] * (most - len(lines))], np.int64))
    for place in np.flatnonzero((marks != marks[0]).any(0)).tolist():
        return place, np.flatnonzero(marks[:, place] != marks[ranks.rank, place]).tolist()
    return None


def hash_of(text: str) -> int:
    """A number of 63 bits that texts share only by accident, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def moments_of_ranks(x: Tensor, axes: Sequence[int], weights: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor] | None:
    """Number, mean and population variance of the values of all ranks along axes, which are kept as axes of size 1; None if
    there is but one rank, which computes on whole batches.

    Each rank gives those of its own values, and they are put together in float64, so a variance that is small beside the mean
    loses no digits. That takes one collective operation, and its derivative another one.

    Args:
        x: floats; a rank may have none.
        axes: over which to take them; sizes along them may differ among the ranks.
        weights: None, or 0 and 1 of the shape of x, 0 for values that do not count.

    Source: Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance (1983), equation (1.5).
    """
    here, ranks = rows_here(), world()
    here.check_exchange("synchronized=True")
    if ranks.size == 1 and here.rows is None:
        return None
    number: Any = float(math.prod([x.shape[axis] for axis in axes])) if weights is None else reduce_sum(weights, axes, True)
    mean = divide_no_nan(_sum(x, axes, weights), number)
    variance = divide_no_nan(_sum(square(x - mean), axes, weights), number)
    own = cast(stack([ones_like(mean) * number, mean, variance]), "float64")
    if here.rows == 0:
        own = own * 0.0
    mine = reshape(one_hot(ranks.rank, ranks.size, dtype="float64"), (ranks.size, *[1] * own.ndim))
    numbers, means, variances = unstack(all_reduce(mine * own), axis=1)
    total = reduce_sum(numbers, 0)
    shares = divide_no_nan(numbers, total)
    middle = reduce_sum(shares * means, 0)
    spread = reduce_sum(shares * (variances + square(means - middle)), 0)
    return cast(total, x.dtype), cast(middle, x.dtype), cast(spread, x.dtype)


def _sum(values: Tensor, axes: Sequence[int], weights: Tensor | None) -> Tensor:
    """The sum of the values that count."""
    return reduce_sum(values if weights is None else masked_fill(weights != 0.0, values), axes, True)
