"""A model as the table that `model.summary()` prints, and as a picture of boxes and arrows.

Each cell of the table is made as pieces that may stand on lines of their own; the widest columns give way until it fits. The
picture is made by graphviz where it is installed, else drawn in characters.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ... import markup, nest
from ...extras import imported
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
    widths = [] if positions else _widths(columns, rows, widest)
    if positions:
        ends = [int(end * widest) if end <= 1 else int(end) for end in positions]
        if len(ends) < len(columns) or sorted(ends) != ends:
            told = f"positions must be {len(columns)} increasing numbers, one for each column; found {positions}."
            raise ValueError(f"summary: {told}")
        widths = [max(end - start - 3, 4) for start, end in zip([0, *ends], ends[: len(columns)], strict=False)]
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
        if optimizer_for:
            told = [optimizer_for(weight) for weight in _weights(layer) if getattr(weight, "learns", weight.trainable)]
            cells += [_pieces(["none" if optimizer is None else f"{optimizer.name}" for optimizer in told])]
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


# Pictures --------------------------------------------------------------------------------------------------------------

_DIRECTIONS = ("TB", "BT", "LR", "RL")


class Box(NamedTuple):
    """One layer of the picture: what is written in it, keys of the boxes that arrows come from, and the boxes within it."""

    key: str
    lines: list[str]
    sources: list[str]
    inner: list[Box]


def plot_model(
    model: Any,
    to_file: Any = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
) -> Any:
    """Draw a model into a file with graphviz; without it, print a drawing in characters.

    Args:
        model: built, so that its connections are known.
        to_file: the file; its ending says the format ('png', 'svg', 'pdf', 'dot', or 'txt' for characters). None for no file.
        show_shapes: whether the shapes of inputs and outputs are written.
        show_dtype: whether the dtypes of the outputs are written.
        show_layer_names: whether names are written beside classes.
        rankdir: 'TB' from top to bottom, 'BT', 'LR' from left to right, or 'RL'.
        expand_nested: whether models within are drawn with their layers.
        dpi: dots per inch.
        show_layer_activations: whether activations are written.
        show_trainable: whether it is written what is trained.

    Returns:
        The pydot graph; the text if that was written to a file; None if it was printed, for want of graphviz.

    Raises:
        ValueError: if the model is not built, or for another `rankdir`.

    >>> x = tf.keras.Input((4,), name="x")
    >>> left, right = tf.keras.layers.Dense(2, name="left")(x), tf.keras.layers.Dense(2, name="right")(x)
    >>> model = tf.keras.Model(x, left + right, name="net")
    >>> print(tf.keras.utils.model_drawing(model, show_shapes=True))
    ●    x (InputLayer) (None, 4)
    ├─╮
    ● │  left (Dense) (None, 2)
    │ ●  right (Dense) (None, 2)
    ├─╯
    ●    add (Add) (None, 2)
    """
    if rankdir not in _DIRECTIONS:
        raise ValueError(f"plot_model: rankdir must be one of {_DIRECTIONS}, found {rankdir!r}.")
    shown = (show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
    boxes = _boxes(model, expand_nested, shown)
    as_text = to_file is not None and str(to_file).endswith(".txt")
    if as_text or shutil.which("dot") is None or importlib.util.find_spec("pydot") is None:
        text = "\n".join(_rails(boxes))
        if as_text:
            pathlib.Path(to_file).write_text(text + "\n", encoding="utf-8")
            return text
        print(text, "(For an image install graphviz, and: pip install 'minikeras[plot]'.)", sep="\n\n")
        return None
    graph = _dot(model.name, boxes, rankdir, dpi)
    if to_file is not None:
        ending = pathlib.Path(to_file).suffix.lstrip(".") or "png"
        graph.write(str(to_file), format="raw" if ending == "dot" else ending)
    return graph


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
) -> Any:
    """The picture of a model as a pydot graph, to change or draw oneself. Needs pydot, but not graphviz.

    Args:
        model, show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi: as in `plot_model`.
        show_layer_activations, show_trainable: likewise.

    Raises:
        MissingExtraError: if pydot is not installed.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, name="head")])
    >>> "head" in tf.keras.utils.model_to_dot(model).to_string()
    True
    """
    shown = (show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
    return _dot(model.name, _boxes(model, expand_nested, shown), rankdir, dpi)


def model_drawing(model: Any, show_shapes: bool = False, expand_nested: bool = False, show_trainable: bool = False) -> str:
    """The drawing of a model in characters: a line for each layer, below those that it depends on, and rails between them.

    Args:
        model, show_shapes, expand_nested, show_trainable: as in `plot_model`.

    >>> model = tf.keras.Sequential([tf.keras.Input((4,), name="x"), tf.keras.layers.Dense(2, name="d")])
    >>> print(tf.keras.utils.model_drawing(model))
    ●  x (InputLayer)
    ●  d (Dense)
    """
    return "\n".join(_rails(_boxes(model, expand_nested, (show_shapes, False, True, False, show_trainable))))


# Collecting -----------------------------------------------------------------------------------------------------------


def _boxes(model: Any, expand: bool, shown: tuple[bool, ...], prefix: str = "") -> list[Box]:
    """The boxes of a model, each after those that arrows come from. `shown` are the choices of `plot_model`, in their order."""
    if not model.built:
        raise ValueError(
            f"plot_model: model '{model.name}' is not built, so its connections are not known. Begin with an Input, or call it."
        )
    try:
        graph = model.need_graph("drawing")
    except AttributeError:  # what the `call` of a subclass does is not known: its layers in order, without arrows
        return [Box(f"{prefix}{layer.name}", _written(layer, model, shown), [], []) for layer in parts(model)]
    operations = {one.node.operation: None for one in nest.flatten(graph.inputs)}
    operations |= {node.operation: None for node in graph.nodes}
    boxes = []
    for operation in operations:
        sources = [graph.place(x)[0].name for node in calls_in(model, operation) for x in node.inputs]
        inner = _boxes(operation, True, shown, f"{prefix}{operation.name}/") if expand and hasattr(operation, "layers") else []
        lines = _written(operation, model, shown)
        boxes.append(Box(f"{prefix}{operation.name}", lines, [f"{prefix}{name}" for name in dict.fromkeys(sources)], inner))
    return boxes


def _written(layer: Any, model: Any, shown: tuple[bool, ...]) -> list[str]:
    """The lines in the box of a layer."""
    shapes, dtype, names, activations, trainable = shown
    kind = type(layer).__name__
    lines = [f"{layer.name} ({kind})" if names else kind]
    activation = getattr(layer, "activation", None)
    if activations and activation is not None:
        lines.append(getattr(activation, "__name__", type(activation).__name__))
    if shapes:
        lines.append("".join(shapes_in(model, layer)))
    if dtype:
        lines.append(", ".join(dict.fromkeys(spec.dtype.name for node in calls_in(model, layer) for spec in node.specs)) or "?")
    if trainable:
        lines.append("trainable: " + "".join(mode(layer, model)))
    return lines


# Drawing in characters ------------------------------------------------------------------------------------------------


def _rails(boxes: list[Box]) -> list[str]:
    """A line for each box; on its left a rail for each arrow that is on its way."""
    users = {box.key: [other.key for other in boxes if box.key in other.sources] for box in boxes}
    rails: list[str | None] = []  # the key of the box that each rail leads to
    drawn: list[tuple[str, str]] = []
    for box in boxes:
        arriving = [position for position, key in enumerate(rails) if key == box.key]
        if len(arriving) > 1:
            drawn.append((_crossing(rails, arriving, "┴", "╯"), ""))
            for position in arriving[1:]:
                rails[position] = None
        place = arriving[0] if arriving else _free(rails, 0)
        drawn.append((_upright(rails, place, "●"), " ".join(box.lines)))
        leaving = users[box.key]
        rails[place] = leaving[0] if leaving else None
        drawn += [(_upright(rails), f"    {line}") for line in _rails(box.inner)]
        if len(leaving) > 1:
            places = [place]
            for key in leaving[1:]:
                places.append(_free(rails, place + 1))
                rails[places[-1]] = key
            drawn.append((_crossing(rails, sorted(places), "┬", "╮"), ""))
        while rails and rails[-1] is None:
            rails.pop()
    width = max((len(left) for left, _ in drawn), default=0)
    return [f"{left.ljust(width)}  {text}".rstrip() for left, text in drawn]


def _free(rails: list[str | None], start: int) -> int:
    if None not in rails[start:]:
        rails.append(None)
    return rails.index(None, start)


def _upright(rails: list[str | None], place: int | None = None, mark: str = "") -> str:
    """The rails as they pass a line, and a mark at one place."""
    return " ".join(mark if position == place else "│" if key else " " for position, key in enumerate(rails))


def _crossing(rails: list[str | None], ends: list[int], middle: str, last: str) -> str:
    """A line across, from the first of some rails to the last."""
    text = ""
    for position, key in enumerate(rails):
        if position == ends[0]:
            text += "├─"
        elif position == ends[-1]:
            text += f"{last} "
        elif ends[0] < position < ends[-1]:
            text += (middle if position in ends else "┼" if key else "─") + "─"
        else:
            text += "│ " if key else "  "
    return text.rstrip()


# Drawing with graphviz ------------------------------------------------------------------------------------------------


def _dot(name: str, boxes: list[Box], rankdir: str, dpi: int) -> Any:
    """The picture as pydot's objects."""
    pydot = imported("pydot", "model_to_dot needs the package pydot")
    graph = pydot.Dot(_quoted(name), graph_type="digraph", rankdir=rankdir, dpi=str(dpi), concentrate="true")
    graph.set_node_defaults(shape="box", style='"rounded,filled"', fillcolor='"#f4f6f8"', fontname="Helvetica", fontsize="11")
    ends: dict[str, tuple[str, str]] = {}
    _add(pydot, graph, boxes, ends)
    for box in _all(boxes):
        for source in box.sources:
            graph.add_edge(pydot.Edge(_quoted(ends[source][1]), _quoted(ends[box.key][0])))
    return graph


def _add(pydot: Any, graph: Any, boxes: list[Box], ends: dict[str, tuple[str, str]]) -> None:
    """Enter boxes, models within as frames, and note where arrows to and from each box end."""
    for box in boxes:
        if box.inner:
            frame = pydot.Cluster(_quoted(box.key), label=_quoted(" ".join(box.lines)), style="dashed", fontname="Helvetica")
            _add(pydot, frame, box.inner, ends)
            graph.add_subgraph(frame)
            ends[box.key] = ends[box.inner[0].key][0], ends[box.inner[-1].key][1]
        else:
            graph.add_node(pydot.Node(_quoted(box.key), label=_quoted("\\n".join(box.lines))))
            ends[box.key] = box.key, box.key


def _all(boxes: list[Box]) -> list[Box]:
    return [one for box in boxes for one in (box, *_all(box.inner))]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'
