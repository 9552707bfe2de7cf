"""Callbacks: what happens around epochs and batches of `fit`, `evaluate` and `predict`.

Key idea: training calls hooks in a fixed order and knows nothing of what they do; history and progress bar are callbacks like
any other. May import the optimizers and all below. Read `callback.py` first, then `callback_list.py`.
"""

from .backup_and_restore import BackupAndRestore
from .callback import Callback
from .callback_list import CallbackList
from .csv_logger import CSVLogger
from .early_stopping import EarlyStopping
from .history import History
from .learning_rate import LearningRateScheduler, ReduceLROnPlateau
from .model_checkpoint import ModelCheckpoint
from .progress_bar import ProgressBar
from .progress_bar import ProgressBar as ProgbarLogger
from .simple import LambdaCallback, TerminateOnNaN
from .swap_ema_weights import SwapEMAWeights
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
    "ProgbarLogger",
    "ProgressBar",
    "ReduceLROnPlateau",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]
