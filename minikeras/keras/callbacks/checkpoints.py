"""Saving while a model is trained: models and weights, and the whole state of training to go on from after an interruption; and
the moving averages of the weights in their place.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ...core import Snapshot, restore, snapshot, to_numpy
from ...errors import LoadError
from ...files import durable, read_file, strict_json, tensors
from ...ranks import broadcast_bytes, is_first, joined
from ..arguments import made_with_numpy
from .callback import Callback, Logs, tell, used_if
from .monitor import Monitor

FILE = "training_state.safetensors"
_VALUES = "training_state"


def _counts_batches(saver: Any) -> bool:
    return isinstance(saver.save_freq, int)


class _Saver(Callback):
    """Saves after each epoch, or after every n-th batch, counted across epochs."""

    save_freq: str | int
    _epoch = _unsaved = _done = 0

    def _set_frequency(self, save_freq: str | int) -> None:
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            name = type(self).__name__
            raise ValueError(f"{name}: save_freq must be 'epoch' or a number of batches, found {save_freq!r}.")
        self.save_freq = save_freq

    def _save(self, epoch: int, batch: int | None, logs: Logs) -> None:
        raise NotImplementedError

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch, self._done = epoch, 0

    @used_if(_counts_batches)
    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._done = batch

    @used_if(_counts_batches)
    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if isinstance(self.save_freq, int):
            self._unsaved, self._done = self._unsaved + batch + 1 - self._done, batch + 1
            if self._unsaved >= self.save_freq:
                self._unsaved = 0
                self._save(self._epoch, batch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, None, logs or {})


@made_with_numpy
class ModelCheckpoint(_Saver, Monitor):
    """Saves the model, or its weights, after every epoch or every n-th batch.

    What it remembers (the best value, the batches since the last file) is part of the training state that `BackupAndRestore`
    keeps, so a run that goes on after a restart does not overwrite its best file with a worse one. A run that starts anew can
    be told with `initial_value_threshold`.

    Args:
        filepath: where to; `{epoch:02d}`, `{batch}` (both counted from 1) and names of the logs, `{val_loss:.2f}`, are filled
            in. It ends in '.keras', with `save_weights_only` in '.weights.h5'.
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
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self._set_frequency(save_freq)
        ending = ".weights.h5" if save_weights_only else ".keras"
        if not self.filepath.endswith(ending):
            raise ValueError(
                f"ModelCheckpoint: with save_weights_only={save_weights_only} the filepath must end in {ending}, "
                f"found {self.filepath!r}."
            )

    def _save(self, epoch: int, batch: int | None, logs: Logs) -> None:
        path = self._path(epoch, batch, logs)
        if self.save_best_only and not self._is_best(epoch, path, logs):
            return
        if not is_first():
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
        """True if the value is the best so far, which is then kept; True as well if there is none to compare."""
        current = self.value(logs)
        if current is None or np.ndim(current):
            return True
        before = "nothing" if self.best is None else f"{self.best:.5f}"
        better = self.is_best(current)
        if self.verbose:
            improved = f"improved from {before} to {current:.5f}, saving model to {path}"
            tell(f"Epoch {epoch + 1}: {self.monitor} {improved if better else f'did not improve from {before}'}")
        return better


