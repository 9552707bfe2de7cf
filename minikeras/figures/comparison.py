"""Pictures of a comparison of optimizers: a value against steps and against seconds, a line and a band for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .canvas import make_room, pyplot, shown_once

SIZE = (10.0, 4.2)
LINE_COLOURS, DASHES = 10, ("-", "--", ":", "-.")
"""So many lines differ by colour; those after them are dashed."""
FEW_POINTS = 15
LINE_OF_LEGEND, LEGEND_MARK = 130, 8
"""How many letters have room below the panels, and the room of a line's mark in letters."""
SPREAD = 5
"""Where one curve would take less than so small a part of the axis, the axis is logarithmic."""


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
    figure, panels = _panels(axes)
    make_room(figure.figure)
    lines = [_Line.of(label, curve, name) for label, curve in drawn.items()]
    for number, line in enumerate(lines):
        style = {"color": f"C{number % LINE_COLOURS}", "linestyle": DASHES[number // LINE_COLOURS % len(DASHES)]}
        for ax, positions in zip(panels, (line.steps, line.seconds), strict=True):
            _draw(ax, positions, line, style)
    for ax, label, last in zip(panels, ("steps", "seconds of training"), _ends(lines), strict=True):
        ax.set(xlabel=label, ylabel=name if axes is not None or ax is panels[0] else "")
        if max(last) > SPREAD * min(last) > 0:
            ax.set_xscale("log", nonpositive="mask")
        _scale(ax, lines)
        ax.grid(alpha=0.3)
        if threshold is not None:
            ax.axhline(threshold, color="0.4", linestyle=":", linewidth=1)
    if title is not None:
        figure.suptitle(title, wrap=True)
    if axes is None:
        sizes = [LEGEND_MARK + len(line.label) for line in lines]
        columns = len(lines) if sum(sizes) <= LINE_OF_LEGEND else max(1, LINE_OF_LEGEND // max(sizes))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
        return shown_once(figure)
    panels[-1].legend()
    return figure


class _Line(NamedTuple):
    """What is drawn of a curve: the points at which more than half of its runs have a finite value."""

    label: str
    steps: Any
    seconds: Any
    middle: Any
    low: Any
    high: Any
    diverged: bool

    @classmethod
    def of(cls, label: str, curve: Any, name: str) -> _Line:
        """Of the values of one name."""
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


def _ends(lines: list[_Line]) -> tuple[list[float], list[float]]:
    """Steps and seconds at the ends of lines."""
    present = [line for line in lines if len(line.steps)]
    return [line.steps[-1] for line in present] or [0], [line.seconds[-1] for line in present] or [0]


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


def _panels(axes: Any) -> tuple[Any, list[Any]]:
    """A figure and its two panels, which share the axis of the value."""
    if axes is None:
        figure, made = pyplot().subplots(1, 2, figsize=SIZE, sharey=True, layout="constrained")
        return figure, list(made)
    panels = list(np.ravel(axes))
    if len(panels) != 2:
        raise ValueError(f"plot: two panels need two axes, found {len(panels)}.")
    return panels[0].figure, panels
