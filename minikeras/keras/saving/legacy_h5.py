"""The `.h5` files of Keras 1 and 2, and of Keras 3's `model.save("m.h5")`.

Attributes hold the configuration as JSON; the weights lie under the names of layers, in the order of the attribute
`weight_names`, and match the layers that have weights by their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...core import Variable
from ...errors import LoadError, kind_of
from ...files import excerpt, hdf5, limits, refused, strict_json
from ...state import StateValues
from ..layers.layer_weights import learns
from .objects import deserialize_keras_object
from .registry import CustomObjectScope
from .weight_trees import KerasTree, LoadedWeights, ObjectPlace, own_variables

SLACK = 1 << 20
"""Bytes that a model may need for weights beyond those of its file, such as random state, which is not in it."""


def names(group: hdf5.StoredGroup, attribute: str, file: object) -> list[str]:
    """A list of texts in an attribute, which Keras cuts into numbered pieces if it is long."""
    whole = group.attributes.get(attribute)
    if whole is None:
        pieces: list[str] = []
        while (piece := group.attributes.get(f"{attribute}{len(pieces)}")) is not None:
            pieces.append(piece)
        whole = [name for piece in pieces for name in piece]
    found = [] if getattr(whole, "size", 1) == 0 else [whole] if isinstance(whole, str) else list(whole)
    if not all(isinstance(name, str) for name in found):
        raise refused(file, f"{group.path}@{attribute}", "must be a list of texts")
    return found


def load_legacy_model(
    root: hdf5.StoredGroup, file: Path, custom_objects: Mapping[str, Any] | None, compile: bool, allowed: limits.Budget
) -> Any:
    """A model with its weights, and compiled if the file says how."""
    config = _json(root, "model_config", file)
    if config is None:
        raise refused(file, "", "holds weights only; make the model and call load_weights")
    training = _json(root, "training_config", file) if compile else None
    with limits.loading(allowed), CustomObjectScope(custom_objects):
        model = made_from(_modern(config), file, "model_config")
        if not hasattr(model, "layers"):
            raise refused(file, "model_config", f"describes {kind_of(model)}, no model")
        load_legacy_weights(model, root, file, False, False, False)
        if training is not None:
            arguments = {key: value for key, value in training.items() if key not in ("optimizer_config", "sample_weight_mode")}
            compile_as(model, {**arguments, "optimizer": training.get("optimizer_config")}, file, "training_config")
            _load_optimizer(model, root, file)
    return model


def made_from(config: dict[str, Any], file: Path, place: str) -> Any:
    """A model from its configuration; whatever a constructor says of wrong options is an error of the file."""
    try:
        model = deserialize_keras_object(config)
    except LoadError as error:
        raise type(error)(f"{file.name}: {place}: {error}") from error
    except Exception as error:
        reason = f"a layer could not be made ({type(error).__name__}: {excerpt(error, 160)})"
        raise refused(file, place, reason) from error
    if not hasattr(model, "save"):  # models have it, and feature spaces
        raise refused(file, place, f"describes {kind_of(model)}, no model")
    return model


def compile_as(model: Any, config: Mapping[str, Any], file: Path, place: str) -> None:
    """Compile a model as its file says."""
    try:
        model.compile_from_config(config)
    except Exception as error:
        raise refused(file, place, f"{excerpt(error, 160)}; compile=False loads the model without it") from error


def allowance(root: hdf5.StoredGroup, file_size: int, max_bytes: int | None) -> limits.Budget:
    """The budget of loading a file with these weights."""
    return limits.Budget.of_file(sum(one.array.nbytes for one in root.datasets()) + SLACK, file_size, max_bytes)


def _json(root: hdf5.StoredGroup, name: str, file: object) -> Any:
    text = root.attributes.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise refused(file, name, "must be a text")
    value = strict_json.loads(text.encode(), file, name)
    if not isinstance(value, dict):
        raise refused(file, name, "must be a JSON object")
    return value


def _modern(config: Any, module: str | None = "keras") -> Any:
    """An old configuration in today's form: with modules, which tell the layer Add from the function."""
    if isinstance(config, list):
        return [_modern(one, module) for one in config]
    if not isinstance(config, dict):
        return config
    found = {key: _modern(value, "keras.layers" if key == "layers" else None) for key, value in config.items()}
    inner = found.get("config")
    if "class_name" not in found or not isinstance(inner, dict):
        return found
    found["class_name"] = {"Model": "Functional"}.get(str(found["class_name"]), found["class_name"])
    if module is not None:
        found.setdefault("module", "keras" if found["class_name"] in ("Sequential", "Functional") else module)
    shape = inner.pop("batch_input_shape", None)
    if shape is not None and found["class_name"] == "InputLayer":
        inner["batch_shape"] = shape
    elif isinstance(shape, list) and found["class_name"] != "InputLayer":
        inner["input_shape"] = shape[1:]
    return found


