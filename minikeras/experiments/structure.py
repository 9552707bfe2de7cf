"""Which runs of a sweep have models of one structure, and the groups in which they are trained.

Models are alike if they differ in nothing but the values of weights and of those numeric hyperparameters that an ensemble's
members may have of their own: learning rates, momenta, dropout rates. Zero is a value of its own, since an optimizer without
momentum keeps no slots and `Dropout(0)` draws nothing.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import kind_of
from ..files import strict_json
from ..keras.models import Model
from ..keras.saving.objects import serialize_keras_object
from .same_structure import description
from .session import fresh_session

MOST = 32
"""Runs of a group: what a killed sweep loses at most for each worker. 96 small runs take 0.36 of a loop of `fit` in groups of
16, and 0.28 in groups of 32."""
MOST_BYTES = 1 << 26
"""Of the weights of a group. Large models gain nothing by being trained together."""


class Structure(NamedTuple):
    """What is known about the model of a combination before it is trained.

    Attributes:
        alike: equal for models of one structure; None if the model has no description, and is like no other.
        digest: fixed by all that the description says, numbers included, so that a changed `build` is noticed; None if there
            is no model.
        most: how many runs may be trained together.
    """

    alike: str | None
    digest: str | None
    most: int


def structure_of(build: Callable[[], Any], seed: int) -> Structure:
    """The structure of what `build` returns; one of its own if it raises, as it then will when it is to be trained.

    Raises:
        TypeError: if it is no Model.
        ValueError: if it is not compiled.
    """
    with fresh_session(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = build()
        except Exception:
            return Structure(None, None, 1)
        if not isinstance(model, Model):
            raise TypeError(f"Sweep: build should return a compiled model, found {kind_of(model)}.")
        if not model.compiled:
            raise ValueError(
                f"Sweep: build returned a model, '{model.name}', that is not compiled: call model.compile(...) in it."
            )
        shapes = [(weight.path, list(weight.shape), str(weight.dtype)) for weight in model.weights] if model.built else []
        most = _most(model)
        try:
            described = serialize_keras_object(model)
        except (NotImplementedError, TypeError, ValueError):
            return Structure(None, _digest([type(model).__qualname__, shapes]), most)
    compiled = described.get("compile_config")
    if compiled is None:
        return Structure(None, _digest([described, shapes]), most)
    optimizer = _without_numbers(compiled["optimizer"])
    return Structure(_digest([description(model), optimizer]), _digest([described, shapes]), most)


def _most(model: Model) -> int:
    """How many models like this may be trained together."""
    if model.optimizer is None or model.optimizer.needs_loss or model.run_eagerly:
        return 1
    size = sum(weight.dtype.size * math.prod(weight.shape) for weight in model.weights) if model.built else 0
    return max(1, min(MOST, MOST_BYTES // max(1, size)))


def _without_numbers(described: Any) -> Any:
    """A description without its numbers, except for 0."""
    if isinstance(described, dict):
        return {name: _without_numbers(value) for name, value in described.items()}
    if isinstance(described, (list, tuple)):
        return [_without_numbers(value) for value in described]
    return "number" if isinstance(described, float) and described != 0.0 else described


def _digest(content: Any) -> str:
    """A short text that is equal for equal content only; what JSON cannot hold counts as its class."""
    try:
        text = strict_json.dumps(content)
    except (TypeError, ValueError):
        text = repr(content).encode()
    return hashlib.sha256(text).hexdigest()[:32]


def groups_of(kinds: Sequence[Any], most: Sequence[int]) -> list[list[int]]:
    """Numbers of runs of one kind together, cut into groups of about equal size, of at most so many runs.

    >>> groups_of(["a", "b", "a", "a", "b"], [2, 1, 2, 2, 1])
    [[0, 2], [3], [1], [4]]
    """
    together: dict[Any, list[int]] = {}
    for number, kind in enumerate(kinds):
        together.setdefault(kind, []).append(number)
    return [group for numbers in together.values() for group in _cut(numbers, most[numbers[0]])]


def _cut(numbers: list[int], most: int) -> Iterable[list[int]]:
    count = -(-len(numbers) // most)
    size = -(-len(numbers) // count)
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
