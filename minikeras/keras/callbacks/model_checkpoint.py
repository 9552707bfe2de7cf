"""Saving the model while it is trained."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import made_with_numpy
from ..logs import Logs
from .callback import tell
from .monitor import Monitor


@made_with_numpy
class ModelCheckpoint(Monitor):
    """Saves the model, or its weights, after every epoch or every n-th batch.

    What it remembers (the best value, the batches since the last file) is part of the training state that `BackupAndRestore`
    keeps, so a run that goes on after a restart does not overwrite its best file with a worse one. A run that starts anew can
    be told with `initial_value_threshold`.

    Args:
        filepath: where to; `{epoch:02d}`, `{batch}` (both counted from 1) and names of the logs, `{val_loss:.2f}`, are filled
            in. It ends in '.keras' or '.h5', with `save_weights_only` in '.weights.h5'.
        monitor: the value in the logs to watch with `save_best_only`.
        verbose: 1 to say what is saved.
        save_best_only: save only what is better than all before.
        save_weights_only: call `save_weights` instead of `save`.
        mode: 'min', 'max' or 'auto'.
        save_freq: 'epoch', or a number of batches, counted across epochs.
        initial_value_threshold: the value to beat.

    Raises:
        ValueError: for another ending or frequency.

    >>> import os, tempfile
    >>> import minikeras as tf
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> folder = tempfile.TemporaryDirectory()
    >>> keep = tf.keras.callbacks.ModelCheckpoint(os.path.join(folder.name, "{epoch:02d}.keras"), monitor="loss")
    >>> _ = model.fit([[1.0]], [[1.0]], epochs=2, callbacks=[keep], verbose=0)
    >>> sorted(os.listdir(folder.name))
    ['01.keras', '02.keras']
    >>> folder.cleanup()
    """

    remembered = ("best", "_epoch", "_unsaved")

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode, best=initial_value_threshold)
        self.filepath, self.verbose = os.fspath(filepath), verbose
        self.save_best_only, self.save_weights_only, self.save_freq = save_best_only, save_weights_only, save_freq
        self._epoch = self._unsaved = 0
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f"ModelCheckpoint: save_freq must be 'epoch' or a number of batches, found {save_freq!r}.")
        endings = (".weights.h5",) if save_weights_only else (".keras", ".h5")
        if not self.filepath.endswith(endings):
            raise ValueError(
                f"ModelCheckpoint: with save_weights_only={save_weights_only} the filepath must end in {' or '.join(endings)}, "
                f"found {self.filepath!r}."
            )

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if isinstance(self.save_freq, int):
            self._unsaved += 1
            if self._unsaved >= self.save_freq:
                self._unsaved = 0
                self._save(self._epoch, batch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, None, logs or {})

    def _save(self, epoch: int, batch: int | None, logs: Mapping[str, Any]) -> None:
        """Write a file, if it is wanted."""
        path = self._path(epoch, batch, logs)
        if self.save_best_only and not self._is_best(epoch, path, logs):
            return
        if self.verbose and not self.save_best_only:
            tell(f"Epoch {epoch + 1}: saving model to {path}")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)

    def _path(self, epoch: int, batch: int | None, logs: Mapping[str, Any]) -> str:
        places: dict[str, Any] = {**logs, "epoch": epoch + 1} | ({} if batch is None else {"batch": batch + 1})
        try:
            return self.filepath.format(**places)
        except KeyError as missing:
            raise KeyError(
                f"ModelCheckpoint: {missing} in filepath {self.filepath!r} is not known; there are {sorted(places)}."
            ) from None

    def _is_best(self, epoch: int, path: str, logs: Mapping[str, Any]) -> bool:
        """Whether the value is the best so far, which it then is; True if there is none to compare."""
        current = self.value(logs)
        if current is None or np.ndim(current):
            return True
        before = "nothing" if self.best is None else f"{self.best:.5f}"
        better = self.is_better(current, self.best)
        if self.verbose:
            improved = f"improved from {before} to {current:.5f}, saving model to {path}"
            tell(f"Epoch {epoch + 1}: {self.monitor} {improved if better else f'did not improve from {before}'}")
        if better:
            self.best = current
        return better
