"""The logs of each epoch as a line of a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arguments import made_with_numpy
from ..logs import Logs
from .callback import Callback


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
        row = {"epoch": epoch} | {name: _cell(value) for name, value in sorted((logs or {}).items())}
        if not self._columns:
            self._columns = list(row)
            self._write([], "w")
        elif new := [name for name in row if name.startswith("val_") and name not in self._columns]:
            before = self._read()[1]
            self._columns += new
            self._write(before, "w")
        self._write([row], "a")

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Columns and rows of the file."""
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
        """Have the file as it was then: epochs that will be run again are not written twice."""
        self._columns = list(state["columns"])
        if self._columns:
            self._write([dict(row) for row in state["rows"]], "w")


def _cell(value: Any) -> Any:
    """Arrays as '[a, b]', numbers as they are."""
    return f"[{', '.join(map(str, np.ravel(value)))}]" if np.ndim(value) else value
