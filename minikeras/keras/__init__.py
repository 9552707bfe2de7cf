"""Keras's API: layers, models, training, losses, metrics, optimizers, data sets.

May import everything else of the package. Read `layers/layer.py` first, then `training.py`.
"""

from typing import NoReturn as _NoReturn

from ..absent import error as _error
from . import (
    activations,
    callbacks,
    config,
    constraints,
    datasets,
    export,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
    regularizers,
    saving,
    utils,
    wrappers,
)
from .layers import Input, InputLayer, Layer
from .layers.operations import CLASSES as _OPERATIONS
from .losses import Loss
from .metrics import Metric
from .models import Model, Sequential
from .optimizers import Optimizer

saving.registry.know("keras", models, ("Model", "Sequential"))
saving.registry.know("keras", mixed_precision, ("DTypePolicy",))
saving.registry.know("keras.src.models.functional", models, ("Functional",))
saving.registry.know("keras.src.ops.numpy", _OPERATIONS)
saving.registry.know("keras.optimizers.schedules", optimizers.schedules, tuple(optimizers.schedules.__all__))
for _module in (activations, constraints, initializers, layers, losses, metrics, models, optimizers, regularizers):
    saving.registry.know(f"keras.{_module.__name__.rpartition('.')[2]}", _module)

__all__ = [name for name in dir() if not name.startswith("_")]


def __getattr__(name: str) -> _NoReturn:
    """What Keras has and this package has not is explained."""
    raise _error(__name__, name)
