"""The table that `model.summary()` prints.

Each cell is made as pieces that may stand on lines of their own; the widest columns give way until the table fits.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ... import markup, nest
from ..layers import BatchNormalization
from ..layers.layer import Layer

_SMALLEST = 4
_NARROWEST_LAYOUT = 40


class Row(NamedTuple):
    """One layer: for each column its cell, as pieces between which a line may be broken; within a tuple only if it must be."""

    cells: tuple[list[Any], ...]
    depth: int = 0


def summary(
    model: Any, line_length: int | None, positions: Any, expand_nested: bool, show_trainable: bool, layer_range: Any
) -> list[str]:
    """The lines of the table, and of the totals below it; the arguments are those of `Model.summary`."""
    columns, rows = _table(model, expand_nested, show_trainable, layer_range)
    widest = max(line_length or shutil.get_terminal_size((100, 24)).columns, _NARROWEST_LAYOUT)
    widths = _given_widths(positions, widest, len(columns)) if positions else _widths(columns, rows, widest)
    return [f'Model: "{model.name}"', *_drawn(columns, rows, widths), *_totals(model)]


def summary_html(model: Any) -> str:
    """The table and the totals as HTML, for notebooks; the layers of models within are shown."""
    columns, rows = _table(model, True, True, None)
    cells = [["".join(_split(cell)).strip() for cell in row.cells] for row in rows]
    totals = "".join(markup.element("div", line.strip()) for line in _totals(model))
    return markup.table(columns, cells, [columns.index("Param #")], f'Model: "{model.name}"') + totals


def _table(model: Any, expand_nested: bool, show_trainable: bool, layer_range: Any) -> tuple[list[str], list[Row]]:
    """The names of the columns, and a row for each layer."""
    columns = ["Layer (type)", "Output Shape", "Param #"]
    connected = _branches(model)
    optimizer_for = getattr(getattr(model, "optimizer", None), "optimizer_for", None)
    columns += ["Connected to"] if connected else []
    columns += ["Trainable"] if show_trainable else []
    columns += ["Optimizer"] if optimizer_for else []
    rows = []
    for layer, holder, depth in _shown(model, expand_nested, layer_range):
        cells = [_name(layer, depth), shapes_in(holder, layer), [_count(layer)]]
        cells += [_sources(layer, holder)] if connected else []
        cells += [mode(layer, holder)] if show_trainable else []
        cells += [_optimizer(layer, optimizer_for)] if optimizer_for else []
        rows.append(Row(tuple(cells), depth))
    return columns, rows


# Rows -----------------------------------------------------------------------------------------------------------------


def _shown(model: Any, expand: bool, layer_range: Sequence[str] | None, depth: int = 0) -> Iterator[tuple[Any, Any, int]]:
    """Layers to show, with the model that holds each and how deep that lies."""
    layers = parts(model)
    if layer_range is not None:
        layers = _between(layers, layer_range)
    for layer in layers:
        yield layer, model, depth
        if expand and hasattr(layer, "layers"):
            yield from _shown(layer, True, None, depth + 1)


def parts(model: Any) -> list[Any]:
    """The layers of a model; of a functional one the operators too."""
    if getattr(model, "_layers", None) is not None:
        return list(model.layer_graph.operations)
    return list(model.layers)


def _between(layers: list[Any], bounds: Sequence[str]) -> list[Any]:
    if len(bounds) != 2:
        raise ValueError(f"summary: layer_range holds the names of two layers, the first and the last; found {list(bounds)}.")
    found = []
    for bound in bounds:
        matching = [position for position, layer in enumerate(layers) if re.match(bound, layer.name)]
        if not matching:
            raise ValueError(f"summary: no layer matches {bound!r}. There are: {', '.join(layer.name for layer in layers)}.")
        found.append(matching)
    return layers[min(found[0]) : max(found[1]) + 1]


def _name(layer: Any, depth: int) -> list[Any]:
    indent = "  " * (depth - 1) + "└ " if depth else ""
    kind = f"({type(layer).__name__})"
    return [_words(f"{indent}{layer.name} "), tuple(re.split(r"(?<=[a-z0-9])(?=[A-Z][a-z])", kind))]


def _words(name: str) -> tuple[str, ...]:
    """A name as a piece that may be broken before underscores."""
    return tuple(re.split(r"(?<=[^_])(?=_)", name))


def calls_in(holder: Any, layer: Any) -> list[Any]:
    """The calls of a layer in the graph of a model; none if the model has no graph."""
    return holder.layer_graph.calls_of(layer) if getattr(holder, "layer_graph", None) is not None else []


def shapes_in(holder: Any, layer: Any) -> list[str]:
    """The shapes of the outputs, each once; '?' if they are not known."""
    shapes = [spec.shape for node in calls_in(holder, layer) for spec in node.specs]
    has_rule = isinstance(layer, Layer) and type(layer).compute_output_shape is not Layer.compute_output_shape
    built_for = getattr(layer, "_build_shape", None)
    if not shapes and has_rule and layer.built and isinstance(built_for, tuple):
        shapes = [(None, *layer.compute_output_shape(built_for)[1:])]
    if not shapes and getattr(layer, "_graph", None) is not None:
        shapes = [output.shape for output in nest.flatten(layer.outputs)]
    return _pieces([str(tuple(shape)) for shape in shapes], "?")


def _pieces(texts: Sequence[str], none: str = "-") -> list[str]:
    """A list of texts as a cell, each text once."""
    texts = list(dict.fromkeys(texts))
    return [f"{text}, " for text in texts[:-1]] + texts[-1:] or [none]


def _count(layer: Any) -> str:
    if not layer.built:
        return "0 (unbuilt)"
    return f"{sum(weight.shape.num_elements() for weight in _weights(layer)):,}"


def _weights(layer: Any) -> list[Any]:
    """The weights of a layer; an operator has none."""
    return list(getattr(layer, "weights", ()))


def _sources(layer: Any, holder: Any) -> list[Any]:
    """The layers on which it is called: the name alone if there is one call with one result, else with their numbers."""
    texts = []
    for node in calls_in(holder, layer):
        for x in node.inputs:
            graph = holder.layer_graph
            operation, call, position = graph.place(x)
            if operation not in parts(holder):  # the entrance of a Sequential, which has no row
                continue
            several = len(graph.calls_of(operation)) > 1 or len(x.node.specs) > 1
            texts.append(f"{operation.name}[{call}][{position}]" if several else operation.name)
    return [_words(f"{text}, ") for text in texts[:-1]] + [_words(text) for text in texts[-1:]] or ["-"]


def mode(layer: Any, holder: Any) -> list[str]:
    """'Y', 'N' or 'partly'; and the mode, where it is fixed: of a frozen normalization, or by `training=` in the graph."""
    able = [weight for weight in _weights(layer) if getattr(weight, "learns", weight.trainable)]
    learning = [weight for weight in able if weight.trainable]
    text = ["-"] if not able else ["Y"] if len(learning) == len(able) else ["partly"] if learning else ["N"]
    told = {node.kwargs.get("training") for node in calls_in(holder, layer)}
    if False in told or (able and not layer.trainable and isinstance(layer, BatchNormalization)):
        text += [", ", "inference"]
    if True in told:
        text += [", ", "training"]
    return text


# Optimizers -----------------------------------------------------------------------------------------------------------


def _optimizer(layer: Any, optimizer_for: Any) -> list[str]:
    told = [optimizer_for(weight) for weight in _weights(layer) if getattr(weight, "learns", weight.trainable)]
    return _pieces(["none" if optimizer is None else f"{optimizer.name}" for optimizer in told])


# Drawing --------------------------------------------------------------------------------------------------------------


def _branches(model: Any) -> bool:
    """True if the graph of a model is more than a chain."""
    graph = getattr(model, "_graph", None)
    if graph is None or getattr(model, "_layers", None) is None:
        return False
    previous = nest.flatten(graph.inputs)
    for node in graph.nodes:
        if len(previous) != 1 or [x.key for x in node.inputs] != [previous[0].key] or len(graph.calls_of(node.operation)) > 1:
            return True
        previous = nest.flatten(node.outputs)
    return False


def _given_widths(positions: Sequence[float], widest: int, count: int) -> list[int]:
    ends = [int(end * widest) if end <= 1 else int(end) for end in positions]
    if len(ends) < count or sorted(ends) != ends:
        raise ValueError(f"summary: positions must be {count} increasing numbers, one for each column; found {positions}.")
    return [max(end - start - 3, 4) for start, end in zip([0, *ends], ends[:count], strict=False)]


def _widths(columns: Sequence[str], rows: Sequence[Row], widest: int) -> list[int]:
    """The width that each column needs; the widest ones give way if the sum is too large."""
    table = [[_heading(name) for name in columns], *[list(row.cells) for row in rows]]
    widths = [max(len("".join(_split(line[column])).rstrip()) for line in table) for column in range(len(columns))]
    least = [max(len(piece.rstrip()) for line in table for piece in _split(line[column])) for column in range(len(columns))]
    while sum(widths) + 3 * len(widths) + 1 > widest:
        yielding = [c for c in range(len(widths)) if widths[c] > least[c]]
        if not yielding:
            yielding = [c for c in range(len(widths)) if widths[c] > _SMALLEST]
            if not yielding:
                break
            least = [min(width, _SMALLEST) for width in widths]
        widths[max(yielding, key=lambda column: widths[column])] -= 1
    return widths


def _heading(name: str) -> list[Any]:
    return re.split(r"(?<= )", name)


def _split(pieces: list[Any]) -> list[str]:
    """The smallest pieces of a cell."""
    return [part for piece in pieces for part in (piece if isinstance(piece, tuple) else (piece,))]


def _wrapped(pieces: list[Any], width: int, indent: int) -> list[str]:
    """A cell as lines: broken between pieces, and within a piece only if it is longer than the line."""
    lines = [""]

    def add(piece: str) -> None:
        if lines[-1].strip() and len((lines[-1] + piece).rstrip()) > width:
            piece = piece.lstrip()
            lines.append(" " * indent if len(piece.rstrip()) + indent <= width else "")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1], rest = lines[-1][:width], lines[-1][width:]
            lines.append(rest)

    for piece in pieces:
        whole = "".join(_split([piece]))
        for part in [whole] if len(whole.rstrip()) + indent <= width else _split([piece]):
            add(part)
    return [line.rstrip() for line in lines]


def _drawn(columns: Sequence[str], rows: Sequence[Row], widths: Sequence[int]) -> list[str]:
    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + right

    def lines(row: Row) -> Iterator[str]:
        indents = [2 * row.depth + 2 if row.depth else 2, *[0] * (len(widths) - 1)]
        wrapped = [_wrapped(*one) for one in zip(row.cells, widths, indents, strict=True)]
        for number in range(max(len(cell) for cell in wrapped)):
            texts = [cell[number] if number < len(cell) else "" for cell in wrapped]
            aligned = [
                text.rjust(width) if column == 2 else text.ljust(width)
                for column, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            yield "│ " + " │ ".join(aligned) + " │"

    body = [line for row in rows for line in lines(row)]
    head = list(lines(Row(tuple(_heading(name) for name in columns))))
    return [rule("┌", "┬", "┐"), *head, rule("├", "┼", "┤"), *body, rule("└", "┴", "┘")]


def _totals(model: Any) -> list[str]:
    weights = _weights(model)
    lines = [
        f" Total params: {_amount(weights)}",
        f" Trainable params: {_amount([weight for weight in weights if weight.trainable])}",
        f" Non-trainable params: {_amount([weight for weight in weights if not weight.trainable])}",
    ]
    slots = list(getattr(getattr(model, "optimizer", None), "variables", None) or ())
    return [*lines, f" Optimizer params: {_amount(slots)}"] if slots else lines


def _amount(variables: Sequence[Any]) -> str:
    """A number of elements, and the memory that they take."""
    count = sum(variable.shape.num_elements() for variable in variables)
    size = float(sum(variable.shape.num_elements() * variable.dtype.size for variable in variables))
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            break
        size /= 1024
    return f"{count:,} ({size:.2f} {unit})" if unit != "B" else f"{count:,} ({size:.0f} B)"
