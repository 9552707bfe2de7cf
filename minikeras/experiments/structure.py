"""Which runs of a sweep have models of one structure, and the groups in which they are trained.

Models are alike if they differ in nothing but the values of weights and of those numeric hyperparameters that an ensemble's
members may have of their own: learning rates, momenta, dropout rates. Zero is a value of its own, since an optimizer without
momentum keeps no slots and `Dropout(0)` draws nothing. Optimizers that need the loss train one model at a time.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import kind_of
from ..files import strict_json
from ..keras.models import Model
from ..keras.saving.objects import serialize_keras_object
from .grid import Run
from .same_structure import description
from .session import fresh_session

MOST = 16
"""Runs of a group: what a killed sweep loses at most for each worker, and how many models lie in memory together."""


class Structure(NamedTuple):
    """What is known about the model of a combination before it is trained.

    Attributes:
        alike: equal for models of one structure; None if the model has no description, and is like no other.
        digest: fixed by all that the description says, numbers included, so that a changed `build` is noticed; None if there
            is no model.
    """

    alike: str | None
    digest: str | None


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
            return Structure(None, None)
        if not isinstance(model, Model):
            raise TypeError(f"Sweep: build should return a compiled model, found {kind_of(model)}.")
        if not model.compiled:
            raise ValueError(
                f"Sweep: build returned a model, '{model.name}', that is not compiled: call model.compile(...) in it."
            )
        shapes = [(weight.path, list(weight.shape), str(weight.dtype)) for weight in model.weights] if model.built else []
        try:
            described = serialize_keras_object(model)
        except (NotImplementedError, TypeError, ValueError):
            return Structure(None, _digest([type(model).__qualname__, shapes]))
        compile_config = (described.get("compile_config") if isinstance(described, dict) else None) or {}
        fits = compile_config and not getattr(model.optimizer, "needs_loss", False)
        alike = _digest([description(model), _alike(compile_config["optimizer"])]) if fits else None
    return Structure(alike, _digest([described, shapes]))


def _alike(described: Any) -> Any:
    """A description without its numbers, except for 0."""
    if isinstance(described, dict):
        return {name: _alike(value) for name, value in described.items()}
    if isinstance(described, (list, tuple)):
        return [_alike(value) for value in described]
    return "number" if isinstance(described, float) and described != 0.0 else described


def _digest(content: Any) -> str:
    """A short text that is equal for equal content only; what JSON cannot hold counts as its class."""
    try:
        text = strict_json.dumps(content)
    except (TypeError, ValueError):
        text = repr(content).encode()
    return hashlib.sha256(text).hexdigest()[:32]


def groups_of(runs: Sequence[Run], kinds: Sequence[Any], most: int = MOST) -> list[list[int]]:
    """Numbers of runs of one kind together, cut into groups of about equal size, at most `most`.

    >>> groups_of(range(5), ["a", "b", "a", "a", "b"], most=2)
    [[0, 2], [3], [1, 4]]
    """
    together: dict[Any, list[int]] = {}
    for number, kind in enumerate(kinds):
        together.setdefault(kind, []).append(number)
    return [group for numbers in together.values() for group in _cut(numbers, most)]


def _cut(numbers: list[int], most: int) -> Iterable[list[int]]:
    count = -(-len(numbers) // most)
    size = -(-len(numbers) // count)
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
