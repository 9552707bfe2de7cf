"""Pictures of Jacobians and Hessians.

A derivative of any rank is a matrix: the target's elements from top to bottom, the source's from left to right, in C order.
Colours run from -limit to limit: white is zero, red and blue the sign.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .. import nest
from ..errors import DTypeError, ShapeError
from ..extras import imported

Shape = tuple[int, ...]
MOST_NUMBERS = 12


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


def draw(
    matrix: Any, rows: AxisParts, columns: AxisParts, unit: str, title: str | None, limit: float | None, cmap: Any, ax: Any
) -> Any:
    """A matrix as a picture with a colour bar, labelled with what its colours mean. Returns the Axes."""
    if not matrix.size:
        raise ShapeError(f"there is nothing to draw in a matrix of shape {matrix.shape}.")
    if limit is not None and not 0 < limit < float("inf"):
        raise ValueError(f"limit: expected a positive number, found {limit!r}.")
    plt = pyplot()
    ax = plt.subplots(layout="constrained")[1] if ax is None else ax
    make_room(ax.figure.figure)
    largest = float(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0))
    limit = limit or largest or 1.0
    colours = plt.get_cmap(cmap).with_extremes(bad=NOT_A_NUMBER)
    shape = "equal" if max(matrix.shape) <= STRIP * min(matrix.shape) else "auto"
    image = ax.imshow(matrix, vmin=-limit, vmax=limit, cmap=colours, aspect=shape)
    beyond = largest > limit or bool(np.isinf(matrix).any())
    bar = ax.inset_axes((1.04, 0.0, 0.04, 1.0))
    ax.figure.colorbar(image, cax=bar, label=unit, extend="both" if beyond else "neither")
    _mark(ax.yaxis, rows, ax.axhline)
    _mark(ax.xaxis, columns, ax.axvline)
    ax.set_title(title or "", wrap=True)
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


def plot_jacobian(
    jacobian: Any,
    sources: Any = None,
    *,
    target_rank: int | None = None,
    title: str | None = None,
    limit: float | None = None,
    cmap: Any = COLOURS,
    ax: Any = None,
) -> Any:
    """A Jacobian as a matrix in colours, white where it is zero: J[i, k] = dy_i / dx_k, i downwards and k to the right.

    Args:
        jacobian: shape (*target.shape, *source.shape), as `tape.jacobian` returns it; or a nest of these, one for each source,
            drawn side by side; or shape (*target.shape, P) for all sources, as `tf.autodiff.jacobian` returns it.
        sources: what it was differentiated with respect to: Variable, Tensor, nest of them, model or layer. Gives names, and
            tells the axes of the source from those of the target.
        target_rank: the number of the target's axes, where no sources tell it; half of all axes by default.
        title: above the picture.
        limit: the colours run from -limit to limit; by default it is the largest magnitude. If there is more beyond it, the
            colour bar ends in arrows. NaN is black.
        cmap: a diverging colour map of matplotlib.
        ax: Axes to draw into instead of a new figure.

    Returns:
        The matplotlib Axes; `.figure` is its Figure.

    Raises:
        MissingExtraError: without matplotlib.
        ShapeError: if the shapes contradict the sources, or do not tell which axes are the target's.

    >>> x = tf.Variable([1.0, 2.0], name="x")
    >>> with tf.GradientTape() as tape:
    ...     y = tf.stack([x[0] * x[1], x[0] ** 2, x[1]])
    >>> ax = tf.autodiff.plot_jacobian(tape.jacobian(y, x), x)
    >>> ax.images[0].get_array().shape, ax.get_ylabel(), ax.get_xlabel()
    ((3, 2), 'target (3,)', 'x (2,)')
    """
    leaves = nest.flatten(jacobian) if _holds_tensors(jacobian) else [jacobian]
    blocks: list[Any] = [None if leaf is None else numbers(leaf, "jacobian") for leaf in leaves]
    shapes = _shapes(sources)
    flat = sources is not None and _is_flat(blocks, shapes)
    if sources is None:
        target = _halved(blocks, target_rank)
        shapes = [() if block is None else block.shape[len(target) :] for block in blocks]
    else:
        target = blocks[0].shape[:-1] if flat else _before(blocks, shapes)
    widths = [math.prod(shape) for shape in shapes]
    columns = [
        np.zeros((math.prod(target), width), np.float32) if block is None else block.reshape(math.prod(target), width)
        for block, width in zip(blocks, [sum(widths)] if flat else widths, strict=True)
    ]
    named = jacobian if sources is None else sources
    down, across = _axis_parts("target", [], [target]), _axis_parts("source", _names(named, "source", len(shapes)), shapes)
    return draw(np.concatenate(columns, axis=1), down, across, "∂ target / ∂ source", title, limit, cmap, ax)


def plot_hessian(
    hessian: Any,
    variables: Any = None,
    *,
    title: str | None = None,
    limit: float | None = None,
    cmap: Any = COLOURS,
    ax: Any = None,
) -> Any:
    """A Hessian as a square matrix in colours, white where it is zero, with lines between variables.

    Args:
        hessian: shape (P, P), as `tf.autodiff.hessian` returns it; or (*v.shape, *v.shape) of one variable, as nested tapes
            give it; or a list of lists of blocks, as `tf.autodiff.hessian(..., flat=False)` returns them.
        variables: the sources it was taken of: Variable, nest of them, model or layer. Gives names and the places of the lines.
        title, limit, cmap, ax: as in `plot_jacobian`, and so is the Axes that is returned.

    Raises:
        ShapeError: if it is not square, or not that of the variables.

    >>> w, b = tf.Variable([1.0, 2.0], name="w"), tf.Variable(3.0, name="b")
    >>> hessian = tf.autodiff.hessian(lambda: tf.reduce_sum(w**3) * b, [w, b])
    >>> ax = tf.autodiff.plot_hessian(hessian, [w, b], title="w and b")
    >>> [label.get_text() for label in ax.get_xticklabels()], len(ax.lines)
    (['w', 'b'], 2)
    """
    blocked = _holds_tensors(hessian)
    matrix, sizes = _joined(hessian) if blocked else _squared(numbers(hessian, "hessian"))
    shapes = _shapes(variables) or [(size,) for size in sizes]
    expected = [math.prod(shape) for shape in shapes]
    if sum(expected) != len(matrix) or (blocked and expected != sizes):
        raise ShapeError(
            f"plot_hessian: variables of shapes {shapes} have {sum(expected)} elements, the Hessian is {len(matrix)} x "
            f"{len(matrix)}{f' of blocks {sizes}' if blocked else ''}. Give the variables it was taken of, in their order."
        )
    side = _axis_parts("parameter", _names(variables, "variable", len(shapes)), shapes)
    return draw(matrix, side, side, "second derivative", title, limit, cmap, ax)


def plot_batch_jacobian(
    jacobian: Any, *, title: str | None = None, limit: float | None = None, cmap: Any = COLOURS, ax: Any = None
) -> Any:
    """The Jacobian of a batch in patches, which shows whether its rows are independent of each other.

    A whole Jacobian (batch, *outputs, batch, *inputs) has a patch (batch, batch) for each pair of an output and an input. If
    row i of the target depends on row i of the source only, every patch is diagonal, and `tape.batch_jacobian` tells it all.
    What that returns, (batch, *outputs, *inputs), has a patch (outputs, inputs) for each row of the batch.

    Args:
        jacobian: of a target and a source with the same number of axes; reshape others to (batch, outputs, batch, inputs) or
            (batch, outputs, inputs) first.
        title, limit, cmap, ax: as in `plot_jacobian`, and so is the Axes that is returned.

    Raises:
        ShapeError: if it has neither form.

    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> with tf.GradientTape(persistent=True) as tape:
    ...     tape.watch(x)
    ...     y = x @ tf.ones([2, 4])
    >>> ax = tf.autodiff.plot_batch_jacobian(tape.jacobian(y, x), title="12 rows in 4 patches, 6 columns in 2")
    >>> ax.images[0].get_array().shape
    (12, 6)
    >>> tf.autodiff.plot_batch_jacobian(tape.batch_jacobian(y, x)).get_xlabel()
    'row of the batch; input (2,) within'
    """
    found = numbers(jacobian, "jacobian")
    half, odd = divmod(found.ndim, 2)
    if found.ndim < 3 or (not odd and found.shape[0] != found.shape[half]):
        raise ShapeError(
            f"plot_batch_jacobian: expected (batch, *outputs, batch, *inputs) or (batch, *outputs, *inputs), found "
            f"{found.shape}. Where target and source differ in their number of axes, reshape it to (batch, outputs, batch, "
            "inputs) or (batch, outputs, inputs)."
        )
    batch, outputs, inputs = found.shape[0], found.shape[1 : half + odd], found.shape[half + 1 :]
    if odd:
        patches = found.reshape(batch, math.prod(outputs), math.prod(inputs)).transpose(1, 0, 2)
        matrix = patches.reshape(math.prod(outputs), batch * math.prod(inputs))
        rows = _axis_parts("output", [], [outputs])
        columns = AxisParts(f"row of the batch; input {inputs} within", [math.prod(inputs)] * batch, _counted(batch))
    else:
        patches = found.reshape(batch, math.prod(outputs), batch, math.prod(inputs)).transpose(1, 0, 3, 2)
        matrix = patches.reshape(math.prod(outputs) * batch, math.prod(inputs) * batch)
        rows, columns = (
            AxisParts(f"{name} {shape}; row of the batch within", [batch] * math.prod(shape), _counted(math.prod(shape)))
            for name, shape in (("output", outputs), ("input", inputs))
        )
    return draw(matrix, rows, columns, "∂ output / ∂ input", title, limit, cmap, ax)


def _holds_tensors(given: Any) -> bool:
    """True for a nest of several derivatives; False for a single one, which may be written as a list of numbers."""
    return nest.is_nested(given) and any(leaf is None or hasattr(leaf, "shape") for leaf in nest.flatten(given))


def _listed(variables: Any) -> list[Any]:
    return nest.flatten(getattr(variables, "trainable_variables", variables))


def _shapes(variables: Any) -> list[Shape]:
    return [] if variables is None else [tuple(np.shape(one)) for one in _listed(variables)]


def _names(variables: Any, kind: str, count: int) -> list[str]:
    """The names of the variables: the keys of a dict, their own names without the folder they share, or numbers."""
    if isinstance(variables, Mapping) and len(variables) == count:
        return list(map(str, variables))
    listed = [] if variables is None else _listed(variables)
    found = [getattr(one, "path", None) or getattr(one, "name", None) for one in listed]
    if len(found) != count or not all(found):
        return [f"{kind} {i}" for i in range(count)] if count > 1 else []
    plain = [str(name).removesuffix(":0").split("/") for name in found]
    while count > 1 and all(len(parts) > 1 for parts in plain) and len({parts[0] for parts in plain}) == 1:
        plain = [parts[1:] for parts in plain]
    return ["/".join(parts) for parts in plain]


def _axis_parts(label: str, names: Sequence[str], shapes: Sequence[Shape]) -> AxisParts:
    """A side with a name for each part, or, if there is one part only, its name and shape as the label."""
    sizes = [math.prod(shape) for shape in shapes]
    if len(shapes) == 1:
        return AxisParts(f"{names[0] if names else label} {shapes[0]}", sizes)
    return AxisParts("", sizes, names)


def _counted(count: int) -> list[str]:
    """Numbers from 0 as names, not more than fit."""
    step = -(-count // MOST_NUMBERS)
    return [str(i) if i % step == 0 else "" for i in range(count)]


def _halved(blocks: Sequence[Any], rank: int | None) -> Shape:
    """The target's shape, if only its rank or nothing is known."""
    known = [block for block in blocks if block is not None]
    if rank is None:
        even = next((block for block in known if block.ndim % 2 == 0), None)
        if even is None or len(blocks) > 1:
            raise ShapeError(
                f"plot_jacobian: shapes {[block.shape for block in known]} do not tell which axes are the target's; give the "
                "sources, or target_rank."
            )
        rank = even.ndim // 2
    targets = {block.shape[:rank] for block in known}
    if len(targets) != 1 or len(next(iter(targets))) != rank:
        raise ShapeError(f"plot_jacobian: shapes {[block.shape for block in known]} have no {rank} first axes in common.")
    return targets.pop()


