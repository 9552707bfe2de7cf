"""Automatic names of layers, optimizers and metrics: one count for each class name and process."""

from __future__ import annotations

from collections import Counter

_counts: Counter[str] = Counter()
_asked: Counter[str] = Counter()


def auto_name(prefix: str) -> str:
    """'dense', then 'dense_1', 'dense_2' and so on."""
    count = _counts[prefix]
    _counts[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def get_uid(prefix: str = "") -> int:
    """How often this was asked for a prefix.

    >>> get_uid("layer of mine"), get_uid("layer of mine")
    (1, 2)
    """
    _asked[prefix] += 1
    return _asked[prefix]


def clear_session(free_memory: bool = True) -> None:
    """Start the counting of automatic names anew."""
    _counts.clear()
    _asked.clear()
