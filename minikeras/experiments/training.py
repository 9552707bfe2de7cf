"""Training of many models as one, by the loops and the compiler that train a single model: their stack, callbacks, logs and the
end of each member.

The models keep their Variables. While they are trained together these hold no memory; their values lie stacked.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, partialmethod
from typing import Any

import numpy as np

from .. import nest
from ..core import BatchedTensor, Tensor, clock, namespace, warn_caller, watched
from ..errors import InvalidArgumentError
from ..functions.operands import tensor
from ..keras.batches import Source
from ..keras.callbacks import CallbackList, History
from ..keras.callbacks.callback import numbers
from ..keras.layers.layer_weights import Contents
from ..keras.training.executions import CompiledSteps, Steps
from ..keras.training.trainer import FitPlan, Trainer
from .members import EnsembleMember, Members, MemberSource, with_rows, without_memory
from .optimizers import StackedOptimizer
from .structure import ModelOptions, check_structure


class EnsembleHistory:
    """The result of `Ensemble.fit`.

    Attributes:
        members: the `History` of each member.
        epoch: the numbers of the epochs.

    >>> def build():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile("sgd", "mse")
    ...     return model
    >>> history = tf.experiments.Ensemble(build, 3).fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=2, verbose=0)
    >>> history.history["loss"].shape, history.epoch
    ((2, 3), [0, 1])
    """

    def __init__(self, members: Sequence[History]) -> None:
        self.members = list(members)
        self.epoch = max((one.epoch for one in members), key=len)

    @property
    def history(self) -> dict[str, np.ndarray[Any, Any]]:
        """For each name the values of all members, of shape (epochs, members), NaN where a member has none. Metrics of several
        numbers have further axes.
        """
        return {name: self._values(name) for name in sorted({name for one in self.members for name in one.history})}

    def _values(self, name: str) -> np.ndarray[Any, Any]:
        shape = next(np.shape(one.history[name][0]) for one in self.members if name in one.history)
        found = np.full((len(self.epoch), len(self.members), *shape), np.nan)
        for place, one in enumerate(self.members):
            for epoch, value in zip(one.logged_at.get(name, ()), one.history.get(name, ()), strict=True):
                if epoch in self.epoch:
                    found[self.epoch.index(epoch), place] = value
        return found

    def plot(self, names: Sequence[str] | None = None, **options: Any) -> Any:
        """Mean and deviation over the members against epochs, a panel for each name, as a matplotlib Figure.

        Args:
            names: of the logs; 'loss' by default, with 'val_loss' where there is one.
            options: `title`, and `axes` to draw into, one for each name.

        Raises:
            ValueError: for names that are not in the logs, or not of single numbers.
            MissingExtraError: without matplotlib.
        """
        from ..figures import Band, plot_bands

        known = {name: values for name, values in self.history.items() if values.ndim == 2}
        chosen = [name for name in ("loss", "val_loss") if name in known] if names is None else list(names)
        if not chosen or any(name not in known for name in chosen):
            raise ValueError(f"plot: names must be among the numbers in the logs, {sorted(known)}; found {chosen}.")
        panels = {name: [Band.of(f"{len(self.members)} members", self.members, name, freedom=0)] for name in chosen}
        return plot_bands(panels, **options)

    def __repr__(self) -> str:
        return f"<EnsembleHistory members={len(self.members)}, epochs={len(self.epoch)}, names={sorted(self.history)}>"


@watched
class ModelStack:
    """The steps of many models of one structure: results have a first axis of members.

    Args:
        members: with models that are built and compiled. From now on their values are here; `shown` gives them back for a
            while, `release` for good.
        trains: whether the state of their optimizers comes along.

    Attributes:
        model: the model that is run in the place of all, under `members`.
        given: the members.
        set_nothing: whether it is of all members still, and no callback has set anything.
    """

    _built = True
    _unwatched = ("given", "set_nothing", "stop_training", "stop_evaluating", "stop_predicting", "_contents")

    def __init__(self, members: Sequence[EnsembleMember], trains: bool = False) -> None:
        self.stop_training = self.stop_evaluating = self.stop_predicting = False
        self.set_nothing = True
        self._contents: tuple[Any, Any, Contents] = None, None, Contents([], [], [])
        self.fill(members, trains)

    def fill(self, members: Sequence[EnsembleMember], trains: bool) -> None:
        """Hold these members instead of the earlier ones, which have been released."""
        models = [member.model for member in members]
        self.model = copy.deepcopy(models[0])
        self.members = Members([member.streams[""] for member in members])
        ModelOptions(self.model).take_numbers(models, self.members)
        self.given = list(members)
        self.name, self.steps_per_execution = self.model.name, self.model.steps_per_execution
        self.run_eagerly, self.jit_compile = self.model.run_eagerly, self.model.jit_compile
        self.training_loops = self.model.training_loops
        for variable, *own in zip(*[one.collect_contents().variables for one in (self.model, *models)], strict=True):
            first = without_memory(own[0].array)
            whole = self.members.stack(variable, np.broadcast_to(first, (len(own), *first.shape)))
            self.members.hold(whole, own)
            for one in (variable, whole):  # their values are taken below
                one.array = without_memory(one.array)
        self.optimizer: StackedOptimizer | None = None
        if trains:
            self.optimizer = StackedOptimizer([one.optimizer for one in models], self.members)
            self.model.optimizer = self.optimizer
            self.run_eagerly = self.run_eagerly or self.optimizer.needs_loss  # the members' own steps are compiled then
        self.members.take(range(len(models)))

    # What a Transaction and CompiledSteps ask of a model -------------------------------------------------------------------

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

    def _step(self, name: str, own: bool, data: Any) -> Any:
        """A step of all members on one batch, or of each on its `own`: the data then has a first axis of members."""
        if name == "train_step" and self._takes_turns:
            cut: Callable[[int], Any] = lambda i: nest.map_structure(lambda leaf: None if leaf is None else leaf[i], data)
            return self._in_turn([cut(place) if own else data for place in range(self.members.size)])
        if own:
            data = nest.map_structure(lambda leaf: None if leaf is None else BatchedTensor(leaf, self.members), data)
        with self.members:
            return nest.map_structure(lambda leaf: self.members.stack_of(tensor(leaf)), getattr(self.model, name)(data))

    train_step, train_step_on_own = partialmethod(_step, "train_step", False), partialmethod(_step, "train_step", True)
    test_step, test_step_on_own = partialmethod(_step, "test_step", False), partialmethod(_step, "test_step", True)
    predict_step = partialmethod(_step, "predict_step", False)

    @property
    def _takes_turns(self) -> bool:
        return self.optimizer is not None and self.optimizer.needs_loss

    def _in_turn(self, batches: Sequence[Any]) -> Any:
        """The steps of members whose optimizers are given the loss as a function: each takes its own, by its own model."""
        places, found = self.members.active, dict[int, Any]()
        with self.shown(places):
            for place in places:
                model = self.given[place].model
                with self._drawing(place):
                    found[place] = model.training_loops.steps.of(model, "train_step")(batches[place])
        results = [found.get(place, found[places[0]]) for place in range(self.members.size)]
        leaves = [[tensor(leaf).array for leaf in nest.flatten(result)] for result in results]
        return nest.pack(results[0], [Tensor(namespace(*parts).stack(parts)) for parts in zip(*leaves, strict=True)])

    @contextlib.contextmanager
    def _drawing(self, place: int) -> Iterator[None]:
        """Within the block random streams are those of a member, which the stack holds meanwhile."""
        member, rows = self.given[place], self.members.streams.array.copy()
        member.streams[""] = tuple(rows[place].tolist())
        with member.drawing():
            yield
        rows[place] = member.streams[""]
        self.members.streams.assign(Tensor(rows))

    def reset_metrics(self) -> None:
        """Let the metrics of all members forget."""
        with self.members:
            self.model.reset_metrics()
        for member in self.given if self._takes_turns else ():
            member.model.reset_metrics()

    # The members' own models -----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let the members know their losses and metrics, once a batch has shown which they are."""
        found = self.training_loops.targets
        for own in [member.model.training_loops for member in self.given] if found is not None else ():
            if own.targets is None:
                own.targets = found.like(own.need_compile("fit"))

    @contextlib.contextmanager
    def shown(self, places: Sequence[int]) -> Iterator[None]:
        """Within the block the models of some members hold their values; values assigned to them there are kept."""
        self._settle()
        with self.members.shown(places):
            yield

    def release(self, places: Sequence[int]) -> None:
        """Let the models of some members hold their values, their optimizers their state, and their streams go on, for good."""
        self._settle()
        self.members.give(places)
        self.members.ended.update(places)
        for place in places:
            seed, position = self.members.streams.array[place].tolist()
            self.given[place].streams[""] = seed, position

    @property
    def counters(self) -> list[Any]:
        """Numbers of the members' optimizers that steps depend on, such as the number of steps taken."""
        optimizers = [] if self.optimizer is None else self.optimizer.optimizers
        return [one.numpy().item() for optimizer in optimizers for one in optimizer.counters if one.array.size == 1]

    def resume(self) -> None:
        """Hold the values of all members again after a rest, and let their optimizers step."""
        self.take_back(range(self.members.size))
        self.members.ended.clear()

    def take_back(self, places: Sequence[int]) -> None:
        """Hold the values of released members again, for evaluation: their optimizers step no more."""
        self.members.take(places)
        rows = {place: np.array(self.given[place].streams[""], np.uint64) for place in places}
        self.members.streams.array = with_rows(self.members.streams.array, rows)


