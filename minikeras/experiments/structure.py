"""Structures of models: those of an ensemble are alike, and so are those of runs that a sweep trains together.

Models are alike if they differ in nothing but the values of weights and of those numeric hyperparameters that an ensemble's
members may have of their own: learning rates, momenta, dropout rates. Zero is a value of its own, since an optimizer without
momentum keeps no slots and `Dropout(0)` draws nothing.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.ir import PLAIN
from ..core import Batch, Tensor, array_of, to_numpy
from ..errors import kind_of
from ..files import strict_json
from ..keras import layers, regularizers
from ..keras.layers.layer import Layer
from ..keras.models import Model
from ..keras.saving.objects import is_described, serialize_keras_object
from ..keras.weight import Weight
from .grid import fresh_session
from .members import MemberNumber


def options_of(kind: type) -> tuple[str, ...]:
    """The options of a class that may be different numbers for each member, as `_member_numbers` lists them. A user's subclass
    may compute with them as one number for all members, so it must list them itself.

    >>> options_of(tf.keras.layers.SpatialDropout1D), options_of(tf.keras.layers.Dense)
    (('rate',), ())
    """
    found: tuple[str, ...] = (
        getattr(kind, "_member_numbers", ()) if is_described(kind) else vars(kind).get("_member_numbers", ())
    )
    return found


_PUBLIC = [getattr(module, name) for module in (layers, regularizers) for name in module.__all__]
OPTIONS: dict[type, tuple[str, ...]] = {kind: options_of(kind) for kind in _PUBLIC if options_of(kind)}
"""The options of the package's classes."""
_options = {kind.__name__: names for kind, names in OPTIONS.items()}
_options["GroupQueryAttention"] = _options["GroupedQueryAttention"]  # Keras's name of it in configurations
_PLAIN, _COLLECTIONS = (*PLAIN, np.generic), (np.ndarray, list, dict)
_UNWATCHED = frozenset(Model._unwatched)

_NUMBER = re.compile(r"_\d+$")
_FREE = re.compile(r"(^|_)(seed|initializer|constraint)$")
"""Options of layers for the initial state of a member, or held by its own Variables: each member keeps its own."""
_NOISE = ("rate", "stddev", "dropout")
_SOME_NOISE = "a number above 0"
_IGNORED = ("shared_object_id", "build_config", "build_input_shape")
_MAY_DIFFER = "seeds, initializers, constraints, " + ", ".join(
    f"{kind.__name__}.{name}" for kind, names in OPTIONS.items() for name in names
)
MOST = 8
"""The most differences that are shown."""
_USUAL = frozenset(vars(Model())) | {"name"}


def compare(models: Sequence[Model]) -> list[str]:
    """The differences of the other models from the first one, in one line each: path, option and both values. If several
    models differ, the first of them is shown; weights are shown if nothing else differs.

    >>> def build(units, rate):
    ...     return tf.keras.Sequential([tf.keras.layers.Dense(units, name="a"), tf.keras.layers.Dropout(rate, name="b")])
    >>> compare([build(8, 0.1), build(8, 0.2)])
    []
    >>> compare([build(8, 0.1), build(8, 0.2), build(9, 0.1)])
    ["Dense 'a', units: 8 in member 0, 9 in member 2"]
    """
    for described in (parts_of, weights_of):
        first = described(models[0])
        for place, model in enumerate(models[1:], start=1):
            found = [
                f"{path}: {_text(one)} in member 0, {_text(other)} in member {place}"
                for path, one, other in _differences(first, described(model), "")
            ]
            if found:
                return found[:MOST]
    return []


def check_structure(models: Sequence[Model]) -> None:
    """Refuse models that cannot be members of one ensemble."""
    if found := compare(models):
        raise ValueError(
            "the members of an ensemble must have one structure. They differ in:\n  "
            + "\n  ".join(found)
            + f"\nOf layers only these may differ: {_MAY_DIFFER}. Train models of several structures with Sweep."
        )


_ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()


