# mypy: implicit-reexport
"""Pictures of derivatives and of training, drawn by matplotlib (extra `plot`), which is imported when one is asked for.

Every function takes `ax` or `axes` to draw into, makes its own figure without them, and returns what it drew on. Here are
those of many runs: learning curves with bands, and lines through the values of parameters.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ShapeError
from .matrices import make_room, numbers, plot_batch_jacobian, plot_hessian, plot_jacobian, pyplot, shown_once

# Pictures of training: a panel for each quantity, with training and validation as two lines on one scale.

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
    for ax, name, lines in zip(panels, chosen, curves, strict=True):
        _panel(ax, name, lines)
    return _titled(figure, title, axes)


def picture(history: Any) -> bytes:
    """The curves as a PNG, of which pyplot knows nothing."""
    from matplotlib.figure import Figure

    names = _panels(history.history)
    figure, file = Figure(layout="constrained"), io.BytesIO()
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
        make_room(panels[0].figure.figure)
        return panels[0].figure, panels
    figure = pyplot().figure(layout="constrained")
    return figure, _subplots(figure, count)


def _titled(figure: Any, title: str | None, axes: Any) -> Any:
    """A figure with its title above all panels; one that was made for them is shown once."""
    if title is not None:
        figure.suptitle(title, wrap=True)
    return shown_once(figure) if axes is None else figure


def _subplots(figure: Any, count: int) -> list[Any]:
    """The panels of a figure, which gets the size for them."""
    columns = min(count, MOST_COLUMNS)
    rows = -(-count // columns)
    figure.set_size_inches(PANEL[0] * columns, PANEL[1] * rows)
    return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


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


COLOURS = "viridis"
GREY = "0.75"
WIDE = 1.7
"""Width of an axis of parallel coordinates, in inches."""
LETTER = 0.072
"""Width of a letter of the legend, in inches."""
SPAN = 20.0
"""The ratio of the largest number to the smallest from which an axis is logarithmic."""


MOST_MARKS = 6
"""An axis with more values is labelled with round numbers."""


class Band(NamedTuple):
    """A curve with its deviation on each side, None without one; those with a label are coloured and named."""

    label: str | None
    epochs: Any
    mean: Any
    deviation: Any

    @classmethod
    def of(cls, label: str | None, runs: Sequence[Any], name: str, freedom: int = 1) -> Band:
        """Mean and deviation at the epochs at which any of some runs, such as a `History`, has a finite value; the variance is
        a sum divided by the number of values less `freedom`.
        """
        columns: dict[int, list[float]] = {}
        for one in runs:
            for epoch, value in zip(one.logged_at.get(name, ()), one.history.get(name, ()), strict=True):
                columns.setdefault(epoch, []).extend([value] if np.isfinite(value) else [])
        epochs = [epoch for epoch in sorted(columns) if columns[epoch]]
        mean = np.array([np.mean(columns[epoch]) for epoch in epochs])
        spread = [np.std(columns[epoch], ddof=freedom) if len(columns[epoch]) > 1 else 0.0 for epoch in epochs]
        several = any(len(columns[epoch]) > 1 for epoch in epochs)
        return cls(label, np.array(epochs), mean, np.array(spread) if several else None)


def plot_bands(panels: Mapping[str, Sequence[Band]], *, title: str | None = None, axes: Any = None) -> Any:
    """Curves in bands, a panel for each name; epochs are counted from 1.

    Returns:
        The matplotlib Figure.

    Raises:
        MissingExtraError: without matplotlib.

    >>> bands = [Band("rate=0.1", np.arange(3), np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.2, 0.1]))]
    >>> len(plot_bands({"loss": bands}).axes[0].collections)
    1
    """
    from matplotlib.ticker import MaxNLocator

    figure, found = room(len(panels), axes, "plot")
    for ax, (name, bands) in zip(found, panels.items(), strict=True):
        coloured = iter(f"C{number}" for number in range(len(bands)))
        for band in reversed(bands):
            if band.label is None:
                ax.plot(band.epochs + 1, band.mean, color=GREY, linewidth=0.8, zorder=1)
        for band in bands:
            if band.label is not None:
                colour = next(coloured)
                marker = "o" if len(band.epochs) == 1 else ""
                ax.plot(band.epochs + 1, band.mean, color=colour, label=band.label, marker=marker, zorder=3)
                if band.deviation is not None:
                    lower, upper = band.mean - band.deviation, band.mean + band.deviation
                    ax.fill_between(band.epochs + 1, lower, upper, color=colour, alpha=0.2, linewidth=0, zorder=2)
        ax.set(title=name, xlabel="epoch")
        ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    lines, labels = found[-1].get_legend_handles_labels()
    if labels and axes is None:
        figure.set_figwidth(figure.get_figwidth() + LETTER * max(map(len, labels)) + 0.6)
        figure.legend(lines, labels, fontsize="small", loc="outside right upper")
    elif labels:
        found[-1].legend(fontsize="small")
    return _titled(figure, title, axes)


def plot_parallel(
    columns: Mapping[str, Sequence[Any]],
    objective: str,
    values: Sequence[float],
    best: str,
    *,
    title: str | None = None,
    axes: Any = None,
) -> Any:
    """A line for each run, from the value of each parameter on its axis to the objective, in a colour of its value.

    Args:
        columns: the values of each parameter, one for each run; None where a run has none.
        objective: the name of the last axis.
        values: the values of the runs on it.
        best: 'min' or 'max': the better a line is, the darker it is, and the later it is drawn.

    Returns:
        The matplotlib Figure.

    Raises:
        MissingExtraError: without matplotlib.

    >>> figure = plot_parallel({"rate": [0.1, 0.01], "width": [8, 8]}, "loss", [2.0, 1.0], "min")
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['rate', 'width', 'loss']
    """
    plt = pyplot()
    every = {**columns, objective: list(values)}
    if axes is None:
        size = (WIDE * (len(every) + 1), PANEL[1])
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    else:
        (ax,) = np.ravel(axes)
    make_room(ax.figure.figure)
    places = np.array([_axis(ax, i, list(column)) for i, column in enumerate(every.values())])
    found = np.asarray(values, float)
    colours, scale = plt.get_cmap(COLOURS if best == "min" else f"{COLOURS}_r"), plt.Normalize(found.min(), found.max())
    for run in np.argsort(found if best == "max" else -found, kind="stable"):
        ax.plot(range(len(every)), places[:, run], color=colours(scale(found[run])), linewidth=1.2, alpha=0.8, clip_on=False)
    ax.set(xlim=(0, len(every) - 1), ylim=(-0.05, 1.05), title=title or "")
    ax.set_xticks(range(len(every)), every)
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.spines[["top", "bottom", "left", "right"]].set_visible(False)
    return shown_once(ax.figure) if axes is None else ax.figure


def _axis(ax: Any, position: int, column: list[Any]) -> Any:
    """Draw one axis with its labels; where the values lie on it, from 0 to 1."""
    ax.axvline(position, color="0.3", linewidth=1.0, zorder=4, clip_on=False)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column):
        marks, places = _scaled(np.asarray(column, float))
    else:
        names = sorted({str(value) for value in column})
        where = {name: i / (len(names) - 1) if len(names) > 1 else 0.5 for i, name in enumerate(names)}
        marks, places = list(where.items()), np.array([where[str(value)] for value in column])
    for label, place in marks:
        ax.text(position + 0.02, place, label, va="center", ha="left", fontsize="small", bbox=_PAPER, zorder=5)
    return places


_PAPER = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}


def _scaled(values: Any) -> tuple[list[tuple[str, float]], Any]:
    """Labels with their places, and the places of all values: logarithmic where the numbers span much."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    distinct = np.unique(values)
    low, high = distinct[0], distinct[-1]
    if low == high:
        return [(f"{low:.4g}", 0.5)], np.full(len(values), 0.5)
    logarithmic = low > 0 and high / low > SPAN
    bent = np.log if logarithmic else np.asarray
    marks = distinct
    if len(distinct) > MOST_MARKS:
        round_ones = (
            LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)) if logarithmic else MaxNLocator(MOST_MARKS)
        )
        located = round_ones.tick_values(low, high)
        within = [mark for mark in located if low <= mark <= high]
        marks = np.array(within if len(within) > 1 else [low, high])
    shares = (bent(marks) - bent(low)) / (bent(high) - bent(low))
    places = (bent(values) - bent(low)) / (bent(high) - bent(low))
    return [(f"{mark:.4g}", float(share)) for mark, share in zip(marks, shares, strict=True)], places


