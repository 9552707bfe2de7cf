"""PyDataset: batches made by a method, in any order, by several threads."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any


class PyDataset:
    """A sequence of batches: subclass it and write `__len__` and `__getitem__`.

    With `shuffle=True`, `fit` asks for the batches in an order that is drawn anew for each epoch.

    Args:
        workers: threads that make batches ahead of their use; with 1 each is made when it is asked for.
        use_multiprocessing: left out with a warning: arrays would have to be copied between processes.
        max_queue_size: how many batches are made ahead.

    >>> import numpy as np
    >>> class Squares(tf.keras.utils.PyDataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         x = np.arange(4.0).reshape(4, 1) + 4 * index
    ...         return x, x**2
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    >>> len(model.fit(Squares(), epochs=2, verbose=0).history["loss"])
    2
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        if use_multiprocessing:
            text = "PyDataset: use_multiprocessing is left out; workers=n makes batches in n threads of this process."
            warnings.warn(text, stacklevel=2)
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __getitem__(self, index: int) -> Any:
        """Batch number `index`: x, (x, y) or (x, y, sample_weight)."""
        raise NotImplementedError(f"{type(self).__name__} must implement __getitem__(index).")

    def __len__(self) -> int:
        """The number of batches."""
        if self.num_batches is None:
            raise TypeError(f"{type(self).__name__} has no end; give fit a number of steps_per_epoch.")
        return self.num_batches

    @property
    def num_batches(self) -> int | None:
        """The number of batches; None for no end."""
        if type(self).__len__ is not PyDataset.__len__:
            return len(self)
        raise NotImplementedError(f"{type(self).__name__} must implement __len__().")

    def on_epoch_begin(self) -> None:
        """Called before each epoch."""

    def on_epoch_end(self) -> None:
        """Called after each epoch, for example to draw other rows for the next one."""

    def __iter__(self) -> Iterator[Any]:
        try:
            count = self.num_batches
        except NotImplementedError:  # its length is not known
            count = None
        for index in itertools.count() if count is None else range(count):
            yield self[index]
