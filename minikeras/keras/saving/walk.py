"""Where the state of a model lies in Keras's files: every object that has some, with its path.

A group for each object, named by the attribute that holds it (`emb/vars/0`), in Sequential and functional models and in lists
and dicts by its class and number (`layers/dense_1/vars/0`). Within `vars` come its own Variables, trainable ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...core import Variable
from ...module import snake_case
from ..layers import weight_discovery
from ..layers.layer import Layer
from ..losses import Loss
from ..metrics import Metric
from ..optimizers import Optimizer

STATE_METHODS = ("save_own_variables", "load_own_variables", "save_assets", "load_assets")
"""What a class may define to take its state into its own hands."""


class Place(NamedTuple):
    """An object and the group of its Variables."""

    path: str
    owner: Any
    variables: list[Variable]


def places(model: Any) -> list[Place]:
    """Every object of a model that has a place in Keras's layout, each once."""
    return list(_visit(model, "", {}))


def own_variables(owner: Any) -> list[Variable]:
    """The Variables of an object itself; those of layers within it have places of their own."""
    if isinstance(owner, Layer):
        return weight_discovery.own_variables(owner)
    return list(owner.variables) if isinstance(owner, (Optimizer, Metric)) else []


def overrides(owner: Any, name: str) -> bool:
    """Whether the class of an object defines one of `STATE_METHODS` itself."""
    found = getattr(type(owner), name, None)
    return found is not None and all(found is not getattr(base, name, None) for base in (Layer, Optimizer))


def _visit(owner: Any, path: str, seen: dict[int, Any]) -> Iterator[Place]:
    if id(owner) in seen:
        return
    seen[id(owner)] = owner
    yield Place(path, owner, own_variables(owner))
    for name, value in _attributes(owner):
        yield from _visit_value(value, f"{path}/{name}" if path else name, seen)


def _visit_value(value: Any, path: str, seen: dict[int, Any]) -> Iterator[Place]:
    if _has_place(value):
        yield from _visit(value, path, seen)
    elif isinstance(value, (list, tuple, Mapping)) and id(value) not in seen:
        seen[id(value)] = value  # kept: a list made on the way, freed, would leave its id to the next one
        names: Counter[str] = Counter()
        for child in value.values() if isinstance(value, Mapping) else value:
            container = isinstance(child, (list, tuple, Mapping))
            if not container and not _has_place(child):
                continue
            name = "container" if container else snake_case(type(child).__name__)
            count = names[name]
            names[name] += 1
            yield from _visit_value(child, f"{path}/{name}_{count}" if count else f"{path}/{name}", seen)


def _has_place(value: Any) -> bool:
    """Layers and optimizers; losses and metrics that say how they are saved."""
    if isinstance(value, (Loss, Metric)):
        return any(overrides(value, name) for name in STATE_METHODS)
    return isinstance(value, (Layer, Optimizer))


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    """What a layer holds, in Keras's order: the layers of a chain or graph, then attributes by name, private ones last."""
    if not isinstance(owner, Layer):
        return
    chained = {"_chain", "_layers"} & set(vars(owner))
    if chained:
        yield "layers", owner.layers  # type: ignore[attr-defined]  # a model
    hidden, wanted = owner._not_walked, (*getattr(owner, "_checkpointed", ()), "loss")
    for name in sorted(vars(owner), key=lambda name: (name.startswith("_"), name)):
        if name not in chained and (name not in hidden or name in wanted):
            yield name, vars(owner)[name]
