"""Training of many members at once: the loop over epochs, callbacks of each member, their logs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.tracing.pace import Pace
from ..core.effects import clock
from ..errors import InvalidArgumentError
from ..keras.batches import Feed
from ..keras.callbacks import CallbackList, History
from ..keras.logs import numbers
from ..keras.training.executions import AllRows, Executions
from ..keras.training.state import Transaction
from .hyperparameters import settings
from .members import Member, MemberSource
from .stack import ModelStack
from .structure import check_structure


class EnsembleHistory:
    """What `Ensemble.fit` returns.

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
        """For each name the values of all members, of shape (epochs, members); NaN where there is none. Metrics of several
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
        from ..figures.runs import Band, plot_bands

        known = {name: values for name, values in self.history.items() if values.ndim == 2}
        chosen = [name for name in ("loss", "val_loss") if name in known] if names is None else list(names)
        if not chosen or any(name not in known for name in chosen):
            raise ValueError(f"plot: names must be among the numbers in the logs, {sorted(known)}; found {chosen}.")
        panels = {}
        for name in chosen:
            logged = ~np.isnan(known[name]).all(axis=1)
            values = np.ma.masked_invalid(known[name][logged])
            mean, deviation = (np.asarray(one) for one in (values.mean(axis=1), values.std(axis=1)))
            panels[name] = [Band(f"{len(self.members)} members", np.array(self.epoch)[logged], mean, deviation)]
        return plot_bands(panels, **options)

    def __repr__(self) -> str:
        return f"<EnsembleHistory members={len(self.members)}, epochs={len(self.epoch)}, names={sorted(self.history)}>"


Values = dict[str, np.ndarray[Any, Any]]
"""The logs of all members: for each name an array with their values along its first axis."""


def evaluated(stack: ModelStack, feed: Feed, bar: CallbackList | None = None) -> Values:
    """Loss and metrics of all members over data."""
    stack.reset_metrics()
    executions = _executions(stack, "test", feed, None, Pace())
    found: Any = {}
    with np.errstate(all="ignore"):
        while executions.prepare():
            found = executions.run()
            if bar is not None:
                bar.batch_end("test", executions.done - 1, {})
    return _last(executions, found)


def _executions(stack: ModelStack, phase: str, feed: Feed, group: int | None, pace: Pace) -> Executions:
    """The steps of a pass over batches, which are each member's own or the same for all."""
    own = isinstance(feed.source, MemberSource)
    step = stack.steps.of(stack, f"{phase}_step_on_own" if own else f"{phase}_step")
    name = "fit" if phase == "train" else "evaluate"
    return Executions(name, Transaction(stack), AllRows(step), feed, 0, group, pace)


def _last(executions: Executions, logs: Any) -> Values:
    """The logs after the last step; a ValueError if there was none."""
    if not executions.done:
        raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
    return dict(numbers(logs))


