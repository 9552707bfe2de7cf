"""Operations that Python carries out on the host, element by element: of text, and of what no array library knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.arrays import to_device, to_numpy
from ..core.primitive import Primitive
from ..types import Array


def by_elements(name: str, function: Callable[..., Array]) -> Primitive:
    """An operation on each element by Python: `function(array, **params)` of arrays on the host. Recorded steps repeat it."""

    def computed(*arrays: Array, **params: Any) -> Array:
        found = function(*map(to_numpy, arrays), **params)
        return found if found.dtype == object else to_device(found)

    return Primitive(
        name, lambda xp: computed, differentiable=False, uniform=False, batching="align", registered=False, mixed=True
    )
