"""Where the state of a model lies in Keras's files: every object that has some, with its path.

A group for each object, named by the attribute that holds it (`emb/vars/0`), within models and containers by its class and
number (`layers/dense_1/vars/0`). Within `vars` come its own Variables, trainable ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...core import Variable
from ...module import attributes, elements, snake_case, walk
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
    met = walk(("", model), children=_children, separator="/")
    return [Place(path, one, own_variables(one)) for path, one, first in met if first is None and _has_place(one)]


def own_variables(owner: Any) -> list[Variable]:
    """The Variables of an object itself; those of layers within it have places of their own."""
    if isinstance(owner, Layer):
        return weight_discovery.own_variables(owner)
    return list(owner.variables) if isinstance(owner, (Optimizer, Metric)) else []


def overrides(owner: Any, name: str) -> bool:
    """Whether the class of an object defines one of `STATE_METHODS` itself."""
    found = getattr(type(owner), name, None)
    return found is not None and all(found is not getattr(base, name, None) for base in (Layer, Optimizer))


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """What of a layer or container has a place, as Keras names it."""
    if isinstance(value, Layer):
        yield from ((name, child) for name, child in _attributes(value) if _has_place(child) or _is_container(child))
    elif _is_container(value) and not _has_place(value):
        names: Counter[str] = Counter()
        for _, child in elements(value):
            if _has_place(child) or _is_container(child):
                name = snake_case(type(child).__name__) if _has_place(child) else "container"
                yield (f"{name}_{names[name]}" if names[name] else name), child
                names[name] += 1


def _attributes(layer: Layer) -> Iterator[tuple[str, Any]]:
    """What a layer holds, in Keras's order: the layers of a chain or graph, then attributes by name, private ones last."""
    chained = {"_chain", "_layers"} & set(vars(layer))
    if chained:
        yield "layers", layer.layers
    held = {name: value for name, value in attributes(layer, also=(*layer._checkpointed, "loss")) if name not in chained}
    yield from sorted(held.items(), key=lambda item: (item[0].startswith("_"), item[0]))


def _is_container(value: Any) -> bool:
    return isinstance(value, (list, tuple, Mapping))


def _has_place(value: Any) -> bool:
    """Layers and optimizers; losses and metrics that say how they are saved."""
    if isinstance(value, (Loss, Metric)):
        return any(overrides(value, name) for name in STATE_METHODS)
    return isinstance(value, (Layer, Optimizer))
