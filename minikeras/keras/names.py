"""Automatic names of layers, optimizers and metrics: one count for each class name and process."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

_counts: Counter[str] = Counter()
_asked: Counter[str] = Counter()


def auto_name(prefix: str) -> str:
    """'dense', then 'dense_1', 'dense_2' and so on."""
    count = _counts[prefix]
    _counts[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def is_auto_name(name: str, prefix: str) -> bool:
    """Whether a name is one that `auto_name` gives.

    >>> is_auto_name("dense_12", "dense"), is_auto_name("dense_a", "dense")
    (True, False)
    """
    count = name.removeprefix(f"{prefix}_")
    return name == prefix or (count != name and count.isdecimal())


def get_uid(prefix: str = "") -> int:
    """How often this was asked for a prefix.

    >>> get_uid("layer of mine"), get_uid("layer of mine")
    (1, 2)
    """
    _asked[prefix] += 1
    return _asked[prefix]


def clear_session(free_memory: bool = True) -> None:
    """Start the counting of automatic names anew.

    >>> first = tf.keras.layers.Dense(1).name
    >>> tf.keras.backend.clear_session()
    >>> tf.keras.layers.Dense(1).name == first
    True
    """
    _counts.clear()
    _asked.clear()


@contextlib.contextmanager
def counted_anew() -> Iterator[None]:
    """Within the block automatic names are those of a new process; afterwards the counting goes on where it was.

    >>> auto_name("probe"), auto_name("probe")
    ('probe', 'probe_1')
    >>> with counted_anew():
    ...     auto_name("probe")
    'probe'
    >>> auto_name("probe")
    'probe_2'
    """
    kept = Counter(_counts), Counter(_asked)
    clear_session()
    try:
        yield
    finally:
        clear_session()
        _counts.update(kept[0])
        _asked.update(kept[1])
