"""Keras's API: layers, models, training, losses, metrics, optimizers, data sets.

May import everything else of the package. Read `layers/layer.py` first, then `training.py`.
"""

from . import (
    activations,
    callbacks,
    config,
    constraints,
    datasets,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    regularizers,
    utils,
)
from .layers import Input, InputLayer, Layer
from .losses import Loss
from .metrics import Metric
from .models import Model, Sequential
from .optimizers import Optimizer

__all__ = [name for name in dir() if not name.startswith("_")]
