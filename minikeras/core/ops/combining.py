"""Rows combined at places that may repeat, on a device.

CuPy's `ufunc.at` cannot multiply, knows neither complex numbers nor 16-bit ones, and adds in an order that is another one in
each run. Here rows are sorted by their places, and neighbours combined in windows of 1, 2, 4, ...: the same bits in each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...types import Array


def combined_at(xp: Any, combine: Callable[[Any, Any], Any], rows: Array, places: Array, size: int, start: Any) -> Array:
    """`size` rows: each is `start`, combined with all `rows` (n, ...) whose place (n,) is its number."""
    n, lead = places.shape[0], (-1,) + (1,) * (rows.ndim - 1)
    whole = xp.full((size, *rows.shape[1:]), start, dtype=rows.dtype)
    if not n or not size:
        return whole
    order = xp.argsort(places)
    rows, places = rows[order], places[order]
    step = 1
    while step < n:
        same = (places[:-step] == places[step:]).reshape(lead)
        rows = xp.concatenate([xp.where(same, combine(rows[:-step], rows[step:]), rows[:-step]), rows[n - step :]])
        step *= 2
    numbers = xp.arange(size, dtype=places.dtype)
    first, end = xp.searchsorted(places, numbers), xp.searchsorted(places, numbers, side="right")
    found = rows[xp.minimum(first, n - 1)]  # the first row of a place holds them all by now
    return xp.where((end > first).reshape(lead), combine(whole, found), whole)


def flat_places(xp: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """The places that index arrays address, counted through the axes of `shape`; negative indices count from the end."""
    total: Any = 0
    for indices, size in zip(key, shape, strict=True):
        indices = indices.astype("int64")
        total = total * size + xp.where(indices < 0, indices + size, indices)
    return total
