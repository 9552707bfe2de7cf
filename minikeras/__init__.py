"""minikeras: TensorFlow's and Keras's names on a gradient tape of its own, over NumPy on the CPU and CuPy on the GPU.

Examples take `import minikeras as tf` for granted. Nothing is loaded before it is used: `minikeras.core` stands alone, and the
names of `tf` are in `facades.py`, for type checkers in `__init__.pyi`. Read `core/primitive.py` first.
"""

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

_LATE = (
    *("autodiff", "bitwise", "config", "data", "debugging", "distribute", "dtypes", "errors", "experimental", "experiments"),
    *("image", "keras", "linalg", "math", "nest", "nn", "random", "signal", "strings", "summary", "test", "train"),
    "version",
)
"""Modules that are loaded by themselves when they are first used."""


class _Finder:
    """Python's last finder of modules: it makes those that hold names alone, and explains others that users may expect."""

    @staticmethod
    def find_spec(name: str, path: _Any = None, target: _Any = None) -> _Any:
        """The way to make a module of the package that has no file; ModuleNotFoundError with advice, if there is any."""
        if name.partition(".")[0] == __name__:
            return _importlib.import_module(".facades", __name__).spec_of(name)
        return None


if all(getattr(finder, "__module__", "") != __name__ for finder in _sys.meta_path):  # else the package was loaded before
    _sys.meta_path.append(_Finder)


def __getattr__(name: str) -> _Any:
    """Modules and names are loaded when they are first used."""
    if name in _LATE:
        return _importlib.import_module(f".{name}", __name__)
    if name == "__version__":
        return _importlib.import_module(".version", __name__).VERSION
    if name == "__all__":
        return [name for name in __dir__() if not name.startswith("_")]
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__])
    names = _importlib.import_module("._names", __name__)
    value = getattr(names, name)
    if name in names.__all__:
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The names that are loaded or can be loaded, so that completion works."""
    found = dir(_importlib.import_module("._names", __name__))
    return sorted({*globals(), *_LATE, *(name for name in found if not name.startswith("_"))})