@made_with_numpy
class BackupAndRestore(_Saver):
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
    >>> folder = tempfile.TemporaryDirectory()
    >>> def run(epochs, **options):
    ...     tf.keras.utils.set_random_seed(1)
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1), tf.keras.layers.Dropout(0.5)])
    ...     model.compile("adam", "mse")
    ...     saved = [tf.keras.callbacks.BackupAndRestore(folder.name, **options)]
    ...     return model.fit([[1.0], [2.0]], [[1.0], [2.0]], batch_size=1, epochs=epochs, callbacks=saved, verbose=0).history
    >>> whole = run(4)
    >>> _ = run(2, delete_checkpoint=False)
    >>> run(4) == whole
    True
    >>> folder.cleanup()
    """

    runs_last = True

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:
        self._set_frequency(save_freq)
        if not backup_dir:
            raise ValueError(f"BackupAndRestore: backup_dir must name a folder, found {backup_dir!r}.")
        self.backup_dir, self.delete_checkpoint = Path(backup_dir), delete_checkpoint

    @property
    def path(self) -> Path:
        """The file."""
        return self.backup_dir / FILE

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Go on from the file, if there is one; of several ranks the first one reads it."""
        self._unsaved = 0
        is_there = is_first() and self.path.exists()
        if (ranks := joined()) is not None and ranks.size > 1:
            content = broadcast_bytes(read_file(self.path) if is_there else b"")
            found = tensors.decode(BytesIO(content), len(content), self.path) if content or is_there else None
        else:
            found = tensors.load(self.path) if is_there else None
        if found is not None:
            self.model.set_training_state(self._state(*found))

    def _state(self, arrays: tensors.Arrays, metadata: Mapping[str, str]) -> dict[str, Any]:
        if _VALUES not in metadata:
            raise LoadError(f"{self.path}: holds no state of training. Move the file away, or give another backup_dir.")
        values = strict_json.loads(metadata[_VALUES].encode(), self.path, _VALUES)
        if not isinstance(values, dict):
            raise LoadError(f"{self.path}: {_VALUES} must be a JSON object, found {values!r:.40}.")
        return {"arrays": arrays, "values": values}

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Forget the state, and the folder if nothing else is in it."""
        if self.delete_checkpoint and is_first():
            durable.remove(self.path)
            with contextlib.suppress(OSError):  # it is not empty, or was never made
                self.backup_dir.rmdir()

    def _save(self, epoch: int, batch: int | None, logs: Logs) -> None:
        if not is_first():
            return
        state = self.model.get_training_state()
        durable.make_directory(self.backup_dir)
        tensors.save(self.path, state["arrays"], {_VALUES: json.dumps(state["values"], allow_nan=False)})


class SwapEMAWeights(Callback):
    """Evaluates and predicts with the moving averages of the weights that the optimizer keeps (`use_ema=True`).

    Args:
        swap_on_epoch: also at the end of each epoch until the next one begins, so that what is saved there are averages.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.SGD(0.1, use_ema=True), "mse")
    >>> swap = tf.keras.callbacks.SwapEMAWeights()
    >>> history = model.fit([[1.0]], [[1.0]], epochs=3, validation_data=([[1.0]], [[1.0]]), callbacks=[swap], verbose=0)
    >>> len(history.history["val_loss"])
    3
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        self.swap_on_epoch = swap_on_epoch
        self._weights: Snapshot | None = None
        """The values of the Variables for training, while the averages stand in."""

    def _put_averages(self) -> None:
        """Assign the averages to the weights of the model; the optimizer keeps them too."""
        if self._weights is None:
            kept = _averages(self.model.optimizer)
            self._weights = snapshot(one.variable for one in kept)
            restore((one.variable, one.slots["average"].array) for one in kept)

    def _put_weights(self) -> None:
        """Have the model hold what is trained."""
        restore(self._weights or ())
        self._weights = None

    def get_state(self) -> dict[str, Any]:
        """The weights that are trained, if the model does not hold them."""
        return {"weights": None if self._weights is None else [to_numpy(array) for _, array in self._weights]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Hold them again."""
        if state["weights"] is not None:
            pairs = zip(_averages(self.model.optimizer), state["weights"], strict=True)
            self._weights = [(one.variable, one.variable.convert(array)) for one, array in pairs]

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start with the weights, also after a test that was broken off."""
        self._put_weights()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._put_weights()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._put_averages()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Leave the averages, which `finalize_variable_values` has put in their place for good."""
        self._weights = None

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._put_averages()

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._put_weights()

    on_predict_begin, on_predict_end = on_test_begin, on_test_end


def _averages(optimizer: Any) -> list[Any]:
    """The slots of all Variables whose moving averages an optimizer, or one within it, keeps."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    found = [one for one in getattr(inner, "optimizers", [inner]) if getattr(one, "use_ema", False)]
    if not found:
        raise ValueError(f"SwapEMAWeights: the optimizer '{inner.name}' keeps no moving averages. Make it with use_ema=True.")
    return [kept for one in found for kept in one.state.slots.values()]
