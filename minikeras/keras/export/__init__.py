"""Models for other programs: `model.export("model.onnx")`, from a recorded run (`graph.py`), one primitive at a time.

A file holds what goes in and comes out, by name, and the graph between.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import nest
from ...absent import late
from ...extras import imported
from ...files import durable
from ...types import as_dtype
from ...version import VERSION
from ..saving.model_files import may_write
from . import operators
from .graph import Graph, OpenProgram, TracedValue, program

__all__ = ["export_model"]

OPSET = 18
"""The version of ONNX's operators that the translations are written in; later ones mean the same by them."""

LARGEST = 2**31 - 2**20
"""Bytes of weights that fit into one file, which is a protocol buffer."""


def export_model(
    model: Any,
    filepath: str | os.PathLike[str],
    format: str | None = None,
    verbose: bool | None = None,
    input_signature: Any = None,
    opset_version: int | None = None,
    overwrite: bool = True,
) -> None:
    """Write what a model computes in inference mode to an ONNX file, for onnxruntime, other languages, phones and browsers.

    Axes of any size stay of any size. Inputs have the names of the model's inputs; outputs those of its output layers, or the
    keys if it gives a dict. Weights keep their paths as names.

    Args:
        model: a model, or any layer with an `input_signature`.
        filepath: a name that ends in '.onnx'.
        format: 'onnx', or None to go by the ending.
        verbose: whether to print where the file is; not by default.
        input_signature: for a model that is no Sequential and not functional: what stands for its inputs, a nest of Inputs,
            TensorSpecs, InputSpecs, Tensors or shapes (None for an axis of any size; float32).
        opset_version: of ONNX's operators, at least 18, which is the default.
        overwrite: whether an existing file may be replaced. It is replaced in one step, when the new one is complete.

    Raises:
        MissingExtraError: without the package onnx.
        ExportError: if the model does what a graph cannot do: it draws random numbers, changes state, decides by values, or
            uses an operation for which there is no translation. The message names the layer.
        ValueError: for another ending or format, or if shapes of the inputs are not known.

    >>> import tempfile, os
    >>> model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="softmax")])
    >>> path = tempfile.mkdtemp() + "/model.onnx"
    >>> tf.keras.export.export_model(model, path)
    >>> os.path.exists(path)
    True
    """
    path = Path(filepath)
    if (format or path.suffix.removeprefix(".")) != "onnx":
        raise ValueError(
            f"export: found filepath='{filepath}', format={format!r}. ONNX is the format that is here: use a name that ends in "
            "'.onnx', or format='onnx'. To save a model for training on, use model.save('model.keras')."
        )
    version = OPSET if opset_version is None else opset_version
    if version < OPSET:
        raise ValueError(f"export: opset_version must be at least {OPSET}, found {version}.")
    helper = _onnx("helper")
    may_write(path, overwrite)
    structure, names, specs = _inputs(model, input_signature)
    found = program(model, structure, specs)
    graph = Graph(found, names)
    for call in found.calls:
        graph.translate(call, operators.RULES)
    results = {graph.result(value, name): value for name, value in _output_names(model, found)}
    _write(path, _made(helper, model.name, graph, found, results, version))
    if verbose:
        print(f"Saved the model to {path}: inputs {', '.join(names)}; outputs {', '.join(results)}.")


def _onnx(module: str) -> Any:
    return imported(f"onnx.{module}", "export needs the package onnx")


# What goes in and comes out ----------------------------------------------------------------------------------------------


def _inputs(model: Any, signature: Any) -> tuple[Any, list[str], list[tuple[tuple[int | None, ...], Any]]]:
    """The nest of the inputs, and for each its name, and its shape and dtype."""
    if signature is None:
        try:
            signature = model.input
        except AttributeError as error:
            raise ValueError(
                f"export: the shapes of the inputs of '{model.name}' are not known. Give input_signature, for example "
                "[keras.Input((4,))], or a shape such as (None, 4)."
            ) from error
    elif isinstance(signature, list) and len(signature) == 1:
        signature = signature[0]
    leaves = [signature] if _is_shape(signature) else nest.flatten(signature)
    structure = None if _is_shape(signature) else signature
    names: list[str] = []
    for position, leaf in enumerate(leaves):
        name = getattr(leaf, "name", None) or ("input" if len(leaves) == 1 else f"input_{position}")
        names.append(name if name not in names else f"{name}_{position}")
    return structure, names, [_spec(leaf) for leaf in leaves]


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and all(size is None or isinstance(size, int) for size in value)


def _spec(leaf: Any) -> tuple[tuple[int | None, ...], Any]:
    shape = leaf if _is_shape(leaf) else getattr(leaf, "shape", None)
    if shape is None:
        raise ValueError(f"export: {leaf!r} in the input_signature has no shape.")
    return tuple(shape), as_dtype(getattr(leaf, "dtype", None) or "float32")


def _output_names(model: Any, found: OpenProgram) -> list[tuple[str, TracedValue]]:
    """Each output with the name that it is to have."""
    values = nest.flatten(found.outputs)
    if isinstance(found.outputs, Mapping) and len(found.outputs) == len(values):
        return list(zip(nest.flatten({key: key for key in found.outputs}), values, strict=True))
    try:
        names = model.output_names
    except AttributeError:
        names = ["output"] if len(values) == 1 else [f"output_{position}" for position in range(len(values))]
    return list(zip(map(str, names), values, strict=True))


# The file ----------------------------------------------------------------------------------------------------------------


def _made(helper: Any, name: str, graph: Graph, found: OpenProgram, results: dict[str, TracedValue], version: int) -> Any:
    """The model as ONNX's object, checked."""
    nodes, needed = [], set(results)
    for node in reversed(graph.nodes):  # those that the outputs depend on
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    read = {name for node in nodes for name in node.input}
    weights = [_onnx("numpy_helper").from_array(array, key) for key, array in graph.constants.items() if key in read]
    given = [_described(helper, graph, graph.values[id(value)], value) for value in found.inputs]
    outputs = [_described(helper, graph, key, value) for key, value in results.items()]
    operators = [helper.make_opsetid("", version)]
    told = {"ir_version": helper.find_min_ir_version_for(operators), "producer_name": "minikeras", "producer_version": VERSION}
    made = helper.make_model(helper.make_graph(nodes[::-1], name, given, outputs, weights), opset_imports=operators, **told)
    if made.ByteSize() < LARGEST:
        _onnx("checker").check_model(made)
    return made


def _described(helper: Any, graph: Graph, name: str, value: TracedValue) -> Any:
    sizes = [size if isinstance(size, int) else graph.symbols.get(size) for size in value.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), sizes)


def _write(path: Path, made: Any) -> None:
    """One file, or the weights in a second one beside it if they are too large."""
    if made.ByteSize() >= LARGEST:
        external = _onnx("external_data_helper")
        external.convert_model_to_external_data(made, location=path.name + ".data", size_threshold=1024)
        external.write_external_data_tensors(made, str(path.parent))
    durable.write_file(path, made.SerializeToString())


__getattr__, __dir__ = late(__name__, {})