def parts_of(model: Model) -> dict[str, Any]:
    """The common part of models that can be members of one ensemble, as plain data: configuration, layers and losses, but no
    optimizer. Numbered names ('dense_3') are those of any model made like this.
    """
    layers = [model, *model.collect_contents().sublayers]
    config, custom = _config(model), {layer.name: layer for layer in layers if not layer.is_described}
    known = dict.fromkeys(_names_in(config, custom))
    counted = dict.fromkeys([*(layer.name for layer in layers), *known])
    names = {name: f"{_NUMBER.sub('', name)} (layer {place})" for place, name in enumerate(counted)}
    found: dict[str, Any] = {"class": type(model).__name__}
    found |= {} if config is None else _plain(config, names, custom)
    beside = [layer for layer in layers if layer.name not in known and (config is None or layer is not model)]
    found["within"] = [_layer(layer, names) for layer in beside]
    if model.compiled:
        told = model.training_loops.arguments.items()
        found["compile"] = {name: _plain(_config_of(one), names) for name, one in told if name != "optimizer"}
    return found


def weights_of(model: Model) -> dict[str, Any]:
    """Names, shapes and dtypes of the weights, and which of them are trainable."""
    weights = [variable for variable in model.collect_contents().variables if isinstance(variable, Weight)]
    paths = ["/".join(_NUMBER.sub("", part) for part in one.path.split("/")) for one in weights]
    described = zip(paths, weights, strict=True)
    return {"weights": [(path, tuple(one.shape), one.dtype.name, one.trainable) for path, one in described]}


def _names_in(config: Any, custom: Mapping[str, Any]) -> Iterator[str]:
    """The names of a model's layers and operations, in their order; those of the user's layers name none within."""
    if isinstance(config, Mapping):
        own = config.get("config")
        if "class_name" in config and isinstance(own, Mapping) and isinstance(own.get("name"), str):
            yield own["name"]
            config = {**config, "config": None} if own["name"] in custom else config
        if "class_name" in config and isinstance(config.get("name"), str):
            yield config["name"]
        config = list(config.values())
    for one in config if isinstance(config, (list, tuple)) else ():
        yield from _names_in(one, custom)


def _layer(layer: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """A layer by its configuration, or by its attributes."""
    config = _config(layer)
    config = _fixed(_attributes(layer) if config is None else config, options_of(type(layer)))
    return {"class_name": type(layer).__name__, "config": _plain({**config, "name": layer.name}, names)}


def _said(get: Callable[[], Any]) -> Any:
    """The configuration of an object; None for one that none describes completely, such as the code of a lambda."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "A lambda is not written")
        try:
            return get()
        except (NotImplementedError, TypeError, ValueError, UserWarning):
            return None


def _config(layer: Any) -> dict[str, Any] | None:
    """The configuration of a layer; None for a user's layer, which may leave something out, and for functions without name."""
    found: dict[str, Any] | None = _said(layer.get_config) if layer.is_described else None
    return found


def _fixed(config: Mapping[str, Any], free: Sequence[str]) -> dict[str, Any]:
    """A configuration without the numbers that may differ. A layer without noise has no random stream, so its 0 stays."""
    noise = {name: config[name] and _SOME_NOISE for name in free if name in _NOISE and name in config}
    return {name: value for name, value in config.items() if name not in free} | noise


def _attributes(layer: Any) -> dict[str, Any]:
    """The attributes of a layer beside weights, other layers and those of every layer."""
    held = {name: value for name, value in vars(layer).items() if name not in _USUAL}
    public = {name: value for name, value in held.items() if not (layer.is_described and name.startswith("_"))}
    return {name: _config_of(value) for name, value in public.items()}


def _config_of(value: Any, depth: int = 4) -> Any:
    """Plain data that differ if objects do: configurations, functions with their closures, the contents of arrays."""
    if type(value) in PLAIN or depth == 0:
        return value if type(value) in PLAIN else type(value).__name__
    if isinstance(value, (list, tuple)):
        return [_config_of(one, depth - 1) for one in value]
    if isinstance(value, Mapping):
        return {key: _config_of(one, depth - 1) for key, one in value.items()}
    if isinstance(value, (np.ndarray, Tensor)):
        array = to_numpy(array_of(value))
        return [array.dtype.name, array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]]
    if hasattr(value, "__code__"):
        return _function(value, depth - 1)
    if hasattr(value, "get_config") and not isinstance(value, Layer):
        config = _said(value.get_config)
        if config is not None:
            return {"class_name": type(value).__name__, "config": config}
    return getattr(value, "__name__", type(value).__name__)


