"""The operations that users call: TensorFlow's names and signatures over primitives. Read `catalogue.py` first.

`name` is accepted for compatibility in all of them, and ignored. Names that every program needs are this module's own too.
"""

import importlib as _importlib
from typing import Any as _Any

from ..absent import own_names as _own_names
from ..core.registry import register_hooks as _register_hooks

_register_hooks("minikeras.derivatives.hessian", "DerivativesOfTape")
_register_hooks("minikeras.parallel", "product", "quiet_blas")
_register_hooks("minikeras.distribute.functions", "moments_of_ranks")
_register_hooks("minikeras.distribute.world", "initialize")
_register_hooks("minikeras.distribute.strategy", "distribution")
_register_hooks("minikeras.diagnostics", "Inquiry", "Trace", "summary_of_tape")

_FILES = [
    "operands",
    "elementwise",
    "shaping",
    "creation",
    "contractions",
    "reductions",
    "indexing",
    "ordering",
    "control_flow",
]
"""Files whose names are here too; each needs earlier ones alone."""
_shown: set[str] = set()


def __getattr__(name: str) -> _Any:
    """A name of one of the files, which are loaded one by one, up to the one that defines it: were all loaded with this module,
    two threads that use `tf` first at once could each wait for a file that the other loads.
    """
    found = globals()
    for file in _FILES if not name.startswith("__") else ():
        if file not in _shown:
            held = vars(_importlib.import_module(f".{file}", __name__))
            found.update({one: held[one] for one in _own_names(held)})
            _shown.add(file)
        if name in found:
            return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