class StackTrainer(Trainer):
    """The loops over batches and epochs, for all members of a stack at once."""

    _shared = None

    def __init__(self, members: Sequence[EnsembleMember], trains: bool) -> None:
        super().__init__()
        self.stack = ModelStack(members, trains)

    def _join(self, model: Any, name: str, source: Source) -> None:
        """Nothing: each rank has members of its own."""

    def _steps_of(self, model: Any, name: str, source: Source) -> Steps:
        """The steps on batches, which are each member's own or the same for all."""
        own = f"{name}_on_own" if isinstance(source, MemberSource) else name
        return Steps(partial(self.steps.of, model, own))

    def _finalize(self, model: Any) -> None:
        """Nothing: each member's variables are finalized when it ends."""


class KeptStacks:
    """The stacks of an ensemble from call to call, with the steps that were recorded for them. They are made anew once anything
    was set, or members have trained by themselves.
    """

    def __init__(self) -> None:
        self._stacks: dict[bool, tuple[StackTrainer, Any]] = {}
        self._looked = -1

    def look(self, models: Sequence[Any]) -> None:
        """Refuse models that are not of one structure, if anything was set since the last look."""
        if clock.now != self._looked:
            check_structure(models)
            self._stacks, self._looked = {}, clock.now

    @contextlib.contextmanager
    def taken(self, members: Sequence[EnsembleMember], trains: bool = False) -> Iterator[Any]:
        """Within the block members are the stack of a trainer and hold no values; those that train are released there. Both are
        kept, unless the block fails or sets anything.
        """
        loops, counters = self._stacks.pop(trains, (None, None))  # a call within this one makes its own
        if loops is None or counters != loops.stack.counters or clock.now != self._looked:
            loops = StackTrainer(members, trains)
        else:
            loops.stack.resume()
        stack = loops.stack
        try:
            yield loops
        finally:
            if not trains:
                stack.release(range(len(members)))
        stack.members.rest()
        if stack.set_nothing:
            self._stacks[trains] = loops, stack.counters
            self._looked = clock.now

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptStacks, ()  # copied members have other Variables


