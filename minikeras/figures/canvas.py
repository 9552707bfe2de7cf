"""A matrix in colours, with lines between its parts. Colours run from -limit to limit: white is zero, red and blue the sign."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import DTypeError, ShapeError
from ..extras import imported

COLOURS = "RdBu_r"
NOT_A_NUMBER = "black"
LINE = {"color": "0.3", "linewidth": 0.8}
STRIP = 4
"""The ratio of length to width from which a matrix is stretched: square cells would make it a line."""
LINE_OF_TEXT = 0.05
"""The height of a name as a share of a side of the picture; a letter is half as wide."""


class AxisParts(NamedTuple):
    """One side of a matrix: rows or columns of each part, and the names of the parts; without names they are counted."""

    label: str
    sizes: Sequence[int]
    names: Sequence[str] = ()


class Style(NamedTuple):
    """The style of a matrix: the arguments that all pictures of matrices share."""

    title: str | None
    limit: float | None
    cmap: Any
    ax: Any


def pyplot() -> Any:
    """`matplotlib.pyplot`, or an error that says how to get it."""
    return imported("matplotlib.pyplot", "this picture needs matplotlib")


def make_room(figure: Any) -> None:
    """Let a figure be laid out so that no name is cut off, unless its owner chose another way."""
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")


def shown_once(figure: Any) -> Any:
    """A figure that a notebook shows once: pyplot shows it at the end of its cell, and it may be the cell's result as well."""

    def display() -> None:
        from IPython.display import display as show

        pyplot().close(figure)
        del figure._ipython_display_
        cast(Any, show)(figure)

    if "inline" in pyplot().get_backend():
        figure._ipython_display_ = display
    return figure


def numbers(given: Any, name: str) -> Any:
    """A Tensor, Variable, array or list as a NumPy array of float32 or float64; from a GPU it is copied."""
    fetch = getattr(given, "numpy", None) or getattr(given, "get", None)
    found = np.asarray(fetch() if callable(fetch) else given)
    if found.dtype.kind == "c":
        raise DTypeError(f"{name}: {found.dtype} has no sign to colour; plot tf.math.real(...) or tf.abs(...) of it.")
    if found.dtype.kind == "O":
        raise DTypeError(f"{name}: expected numbers, found {given!r:.80}; a source without gradient has none to draw.")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float32)


def draw(matrix: Any, rows: AxisParts, columns: AxisParts, unit: str, style: Style) -> Any:
    """A matrix as a picture with a colour bar, labelled with what its colours mean. Returns the Axes."""
    if not matrix.size:
        raise ShapeError(f"there is nothing to draw in a matrix of shape {matrix.shape}.")
    if style.limit is not None and not 0 < style.limit < float("inf"):
        raise ValueError(f"limit: expected a positive number, found {style.limit!r}.")
    plt = pyplot()
    ax = plt.subplots(layout="constrained")[1] if style.ax is None else style.ax
    make_room(ax.figure.figure)
    largest = float(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0))
    limit = style.limit or largest or 1.0
    colours = plt.get_cmap(style.cmap).with_extremes(bad=NOT_A_NUMBER)
    shape = "equal" if max(matrix.shape) <= STRIP * min(matrix.shape) else "auto"
    image = ax.imshow(matrix, vmin=-limit, vmax=limit, cmap=colours, aspect=shape)
    beyond = largest > limit or bool(np.isinf(matrix).any())
    bar = ax.inset_axes((1.04, 0.0, 0.04, 1.0))
    ax.figure.colorbar(image, cax=bar, label=unit, extend="both" if beyond else "neither")
    _mark(ax.yaxis, rows, ax.axhline)
    _mark(ax.xaxis, columns, ax.axvline)
    ax.set_title(style.title or "", wrap=True)
    return ax


def _mark(axis: Any, side: AxisParts, line: Any) -> None:
    """Label one side: lines between its parts and their names in the middle, or counted elements."""
    from matplotlib.ticker import MaxNLocator

    axis.set_label_text(side.label)
    ends = np.cumsum(side.sizes)
    for end in ends[:-1]:
        line(end - 0.5, **LINE)
    if not side.names:
        axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
        return
    places = _apart((ends - np.asarray(side.sizes) / 2).tolist(), float(ends[-1]))
    axis.set_ticks([place - 0.5 for place in places], side.names)
    axis.set_tick_params(length=0)
    rooms = [(len(a) + len(b)) / 2 * LINE_OF_TEXT / 2 * ends[-1] for a, b in itertools.pairwise(side.names)]
    if axis.axis_name == "x" and any(b - a < room for (a, b), room in zip(itertools.pairwise(places), rooms, strict=True)):
        axis.set_tick_params(rotation=90)


def _apart(places: list[float], length: float) -> list[float]:
    """Sorted places, moved as little as lets names stand beside one another: those of small parts would overlap."""
    gap = min(LINE_OF_TEXT * length, length / len(places))
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], length - gap / 2)
    for i in reversed(range(len(places) - 1)):
        places[i] = min(places[i], places[i + 1] - gap)
    return places
