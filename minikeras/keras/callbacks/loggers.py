"""The logs of each epoch as lines of a CSV file, and as event files of the package `tensorboard`."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import to_numpy, warn_caller
from ...summary import SummaryWriter, histogram_of
from ..arguments import made_with_numpy
from .callback import Callback, Logs, Remembering, used_if
from .monitor import learning_rates


@made_with_numpy
class CSVLogger(Callback):
    """Writes the logs of each epoch into a file that spreadsheets read: 'epoch', then the names in alphabetical order.

    The columns are the names that the first epoch logs. What is missing later is 'NA'; what is new gets no column, unless
    validation begins later: then the file is written anew with the columns of both.

    Args:
        filename: the file; its folder exists.
        separator: between the columns.
        append: go on in a file that exists, whose columns then stay.

    >>> import pathlib, tempfile
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    >>> model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "log.csv")
    >>> _ = model.fit([[1.0]], [[3.0]], epochs=2, callbacks=[tf.keras.callbacks.CSVLogger(path)], verbose=0)
    >>> print(path.read_text().strip())
    epoch,loss
    0,4.0
    1,4.0
    >>> folder.cleanup()
    """

    first_rank_only = True

    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = os.fspath(filename), separator, append
        self._columns: list[str] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Begin the file, or read the columns of one that goes on."""
        self._columns = self._read()[0] if self.append and os.path.exists(self.filename) else []
        if not self._columns:
            with open(self.filename, "w", newline="", encoding="utf-8"):
                pass

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        row: dict[str, Any] = {"epoch": epoch}
        for name, value in sorted((logs or {}).items()):
            row[name] = f"[{', '.join(map(str, np.ravel(value)))}]" if np.ndim(value) else value
        if not self._columns:
            self._columns = list(row)
            self._write([], "w")
        elif new := [name for name in row if name.startswith("val_") and name not in self._columns]:
            before = self._read()[1]
            self._columns += new
            self._write(before, "w")
        self._write([row], "a")

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        with open(self.filename, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, delimiter=self.separator)
            return list(reader.fieldnames or []), list(reader)

    def _write(self, rows: list[dict[str, Any]], mode: str) -> None:
        """Write rows; a new file gets the line of names first."""
        with open(self.filename, mode, newline="", encoding="utf-8") as file:
            style: dict[str, Any] = {"delimiter": self.separator, "restval": "NA", "extrasaction": "ignore"}
            writer = csv.DictWriter(file, self._columns, lineterminator="\n", **style)
            if mode == "w":
                writer.writeheader()
            writer.writerows(rows)

    def get_state(self) -> dict[str, Any]:
        """The columns, and what the file holds."""
        rows = self._read()[1] if self._columns else []
        return {"columns": self._columns, "rows": rows}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the file as it was then: epochs that will be run again are not written twice."""
        self._columns = list(state["columns"])
        if self._columns:
            self._write([dict(row) for row in state["rows"]], "w")


def _counts_batches(board: Any) -> bool:
    return isinstance(board.update_freq, int) or board.write_steps_per_second


@made_with_numpy
class TensorBoard(Remembering):
    """Writes the logs where `tensorboard --logdir log_dir` finds them: training in `train`, validation in `validation`.

    Scalars are named as by Keras: 'epoch_loss' over epochs, 'batch_loss' over batches, 'evaluation_loss_vs_iterations' over the
    steps of the optimizer, and 'epoch_learning_rate'.

    Args:
        log_dir: the folder.
        histogram_freq: write histograms of all weights every n-th epoch; 0 for never.
        write_graph, write_images: not available, and left out with a warning: there is no graph.
        write_steps_per_second: also write 'epoch_steps_per_second'.
        update_freq: 'epoch', 'batch', or a number of batches after which to write their logs.
        profile_batch, embeddings_freq, embeddings_metadata: likewise.

    Raises:
        MissingExtraError: without the package `tensorboard`.

    >>> tf.keras.callbacks.TensorBoard("logs", update_freq="batch").update_freq
    1
    """

    remembered = ("_step",)
    first_rank_only = True

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = False,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: str | int = "epoch",
        profile_batch: Any = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ) -> None:
        refused = {"write_graph": write_graph, "write_images": write_images, "profile_batch": profile_batch}
        refused |= {"embeddings_freq": embeddings_freq, "embeddings_metadata": embeddings_metadata}
        asked = [name for name, value in refused.items() if value]
        if asked:
            warn_caller(f"TensorBoard: {', '.join(asked)} is not available and left out; scalars and histograms are written.")
        if update_freq not in ("epoch", "batch") and (not isinstance(update_freq, int) or update_freq < 1):
            raise ValueError(
                f"TensorBoard: update_freq must be 'epoch', 'batch' or a number of batches, found {update_freq!r}."
            )
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq, self.write_steps_per_second = histogram_freq, write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, SummaryWriter] = {}
        self._training, self._step, self._done = False, 0, 0
        self._began = 0.0, 0

    # Files ---------------------------------------------------------------------------------------------------------------

    def _writer(self, folder: str) -> SummaryWriter:
        return self._writers.setdefault(folder, SummaryWriter(os.path.join(self.log_dir, folder)))

    def _scalars(self, folder: str, step: int, values: dict[str, Any]) -> None:
        rows = [{"tag": name, "simple_value": float(value)} for name, value in values.items() if not np.ndim(value)]
        self._writer(folder).write(step, rows)

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    # Hooks ---------------------------------------------------------------------------------------------------------------

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Begin a file, so that a missing package is told before any training."""
        _ = self._writer("train").file
        self._training, self._step = True, 0

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._training = False
        self._close()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._began, self._done = (time.perf_counter(), self._step), 0

    @used_if(_counts_batches)
    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._done = batch

    @used_if(_counts_batches)
    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        before = self._step
        self._step, self._done = before + batch + 1 - self._done, batch + 1
        if isinstance(self.update_freq, int) and self._step // self.update_freq > before // self.update_freq:
            self._scalars("train", self._step - 1, {f"batch_{name}": value for name, value in (logs or {}).items()})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        found = dict(logs or {})
        for name, optimizer in learning_rates(self.model.optimizer).items() if self.model.optimizer else ():
            found.setdefault(name, float(optimizer.learning_rate))
        if self.write_steps_per_second:
            seconds, steps = self._began
            found["steps_per_second"] = (self._step - steps) / (time.perf_counter() - seconds)
        tested = {name.removeprefix("val_"): value for name, value in found.items() if name.startswith("val_")}
        trained = {name: value for name, value in found.items() if not name.startswith("val_")}
        for folder, values in (("train", trained), ("validation", tested)):
            if values:
                self._scalars(folder, epoch, {f"epoch_{name}": value for name, value in values.items()})
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            histograms = [histogram_of(f"{one.path}/histogram", to_numpy(one.array)) for one in self.model.weights]
            self._writer("train").write(epoch, histograms)

    def on_test_end(self, logs: Logs | None = None) -> None:
        optimizer = self.model.optimizer
        step = self._step if optimizer is None else int(optimizer.iterations)
        self._scalars("validation", step, {f"evaluation_{name}_vs_iterations": value for name, value in (logs or {}).items()})
        if not self._training:
            self._close()
