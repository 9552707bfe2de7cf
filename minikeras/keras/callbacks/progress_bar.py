"""The progress bar of `fit` and of custom loops, and numbers as a line of text."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..arguments import made_with_numpy
from ..config import is_interactive_logging_enabled
from .callback import Callback, Logs, in_notebook, readable


@made_with_numpy
class ProgressBar(Callback):
    """A line on stdout, as Keras writes it, when an epoch, an evaluation or a prediction is done. Until then a bar, drawn by
    tqdm, on stderr if that is a terminal, and in a notebook. One with ipywidgets shows the bar above the lines, in colour.

    Args:
        verbose: 1 for a bar where one can be drawn, 2 for the lines alone.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> history = model.fit([[1.0]], [[2.0]], verbose=0, callbacks=[tf.keras.callbacks.ProgbarLogger()])  # doctest: +ELLIPSIS
    Epoch 1/1
    1/1 - 0s - ... - loss: ...
    """

    def __init__(self, verbose: int = 1) -> None:
        self._live = verbose == 1 and is_interactive_logging_enabled() and (in_notebook() or sys.stderr.isatty())
        self._bar: Any = None
        self._label = ""
        self._seen = 0
        self._started = 0.0
        self._training = False

    def begin(self, label: str, width: int = 12, interval: float = 0.1) -> None:
        """A new bar."""
        self._label, self._seen, self._started = label, 0, time.perf_counter()
        if self._bar is not None:  # the one of the epoch before
            self._bar.set_description_str(label, refresh=False)
            self._bar.set_postfix_str("", refresh=False)
            self._bar.reset(self.params.get("steps"))
        elif self._live:
            self._bar = _bar(label, self.params.get("steps"), width, interval)

    def advance(self, batch: int, logs: Logs | None) -> None:
        """Move the bar on: the step with the number `batch`, counted from 0, is done."""
        more, self._seen = batch + 1 - self._seen, batch + 1
        if self._live:
            if self._seen - self._bar.last_print_n >= self._bar.miniters:
                self._bar.set_postfix_str(readable(logs), refresh=False)
            self._bar.update(more)

    def finish(self, logs: Logs | None, unit: str = "step") -> None:
        """The line that stays."""
        if not (self._training and hasattr(self._bar, "container")):  # widgets stay for the next epoch
            self.end()
        seconds = time.perf_counter() - self._started
        count = f"{self._seen}/{self.params.get('steps') or self._seen}"
        each = seconds / max(self._seen, 1)
        took = f"{each:.0f}s" if each >= 1 else f"{1e3 * each:.0f}ms" if each >= 1e-3 else f"{1e6 * each:.0f}us"
        parts = [count, f"{seconds:.0f}s", f"{took}/{unit}", readable(logs)]
        _write(" - ".join(filter(None, parts)))

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def close(self) -> None:
        """Leave a bar that was broken off as it is, and go to the next line."""
        if self._bar is not None:
            self._bar.leave = True
            self.end()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Validation within an epoch gets no line of its own."""
        self._training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._training = False
        self.end()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        label = f"Epoch {epoch + 1}/{self.params.get('epochs')}"
        if _has_widgets():  # the bar stands above all lines
            self.begin(label)
            _write(label)
        else:
            _write(label)
            self.begin(label)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self.advance(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.finish(logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if not self._training:
            self.begin("Evaluate")

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if not self._training:
            self.advance(batch, logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._training:
            self.finish(logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self.begin("Predict")

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self.advance(batch, None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self.finish(None)


def _bar(label: str, steps: int | None, width: int, interval: float) -> Any:
    """A bar of tqdm's: of widgets in a notebook that has them, else of characters."""
    places = "bar" if _has_widgets() else f"bar:{width}"
    layout = f"{{desc}} {{n_fmt}}/{{total_fmt}} |{{{places}}}| {{remaining}}{{postfix}}"
    options = {"dynamic_ncols": True, "bar_format": layout, "leave": False, "mininterval": interval}
    if places == "bar":
        return _notebook_bar(total=steps, desc=label, **options)
    from tqdm import tqdm

    return tqdm(total=steps, desc=label, file=sys.stdout if in_notebook() else sys.stderr, **options)


def _notebook_bar(**options: Any) -> Any:
    """A bar of widgets. Closed it is taken away, so that a saved notebook holds no widget that is gone; broken off it stays."""
    from IPython.display import display
    from tqdm.notebook import tqdm

    class NotebookBar(tqdm):  # type: ignore[misc] # tqdm has no types
        def __init__(self) -> None:
            super().__init__(display=False, **options)
            self._place: Any = cast(Any, display)(self.container, display_id=True)
            self.displayed = True

        def close(self) -> None:
            super().close()
            if not self.leave and self._place is not None:
                self.container.close()
                self._place.update({}, raw=True)
                self._place = None

    return NotebookBar()


def _has_widgets() -> bool:
    """True if bars are drawn as widgets, in a notebook."""
    return in_notebook() and importlib.util.find_spec("ipywidgets") is not None


def _write(line: str) -> None:
    """A line on stdout, as one piece, which a notebook keeps together."""
    print(f"{line}\n", end="", flush=True)


class Progbar:
    """The bar of `fit`, moved on by hand: `update` with the number of steps done and the values to show.

    Args:
        target: number of steps; None if it is not known.
        width: of the bar, in characters.
        verbose: 0 for nothing, 1 for a bar where one can be drawn, 2 for the line at the end alone.
        interval: seconds between two drawings.
        stateful_metrics: names of values that are shown as they are; all others are averaged over the steps.
        stateless_metrics: names of values that are averaged, instead; all others are shown as they are.
        unit_name: what a step is called.

    >>> bar = tf.keras.utils.Progbar(3, verbose=0)
    >>> for step in range(3):
    ...     bar.update(step + 1, [("loss", 1.0 / (step + 1))])
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError("Progbar: give either stateful_metrics or stateless_metrics.")
        self.target, self.unit_name = target, unit_name
        self._stateful = set(stateful_metrics or ())
        self._averaged = None if stateless_metrics is None else set(stateless_metrics)
        self._sums: dict[str, tuple[float, float]] = {}
        self._seen = 0
        self._bar = ProgressBar(verbose) if verbose else None
        if self._bar is not None:
            self._bar.params = {"steps": target}
            self._bar.begin("Progress", width, interval)

    def update(self, current: int, values: Iterable[tuple[str, Any]] | None = None, finalize: bool | None = None) -> None:
        """Steps done so far, and pairs of name and value.

        Args:
            current: the number of steps done.
            values: of the last of them.
            finalize: whether it is the last update; None for when `target` is reached. Values are then shown as they are.
        """
        last = self.target is not None and current >= self.target if finalize is None else finalize
        for name, value in values or ():
            averaged = name not in self._stateful if self._averaged is None else name in self._averaged
            steps = max(current - self._seen, 1) if averaged and not last else 1
            total, count = self._sums.get(name, (0.0, 0)) if averaged and not last else (0.0, 0)
            self._sums[name] = total + float(np.mean(value)) * steps, count + steps
        self._seen = current
        if self._bar is not None:
            logs = {name: total / count for name, (total, count) in self._sums.items()}
            self._bar.advance(current - 1, logs)
            if last:
                self._bar.finish(logs, self.unit_name)

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """`n` more steps."""
        self.update(self._seen + n, values)
