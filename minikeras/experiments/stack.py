"""ModelStack: many models as one, for the loops and the compiler that train a single model.

The models keep their Variables. While they are trained together these hold no memory; their values lie stacked.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, Variable
from ..core.arrays import namespace
from ..core.batch import BatchedTensor
from ..functions.operands import tensor
from ..keras.layers.layer_weights import Contents
from .hyperparameters import ModelOptions
from .members import EnsembleMember, Members, Row, give_rows, rows_at, shown_rows, take_rows, with_rows, without_memory
from .optimizers import StackedOptimizer


class ModelStack:
    """The steps of many models of one structure: results have a first axis of members.

    Args:
        members: with models that are built and compiled. From now on their values are here; `shown` gives them back for a
            while, `release` for good.
        trains: whether the state of their optimizers comes along.

    Attributes:
        model: the model that is run in the place of all, under `members`.
    """

    _built = True

    def __init__(self, members: Sequence[EnsembleMember], trains: bool = False) -> None:
        self.stop_training = self.stop_evaluating = self.stop_predicting = False
        self._contents: tuple[Any, Any, Contents] = None, None, Contents([], [], [])
        self.fill(members, trains)

    def fill(self, members: Sequence[EnsembleMember], trains: bool) -> None:
        """Hold these members instead of the earlier ones, which have been released."""
        models = [member.model for member in members]
        self.model = copy.deepcopy(models[0])
        self.members = Members([member.streams[""] for member in members])
        ModelOptions(self.model).take_numbers(models, self.members)
        self._given = list(members)
        self.name, self.steps_per_execution = self.model.name, self.model.steps_per_execution
        self.run_eagerly, self.jit_compile = self.model.run_eagerly, self.model.jit_compile
        pairs = zip(*[one.collect_contents().variables for one in (self.model, *models)], strict=True)
        self._rows = [(_whole(self.members, variable, own), own) for variable, *own in pairs]
        """The Variable that holds a stack, and those whose values are its rows."""
        self.optimizer: StackedOptimizer | None = None
        if trains:
            self.optimizer = StackedOptimizer([one.optimizer for one in models], self.members, self._rows)
            self.model.optimizer = self.optimizer
            self.run_eagerly = self.run_eagerly or self.optimizer.needs_loss  # the members' own steps are compiled then
        take_rows(self._rows_at(range(len(models))))

    def _rows_at(self, places: Sequence[int]) -> list[Row]:
        """The Variables of some members, and the slots of their optimizers."""
        return rows_at([*self._rows, *(() if self.optimizer is None else self.optimizer.slot_rows)], places)

    # What a Transaction and CompiledSteps ask of a model -------------------------------------------------------------------

    @property
    def training_loops(self) -> Any:
        """The training loops of the model that is run."""
        return self.model.training_loops

    @property
    def metrics(self) -> list[Any]:
        """The metrics of the model that is run."""
        return self.model.metrics

    def collect_contents(self) -> Contents:
        found, stacks = self.model.collect_contents(), self.members.stacks
        if self._contents[0] is not found or self._contents[1] is not stacks:
            variables = [*found.variables, *(whole for _, whole in stacks.values()), self.members.streams]
            self._contents = found, stacks, Contents(variables, found.sublayers, found.metrics)
        return self._contents[2]

    # Steps -----------------------------------------------------------------------------------------------------------------

    def train_step(self, data: Any) -> Any:
        """One step of all members on one batch."""
        if self._takes_turns:
            return self._in_turn([data] * self.members.size)
        return self._run(self.model.train_step, data)

    def train_step_on_own(self, data: Any) -> Any:
        """One step of each member on its own batch: the data has a first axis of members."""
        if self._takes_turns:
            rows = range(self.members.size)
            return self._in_turn([nest.map_structure(lambda leaf: None if leaf is None else leaf[i], data) for i in rows])  # noqa: B023
        return self._run(self.model.train_step, self._own(data))

    def test_step(self, data: Any) -> Any:
        """Evaluation of all members on one batch."""
        return self._run(self.model.test_step, data)

    def test_step_on_own(self, data: Any) -> Any:
        """Evaluation of each member on its own batch."""
        return self._run(self.model.test_step, self._own(data))

    def predict_step(self, data: Any) -> Any:
        """The predictions of all members for one batch."""
        return self._run(self.model.predict_step, data)

    @property
    def _takes_turns(self) -> bool:
        return self.optimizer is not None and self.optimizer.needs_loss

    def _in_turn(self, batches: Sequence[Any]) -> Any:
        """The steps of members whose optimizers are given the loss as a function: each takes its own, by its own model."""
        assert self.optimizer is not None
        places = [place for place in range(self.members.size) if place not in self.optimizer.ended]
        found: dict[int, Any] = {}
        with self.shown(places):
            for place in places:
                model = self._given[place].model
                with self._drawing(place):
                    found[place] = model.training_loops.steps.of(model, "train_step")(batches[place])
        results = [found.get(place, found[places[0]]) for place in range(self.members.size)]
        leaves = [[tensor(leaf).array for leaf in nest.flatten(result)] for result in results]
        return nest.pack(results[0], [Tensor(namespace(*parts).stack(parts)) for parts in zip(*leaves, strict=True)])

    @contextlib.contextmanager
    def _drawing(self, place: int) -> Iterator[None]:
        """Within the block random streams are those of a member, which the stack holds meanwhile."""
        member, rows = self._given[place], self.members.streams.array.copy()
        member.streams[""] = tuple(rows[place].tolist())
        with member.drawing():
            yield
        rows[place] = member.streams[""]
        self.members.streams.assign(Tensor(rows))

    def _own(self, data: Any) -> Any:
        return nest.map_structure(lambda leaf: None if leaf is None else BatchedTensor(leaf, self.members), data)

    def _run(self, step: Any, data: Any) -> Any:
        with self.members:
            results = step(data)
            return nest.map_structure(lambda leaf: self.members.stack_of(tensor(leaf)), results)

    def reset_metrics(self) -> None:
        """Let the metrics of all members forget."""
        with self.members:
            self.model.reset_metrics()
        for member in self._given if self._takes_turns else ():
            member.model.reset_metrics()

    # The members' own models -----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let the members know their losses and metrics, once a batch has shown which they are."""
        found = self.training_loops.targets
        for own in [member.model.training_loops for member in self._given] if found is not None else ():
            if own.targets is None:
                own.targets = found.like(own.need_compile("fit"))

    @contextlib.contextmanager
    def shown(self, places: Sequence[int]) -> Iterator[None]:
        """Within the block the models of some members hold their values; values assigned to them there are kept."""
        self._settle()
        with shown_rows(self._rows_at(places)):
            yield

    def release(self, places: Sequence[int]) -> None:
        """Let the models of some members hold their values, their optimizers their state, and their streams go on, for good."""
        self._settle()
        give_rows(self._rows_at(places))
        if self.optimizer is not None:
            self.optimizer.ended.update(places)
        for place in places:
            seed, position = self.members.streams.array[place].tolist()
            self._given[place].streams[""] = seed, position

    @property
    def counters(self) -> list[Any]:
        """Numbers of the members' optimizers that steps depend on, such as the number of steps taken."""
        optimizers = [] if self.optimizer is None else self.optimizer.optimizers
        return [one.numpy().item() for optimizer in optimizers for one in optimizer.counters if one.array.size == 1]

    def rest(self) -> None:
        """Hold no memory, once all members are released."""
        _drop([whole for whole, _ in self._rows])
        if self.optimizer is not None:
            _drop([slot for slot, _ in self.optimizer.slot_rows])

    def resume(self) -> None:
        """Hold the values of all members again after a rest, and let their optimizers step."""
        self.take_back(range(self.members.size))
        if self.optimizer is not None:
            self.optimizer.ended.clear()

    def take_back(self, places: Sequence[int]) -> None:
        """Hold the values of released members again, for evaluation: their optimizers step no more."""
        if not places:
            return
        take_rows(self._rows_at(places))
        rows = {place: np.array(self._given[place].streams[""], np.uint64) for place in places}
        self.members.streams.array = with_rows(self.members.streams.array, rows)


def _whole(members: Members, variable: Variable, own: Sequence[Variable]) -> Variable:
    """The Variable that represents members' own as a Variable of the model; without values yet."""
    first = without_memory(own[0].array)
    whole = members.stack(variable, np.broadcast_to(first, (len(own), *first.shape)))
    _drop([variable, whole])
    return whole


def _drop(variables: Sequence[Variable]) -> None:
    """Have Variables keep shape and dtype, and no memory."""
    for variable in variables:
        variable.array = without_memory(variable.array)
