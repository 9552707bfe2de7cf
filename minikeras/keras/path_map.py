"""PathMap: a dict from paths, or regular expressions that match all of a path, to optimizers or policies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, TypeVar

Value = TypeVar("Value")
LONGEST, REPEATS = 300, 3
"""What a pattern from a file may have: characters, and signs of repetition; and the characters of a path that is matched.
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
        """What belongs to a path; ValueError if several patterns match it."""
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