def _function(function: Callable[..., Any], depth: int) -> dict[str, Any]:
    """A function by the place of its code, its defaults and its closure."""
    code = function.__code__
    held: dict[str, Any] = {"code": f"{code.co_name}, line {code.co_firstlineno}"}
    held["defaults"] = _config_of(function.__defaults__, depth)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # an empty cell
            held[name] = _config_of(cell.cell_contents, depth)
    return held


def _plain(value: Any, names: Mapping[str, str], custom: Mapping[str, Any] = {}, key: str = "") -> Any:
    """Plain data without the parts that may differ, and with the attributes of the user's layers for their configurations."""
    if isinstance(value, Mapping):
        kind, config = value.get("class_name"), value.get("config")
        if isinstance(config, Mapping) and isinstance(kind, str):
            if (layer := custom.get(config.get("name", ""))) is None:
                value = {**value, "config": _fixed(config, _options.get(kind, ()))}
            else:
                held = _fixed(_attributes(layer), options_of(type(layer)))
                value = {"class_name": kind, "config": {"name": layer.name, **held}}
        kept = {name: one for name, one in value.items() if not (isinstance(name, str) and _FREE.search(name))}
        return {name: _plain(one, names, custom, name) for name, one in kept.items() if name not in _IGNORED}
    if isinstance(value, (list, tuple)):
        return [_plain(one, names, custom) for one in value]
    if isinstance(value, str):
        return names.get(value) or (_NUMBER.sub("", value) if key == "name" else value)
    return _function(value, 3) if hasattr(value, "__code__") else value


def _differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Path and values of each difference, as deep as possible."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        label = _label(one) if _label(one) == _label(other) else ""
        for name in dict.fromkeys([*one, *other]):
            within = (path, label) if label and name == "config" else (path, label, str(name))
            yield from _differences(one.get(name, _ABSENT), other.get(name, _ABSENT), ", ".join(filter(None, within)))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            named = isinstance(mine, Mapping) and _label(mine)
            yield from _differences(mine, theirs, "" if named else f"{path}[{number}]")
    elif repr(one) != repr(other):
        yield path, one, other


def _label(value: Mapping[str, Any]) -> str:
    config = value.get("config")
    if not isinstance(value.get("class_name"), str) or not isinstance(config, Mapping):
        return ""
    name = str(config.get("name", "")).partition(" (")[0]
    return f"{value['class_name']} '{name}'" if name else value["class_name"]


def _text(value: Any) -> str:
    if value == _SOME_NOISE:
        return _SOME_NOISE
    return f"{value!r:.120}" if not isinstance(value, list) else f"{len(value)} of them"


MOST_MEMBERS = 32
"""The most runs of a group, which are what a killed sweep can lose for each worker. 96 small runs take 0.36 of a loop of `fit`
in groups of 16, and 0.28 in groups of 32."""
MOST_BYTES = 1 << 26
"""The most bytes of the weights of a group. Large models gain nothing by being trained together."""


class ModelKind(NamedTuple):
    """The kind of a combination's model, known before it is trained.

    Attributes:
        alike: equal for models of one structure; None if the model has no description, and is like no other.
        digest: of the whole description, numbers included, so that a changed `build` is noticed; None if there is no model.
        most: the number of runs that may be trained together.
    """

    alike: str | None
    digest: str | None
    most: int


def need_compiled(model: object) -> Model:
    """The result of `build`, which has to be a compiled model.

    Raises:
        TypeError: if it is no Model.
        ValueError: if it is not compiled.
    """
    if not isinstance(model, Model):
        raise TypeError(f"Sweep: build should return a compiled model, found {kind_of(model)}.")
    if not model.compiled:
        raise ValueError(f"Sweep: build returned a model, '{model.name}', that is not compiled: call model.compile(...) in it.")
    return model


