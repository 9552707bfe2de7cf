"""Pictures of training: a panel for each quantity, with training and validation as two lines on one scale."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from .canvas import make_room, numbers, pyplot, shown_once

PANEL = (4.2, 3.2)
MOST_COLUMNS = 3
FEW_EPOCHS = 15
LINES = {"training": "", "validation": "val_"}
RATE = "learning_rate"
"""Names that begin so belong after losses and metrics. They get a logarithmic scale if they span more than a power of ten."""


def plot_history(history: Any, names: Sequence[str] | None = None, *, title: str | None = None, axes: Any = None) -> Any:
    """Loss and metrics over the epochs, those of training and validation together.

    Args:
        history: what `fit` returned, or its `.history`, or any dict from names to lists with one number for each epoch. A name
            with `val_` in front shares the panel of the name without it.
        names: the panels to draw; by default the loss, then the metrics, then the learning rate if a callback logged it.
        title: above all panels.
        axes: as many Axes as there are names, to draw into instead of a new figure.

    Returns:
        The matplotlib Figure; its `.axes` are the panels, in the order of the names.

    Raises:
        MissingExtraError: without matplotlib.
        ShapeError: if a list has not one value for each epoch, and the history does not say at which epochs they were taken.
        TypeError: if the history is neither a History nor a dict.
        ValueError: if there is nothing to draw, or a name is not in the history.

    >>> from minikeras import keras
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse", metrics=["mae"])
    >>> history = model.fit([[0.0], [1.0]], [[0.0], [1.0]], validation_data=([[2.0]], [[2.0]]), epochs=3, verbose=0)
    >>> figure = keras.utils.plot_history(history)
    >>> [ax.get_title() for ax in figure.axes], len(figure.axes[0].lines)
    (['loss', 'mae'], 2)
    """
    series = getattr(history, "history", history)
    if not isinstance(series, Mapping):
        raise TypeError(f"plot_history: expected a History or a dict of lists, found {type(series).__name__}.")
    chosen = _panels(series) if names is None else [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in series and f"val_{name}" not in series]
    if unknown or not chosen:
        raise ValueError(f"plot_history: no {', '.join(unknown) or 'name'} in the history, which holds {sorted(series)}.")
    curves = [
        {label: _curve(history, series, start + name) for label, start in LINES.items() if start + name in series}
        for name in chosen
    ]
    figure, panels = room(len(chosen), axes, "plot_history")
    make_room(figure.figure)
    for ax, name, lines in zip(panels, chosen, curves, strict=True):
        _panel(ax, name, lines)
    if title is not None:
        figure.suptitle(title, wrap=True)
    return shown_once(figure) if axes is None else figure


def picture(history: Any) -> bytes:
    """The curves as a PNG, of which pyplot knows nothing."""
    from matplotlib.figure import Figure

    names = _panels(history.history)
    figure, file = Figure(figsize=_size(len(names)), layout="constrained"), io.BytesIO()
    plot_history(history, names, axes=_subplots(figure, len(names)))
    figure.savefig(file, format="png")
    return file.getvalue()


def _panels(series: Any) -> list[str]:
    """The names without 'val_': loss first and rates last, otherwise as they were logged."""
    found = dict.fromkeys(name.removeprefix("val_") for name in series)
    return sorted(found, key=lambda name: (name.startswith(RATE), name != "loss"))


def _curve(history: Any, series: Any, key: str) -> tuple[Any, Any]:
    """The epochs, counted from 1 as the progress bar does, and the values."""
    found = numbers(series[key], key)
    if found.ndim not in (1, 2):
        raise ShapeError(f"plot_history: {key!r} should be a list with a value for each epoch, found {series[key]!r:.80}.")
    taken = getattr(history, "logged_at", {}).get(key) or range(max(len(np.atleast_1d(values)) for values in series.values()))
    if len(taken) != len(found):
        raise ShapeError(
            f"plot_history: {key!r} has {len(found)} values for {len(taken)} epochs, and a dict does not say at which; give "
            "the History that fit returned, or NaN for epochs without a value."
        )
    return np.asarray(taken) + 1, found


def room(count: int, axes: Any, asked: str) -> tuple[Any, list[Any]]:
    """A figure and one Axes for each panel."""
    if axes is not None:
        panels = list(np.ravel(axes))
        if len(panels) != count:
            raise ValueError(f"{asked}: {count} panels need as many axes, found {len(panels)}.")
        return panels[0].figure, panels
    figure = pyplot().figure(figsize=_size(count), layout="constrained")
    return figure, _subplots(figure, count)


def _size(count: int) -> tuple[float, float]:
    """Of a figure with so many panels, in inches."""
    columns = min(count, MOST_COLUMNS)
    return PANEL[0] * columns, PANEL[1] * -(-count // columns)


def _subplots(figure: Any, count: int) -> list[Any]:
    columns = min(count, MOST_COLUMNS)
    return [figure.add_subplot(-(-count // columns), columns, i + 1) for i in range(count)]


def _panel(ax: Any, name: str, curves: dict[str, tuple[Any, Any]]) -> None:
    from matplotlib.ticker import MaxNLocator

    for label, (epochs, values) in curves.items():
        colour, marker = ("C0" if label == "training" else "C1"), ("o" if len(epochs) <= FEW_EPOCHS else "")
        lines = ax.plot(epochs, values, color=colour, marker=marker, markersize=4)
        lines[0].set_label(label)
    ax.set(title=name, xlabel="epoch")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.grid(alpha=0.3)
    rates = next(iter(curves.values()))[1]
    if name.startswith(RATE) and rates.min() > 0 and rates.max() > 10 * rates.min():
        ax.set_yscale("log")
    if "validation" in curves:
        ax.legend()