class Training:
    """One call of `fit`.

    Args:
        members: all of them.
        feed, validation: the batches; those of a `MemberSource` are each member's own.
        hooks: for each member its callbacks, a History among them.
        bar: the progress bar, which shows means.
        due: whether an epoch is validated.
    """

    def __init__(
        self,
        members: Sequence[Member],
        feed: Feed,
        validation: Feed | None,
        hooks: Sequence[CallbackList],
        bar: CallbackList,
        due: Callable[[int], bool],
    ) -> None:
        self._members, self._models = list(members), [member.model for member in members]
        self._feed, self._validation, self._due = feed, validation, due
        self._hooks, self._bar = hooks, bar
        group = self._models[0].steps_per_execution
        self._group = 1 if isinstance(group, str) else group
        self._active = list(range(len(members)))
        self._order = list(self._active)
        """The members whose values are in the stack, in their order; some may have ended."""
        self._stack = ModelStack(self._members, trains=True)
        self._pace = Pace()
        self._last: dict[int, dict[str, Any]] = {}
        self._stopped: dict[int, dict[str, Any]] = {}
        """The logs of members that stopped in the middle of the present epoch."""
        self._within_pass = False
        self._settings = [settings(model) for model in self._models if any(len(one.callbacks) > 1 for one in hooks)]

    def run(self, epochs: range) -> None:
        """Train from the first to the last of `epochs`, or until every member has ended."""
        self._stack.steps.planned = epochs.stop * (self._feed.steps or 0)
        for model in self._models:
            model.stop_training = False
        try:
            self._call("on_train_begin", lambda place: ({},))
            self._end([member for member in self._active if self._models[member].stop_training])
            with self._bar, np.errstate(all="ignore"):
                for epoch in epochs:
                    if not self._active:
                        break
                    self._epoch(epoch)
        except BaseException:
            self._stack.release([self._order.index(member) for member in self._going_on])
            raise
        self._end(self._active)

    def _epoch(self, epoch: int) -> None:
        self._bar.call("on_epoch_begin", epoch, {})
        self._call("on_epoch_begin", lambda place: (epoch, {}))
        self._stack.reset_metrics()
        values = self._pass("train", self._feed)
        trained, means = self._of_each(values) | self._stopped, self._mean(values)
        self._stack.take_back([self._order.index(member) for member in self._stopped])
        stopped, self._stopped = list(self._stopped), {}
        if self._validation is not None and self._due(epoch):
            self._call("on_test_begin", lambda place: ({},))
            self._stack.reset_metrics()
            found = self._pass("test", Feed(self._validation.source, self._validation.wanted))
            tested = self._of_each(found)
            self._call("on_test_end", lambda member: (tested[member],))
            trained = {
                member: trained[member] | {f"val_{name}": value for name, value in own.items()}
                for member, own in tested.items()
            }
            means |= {f"val_{name}": value for name, value in self._mean(found).items()}
        logs = {member: dict(sorted(own.items())) for member, own in trained.items()}
        self._bar.call("on_epoch_end", epoch, means)
        self._last = logs
        self._call("on_epoch_end", lambda member: (epoch, logs[member]))
        self._end([member for member in self._active if self._has_ended(member, epoch, logs[member]) or member in stopped])

    def _pass(self, phase: str, feed: Feed) -> Values:
        """The batches of an epoch to train on or to test with; the logs after the last one."""
        trains = phase == "train"
        heard, shows = any(hooks.listens(phase) for hooks in self._hooks), trains and self._bar.listens("train")
        pace = self._pace if trains else Pace()
        executions = _executions(self._stack, phase, feed, self._group if heard else None, pace)
        found: Any = {}
        self._within_pass = True
        while executions.prepare():
            if heard and executions.done % self._group == 0:
                self._call(f"on_{phase}_batch_begin", lambda member: (executions.done, {}))
            found = executions.run()
            if shows:
                self._bar.batch_end("train", executions.done - 1, self._mean(numbers(found)))
            if heard and executions.done % self._group == 0:
                self._batch_end(phase, executions.done - 1, numbers(found))
            if trains and heard and self._all_stop(numbers(found)):
                break
        if heard and executions.done % self._group:
            self._batch_end(phase, executions.done - 1, numbers(found))
        self._within_pass = False
        return _last(executions, found)

    def _batch_end(self, phase: str, batch: int, values: Values) -> None:
        logs = self._of_each(values)
        self._call(f"on_{phase}_batch_end", lambda member: (batch, logs[member]))

    def _all_stop(self, values: Values) -> bool:
        """Let members that were told to stop stay as they are; whether none goes on with this epoch."""
        ending = [member for member in self._going_on if self._models[member].stop_training]
        if ending:
            self._stack.release([self._order.index(member) for member in ending])
            logs = self._of_each(values)
            self._stopped |= {member: logs[member] for member in ending}
        return not self._going_on

    @property
    def _going_on(self) -> list[int]:
        return [member for member in self._active if member not in self._stopped]

    def _of_each(self, values: Values) -> dict[int, dict[str, Any]]:
        """The logs of each member."""
        return {
            member: numbers({name: value[place] for name, value in sorted(values.items())})
            for place, member in enumerate(self._order)
        }

    def _mean(self, values: Values) -> dict[str, Any]:
        """The mean over the members that go on."""
        places = [place for place, member in enumerate(self._order) if member in self._active]
        return numbers({name: value[places].mean(axis=0) for name, value in values.items()})

    # Members ---------------------------------------------------------------------------------------------------------------

    def _call(self, hook: str, arguments: Callable[[int], tuple[Any, ...]]) -> None:
        """Call a hook of each active member's callbacks, which see and may change its model."""
        called = self._going_on
        if not any(self._hooks[member]._those(hook) for member in called):
            return
        with self._stack.shown([self._order.index(member) for member in called]):
            before = clock.now
            for member in called:
                self._hooks[member].call(hook, *arguments(member))
        if clock.now != before and self._settings:
            self._look_at_settings(hook)

    def _look_at_settings(self, hook: str) -> None:
        """Have the stack know what callbacks have set in models, such as rates, or layers that are frozen."""
        before, self._settings = self._settings, list(map(settings, self._models))
        if self._settings == before:
            return
        if self._within_pass:
            raise InvalidArgumentError(
                f"{hook}: a callback has set an attribute of a layer in the middle of an epoch, and members heed that "
                "only between epochs. Set it in on_epoch_begin or on_epoch_end, or train the models by themselves."
            )
        check_structure([self._models[member] for member in self._active])
        self._stack_anew()

    def _has_ended(self, member: int, epoch: int, logs: Mapping[str, Any]) -> bool:
        if not np.isfinite(logs.get("loss", 0.0)):
            warnings.warn(
                f"Member {member} (seed {self._members[member].seed}) ends in epoch {epoch + 1}: its loss is {logs['loss']}. "
                "The others go on.",
                stacklevel=6,
            )
            return True
        return bool(self._models[member].stop_training)

    def _end(self, ending: Sequence[int]) -> None:
        """Let members be ordinary models again, as they are now; once half of the stack has ended, the rest moves closer."""
        if not ending:
            return
        self._stack.release([self._order.index(member) for member in ending])
        self._active = [member for member in self._active if member not in ending]
        for member in ending:
            model = self._models[member]
            if member in self._last and model.optimizer is not None:
                model.optimizer.finalize_variable_values(model.trainable_variables)
            self._hooks[member].call("on_train_end", self._last.get(member, {}))
        for source in self._sources:
            source.end(ending)
        if self._active and len(self._active) * 2 <= len(self._order):
            self._stack_anew()

    def _stack_anew(self) -> None:
        """Stack the members that go on, as they are now."""
        self._stack.release([self._order.index(member) for member in self._active])
        planned = self._stack.steps.planned
        self._order = list(self._active)
        self._stack = ModelStack([self._members[member] for member in self._order], trains=True)
        self._stack.steps.planned = planned
        for source in self._sources:
            source.choose(self._order)

    @property
    def _sources(self) -> list[MemberSource]:
        feeds = [feed for feed in (self._feed, self._validation) if feed is not None]
        return [feed.source for feed in feeds if isinstance(feed.source, MemberSource)]
