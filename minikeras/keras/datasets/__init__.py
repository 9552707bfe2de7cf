"""Small datasets: found on the machine or downloaded, verified by SHA-256, returned as NumPy arrays in Keras' shapes.

May import `minikeras.errors`, `minikeras.files`, the ranks, NumPy and the standard library. Read `catalogue.py`, then
`locate.py`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minikeras.keras.datasets import (
        boston_housing,
        breast_cancer,
        california_housing,
        cifar10,
        cifar100,
        digits,
        fashion_mnist,
        imdb,
        iris,
        mnist,
        reuters,
        wine,
    )
    from minikeras.keras.datasets.manage import clear_cache, list_available, path
    from minikeras.keras.datasets.remote_file import get_file

__all__ = [
    "boston_housing",
    "breast_cancer",
    "california_housing",
    "cifar10",
    "cifar100",
    "clear_cache",
    "digits",
    "fashion_mnist",
    "get_file",
    "imdb",
    "iris",
    "list_available",
    "mnist",
    "path",
    "reuters",
    "wine",
]

_MODULE_OF_FUNCTION = {"clear_cache": "manage", "get_file": "remote_file", "list_available": "manage", "path": "manage"}


def __getattr__(name: str) -> Any:
    """Import a loader when it is first used: most programs use one dataset or none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_MODULE_OF_FUNCTION.get(name, name)}")
    value = getattr(module, name) if name in _MODULE_OF_FUNCTION else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Names that exist, imported or not, so that completion works."""
    return sorted({*globals(), *__all__})
