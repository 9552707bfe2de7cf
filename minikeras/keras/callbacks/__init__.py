"""Callbacks: what happens around epochs and batches of `fit`, `evaluate` and `predict`. Read `callback.py` first.

May import the optimizers and all below. What writes files is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from ...absent import late
from .callback import Callback
from .callback_list import CallbackList
from .history import History
from .learning_rate import LearningRateScheduler, ReduceLROnPlateau
from .monitor import EarlyStopping
from .progress_bar import ProgressBar
from .progress_bar import ProgressBar as ProgbarLogger
from .simple import LambdaCallback, TerminateOnNaN
from .swap_ema_weights import SwapEMAWeights

if TYPE_CHECKING:
    from .checkpoints import BackupAndRestore, ModelCheckpoint
    from .csv_logger import CSVLogger
    from .optuna import OptunaPruning
    from .tensorboard import TensorBoard

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "OptunaPruning",
    "ProgbarLogger",
    "ProgressBar",
    "ReduceLROnPlateau",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]

_LATE = {
    "BackupAndRestore": "checkpoints",
    "CSVLogger": "csv_logger",
    "ModelCheckpoint": "checkpoints",
    "OptunaPruning": "optuna",
    "TensorBoard": "tensorboard",
}

__getattr__, __dir__ = late(__name__, _LATE)
