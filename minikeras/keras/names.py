"""Automatic names of layers, optimizers and metrics; PathMap: a dict from paths, or patterns of them."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, TypeVar

_counts: Counter[str] = Counter()
_asked: Counter[str] = Counter()


def auto_name(prefix: str) -> str:
    """'dense', then 'dense_1', 'dense_2' and so on."""
    count = _counts[prefix]
    _counts[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def is_auto_name(name: str, prefix: str) -> bool:
    """True if a name is one that `auto_name` gives.

    >>> is_auto_name("dense_12", "dense"), is_auto_name("dense_a", "dense")
    (True, False)
    """
    count = name.removeprefix(f"{prefix}_")
    return name == prefix or (count != name and count.isdecimal())


def get_uid(prefix: str = "") -> int:
    """The number of calls with a prefix, this one included.

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


Value = TypeVar("Value")
LONGEST, REPEATS = 300, 3
"""The most characters of a pattern from a file, and of a path that is matched, and the most signs of repetition in a pattern.
Matching could take years otherwise.
"""


class PathMap(MutableMapping[str, Value]):
    """Base: a path is looked up as it is, then among the patterns, and then gets the default."""

    def __init__(self) -> None:
        self._entries: dict[str, Value] = {}

    @property
    def _default(self) -> Value:
        raise NotImplementedError

    def _checked(self, value: Any) -> Value:
        """A value that may be an entry."""
        raise NotImplementedError

    def __getitem__(self, key: str) -> Value:
        """The value for a path; ValueError if several patterns match it."""
        if key in self._entries:
            return self._entries[key]
        if len(key) > LONGEST:
            raise ValueError(f"{type(self).__name__}: the path {key!r:.80} has more than {LONGEST} characters.")
        found = [pattern for pattern in self._entries if re.fullmatch(pattern, key)]
        if len(found) > 1:
            raise ValueError(
                f"{type(self).__name__}: several patterns match '{key}': {found}. Write them so that one does, or give "
                "the path itself."
            )
        return self._entries[found[0]] if found else self._default

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str) or key in self._entries:
            kind = type(self).__name__
            raise ValueError(f"{kind}: expected a new path or pattern, found {key!r}; there are {list(self._entries)}.")
        self._entries[key] = self._checked(value)

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)


def check_patterns(patterns: Iterable[str]) -> None:
    """Refuse patterns of a file that could take long to match."""
    for pattern in patterns:
        if len(pattern) > LONGEST or len(re.findall(r"[*+?{]", pattern)) > REPEATS or re.search(r"\)[*+{]", pattern):
            raise ValueError(f"The pattern {pattern!r:.100} for paths could take too long to match; write a shorter one.")