def structure_of(build: Callable[[], Any], seed: int) -> ModelKind:
    """The structure of the model that `build` returns; a unique one if it raises, as it will again in training."""
    with fresh_session(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = build()
        except Exception:
            return ModelKind(None, None, 1)
        need_compiled(model)
        shapes = [(weight.path, list(weight.shape), str(weight.dtype)) for weight in model.weights] if model.built else []
        size = sum(weight.dtype.size * math.prod(weight.shape) for weight in model.weights) if model.built else 0
        alone = model.optimizer is None or model.optimizer.needs_loss or model.run_eagerly
        most = 1 if alone else max(1, min(MOST_MEMBERS, MOST_BYTES // max(1, size)))
        described = _said(functools.partial(serialize_keras_object, model))
        if described is None:
            return ModelKind(None, _digest([type(model).__qualname__, shapes]), most)
    compiled = described.get("compile_config")
    if compiled is None:
        return ModelKind(None, _digest([described, shapes]), most)
    optimizer = _without_numbers(compiled["optimizer"])
    return ModelKind(_digest([parts_of(model) | weights_of(model), optimizer]), _digest([described, shapes]), most)


def _without_numbers(described: Any) -> Any:
    """A description without its numbers, except for 0."""
    if isinstance(described, dict):
        return {name: _without_numbers(value) for name, value in described.items()}
    if isinstance(described, (list, tuple)):
        return [_without_numbers(value) for value in described]
    return "number" if isinstance(described, float) and described != 0.0 else described


def _digest(content: Any) -> str:
    """A short text that is equal for equal content only; an object that JSON cannot hold counts as its class."""
    try:
        text = strict_json.dumps(content)
    except (TypeError, ValueError):
        text = repr(content).encode()
    return hashlib.sha256(text).hexdigest()[:32]


def groups_of(kinds: Sequence[Any], most: Sequence[int]) -> list[list[int]]:
    """The numbers of runs, grouped by kind and cut into groups of about equal size, of at most so many runs.

    >>> groups_of(["a", "b", "a", "a", "b"], [2, 1, 2, 2, 1])
    [[0, 2], [3], [1], [4]]
    """
    together: dict[Any, list[int]] = {}
    for number, kind in enumerate(kinds):
        together.setdefault(kind, []).append(number)
    found = []
    for numbers in together.values():
        count = -(-len(numbers) // most[numbers[0]])
        size = -(-len(numbers) // count)
        found += [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return found


# The numbers that may differ --------------------------------------------------------------------------------------------


class ModelOptions:
    """The options of a model's layers and regularizers, in an order that is the same for all models of one structure."""

    def __init__(self, model: Model) -> None:
        self._model, self._contents = model, model.collect_contents()
        self._layers = (model, *self._contents.sublayers)
        self._weights = [variable for variable in self._contents.variables if isinstance(variable, Weight)]

    @property
    def _holders(self) -> list[Any]:
        """The objects with options that may differ from member to member."""
        found = [one for layer in self._layers for one in (layer, layer.activity_regularizer)]
        return [*found, *(weight.regularizer for weight in self._weights)]

    def take_numbers(self, models: Sequence[Model], batch: Batch) -> None:
        """Let this copy of the first model have the numbers of all models, where they differ."""
        for weight in self._weights:
            weight.regularizer = copy.copy(weight.regularizer)  # a copied Variable shares it with the first one
        every = [ModelOptions(one)._holders for one in models]
        for position, holder in enumerate(self._holders):
            found = [own[position] for own in every]
            for name in options_of(type(holder)):
                values = [getattr(one, name) for one in found]
                if len(set(values)) > 1:
                    setattr(holder, name, MemberNumber(values, batch))

    def settings(self) -> list[Any]:
        """Plain attributes and functions of the layers, numbers of regularizers, the trainable weights, the optimizer, and last
        which arrays, lists and dicts the layers hold: to detect that anything was set anew. Other private attributes change
        with the first call of a layer.
        """
        known, held = list[Any](), list[Any]()
        for layer in self._layers:
            for name, value in vars(layer).items():
                if name not in _UNWATCHED and (name[0] != "_" or name == "_trainable"):
                    if isinstance(value, _PLAIN) or callable(value):
                        known.append((name, value))
                    elif type(value) in _COLLECTIONS and layer is not self._model:  # a model holds notes of callbacks
                        held.append((id(value), value))  # == of arrays is no bool
        numbers = [[getattr(one, name) for name in options_of(type(one))] for one in self._holders]
        return [known, numbers, [variable.trainable for variable in self._contents.variables], self._model.optimizer, held]
