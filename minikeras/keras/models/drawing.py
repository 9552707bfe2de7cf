"""A picture of a model: boxes and arrows, by graphviz where it is installed, else drawn in characters."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

from ... import nest
from ...errors import MissingExtraError
from .summary import calls_in, mode, parts, shapes_in

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
    shown = _Shown(show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
    boxes = _boxes(model, expand_nested, shown)
    as_text = to_file is not None and str(to_file).endswith(".txt")
    if as_text or not _graphviz():
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
    shown = _Shown(show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
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
    return "\n".join(_rails(_boxes(model, expand_nested, _Shown(show_shapes, False, True, False, show_trainable))))


# Collecting -----------------------------------------------------------------------------------------------------------


class _Shown(NamedTuple):
    """The text in a box."""

    shapes: bool
    dtype: bool
    names: bool
    activations: bool
    trainable: bool


def _boxes(model: Any, expand: bool, shown: _Shown, prefix: str = "") -> list[Box]:
    """The boxes of a model, each after those that arrows come from."""
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


def _written(layer: Any, model: Any, shown: _Shown) -> list[str]:
    """The lines in the box of a layer."""
    kind = type(layer).__name__
    lines = [f"{layer.name} ({kind})" if shown.names else kind]
    activation = getattr(layer, "activation", None)
    if shown.activations and activation is not None:
        lines.append(getattr(activation, "__name__", type(activation).__name__))
    if shown.shapes:
        lines.append("".join(shapes_in(model, layer)))
    if shown.dtype:
        lines.append(", ".join(dict.fromkeys(spec.dtype.name for node in calls_in(model, layer) for spec in node.specs)) or "?")
    if shown.trainable:
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
    """The first place without a rail from `start` on; made if there is none."""
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


def _graphviz() -> bool:
    """True if pydot and graphviz's program `dot` are installed."""
    import importlib.util
    import shutil

    return shutil.which("dot") is not None and importlib.util.find_spec("pydot") is not None


def _dot(name: str, boxes: list[Box], rankdir: str, dpi: int) -> Any:
    """The picture as pydot's objects."""
    try:
        import pydot
    except ImportError as error:
        raise MissingExtraError("model_to_dot needs the package pydot: pip install 'minikeras[plot]'.") from error
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
