"""Operations by name, for the few places below `ops` that need one.

`Tensor.__add__`, the undoing of broadcasting and the adding up of cotangents use operations that live above the core. Every
primitive enters itself here when it is defined, and is looked up when it is called.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

operations: Any = SimpleNamespace()
"""`operations.multiply` is the primitive of that name."""


def enter(name: str, operation: Any) -> None:
    """Make `operations.<name>` stand for an operation.

    Raises:
        ValueError: if the name is taken.
    """
    if hasattr(operations, name):
        raise ValueError(f"operation {name!r} is defined already; choose another name.")
    setattr(operations, name, operation)