def load_legacy_weights(model: Any, root: hdf5.StoredGroup, file: Path, skip: bool, by_name: bool, cast: bool) -> None:
    """Assign the weights of a file, all or nothing; by the order of layers with weights, or by their names."""
    group = root.members.get("model_weights", root)
    if not isinstance(group, hdf5.StoredGroup):
        raise refused(file, "model_weights", "must be a group")
    saved = {name: arrays for name in names(group, "layer_names", file) if (arrays := _values(group, name, file))}
    layers = [(layer, weights) for layer in model.layers if (weights := _weights(layer))]
    if by_name:
        pairs = [(layer.name, weights, saved[layer.name]) for layer, weights in layers if layer.name in saved]
    else:
        if len(layers) != len(saved):
            raise LoadError(
                f"{file.name}: Layer count mismatch when loading weights from file. Model expected {len(layers)} layers, found "
                f"{len(saved)} saved layers."
            )
        pairs = [(layer.name, weights, arrays) for (layer, weights), arrays in zip(layers, saved.values(), strict=True)]
    own = "top_level_model_weights"
    if own in group.members:
        pairs.append((own, own_variables(model), _values(group, own, file)))
    # Several layers may have one name, so places have numbers too.
    places = [ObjectPlace(f"{number}/{name}", None, weights) for number, (name, weights, _) in enumerate(pairs)]
    content = _numbered({place.group: arrays for place, (_, _, arrays) in zip(places, pairs, strict=True)})
    LoadedWeights(content, file, skip, cast, lambda place: []).carry_out(lambda: KerasTree(places))


def _numbered(groups: Mapping[str, Mapping[str, NDArray[Any]]]) -> StateValues:
    return StateValues({f"{group}/{name}": one for group, arrays in groups.items() for name, one in arrays.items()}, {}, {})


def _weights(layer: Any) -> list[Variable]:
    """Keras's order of old: all trainable weights, sublayers included, then all others."""
    owned = [(one, weight) for one in (layer, *layer.collect_contents().sublayers) for weight in own_variables(one)]
    return [weight for _, weight in sorted(owned, key=lambda pair: not learns(*pair))]


def _values(group: hdf5.StoredGroup, name: str, file: object) -> dict[str, NDArray[Any]]:
    owner = group.members.get(name)
    if not isinstance(owner, hdf5.StoredGroup):
        raise refused(file, f"{group.path}/{excerpt(name)}", "a layer that is named, but not there")
    found = {}
    for number, path in enumerate(names(owner, "weight_names", file)):
        one = owner.get(path)
        if not isinstance(one, hdf5.StoredArray):
            raise refused(file, f"{owner.path}/{excerpt(path)}", "a weight that is named, but not there")
        found[str(number)] = one.array
    return found


def _load_optimizer(model: Any, root: hdf5.StoredGroup, file: Path) -> None:
    """The state of the optimizer, if there is one and it fits; else a warning, since other versions kept other state."""
    name = "optimizer_weights"
    if not isinstance(root.members.get(name), hdf5.StoredGroup):
        return
    optimizer = model.optimizer
    look_up = lambda: KerasTree([ObjectPlace(name, optimizer, optimizer.variables)])
    content = _numbered({f"{name}/vars": _values(root, name, file)})
    candidates = [model.learning_variables(), model.trainable_variables]
    LoadedWeights(content, file, False, False, lambda place: candidates).carry_out(look_up)
