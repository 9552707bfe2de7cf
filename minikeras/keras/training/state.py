"""The state of training as one value, from which it goes on bit for bit: arrays by name, and values that JSON can hold. No
object is stored, so it can be kept in any container of arrays and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...checkpoint.plain import join, split
from ...compiler.tracing.pace import Pace
from ...core import Variable
from ...core.arrays import to_numpy
from ...core.variable import restore
from ...errors import LoadError
from ...nn_ops import streams
from ..batches import Feed
from ..callbacks import CallbackList
from ..logs import numbers
from ..optimizers import Optimizer

FORMAT = 1
_COUNTED = re.compile(r"_\d+(?=[/_]|$)")

State = dict[str, Any]


class Run:
    """Where a call of `fit` stands: the epoch under way or next, how many of its batches are done, the logs of the last one,
    whether a validation is under way, in which metrics hold other numbers, and how many steps are taken in a row.
    """

    def __init__(self, epoch: int, feed: Feed, hooks: CallbackList) -> None:
        self.epoch, self.batch, self.feed, self.hooks = epoch, 0, feed, hooks
        self.logs: Mapping[str, Any] = {}
        self.testing = False
        self.pace = Pace()
        self._first = epoch

    @property
    def goes_on(self) -> bool:
        """Whether an epoch came before the one under way."""
        return self.epoch > self._first

    def position(self, stopped: bool) -> dict[str, Any]:
        """All that is to be known to go on from here, apart from Variables."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "stopped": stopped,
            "logs": numbers(self.logs),
            "data": self.feed.state(),
            "callbacks": self.hooks.get_state(),
        }

    def go_to(self, position: Mapping[str, Any]) -> bool:
        """Stand where another run stood; whether that one was told to stop."""
        try:
            self.hooks.set_state(position["callbacks"])
            self.feed.resume(position["data"])
            self.epoch, self.batch, self.logs = int(position["epoch"]), int(position["batch"]), dict(position["logs"])
            return bool(position["stopped"])
        except (LookupError, TypeError, AttributeError) as error:
            raise LoadError(f"The position in training is damaged: {type(error).__name__}: {error}.") from error


# Variables ---------------------------------------------------------------------------------------------------------------


def named_variables(model: Any) -> dict[str, Variable]:
    """All Variables that training changes by name: without the numbers that a process counts up ('dense_3'), so that the same
    model made again has the same names.
    """
    groups: list[tuple[str, Iterable[Variable]]] = [("model", model.variables)]
    groups += [(name, value.variables) for name, value in vars(model).items() if isinstance(value, Optimizer)]
    groups += [(f"metrics/{label}", metric.variables) for label, metric in model._trainer.labelled_metrics(model)]
    return {
        f"{group}/{number}/{_COUNTED.sub('', getattr(variable, 'path', None) or variable.name.removesuffix(':0'))}": variable
        for group, variables in groups
        for number, variable in enumerate(variables)
    }


def capture(model: Any, run: Run | None) -> State:
    """The state of training of a model: {"arrays": {name: NumPy array}, "values": what JSON can hold}.

    Arrays are all Variables: 'model/<number>/<path>', '<attribute>/...' for each optimizer, 'metrics/<label>/...' for the open
    epoch, and 'values/...' for arrays that callbacks remember. Values: random streams and, during `fit`, where it stands.
    """
    arrays = {name: np.asarray(to_numpy(variable._array)) for name, variable in named_variables(model).items()}
    position = None if run is None else run.position(model.stop_training)
    values = {"format": FORMAT, "streams": streams.states(), "position": position}
    return {"arrays": arrays, "values": split(values, "values", arrays)}


def differences(model: Any, state: State) -> list[str]:
    """What stands between a state and this model: names that one of them lacks, and shapes. Metrics may be missing."""
    own, arrays = named_variables(model), state["arrays"]
    saved = {name for name in arrays if not name.startswith("values/")}
    found = [f"the model lacks '{name}'" for name in sorted(saved - set(own))]
    found += [f"the state lacks '{name}'" for name in sorted(set(own) - saved) if not name.startswith("metrics/")]
    for name in sorted(saved & set(own)):
        shapes = tuple(own[name].shape), tuple(arrays[name].shape)
        if shapes[0] != shapes[1]:
            found.append(f"'{name}' has shape {shapes[0]} here and {shapes[1]} in the state")
    return found


def put_back(model: Any, state: State) -> Any:
    """Have Variables and random streams as they were, all or nothing; gives the position, None outside `fit`."""
    values = join(state["values"], state["arrays"], "the state of training", "values")
    if not isinstance(values, dict):
        raise LoadError(f"The state of training is damaged: a dict was saved, found {values!r:.40}.")
    if values.get("format") != FORMAT:
        raise ValueError(f"The state of training has format {values.get('format')!r}, this version reads {FORMAT}.")
    problems = differences(model, state)
    if problems:
        shown = "; ".join(problems[:8]) + (f"; and {len(problems) - 8} more" if len(problems) > 8 else "")
        raise ValueError(f"The state of training belongs to another model or optimizer: {shown}.")
    own, arrays = named_variables(model), state["arrays"]
    new = {name: variable._convert(arrays[name]) for name, variable in own.items() if name in arrays}
    before = streams.states()
    try:
        position = values["position"]
        streams.set_states(values["streams"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        streams.set_states(before)
        raise LoadError(f"The state of training is damaged: {type(error).__name__}: {error}.") from error
    model.reset_metrics()
    restore((own[name], array) for name, array in new.items())
    return position
