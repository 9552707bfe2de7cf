"""minikeras: TensorFlow's and Keras's names on a gradient tape of its own, over NumPy on the CPU and CuPy on the GPU.

Examples take `import minikeras as tf` for granted. Nothing is loaded before it is used: `minikeras.core` stands alone, and the
names of `tf` are in `facades.py`, for type checkers in `__init__.pyi`. Read `core/primitive.py` first.
"""

import importlib as _importlib
import os as _os
import sys as _sys
from importlib.machinery import ModuleSpec as _ModuleSpec
from typing import Any as _Any

_LATE = (
    *("autodiff", "bitwise", "config", "data", "debugging", "distribute", "dtypes", "errors", "experimental", "experiments"),
    *("image", "keras", "linalg", "math", "nest", "nn", "random", "signal", "strings", "summary", "test", "train"),
    "version",
)
"""Modules that are loaded by themselves when they are first used."""


_OF_NAMES = (
    *("_names", "autodiff", "bitwise", "config.experimental", "config.threading", "dtypes", "image", "linalg", "math", "nn"),
    *("random", "signal", "train", "keras.distribution", "keras.mixed_precision", "keras.optimizers.legacy"),
    *("keras.preprocessing.image", "keras.preprocessing.sequence"),
    *("keras.ops.image", "keras.ops.linalg", "keras.ops.math", "keras.ops.nn", "keras.ops.numpy"),
)
"""Modules that hold names alone and have no file."""


class _Finder:
    """Python's last finder of modules: it makes those that hold names alone, and explains others that users may expect."""

    @staticmethod
    def find_spec(name: str, path: _Any = None, target: _Any = None) -> _Any:
        """The way to make a module without a file; ModuleNotFoundError with advice for what there is none, if there is any.

        Python holds the lock of all imports here: what imports a module of the package now can wait for ever for another
        thread that does so too.
        """
        package, dot, inside = name.rpartition(f"{__name__}.")
        if package or not dot:
            return None
        if inside not in _OF_NAMES:
            return _importlib.import_module(".absent", __name__).explain_import(name)
        spec = _ModuleSpec(name, _Finder, origin=_os.path.join(_os.path.dirname(__file__), *inside.split(".")) + ".pyi")
        spec.has_location = True
        return spec

    @staticmethod
    def create_module(spec: _Any) -> None:
        """Python makes the module as it always does."""

    @staticmethod
    def exec_module(module: _Any) -> None:
        """Give the module its names."""
        _importlib.import_module(".facades", __name__).fill(module)

    @staticmethod
    def get_code(name: str) -> None:
        """There is none, so `python -m` says that it cannot run a module of names."""


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