# Pictures of a comparison of optimizers: a value against steps and against seconds, a line and a band for each.

SIZE = (10.0, 4.2)
LINE_COLOURS, DASHES = 10, ("-", "--", ":", "-.")
"""The number of lines that differ by colour, and the dashes of the lines after them."""
FEW_POINTS = 15
LINE_OF_LEGEND, LEGEND_MARK = 130, 8
"""The number of letters that fit below the panels, and the room of a line's mark in letters."""
SPREAD = 5
"""The ratio of the longest run to the shortest above which the axis is logarithmic."""


def plot_comparison(
    curves: Mapping[str, Any], name: str, *, threshold: float | None = None, title: str | None = None, axes: Any = None
) -> Any:
    """A value against steps, and against seconds; the value on a logarithmic axis if it is positive everywhere.

    Args:
        curves: by the label of a line an object with `steps`, (points,), `seconds`, (points, seeds), and `logs`, a dict from
            names to values, (points, seeds). A line is the median over seeds, as long as more than half of them go on, and its
            band reaches from lowest to highest.
        name: of the value.
        threshold: drawn as a dotted line.
        title: above both panels.
        axes: two Axes to draw into instead of a new figure.

    Returns:
        The matplotlib Figure. A cross is the last point before a value ceased to be finite; the axis does not follow up there.
    """
    drawn = {label: curve for label, curve in curves.items() if name in curve.logs}
    if not drawn:
        known = dict.fromkeys(name for curve in curves.values() for name in curve.logs)
        raise ValueError(f"plot: no {name!r} was measured; there is {', '.join(known) or 'nothing, since all runs failed'}.")
    if axes is None:
        made = pyplot().subplots(1, 2, figsize=SIZE, sharey=True, layout="constrained")[1]
    figure, panels = room(2, made if axes is None else axes, "plot")
    lines = [_Line.of(label, curve, name) for label, curve in drawn.items()]
    for number, line in enumerate(lines):
        style = {"color": f"C{number % LINE_COLOURS}", "linestyle": DASHES[number // LINE_COLOURS % len(DASHES)]}
        for ax, positions in zip(panels, (line.steps, line.seconds), strict=True):
            _draw(ax, positions, line, style)
    drawn_lines = [line for line in lines if len(line.steps)]
    ends = [line.steps[-1] for line in drawn_lines] or [0], [line.seconds[-1] for line in drawn_lines] or [0]
    for ax, label, last in zip(panels, ("steps", "seconds of training"), ends, strict=True):
        ax.set(xlabel=label, ylabel=name if axes is not None or ax is panels[0] else "")
        if max(last) > SPREAD * min(last) > 0:
            ax.set_xscale("log", nonpositive="mask")
        _scale(ax, lines)
        ax.grid(alpha=0.3)
        if threshold is not None:
            ax.axhline(threshold, color="0.4", linestyle=":", linewidth=1)
    if axes is None:
        sizes = [LEGEND_MARK + len(line.label) for line in lines]
        columns = len(lines) if sum(sizes) <= LINE_OF_LEGEND else max(1, LINE_OF_LEGEND // max(sizes))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
    else:
        panels[-1].legend()
    return _titled(figure, title, axes)


class _Line(NamedTuple):
    """The line drawn for a curve: the points at which more than half of its runs have a finite value."""

    label: str
    steps: Any
    seconds: Any
    middle: Any
    low: Any
    high: Any
    diverged: bool

    @classmethod
    def of(cls, label: str, curve: Any, name: str) -> _Line:
        """The line of the values of one name."""
        values = curve.logs[name]
        finite = np.isfinite(values)
        shown = 2 * finite.sum(axis=1) > values.shape[1]
        rows = [row[good] for row, good in zip(values[shown], finite[shown], strict=True)]
        times = [row[np.isfinite(row)] for row in curve.seconds[shown]]
        middle, low, high = (np.array([function(row) for row in rows]) for function in (np.median, np.min, np.max))
        seconds = np.maximum.accumulate([float(np.median(row)) for row in times])  # a slow run that ends moves no point back
        diverged = bool((np.isfinite(curve.seconds) & ~finite)[~shown].any())
        return cls(f"{label} (diverged)" if diverged else label, curve.steps[shown], seconds, middle, low, high, diverged)


def _draw(ax: Any, positions: Any, line: _Line, style: dict[str, Any]) -> None:
    """A line with its band, and a cross where it diverged."""
    marker = "o" if len(positions) <= FEW_POINTS else ""
    ax.plot(positions, line.middle, label=line.label, marker=marker, markersize=4, **style)
    if (line.low < line.high).any():
        ax.fill_between(positions, line.low, line.high, color=style["color"], alpha=0.2, linewidth=0)
    if line.diverged and len(positions):
        ax.plot(positions[-1], line.middle[-1], marker="x", color=style["color"], markersize=8, clip_on=True)


def _scale(ax: Any, lines: list[_Line]) -> None:
    """A logarithmic axis for positive values, high enough for lines that did not diverge."""
    values = np.concatenate([line.low for line in lines])
    if values.size and values.min() > 0:
        ax.set_yscale("log")
    calm = [float(line.high.max()) for line in lines if not line.diverged and line.high.size]
    wild = [float(line.high.max()) for line in lines if line.diverged and line.high.size]
    if calm and wild and max(wild) > max(calm):
        bottom, factor = ax.get_ylim()[0], 2.0 if ax.get_yscale() == "log" else 1.05
        ax.set_ylim(bottom, max(calm) * factor)
