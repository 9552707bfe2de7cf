# mypy: implicit-reexport
"""Checkpoints: Checkpoint, CheckpointManager, and looking into what was saved; moving averages. TensorFlow's names."""

from .absent import facade as _facade
from .averages import ExponentialMovingAverage
from .checkpoint.checkpoint import Checkpoint, CheckpointManager, CheckpointOptions
from .checkpoint.pointer import (
    CheckpointState,
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)

__getattr__, __dir__, __all__ = _facade(__name__, {})
