"""Going on after an interruption, exactly where training stood: `model.get_training_state()` as one safetensors file."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from ...errors import LoadError
from ...files import durable, strict_json, tensors
from ..arguments import made_with_numpy
from ..logs import Logs
from .callback import Callback

FILE = "training_state.safetensors"
_VALUES = "training_state"


@made_with_numpy
class BackupAndRestore(Callback):
    """Saves the whole state of training regularly; the next `fit` with the same model, data and folder goes on from there.

    Interrupted and resumed equals uninterrupted, bit for bit: weights, slots, statistics, random streams, the order of the data
    and the place in it, metrics of the open epoch, other callbacks and the History, at an epoch's end or in its middle. A model
    that has no weights yet is built on the first batch.

    Args:
        backup_dir: the folder; made if it is missing.
        save_freq: 'epoch', or a number of batches, counted across epochs.
        delete_checkpoint: whether the file is deleted once training has come to its end, and its folder if that is empty.
        double_checkpoint: accepted for compatibility: a file is replaced in one step, so there is always a whole one.

    Raises:
        ValueError: for another frequency, or no folder.
        MissingExtraError: while saving, without the package `safetensors`.

    >>> import tempfile
    >>> import minikeras as tf
    >>> folder = tempfile.TemporaryDirectory()
    >>> def run(epochs_before_the_power_fails):
    ...     tf.keras.utils.set_random_seed(1)
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1), tf.keras.layers.Dropout(0.5)])
    ...     model.compile("adam", "mse")
    ...     def fail(epoch, logs):
    ...         if epoch == epochs_before_the_power_fails:
    ...             raise KeyboardInterrupt
    ...     callbacks = [tf.keras.callbacks.LambdaCallback(on_epoch_begin=fail)]
    ...     callbacks += [tf.keras.callbacks.BackupAndRestore(folder.name)]
    ...     return model.fit([[1.0], [2.0]], [[1.0], [2.0]], batch_size=1, epochs=4, callbacks=callbacks, verbose=0).history
    >>> whole = run(99)
    >>> try:
    ...     run(2)
    ... except KeyboardInterrupt:
    ...     print("failed")
    failed
    >>> run(99) == whole
    True
    >>> folder.cleanup()
    """

    runs_last = True

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int = "epoch",
        delete_checkpoint: bool = True,
        double_checkpoint: bool = False,
    ) -> None:
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f"BackupAndRestore: save_freq must be 'epoch' or a number of batches, found {save_freq!r}.")
        if not backup_dir:
            raise ValueError(f"BackupAndRestore: backup_dir must name a folder, found {backup_dir!r}.")
        self.backup_dir, self.save_freq, self.delete_checkpoint = Path(backup_dir), save_freq, delete_checkpoint
        self._unsaved = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self.backup_dir / FILE

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._unsaved = 0
        if self.path.exists():
            arrays, metadata = tensors.load(self.path)
            if _VALUES not in metadata:
                raise LoadError(f"{self.path}: holds no state of training. Move the file away, or give another backup_dir.")
            values = strict_json.loads(metadata[_VALUES].encode(), self.path, _VALUES)
            if not isinstance(values, dict):
                raise LoadError(f"{self.path}: {_VALUES} must be a JSON object, found {values!r:.40}.")
            self.model.set_training_state({"arrays": arrays, "values": values})

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if isinstance(self.save_freq, int):
            self._unsaved += 1
            if self._unsaved >= self.save_freq:
                self._save()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Forget the state, and the folder if nothing else is in it."""
        if self.delete_checkpoint:
            durable.remove(self.path)
            with contextlib.suppress(OSError):  # it is not empty, or was never made
                self.backup_dir.rmdir()

    def _save(self) -> None:
        self._unsaved = 0
        state = self.model.get_training_state()
        durable.make_directory(self.backup_dir)
        tensors.save(self.path, state["arrays"], {_VALUES: json.dumps(state["values"], allow_nan=False)})
