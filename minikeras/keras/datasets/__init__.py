"""Small datasets: found on the machine or downloaded, verified by SHA-256, returned as NumPy arrays in Keras' shapes.

May import `minikeras.errors`, `minikeras.files`, the ranks, NumPy and the standard library; pooch when something is
downloaded. Read `catalogue.py`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from . import images, tables, texts
from .catalogue import clear_cache, list_available, path
from .download import get_file

if TYPE_CHECKING:
    from .images import cifar10, cifar100, fashion_mnist, mnist
    from .tables import boston_housing, breast_cancer, california_housing, digits, iris, wine
    from .texts import imdb, reuters

__all__ = [
    "boston_housing", "breast_cancer", "california_housing", "cifar10", "cifar100", "clear_cache", "digits", "fashion_mnist",
    "get_file", "imdb", "iris", "list_available", "mnist", "path", "reuters", "wine",
]  # fmt: skip


def _as_module(loader: type) -> ModuleType:
    """A class of loaders as the module that `import minikeras.keras.datasets.mnist` finds, as in Keras."""
    module = ModuleType(f"{__name__}.{loader.__name__}", loader.__doc__)
    module.__dict__.update({name: getattr(loader, name) for name in vars(loader) if not name.startswith("_")})
    module.__dict__["__all__"] = [name for name, value in vars(module).items() if callable(value)]
    module.__file__ = sys.modules[loader.__module__].__file__
    return module


for _file in (images, tables, texts):
    for _loader in [value for value in vars(_file).values() if hasattr(value, "load_data")]:
        globals()[_loader.__name__] = sys.modules[f"{__name__}.{_loader.__name__}"] = _as_module(_loader)
