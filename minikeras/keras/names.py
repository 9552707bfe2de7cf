"""Automatic names of layers, optimizers and metrics: one count for each class name and process."""

from __future__ import annotations

from collections import Counter

_counts: Counter[str] = Counter()


def auto_name(prefix: str) -> str:
    """'dense', then 'dense_1', 'dense_2' and so on."""
    count = _counts[prefix]
    _counts[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def clear_session() -> None:
    """Start the counting of automatic names anew."""
    _counts.clear()
