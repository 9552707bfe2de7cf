# mypy: implicit-reexport
"""Callbacks: what happens around epochs and batches of `fit`, `evaluate` and `predict`. Read `callback.py` first.

May import the optimizers and all below. What writes files is loaded when it is first used.
"""

from ...absent import facade as _facade
from .callback import Callback, History, LambdaCallback, TerminateOnNaN
from .callback_list import CallbackList
from .monitor import EarlyStopping, LearningRateScheduler, OptunaPruning, ReduceLROnPlateau
from .progress_bar import ProgressBar
from .progress_bar import ProgressBar as ProgbarLogger

_LATE = dict.fromkeys(("BackupAndRestore", "ModelCheckpoint", "SwapEMAWeights"), "checkpoints")
_LATE |= dict.fromkeys(("CSVLogger", "TensorBoard"), "loggers")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