Values = Mapping[str, Any]
"""The logs of all members: for each name an array with their values along its first axis."""


class MemberHooks(CallbackList):
    """The callbacks of all members, as the loop of training calls those of one model; members end, each at its own time.

    Args:
        hooks: for each member its callbacks, a History among them.
        bar: the progress bar, which shows means.
        plan: has the batches; those of a `MemberSource` are each member's own.
        loops: of the members that train.
    """

    def __init__(self, hooks: Sequence[CallbackList], bar: CallbackList, plan: FitPlan, loops: StackTrainer) -> None:
        self.stack, self._loops = loops.stack, loops
        group, members = self.stack.steps_per_execution, self.stack.given
        super().__init__(hooks, group=1 if isinstance(group, str) else group)
        self._members, self._models = members, [member.model for member in members]
        self._own, self._bar = hooks, bar
        self._sources = [feed.source for feed in plan[:2] if feed is not None and isinstance(feed.source, MemberSource)]
        self._active = list(range(len(hooks)))
        self._order = list(self._active)
        """The members whose values are in the stack, in their order; some may have ended."""
        self._last: dict[int, dict[str, Any]] = {}
        self._stopped: dict[int, dict[str, Any]] = {}
        """The logs of members that stopped in the middle of the present epoch; they are validated like others."""
        self._are_back = True
        """True if the stack holds these members again, as they were then."""
        sees = any(type(callback) is not History for callback in self.callbacks)
        self._settings = [ModelOptions(model).settings() for model in self._models if sees]
        """Those of all models, if a callback sees them."""

    @property
    def history(self) -> EnsembleHistory:
        """The logs of all members."""
        return EnsembleHistory([one.history for one in self._own])

    def __exit__(self, *exception: object) -> None:
        self._bar.__exit__()
        if exception[0] is not None:
            self.stack.release(self._places(self._going_on))

    # What the loop of training calls ---------------------------------------------------------------------------------------

    def call(self, hook: str, *arguments: Any) -> None:
        """Call a hook of each active member's callbacks."""
        if hook == "on_train_end":
            self._end(self._active)
            return
        if hook == "on_train_begin":
            for model in self._models:
                model.stop_training = False
        values = self._of_each(arguments[-1])
        if hook in ("on_epoch_begin", "on_epoch_end"):
            self._bar.call(hook, arguments[0], self._mean(arguments[-1]))
        if hook == "on_epoch_end":
            self._last = values = {i: dict(sorted((own | self._stopped.get(i, {})).items())) for i, own in values.items()}
        self._call(hook, lambda member: (*arguments[:-1], values[member]))
        if hook == "on_train_begin":
            self._end([member for member in self._active if self._models[member].stop_training])
        if hook == "on_epoch_end":
            stopped, self._stopped = self._stopped, {}
            self._end([one for one in self._active if self._has_ended(one, arguments[0], values[one]) or one in stopped])

    def listens(self, phase: str) -> bool:
        """True if a callback has a hook for the batches of 'train' or 'test'."""
        return super().listens(phase) or (phase == "train" and self._bar.listens("train"))

    def group(self, phase: str) -> int | None:
        """The number of batches for each call of these hooks; None if only the bar has any."""
        return self._group if super().listens(phase) else None

    def batch_end(self, phase: str, batch: int, logs: Values) -> None:
        """After the batch of this number, and after each multiple of the group."""
        if phase == "train" and self._bar.listens("train"):
            self._bar.batch_end("train", batch, self._mean(numbers(logs)))
        if self.group(phase) is not None:
            self._held = batch, logs
            if (batch + 1) % self._group == 0:
                self._tell(phase)

    def report(self, phase: str) -> None:
        """Report the last batch, unless that was done; members that stopped in the epoch come back for validation."""
        self._tell(phase)
        if phase == "train" and not self._are_back:
            self.stack.take_back(self._places(self._stopped))
            self._are_back = True

    def _tell(self, phase: str) -> None:
        if self._held is None:
            return
        (batch, logs), self._held = self._held, None
        values = self._of_each(numbers(logs))
        self._call(f"on_{phase}_batch_end", lambda member: (batch, values[member]))
        ending = [member for member in self._going_on if self._models[member].stop_training] if phase == "train" else []
        if ending:  # they stay as they are
            self.stack.release(self._places(ending))
            self._stopped |= {member: values[member] for member in ending}
            self._are_back = False
            self.stack.stop_training = not self._going_on

    # Members ---------------------------------------------------------------------------------------------------------------

    @property
    def _going_on(self) -> list[int]:
        """The members whose values the stack holds."""
        return [member for member in self._active if self._are_back or member not in self._stopped]

    def _places(self, members: Iterable[int]) -> list[int]:
        return [self._order.index(member) for member in members]

    def _of_each(self, values: Values) -> dict[int, dict[str, Any]]:
        """The logs of each member."""
        return {
            member: numbers({name: value[place] for name, value in sorted(values.items())})
            for place, member in enumerate(self._order)
        }

    def _mean(self, values: Values) -> dict[str, Any]:
        """The mean over the members that have not ended."""
        places = self._places(self._active)
        with np.errstate(all="ignore"):
            return numbers({name: value[places].mean(axis=0) for name, value in values.items()})

    def _call(self, hook: str, arguments: Callable[[int], tuple[Any, ...]]) -> None:
        """Call a hook of the callbacks, each of which sees and may change its member's model."""
        called = self._going_on
        if not self._those(hook):
            return
        with self.stack.shown(self._places(called)) if self._settings else contextlib.nullcontext():
            before = clock.now
            for member in called:
                self._own[member].call(hook, *arguments(member))
        if clock.now != before:
            self.stack.set_nothing = False
            if self._settings:
                self._look_at_settings(hook)

    def _look_at_settings(self, hook: str) -> None:
        """Transfer settings that callbacks have changed in models to the stack, such as rates or frozen layers."""
        before, found = self._settings, [ModelOptions(model).settings() for model in self._models]
        inside = "_batch_" in hook  # arrays and lists may be notes that a callback takes: they are heeded after the epoch
        if [one[:-1] for one in found] == [one[:-1] for one in before] and (inside or found == before):
            return
        if inside:
            raise InvalidArgumentError(
                f"{hook}: a callback has set an attribute of a layer in the middle of an epoch, and members heed that "
                "only between epochs. Set it in on_epoch_begin or on_epoch_end, or train the models by themselves."
            )
        self._settings = found
        check_structure([self._models[member] for member in self._active])
        self._stack_anew()

    def _has_ended(self, member: int, epoch: int, logs: Mapping[str, Any]) -> bool:
        if not np.isfinite(logs.get("loss", 0.0)):
            warn_caller(
                f"Member {member} (seed {self._members[member].seed}) ends in epoch {epoch + 1}: its loss is {logs['loss']}. "
                "The others go on."
            )
            return True
        return bool(self._models[member].stop_training)

    def _end(self, ending: Sequence[int]) -> None:
        """Turn members into ordinary models again, as they are now; once half of the stack has ended, restack the others."""
        if not ending:
            return
        self.stack.release(self._places(ending))
        before = clock.now
        self._active = [member for member in self._active if member not in ending]
        self.stack.stop_training = not self._active
        for member in ending:
            model = self._models[member]
            if member in self._last and model.optimizer is not None:
                model.optimizer.finalize_variable_values(model.trainable_variables)
            self._own[member].call("on_train_end", self._last.get(member, {}))
        self.stack.set_nothing = self.stack.set_nothing and clock.now == before
        for source in self._sources:
            source.ended.update(ending)
        if self._active and len(self._active) * 2 <= len(self._order):
            self._stack_anew()

    def _stack_anew(self) -> None:
        """Stack the members that have not ended, as they are now."""
        self.stack.set_nothing = False
        self.stack.release(self._places(self._active))
        self._order = list(self._active)
        self.stack.fill([self._members[member] for member in self._order], trains=True)
        self.stack.reset_metrics()
        self._loops.steps = CompiledSteps(self._loops.steps.planned)
        for source in self._sources:
            source.chosen = list(self._order)
