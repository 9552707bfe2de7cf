# mypy: implicit-reexport
"""Keras's API: layers, models, training, losses, metrics, optimizers, data sets. What no model in training needs is loaded when
it is first used.
"""

from functools import partial as _partial
from importlib import import_module as _import
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..absent import facade as _facade
from ..core import device
from ..core import recompute_grad as remat
from ..core import register_hooks as _register_hooks
from . import (
    activations,
    callbacks,
    config,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
    regularizers,
    saving,
)
from .calls import name_scope
from .config import DTypePolicy, FloatDTypePolicy
from .initializers import Initializer
from .layers import Input, InputLayer, InputSpec, Layer
from .losses import Loss
from .metrics import Metric
from .models import Model, Sequential
from .models.graph import Function
from .optimizers import Optimizer
from .regularizers import Regularizer
from .symbolic import KerasTensor
from .symbolic.operation import CLASSES as _CLASSES
from .symbolic.operation import Operation

if _TYPE_CHECKING:
    from . import backend, datasets, distribution, dtype_policies, export, ops, preprocessing, random, tree, utils, wrappers
    from .variable import Variable

_MODULES = (
    *("backend", "datasets", "distribution", "dtype_policies", "export", "ops", "preprocessing", "random", "tree", "utils"),
    "wrappers",
)
_LATE = dict.fromkeys(_MODULES) | {"Variable": "variable"}
_EAGER = (
    *("activations", "callbacks", "config", "constraints", "initializers", "layers", "losses", "metrics", "mixed_precision"),
    *("models", "optimizers", "regularizers", "saving", "symbolic"),
)

_register_hooks("minikeras", "keras")
_register_hooks("minikeras.keras", "_operations")
_register_hooks("minikeras.keras.ops.symbols", "call_on_symbols", "operate_on_symbols", "mask_of_symbol")

__version__ = "3.15.1"
"""The version of Keras whose names and numbers are followed."""


def version() -> str:
    """The version of Keras whose names and numbers are followed.

    >>> tf.keras.version()
    '3.15.1'
    """
    return __version__


def _operations(module: str) -> dict[str, type[Operation]]:
    """The classes of the functional model steps that a module of `keras.ops` defines, by Keras's names."""
    from .ops import symbols

    return _CLASSES.get(module, {})


def _feature_space() -> dict[str, type]:
    """The classes that files of feature spaces name."""
    from .feature_space import CLASSES

    return CLASSES


saving.registry.know("keras", models, ("Model", "Sequential"))
saving.registry.know("keras", {"DTypePolicy": DTypePolicy, "FloatDTypePolicy": FloatDTypePolicy})
saving.registry.know("keras.dtype_policies", _partial(_import, ".dtype_policies", __name__), ("DTypePolicyMap",))
saving.registry.know("keras.src.models.functional", models, ("Functional",))
saving.registry.know("keras.models", models, ("Functional", "Model", "Sequential"))
saving.registry.know("keras.optimizers.schedules", optimizers.schedules, tuple(optimizers.schedules.__all__))
for _module in (activations, constraints, initializers, layers, losses, metrics, optimizers, regularizers):
    saving.registry.know(f"keras.{_module.__name__.rpartition('.')[2]}", _module)
for _name in ("core", "einops", "image", "linalg", "math", "nn", "numpy"):
    saving.registry.know(f"keras.src.ops.{_name}", _partial(_operations, _name))
saving.registry.know("minikeras", _partial(_operations, "symbols"))
saving.registry.know("keras.random", _partial(_import, ".random", __name__), ("SeedGenerator",))
saving.registry.know("keras.utils", _feature_space, ("FeatureSpace",))
saving.registry.know("keras.src.layers.preprocessing.feature_space", _feature_space)

__getattr__, __dir__, __all__ = _facade(__name__, _LATE | dict.fromkeys(_EAGER))
