"""Names that the core looks up when it is called: operations, for `Tensor.__add__` or the sums of cotangents, and hooks.

Every primitive registers itself when it is defined. A floor above registers hooks when it is loaded, by name alone: what they
stand for is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from .locks import importing

operations: Any = SimpleNamespace()
"""`operations.multiply` is the primitive of that name."""

_hooks: dict[str, str] = {}
"""The module that defines the hook of a name."""
_loaded: dict[str, Any] = {}


def register(name: str, operation: Any) -> None:
    """Make `operations.<name>` stand for an operation.

    Raises:
        ValueError: if the name is taken.
    """
    if hasattr(operations, name):
        raise ValueError(f"operation {name!r} is defined already; choose another name.")
    setattr(operations, name, operation)


def register_hooks(module: str, *names: str) -> None:
    """Have `hook` find these names in a module, which need not be loaded yet."""
    _hooks.update(dict.fromkeys(names, module))


def find_hook(name: str) -> Any:
    """The object that a floor above the core defines under a name, loaded now; None if no loaded floor has registered it."""
    if name not in _loaded and name in _hooks:
        with importing:
            _loaded[name] = getattr(importlib.import_module(_hooks[name]), name)
    return _loaded.get(name)


def hook(name: str) -> Any:
    """The object that a floor above the core defines under a name, loaded now.

    Raises:
        NotImplementedError: if no floor that is loaded has registered it.
    """
    found = find_hook(name)
    if found is None:
        raise NotImplementedError(f"{name!r} is not part of the core alone. Use the public names: import minikeras as tf.")
    return found
