"""`keras.ops.vectorize`: a function of single elements, or of small arrays, over broadcast axes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....functions.control_flow import vectorized_map
from ....functions.shaping import broadcast_to, reshape

__all__ = ["vectorize"]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] | None = None, signature: str | None = None
) -> Callable[..., Any]:
    """A function that is called for every element, or every core array, of its broadcast arguments, all at once.

    Args:
        pyfunc: the function.
        excluded: positions and names of arguments that are given as they are.
        signature: the axes of a core array of each argument, such as '(n),(m)->(n,m)'; single elements if None.

    Returns:
        The function; the axes over which it runs come first in its results.

    Raises:
        ValueError: for a signature that cannot be read, or that names more or fewer arguments than there are.

    >>> print(tf.keras.ops.vectorize(lambda a, b: a + 10 * b)([1, 2], [[1], [2]]).numpy().tolist())
    [[11, 12], [21, 22]]
    """
    cores = None if signature is None else _ranks(signature)
    left_out = set(excluded or ())

    @functools.wraps(pyfunc)
    def called(*args: Any, **kwargs: Any) -> Any:
        places = [place for place in range(len(args)) if place not in left_out]
        tensors = [convert_to_tensor(args[place]) for place in places]
        ranks = [0] * len(tensors) if cores is None else cores
        if len(ranks) != len(tensors):
            raise ValueError(f"vectorize: the signature {signature!r} has {len(ranks)} arguments, found {len(tensors)}.")
        loops = np.broadcast_shapes(*(x.shape[: x.ndim - rank] for x, rank in zip(tensors, ranks, strict=True)))

        def one(parts: list[Tensor]) -> Any:
            given = list(args)
            for place, part in zip(places, parts, strict=True):
                given[place] = part
            return pyfunc(*given, **kwargs)

        flat = [
            reshape(broadcast_to(x, [*loops, *x.shape[x.ndim - rank :]]), [math.prod(loops), *x.shape[x.ndim - rank :]])
            for x, rank in zip(tensors, ranks, strict=True)
        ]
        results = vectorized_map(one, flat)
        several = isinstance(results, (list, tuple))
        shaped = [reshape(y, [*loops, *y.shape[1:]]) for y in (results if several else [results])]
        return tuple(shaped) if several else shaped[0]

    return called


def _ranks(signature: str) -> list[int]:
    """The number of core axes of each argument of a signature such as '(n,m),()->(n)'."""
    core = r"\([^()]*\)"
    if not re.fullmatch(rf"{core}(,{core})*->{core}(,{core})*", signature.replace(" ", "")):
        raise ValueError(f"vectorize: cannot read the signature {signature!r}; write for example '(n),(m)->(n,m)'.")
    arguments = re.findall(core, signature.partition("->")[0])
    return [len([axis for axis in one.strip("() ").split(",") if axis.strip()]) for one in arguments]
