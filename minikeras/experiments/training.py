"""Training of many members at once: the loop over epochs, callbacks of each member, and members that end before the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.tracing.pace import Pace
from ..keras.batches import Feed
from ..keras.callbacks import CallbackList
from ..keras.logs import numbers
from ..keras.training.executions import Executions
from ..keras.training.snapshot import Transaction
from .member import Member
from .member_batches import MemberSource
from .stack import ModelStack

Values = dict[str, np.ndarray[Any, Any]]
"""The logs of all members: for each name an array with their values along its first axis."""


def evaluated(stack: ModelStack, feed: Feed, bar: CallbackList | None = None) -> Values:
    """Loss and metrics of all members over data."""
    stack.reset_metrics()
    own = isinstance(feed.source, MemberSource)
    step = stack.steps.of(stack, "test_step_on_own" if own else "test_step")
    executions = Executions("evaluate", Transaction(stack), step, feed, 0, None, Pace())
    found: Any = {}
    with np.errstate(all="ignore"):
        while executions.prepare():
            found = executions.run()
            if bar is not None:
                bar.batch_end("test", executions.done - 1, {})
    if not executions.done:
        raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
    return dict(numbers(found))


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
        self._active = list(range(len(members)))
        self._order = list(self._active)
        """The members whose values are in the stack, in their order; some may have ended."""
        self._stack = ModelStack(self._members, trains=True)
        self._pace = Pace()
        self._last: dict[int, dict[str, Any]] = {}

    def run(self, epochs: range) -> None:
        """Train from the first to the last of `epochs`, or until every member has ended."""
        self._stack.steps.planned = epochs.stop * (self._feed.steps or 0)
        for model in self._models:
            model.stop_training = False
        self._call("on_train_begin", lambda place: ({},))
        try:
            with self._bar, np.errstate(all="ignore"):
                for epoch in epochs:
                    self._epoch(epoch)
                    if not self._active:
                        break
        except BaseException:
            self._stack.release([self._order.index(member) for member in self._active])
            raise
        self._end(self._active)

    def _epoch(self, epoch: int) -> None:
        self._bar.call("on_epoch_begin", epoch, {})
        self._call("on_epoch_begin", lambda place: (epoch, {}))
        self._stack.reset_metrics()
        values = self._pass()
        if self._validation is not None and self._due(epoch):
            found = evaluated(self._stack, Feed(self._validation.source, self._validation.wanted))
            values |= {f"val_{name}": value for name, value in found.items()}
        logs = self._of_each(values)
        self._bar.call("on_epoch_end", epoch, self._mean(values))
        self._last = logs
        self._call("on_epoch_end", lambda member: (epoch, logs[member]))
        self._end([member for member in self._active if self._has_ended(member, epoch, logs[member])])

    def _pass(self) -> Values:
        """The batches of one epoch; the logs after the last one."""
        own = isinstance(self._feed.source, MemberSource)
        step = self._stack.steps.of(self._stack, "train_step_on_own" if own else "train_step")
        heard, shows = any(hooks.listens("train") for hooks in self._hooks), self._bar.listens("train")
        executions = Executions("fit", Transaction(self._stack), step, self._feed, 0, 1 if heard else None, self._pace)
        found: Any = {}
        while executions.prepare():
            batch = executions.done
            if heard:
                self._call("on_train_batch_begin", lambda member: (batch, {}))  # noqa: B023
            found = executions.run()
            if shows:
                self._bar.batch_end("train", executions.done - 1, self._mean(numbers(found)))
            if heard:
                logs = self._of_each(numbers(found))
                self._call("on_train_batch_end", lambda member: (batch, logs[member]))  # noqa: B023
        if not executions.done:
            raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
        return dict(numbers(found))

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
        if not any(self._hooks[member]._those(hook) for member in self._active):
            return
        with self._stack.shown([self._order.index(member) for member in self._active]):
            for member in self._active:
                self._hooks[member].call(hook, *arguments(member))

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
        for member in ending:
            model = self._models[member]
            if member in self._last and model.optimizer is not None:
                model.optimizer.finalize_variable_values(model.trainable_variables)
            self._hooks[member].call("on_train_end", self._last.get(member, {}))
        self._active = [member for member in self._active if member not in ending]
        feeds = [feed for feed in (self._feed, self._validation) if feed is not None]
        sources = [feed.source for feed in feeds if isinstance(feed.source, MemberSource)]
        for source in sources:
            source.end(ending)
        if self._active and len(self._active) * 2 <= len(self._order):
            self._stack.release([self._order.index(member) for member in self._active])
            planned = self._stack.steps.planned
            self._order = list(self._active)
            self._stack = ModelStack([self._members[member] for member in self._order], trains=True)
            self._stack.steps.planned = planned
            for source in sources:
                source.choose(self._order)
