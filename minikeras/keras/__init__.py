"""Keras's API: layers, models, training, losses, metrics, optimizers, data sets. What no model in training needs is loaded when
it is first used.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..absent import late as _late
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
from .layers import Input, InputLayer, Layer
from .losses import Loss
from .metrics import Metric
from .models import Model, Sequential
from .optimizers import Optimizer
from .symbolic.operation import CLASSES as _OPERATIONS

if _TYPE_CHECKING:
    from . import datasets, export, utils, wrappers

_LATE = dict.fromkeys(("datasets", "export", "utils", "wrappers"))

saving.registry.know("keras", models, ("Model", "Sequential"))
saving.registry.know("keras", mixed_precision, ("DTypePolicy",))
saving.registry.know("keras.src.models.functional", models, ("Functional",))
saving.registry.know("keras.models", models, ("Functional", "Model", "Sequential"))
saving.registry.know("keras.src.ops.numpy", _OPERATIONS)
saving.registry.know("keras.optimizers.schedules", optimizers.schedules, tuple(optimizers.schedules.__all__))
for _module in (activations, constraints, initializers, layers, losses, metrics, optimizers, regularizers):
    saving.registry.know(f"keras.{_module.__name__.rpartition('.')[2]}", _module)

__all__ = sorted({name for name in globals() if not name.startswith("_")} | {*_LATE})

__getattr__, __dir__ = _late(__name__, _LATE)
