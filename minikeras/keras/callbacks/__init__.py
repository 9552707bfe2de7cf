# mypy: implicit-reexport
"""Callbacks: what happens around epochs and batches of `fit`, `evaluate` and `predict`. Read `callback.py` first.

May import the optimizers and all below. What writes files is loaded when it is first used.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import late as _late
from .callback import Callback, History, LambdaCallback, TerminateOnNaN
from .callback_list import CallbackList
from .monitor import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from .progress_bar import ProgressBar
from .progress_bar import ProgressBar as ProgbarLogger
from .swap_ema_weights import SwapEMAWeights

if _TYPE_CHECKING:
    from .checkpoints import BackupAndRestore, ModelCheckpoint
    from .loggers import CSVLogger, TensorBoard
    from .optuna import OptunaPruning

_LATE = {
    "BackupAndRestore": "checkpoints",
    "CSVLogger": "loggers",
    "ModelCheckpoint": "checkpoints",
    "OptunaPruning": "optuna",
    "TensorBoard": "loggers",
}

__getattr__, __dir__ = _late(__name__, _LATE)
__all__ = [name for name in __dir__() if not name.startswith("_")]
