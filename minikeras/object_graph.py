"""The one walk over what objects hold: attributes of Modules, elements of lists, tuples and dicts.

Nothing is registered. Each user (weights of layers, checkpoints, files of models) says what it follows and how that is named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

Named = Iterable[tuple[str, Any]]


def walk(
    *roots: tuple[str, Any], children: Callable[[Any], Named], separator: str, breadth_first: bool = False
) -> Iterator[tuple[str, Any, str | None]]:
    """Some objects, each given with its path, and all that they lead to.

    Yields:
        Path, object, and the path at which this object was met before; None if it was not. It is followed once.
    """
    met: dict[int, tuple[str, Any]] = {}  # the object too: one made on the way, once freed, would leave its id to the next
    waiting = deque(roots)
    while waiting:
        place = path, value = waiting.popleft()
        before = met.setdefault(id(value), place)
        if before is not place:
            yield path, value, before[0]
            continue
        yield path, value, None
        start = f"{path}{separator}" if path else ""
        found = [(start + name, child) for name, child in children(value)]
        if breadth_first:
            waiting.extend(found)
        else:
            waiting.extendleft(reversed(found))


def attributes(owner: Any, also: Collection[str] = ()) -> Named:
    """The attributes of a Module in the order in which they were set, without those that its class names in `_not_walked`."""
    hidden = owner._not_walked
    return [(name, value) for name, value in vars(owner).items() if name not in hidden or name in also]


def elements(container: Any) -> Named:
    """The elements of a list, tuple or dict by number or key; nothing of any other object."""
    if isinstance(container, Mapping):
        return [(str(key), value) for key, value in container.items()]
    return [(str(number), value) for number, value in enumerate(container)] if isinstance(container, (list, tuple)) else ()
