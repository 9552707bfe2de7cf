"""Operations by name, for the few places below `ops` that need one: `Tensor.__add__`, the sums of cotangents.

Every primitive registers itself when it is defined, and is looked up when it is called. `late` loads what few programs need.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

operations: Any = SimpleNamespace()
"""`operations.multiply` is the primitive of that name."""

_LATE = {
    "jacobian_of_tape": "..derivatives.jacobian",
    "batch_jacobian_of_tape": "..derivatives.jacobian",
    "hessian_of_tape": "..derivatives.hessian",
    "hvp_of_tape": "..derivatives.hessian",
    "compiled_sweep": "..compiler.sweeps",
    "transposed": "..derivatives.transposition",
    "Trace": "..diagnostics.trace",
    "explanations": "..diagnostics.explain",
    "refuse_unconnected": "..diagnostics.explain",
    "bytes_of_tape": "..diagnostics.tape_summary",
    "summary_of_tape": "..diagnostics.tape_summary",
    "call_on_symbols": "..keras.ops.symbols",
    "operate_on_symbols": "..keras.ops.symbols",
    "mask_of_symbol": "..keras.ops.symbols",
}
"""What the core asks of modules above it, and where it is defined."""


def register(name: str, operation: Any) -> None:
    """Make `operations.<name>` stand for an operation.

    Raises:
        ValueError: if the name is taken.
    """
    if hasattr(operations, name):
        raise ValueError(f"operation {name!r} is defined already; choose another name.")
    setattr(operations, name, operation)


def late(name: str) -> Any:
    """What a module above the core defines under a name; the module is loaded when it is first asked for."""
    return getattr(importlib.import_module(_LATE[name], __package__), name)
