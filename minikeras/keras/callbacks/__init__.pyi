# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.callbacks.callback import Callback as Callback, History as History, LambdaCallback as LambdaCallback
from minikeras.keras.callbacks.callback import TerminateOnNaN as TerminateOnNaN
from minikeras.keras.callbacks.callback_list import CallbackList as CallbackList
from minikeras.keras.callbacks.checkpoints import BackupAndRestore as BackupAndRestore, ModelCheckpoint as ModelCheckpoint
from minikeras.keras.callbacks.checkpoints import SwapEMAWeights as SwapEMAWeights
from minikeras.keras.callbacks.loggers import CSVLogger as CSVLogger, TensorBoard as TensorBoard
from minikeras.keras.callbacks.monitor import EarlyStopping as EarlyStopping, LearningRateScheduler as LearningRateScheduler
from minikeras.keras.callbacks.monitor import OptunaPruning as OptunaPruning, ReduceLROnPlateau as ReduceLROnPlateau
from minikeras.keras.callbacks.progress_bar import ProgressBar as ProgressBar

ProgbarLogger = ProgressBar
