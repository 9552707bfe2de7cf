"""Losses and metrics of each output, and the names under which they are logged. `compile` is told names, objects,
lists and dicts; the first batch shows the outputs that they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...errors import ShapeError
from ...functions import cast, tensor
from ...types import TensorLike
from .. import metrics
from ..losses.loss import as_loss

ACCURACY, CROSSENTROPY = ("accuracy", "acc"), ("crossentropy", "ce")
"""Names that mean a binary, a sparse categorical or a categorical kind, as the shapes of a batch tell."""


class Compiled(NamedTuple):
    """The losses and metrics given to `compile`, with every name looked up that can be."""

    loss: Any
    loss_weights: Any
    metrics: Any
    weighted_metrics: Any

    @classmethod
    def of(cls, loss: Any, loss_weights: Any, plain: Any, weighted: Any) -> Compiled:
        """Look up the names."""
        return cls(_looked_up(loss, _loss), loss_weights, _looked_up(plain, _metric), _looked_up(weighted, _metric))


def _looked_up(given: Any, get: Callable[[Any], Any]) -> Any:
    return nest.map_structure(lambda one: None if one is None else get(one), given)


def _loss(identifier: Any) -> Any:
    if isinstance(identifier, str) and identifier in CROSSENTROPY:
        return identifier
    found = as_loss(identifier)
    if isinstance(identifier, str):
        found.name = identifier  # as in the logs of Keras: 'mse_loss' if 'mse' was asked for
    return found


def _metric(identifier: Any) -> Any:
    pending = isinstance(identifier, str) and identifier in (*ACCURACY, *CROSSENTROPY)
    return identifier if pending else metrics.get(identifier)


class LossTerm(NamedTuple):
    """One loss of one output; `tracker` follows it over an epoch if there are several."""

    output: int
    loss: Any
    weight: float | None
    label: str
    tracker: Any


class MetricTerm(NamedTuple):
    """One metric of one output; `weighted` if it uses sample weights."""

    output: int
    metric: Any
    label: str
    weighted: bool


class Targets:
    """Losses and metrics, settled for outputs like those of one batch with the labels `y`. `output_names` are those that the
    model gives its outputs, in order, or None.
    """

    def __init__(self, compiled: Compiled, y: TensorLike, y_pred: TensorLike, output_names: Sequence[str] | None) -> None:
        self._shown = nest.map_structure(_without_rows, (y, y_pred)), output_names
        self._structure = nest.map_structure(lambda leaf: None, y_pred)
        self._single = not nest.is_nested(y_pred)
        self.names = _names(self._structure, output_names)
        self._with_loss = list(range(len(self.names)))
        chosen = self._spread("loss", compiled.loss, everywhere=True)
        self._with_loss = [number for number, own in enumerate(chosen) if own]
        labels, predictions = self.labels(y), nest.flatten(y_pred)
        pairs = list(zip(labels, predictions, strict=True))
        self.losses = self._loss_terms(chosen, compiled.loss_weights, pairs)
        taken = {"loss", *(term.label for term in self.losses if term.tracker is not None)}
        self.metrics = tuple(
            term
            for argument, given, weighted in (
                ("metrics", compiled.metrics, False),
                ("weighted_metrics", compiled.weighted_metrics, True),
            )
            for term in self._metric_terms(self._spread(argument, given), weighted, pairs, taken)
        )

    def like(self, compiled: Compiled) -> Targets:
        """The same for another model that was compiled alike."""
        (y, y_pred), names = self._shown
        return Targets(compiled, y, y_pred, names)

    # Making --------------------------------------------------------------------------------------------------------------

    def _loss_terms(self, chosen: list[list[Any]], weights: Any, pairs: list[Any]) -> tuple[LossTerm, ...]:
        count = sum(map(len, chosen))
        factors = self._factors(chosen, weights)
        taken: set[str] = set()
        terms: list[LossTerm] = []
        for number, own in enumerate(chosen):
            for one in own:
                loss = as_loss(_kind(*pairs[number]) + "_crossentropy") if isinstance(one, str) else one
                alone = self.names[number] is not None and len(own) == 1
                label = _free(f"{self.names[number] if alone else loss.name}_loss", taken)
                tracker = metrics.Mean(name=label) if count > 1 else None
                terms.append(LossTerm(number, loss, factors[len(terms)], label, tracker))
        return tuple(terms)

    def _factors(self, chosen: list[list[Any]], weights: Any) -> list[float | None]:
        count = sum(map(len, chosen))
        if weights is None:
            return [None] * count
        leaves = nest.flatten(weights)
        if isinstance(weights, Mapping) or len(leaves) != count:
            spread = self._spread("loss_weights", weights)
            leaves = [one for own, losses_here in zip(spread, chosen, strict=True) if losses_here for one in own or [1.0]]
        if len(leaves) != count:
            raise ValueError(f"`loss_weights` must match the number of losses, got {count} losses and {len(leaves)} weights.")
        try:
            return [None if one is None else float(one) for one in leaves]
        except (TypeError, ValueError):
            raise ValueError(
                f"`loss_weights` must be numbers, found {weights!r}. Metrics need their name: metrics=..."
            ) from None

    def _metric_terms(self, chosen: list[list[Any]], weighted: bool, pairs: list[Any], taken: set[str]) -> list[MetricTerm]:
        terms = []
        for number, own in enumerate(chosen):
            several = len(self.names) > 1 and self.names[number] is not None
            prefix = f"{self.names[number]}_" if several else ""
            for one in own:
                metric = one
                if isinstance(one, str):
                    kind = "_accuracy" if one in ACCURACY else "_crossentropy"
                    metric = metrics.get(_kind(*pairs[number]) + kind)
                    metric.name = one
                label = f"{prefix}{metric.name}"
                if weighted and label in taken:
                    label = f"{prefix}weighted_{metric.name}"
                terms.append(MetricTerm(number, metric, _free(label, taken), weighted))
        return terms

    def _spread(self, argument: str, given: Any, everywhere: bool = False) -> list[list[Any]]:
        """The entries of an argument for each output, as lists.

        Entries are matched by the names of the outputs in a dict, by position in a list with one for each, or by the nest of
        the outputs. A single output gets everything. With `everywhere`, a single entry belongs to all outputs.
        """
        count = len(self.names)
        if given is None:
            return [[] for _ in range(count)]
        if isinstance(given, Mapping) and set(given) <= set(self.names):
            return [_listed(given.get(name)) for name in self.names]
        if not isinstance(given, Mapping):
            if count == 1:
                return [_listed(nest.flatten(given))]
            if everywhere and not nest.is_nested(given):
                return [[given] for _ in range(count)]
            if isinstance(given, (list, tuple)) and len(given) == count:
                return [_listed(one) for one in given]
        found = None if self._single else self._alike(given)
        if found is None:
            raise ValueError(
                f"Invalid `{argument}`: {_shown(given)} does not fit the outputs {self._described()}. Give a list with an "
                "entry for each output, or a dict by their names."
            )
        return [_listed(one) for one in found]

    # Using ---------------------------------------------------------------------------------------------------------------

    def labels(self, y: TensorLike) -> list[Any]:
        """The labels of each output; None where there are none and no loss needs them."""
        if self._single and not nest.is_nested(y):
            return [y]
        count = len(self.names)
        if y is None:
            return [None] * count
        leaves = nest.flatten(y)
        if isinstance(y, Mapping) and set(y) <= set(self.names) and {self.names[n] for n in self._with_loss} <= set(y):
            return [y.get(name) for name in self.names]
        if not isinstance(y, Mapping):
            if len(leaves) == count:
                return leaves
            if len(leaves) == len(self._with_loss):
                given = dict(zip(self._with_loss, leaves, strict=True))
                return [given.get(number) for number in range(count)]
        elif len(leaves) == 1 and self.names == [None]:
            return leaves
        found = None if self._single else self._alike(y)
        if found is None:
            raise ValueError(
                f"y_true and y_pred have different structures: y_true is {_shown(y)}, the outputs are {self._described()}. "
                + self._remedy(y)
            )
        return found

    def _remedy(self, y: TensorLike) -> str:
        """The advice about labels that do not fit the outputs."""
        needed = [self.names[number] for number in self._with_loss]
        if isinstance(y, Mapping) and None not in needed:
            missing, unknown = [name for name in needed if name not in y], [key for key in y if key not in self.names]
            said = [f"labels of {missing} are missing"] * bool(missing) + [f"{unknown} are no outputs"] * bool(unknown)
            return f"{' and '.join(said).capitalize()}. An output without labels needs loss=None."
        return f"Give {len(needed)} arrays of labels, in a list or in a dict by the names of the outputs."

    def weights(self, sample_weight: TensorLike) -> list[Any]:
        """The sample weights of each output: one for all, or a list or dict as for the labels."""
        if not nest.is_nested(sample_weight):
            return [sample_weight] * len(self.names)
        if isinstance(sample_weight, Mapping) and set(sample_weight) <= set(self.names):
            return [sample_weight.get(name) for name in self.names]
        leaves = nest.flatten(sample_weight)
        if len(leaves) == 1 or (len(leaves) == len(self.names) and not isinstance(sample_weight, Mapping)):
            return leaves * (len(self.names) // len(leaves))
        found = self._alike(sample_weight)
        if found is None:
            raise ValueError(f"sample_weight is {_shown(sample_weight)}, the outputs are {self._described()}.")
        return found

    def _alike(self, given: Any) -> list[Any] | None:
        """The leaves of a nest like that of the outputs, in their order; None if it is nested otherwise."""
        try:
            return nest.flatten_up_to(self._structure, given)
        except ValueError:
            return None

    def loss(self, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike) -> list[Any]:
        """The value of each loss, weighted, after its tracker has seen it as it is."""
        labels, predictions = self.labels(y), [y_pred] if self._single else nest.flatten(y_pred)
        weights = self.weights(sample_weight)
        values = []
        for output, loss, weight, label, tracker in self.losses:
            if labels[output] is None:
                raise ValueError(
                    f"The loss '{loss.name}' compares predictions with labels, but the data holds no y. Give labels beside x, "
                    "in batches and validation_data too: (x, y)."
                )
            value = loss(labels[output], predictions[output], weights[output])
            if tracker is not None:
                if value.ndim:
                    raise ShapeError(f"The loss '{label}' of a batch has shape {value.shape}, a scalar is needed to train.")
                track(tracker, value, predictions[output].shape[0])
            values.append(value if weight is None else value * weight)
        return values

    def update(self, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike) -> None:
        """Let a batch enter the metrics."""
        if not self.metrics:
            return
        labels, predictions = self.labels(y), [y_pred] if self._single else nest.flatten(y_pred)
        weights = self.weights(sample_weight)
        for output, metric, label, weighted in self.metrics:
            if labels[output] is None:
                raise ValueError(f"The metric '{label}' compares predictions with labels, but the data holds no y for it.")
            if weighted and weights[output] is not None:
                metric.update_state(labels[output], predictions[output], sample_weight=weights[output])
            else:
                metric.update_state(labels[output], predictions[output])

    def labelled(self) -> list[tuple[str, Any]]:
        """Trackers and metrics with the names of their logs."""
        trackers = [(term.label, term.tracker) for term in self.losses if term.tracker is not None]
        return [*trackers, *((term.label, term.metric) for term in self.metrics)]

    def _described(self) -> Any:
        return self.names if any(name is not None for name in self.names) else _shown(self._structure)


def track(tracker: Any, value: Any, rows: int) -> None:
    """Let the mean of a batch enter a `Mean`, weighted by its number of rows."""
    total = tracker.total
    total.assign_add(cast(value * rows, total.dtype))
    tracker.count.assign_add(float(rows))


def _names(structure: Any, given: Sequence[str] | None) -> list[str | None]:
    """The names of the outputs: keys of a dict, else what the model calls them, else paths; None for lists and a single one."""
    count = len(nest.flatten(structure))
    if isinstance(structure, Mapping) and len(structure) == count:
        return [str(key) for key in nest.keys(structure)]
    if given is not None and len(given) == count:
        return list(given)
    if not nest.is_nested(structure) or len(structure) == count:
        return [None] * count
    return _paths(structure, "")


def _paths(structure: Any, path: str) -> list[str | None]:
    if not nest.is_nested(structure):
        return [path]
    keys = nest.keys(structure)
    return [found for key in keys for found in _paths(structure[key], f"{path}/{key}" if path else str(key))]


def _kind(y_true: TensorLike, y_pred: TensorLike) -> str:
    """The meaning of 'accuracy' and 'crossentropy': binary for one prediction a row, sparse if the labels lack the axis of
    classes.
    """
    if y_true is None:
        raise ValueError("The kind of accuracy or crossentropy is told by the labels, but the data holds no y.")
    y_true, y_pred = tensor(y_true), tensor(y_pred)
    if y_pred.ndim < 2 or y_pred.shape[-1] == 1:
        return "binary"
    return "sparse_categorical" if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1 else "categorical"


def _free(label: str, taken: set[str]) -> str:
    """The label, with a number if it is taken; taken from then on."""
    number, free = 0, label
    while free in taken:
        number += 1
        free = f"{label}_{number}"
    taken.add(free)
    return free


def _listed(given: Any) -> list[Any]:
    """None as nothing, one thing as a list of it."""
    return [one for one in nest.flatten(given) if one is not None]


def _without_rows(leaf: Any) -> Any:
    """An empty array of the same axes."""
    shape = tuple(getattr(leaf, "shape", None) or np.shape(leaf))
    return None if leaf is None else np.zeros((0, *shape[1:]) if shape else ())


def _shown(structure: Any) -> Any:
    plain = (str, float, int, type(None))
    return nest.map_structure(lambda leaf: leaf if isinstance(leaf, plain) else type(leaf).__name__, structure)