def _is_flat(blocks: Sequence[Any], shapes: Sequence[Shape]) -> bool:
    """True if one matrix holds all sources side by side."""
    if len(blocks) != 1 or blocks[0] is None or (len(shapes) == 1 and _ends_in(blocks[0].shape, shapes[0])):
        return False
    return blocks[0].shape[-1:] == (sum(map(math.prod, shapes)),)


def _ends_in(whole: Shape, shape: Shape) -> bool:
    return whole[len(whole) - len(shape) :] == shape


def _before(blocks: Sequence[Any], shapes: Sequence[Shape]) -> Shape:
    """The target's shape: the axes in front of those of the sources."""
    pairs = [(block.shape, shape) for block, shape in zip(blocks, shapes, strict=False) if block is not None]
    targets = {whole[: len(whole) - len(shape)] for whole, shape in pairs if _ends_in(whole, shape)}
    if len(blocks) != len(shapes) or len(targets) != 1 or not all(_ends_in(*pair) for pair in pairs):
        found = [None if block is None else block.shape for block in blocks]
        raise ShapeError(f"plot_jacobian: expected one shape followed by each of the sources' {shapes}, found {found}.")
    return targets.pop()


def _joined(blocks: Any) -> tuple[Any, list[int]]:
    """One matrix of a list of lists of blocks, and the sizes of the parts."""
    rows = [nest.flatten(blocks[key]) for key in nest.keys(blocks)]
    arrays = [[numbers(block, "hessian") for block in row] for row in rows]
    sizes = [math.isqrt(row[i].size) for i, row in enumerate(arrays) if i < len(row)]
    fits = all(
        len(row) == len(arrays) and all(block.size == down * across for block, across in zip(row, sizes, strict=True))
        for row, down in zip(arrays, sizes, strict=False)
    )
    if not fits or len(sizes) != len(arrays):
        shapes = [[block.shape for block in row] for row in arrays]
        raise ShapeError(f"plot_hessian: expected as many rows of blocks as columns, of fitting sizes, found {shapes}.")
    tidy = [
        [block.reshape(down, across) for block, across in zip(row, sizes, strict=True)]
        for row, down in zip(arrays, sizes, strict=True)
    ]
    return np.block(tidy), sizes


def _squared(whole: Any) -> tuple[Any, list[int]]:
    """A Hessian of any rank as a matrix, and the size of its only part."""
    half = whole.ndim // 2
    if whole.ndim % 2 or whole.shape[:half] != whole.shape[half:]:
        raise ShapeError(f"plot_hessian: expected a shape twice in a row, as (5, 8, 5, 8) or (P, P), found {whole.shape}.")
    size = math.prod(whole.shape[:half])
    return whole.reshape(size, size), [size]
