"""Trainer: what a model was compiled with, and the loops over batches and epochs. It keeps no reference to the model, so that a
model is freed with its last user; every method is given the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...compiler import CompiledFunction
from ...core import hook, restore, snapshot, warn_caller
from ...core.arrays import chosen_device, current_device, device
from ...data.table import RowBatches
from ...errors import InvalidArgumentError
from ...ranks import is_first, joined, world
from ...types import TensorLike
from .. import batches, metrics, optimizers
from ..arguments import whole
from ..batches import Feed, Source
from ..callbacks import CallbackList, History
from ..callbacks.callback import numbers
from ..config import max_epochs
from ..optimizers.gradients import is_distributed
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..symbolic.trial import returned_none
from ..weight import Weight
from . import state as states
from .executions import CompiledSteps, Executions, Predictions, Steps
from .state import FitProgress, Logs, ModelLike, Transaction
from .targets import Compiled, Targets

TRAINING = ("fit", "train_on_batch")
"""Methods that change weights."""


class Trainer:
    """Losses, metrics and compiled steps of one model, and the progress of its training: `loss_tracker` is the mean of the loss
    over an epoch, `targets` are known once a batch has shown the outputs, `run` is a `fit` under way, `resume` the state from
    which the next one goes on, and `strategy` that of the scope in which the model was made or compiled.
    """

    def __init__(self) -> None:
        self.loss_tracker = metrics.Mean(name="loss")
        self.targets: Targets | None = None
        self.steps = CompiledSteps()
        self.run: FitProgress | None = None
        self.resume: states.State | None = None
        self.strategy = hook("distribution")()
        self._agreed: set[bool] = set()
        """The agreements of ranks: True is in it once they agree for prediction, False once they agree for training too."""
        self.arguments: dict[str, Any] = {}
        self._compiled: Compiled | None = None

    # Configuration -------------------------------------------------------------------------------------------------------

    def compile(self, model: ModelLike, arguments: dict[str, Any]) -> None:
        """Take the arguments of `Model.compile`."""
        jit_compile, steps_per_execution = arguments["jit_compile"], arguments["steps_per_execution"]
        if jit_compile not in ("auto", True, False, None):
            raise ValueError(f"compile: jit_compile must be 'auto', True or False, found {jit_compile!r}.")
        if steps_per_execution != "auto":
            whole("compile: steps_per_execution", steps_per_execution, 1)
        compiled = Compiled.of(*(arguments[name] for name in ("loss", "loss_weights", "metrics", "weighted_metrics")))
        chosen = optimizers.get(arguments["optimizer"])
        unscaled = isinstance(chosen, optimizers.Optimizer) and chosen.loss_scale_factor is None
        half = arguments["auto_scale_loss"] and model.dtype_policy.name == "mixed_float16"
        if half and unscaled and not hasattr(chosen, "dynamic_scale"):
            chosen = optimizers.LossScaleOptimizer(chosen)
        model.optimizer, model.loss = chosen, arguments["loss"]
        model.run_eagerly, model.jit_compile = arguments["run_eagerly"], jit_compile
        model.steps_per_execution = steps_per_execution
        self.arguments, self.steps = arguments, CompiledSteps()
        self._compiled, self.targets = compiled, None
        self.strategy, self._agreed = hook("distribution")() or self.strategy, set()
        self.loss_tracker.reset_state()

    @property
    def compiled(self) -> bool:
        """True if `compile` was called."""
        return self._compiled is not None

    def need_compile(self, name: str) -> Compiled:
        """The losses and metrics given to `compile`; a ValueError if it was not called."""
        if self._compiled is None:
            raise ValueError(f"You must call `compile()` before calling `{name}()`: model.compile(optimizer=..., loss=...).")
        return self._compiled

    def compile_config(self, optimizer: Any) -> dict[str, Any] | None:
        """The arguments of `compile`, with the optimizer that the model has now, as plain data; None if that cannot be."""
        arguments = dict(self.arguments)
        if not arguments:
            return None
        if arguments["steps_per_execution"] == "auto":  # the default here, and a word that Keras does not know
            del arguments["steps_per_execution"]
        wrapper = optimizers.LossScaleOptimizer
        if isinstance(optimizer, wrapper) and not isinstance(arguments["optimizer"], wrapper):
            optimizer = optimizer.inner_optimizer  # the policy wraps it again
        arguments["optimizer"] = optimizer
        try:
            if any(getattr(leaf, "__name__", "") == "<lambda>" for leaf in nest.flatten(list(arguments.values()))):
                raise ValueError("A lambda is not written to files: write a named function and register it.")
            return serialize_keras_object(arguments)
        except (TypeError, ValueError) as error:
            warn_caller(f"How the model was compiled cannot be saved; call `compile` again after loading it. {error}")
            return None

    def compile_from_config(self, model: ModelLike, config: Mapping[str, Any]) -> None:
        """Compile as `compile_config` says."""
        if model.is_overridden("compile"):
            warn_caller(
                f"The model '{model.name}' was loaded without being compiled, since its `compile` is custom. Override "
                "`get_compile_config` and `compile_from_config` in its class, or call `compile`."
            )
            return
        model.compile(**deserialize_keras_object(dict(config)))

    # Metrics -------------------------------------------------------------------------------------------------------------

    def labelled_metrics(self, model: ModelLike) -> list[tuple[str, Any]]:
        """Loss tracker, losses of the outputs, compiled metrics, and those held as attributes, with their names in logs."""
        held = [(metric.name, metric) for metric in model.collect_contents().metrics]
        if self._compiled is None:
            return held
        settled, named = self.targets, nest.flatten([self._compiled.metrics, self._compiled.weighted_metrics])
        chosen = (
            [(one.name, one) for one in named if isinstance(one, metrics.Metric)] if settled is None else settled.labelled()
        )
        return [("loss", self.loss_tracker), *chosen, *held]

    def logged_metrics(self, model: ModelLike) -> list[tuple[str, Any]]:
        """The metrics that appear in the logs: all, or those of the `metrics` that a subclass overrides."""
        labelled = self.labelled_metrics(model)
        if not model.is_overridden("metrics"):
            return labelled
        labels = {id(metric): label for label, metric in labelled}
        return [(labels.get(id(metric), metric.name), metric) for metric in model.metrics]

    def settle(self, model: ModelLike, y: TensorLike, y_pred: TensorLike) -> Targets:
        """Losses and metrics for the outputs, made at the first batch."""
        if self.targets is None:
            compiled = self.need_compile("fit")
            if y_pred is None:
                raise ValueError(returned_none(model))
            self.targets = Targets(compiled, y, y_pred, None if model.layer_graph is None else model.output_names)
        return self.targets

    def direction(self, model: ModelLike, name: str) -> str | None:
        """'min' or 'max', whichever is better for a value of the logs; None if its metric does not say."""
        for label, metric in self.labelled_metrics(model):
            if label == name:
                if metric is self.loss_tracker or (name.endswith("_loss") and type(metric) is metrics.Mean):
                    return "min"
                return {"up": "max", "down": "min"}.get(getattr(metric, "_direction", None) or "")
        return "min" if name == "loss" else None

    def results(self, model: ModelLike) -> Logs:
        """The results of all metrics by name."""
        logs: Logs = {}
        for label, metric in self.logged_metrics(model):
            result = metric.result()
            if isinstance(result, dict):
                logs.update(result)
            else:
                logs[label] = result
        return logs

    # Ranks ---------------------------------------------------------------------------------------------------------------

    @property
    def _shared(self) -> Any:
        """The strategy, if it is active; None if all steps are those of a single process."""
        return self.strategy if self.strategy is not None and self.strategy.is_active else None

    def _join(self, model: ModelLike, name: str, source: Source) -> None:
        """Let all ranks agree on the model, before their first steps.

        Raises:
            InvalidArgumentError: on every rank, for a model to be trained that belongs to no strategy.
        """
        ranks, predicts = joined(), name == "predict"
        trains = name in TRAINING and not is_distributed(model.optimizer)
        if trains and self.strategy is None and ranks is not None and ranks.size > 1:
            raise InvalidArgumentError(
                f"{name}: there are {ranks.size} ranks, but model '{model.name}' was made outside of any strategy. "
                "Make and compile it in `with tf.distribute.MultiWorkerMirroredStrategy().scope():`, or call "
                "keras.distribution.set_distribution before; or give each rank data of its own and a DistributedOptimizer."
            )
        if self._shared is not None:
            self._shared.join(model, name, source, predicts in self._agreed)
            self._agreed |= {predicts, True}

    def _steps_of(self, model: ModelLike, name: str, source: Source) -> Steps:
        step_on = partial(self.steps.of, model, name)
        return Steps(step_on) if self._shared is None else self._shared.steps(step_on, name, source)

    def _plan(self, feed: Feed) -> None:
        """Plan the number of steps; a call within `fit`, as from a callback, leaves the plan of the whole `fit`."""
        if self.run is None:
            self.steps.planned = feed.steps or 0

    # Loops ---------------------------------------------------------------------------------------------------------------

    def on_batch(self, model: ModelLike, name: str, source: Source, return_dict: bool) -> Any:
        """One step on the first batch; metrics start anew."""
        self._join(model, name.replace("step", "on_batch"), source)
        model.reset_metrics()
        attempt, steps, found = Transaction(model), self._steps_of(model, name, source), None
        turn = steps.on(steps.take(source.from_position(0), 1, False))
        step, (own,) = turn.step, turn.elements
        with turn.around, np.errstate(all="ignore"):
            if source.table is not None and isinstance(step, CompiledFunction):
                found = attempt.replay(step, RowBatches(source.table, [own]))
            logs = numbers(attempt(step, source.batch(own)) if found is None else found)
        return logs if return_dict else listed(logs)

    def fit(self, model: ModelLike, plan: FitPlan, hooks: CallbackList) -> History:
        """Train and validate as planned."""
        feed, epochs = plan.feed, plan.epochs
        self.steps.planned = epochs.stop * (feed.steps or 0)
        model.stop_training = False
        logs: Logs = {}
        self._join(model, "fit", feed.source)
        with hooks:
            self.run = run = FitProgress(epochs.start, feed, hooks)
            try:
                hooks.call("on_train_begin", {})
                self._go_on(model, run)
                if self._shared is not None:
                    model.stop_training = self._shared.stops(model)
                while run.epoch < epochs.stop and not model.stop_training:
                    logs = self._fit_epoch(model, run, plan.validation_of(run.epoch)) or logs
                if run.epoch > epochs.start:
                    self._finalize(model)
                hooks.call("on_train_end", logs)
                if self._shared is not None:
                    world().barrier()  # what the first rank has written is there for all
            finally:
                self.run = None
        return hooks.history

    def _finalize(self, model: ModelLike) -> None:
        if model.optimizer is not None:
            model.optimizer.finalize_variable_values(model.trainable_variables)

    def _fit_epoch(self, model: ModelLike, run: FitProgress, validation: Feed | None) -> Logs:
        """One epoch, or the rest of it, with its validation; the logs of both, empty if the data had come to its end."""
        if run.batch:
            run.hooks.go_on(run.epoch, run.batch)
        else:
            model.reset_metrics()
            run.hooks.call("on_epoch_begin", run.epoch, {})
        found = self._pass(model, run.hooks, "train", run.feed, run)
        if not run.batch:
            model.stop_training = True
            return found
        if validation is not None:
            kept = snapshot(variable for metric in model.metrics for variable in metric.variables)
            run.testing = True
            try:
                tested = self.evaluate(model, run.hooks, Feed(validation.source, validation.wanted))
            finally:  # the training metrics are not touched
                restore(kept)
            found |= {f"val_{name}": value for name, value in tested.items()}
            run.testing = False
        logs = dict(sorted(found.items()))
        epoch, run.epoch, run.batch = run.epoch, run.epoch + 1, 0
        run.hooks.call("on_epoch_end", epoch, logs)
        if self._shared is not None:
            model.stop_training = self._shared.stops(model)
        return logs

    def _pass(self, model: ModelLike, hooks: CallbackList, phase: str, feed: Feed, run: FitProgress) -> Logs:
        """The batches of one epoch; the logs after the last one as numbers."""
        name, heard = "fit" if phase == "train" else "evaluate", hooks.listens(phase)
        steps, stopped = self._steps_of(model, f"{phase}_step", feed.source), False
        executions = Executions(name, Transaction(model), steps, feed, run.batch, hooks.group(phase), run.pace)
        with np.errstate(all="ignore"):
            while executions.prepare(stopped):
                if heard:
                    hooks.batch_begin(phase, run.batch)
                run.logs, run.batch = executions.run(), executions.done
                if heard:
                    hooks.batch_end(phase, run.batch - 1, run.logs)
                stopped = model.stop_training if phase == "train" else model.stop_evaluating
            hooks.report(phase)
        if steps.ended:  # as all ranks are, of which one was told so
            setattr(model, "stop_training" if phase == "train" else "stop_evaluating", True)
        if not run.batch and run.goes_on:
            warn_caller(
                f"Your input ran out of data after {run.epoch} epochs; training ends here. A generator can be used up only "
                "once: for several epochs give a Dataset, a PyDataset, or a generator without end with `steps_per_epoch`."
            )
            return {}
        if not run.batch:
            raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
        if feed.wanted is not None and run.batch < feed.wanted and not steps.ended:
            warn_caller(f"The data gave {run.batch} batches instead of the {feed.wanted} steps asked for.")
        return numbers(run.logs)

    def evaluate(self, model: ModelLike, hooks: CallbackList, feed: Feed) -> Logs:
        """Loss and metrics over data."""
        self._plan(feed)
        self._join(model, "evaluate", feed.source)
        model.reset_metrics()
        model.stop_evaluating = False
        hooks.call("on_test_begin", {})
        logs = self._pass(model, hooks, "test", feed, FitProgress(0, feed, hooks))
        hooks.call("on_test_end", logs)
        return logs

    def predict(
        self,
        model: ModelLike,
        hooks: CallbackList,
        feed: Feed,
        reduced: Callable[[Any], Any] = lambda output: output,
        axis: int = 0,
    ) -> Any:
        """The outputs for all rows, which are along an axis, as NumPy arrays; or what `reduced` makes of those of a batch."""
        self._plan(feed)
        self._join(model, "predict", feed.source)
        steps = self._steps_of(model, "predict_step", feed.source)
        heard, group = hooks.listens("predict"), hooks.group("predict")
        executions = Predictions(steps, feed, group, reduced)
        with hooks, np.errstate(all="ignore"):
            model.stop_predicting = False
            hooks.call("on_predict_begin", {})
            while executions.prepare(model.stop_predicting):
                if heard:
                    hooks.batch_begin("predict", executions.done)
                executions.run()
                last = executions.done - 1
                if heard:
                    logs = {} if group is None else {"outputs": executions.joined(last // group * group)}
                    hooks.batch_end("predict", last, logs)
            hooks.report("predict")
            hooks.call("on_predict_end", {})
        return executions.joined(axis=axis)

    # Going on -------------------------------------------------------------------------------------------------------------

    def set_state(self, model: ModelLike, state: states.State) -> None:
        """Restore what `get_state` gave, at once or, within `fit`, when it goes on."""
        self.resume = None if self.run is None and states.put_back(model, state) is None else state

    def _go_on(self, model: ModelLike, run: FitProgress) -> None:
        """Go to the position in the state that was set last, if there is one."""
        state, self.resume = self.resume, None
        if state is None:
            return
        if states.differences(model, state) and (first := run.feed.source.first()) is not None:
            with np.errstate(all="ignore"):
                Transaction(model)(model.train_step, first)
        position = states.put_back(model, state)
        if position is not None:
            model.stop_training = run.go_to(position)


def hooks_of(
    model: ModelLike, callbacks: Any, history: bool, verbose: int | str, epochs: int, steps: int | None
) -> CallbackList:
    """The callbacks of one call of `fit`, `evaluate` or `predict`."""
    level, group = 1 if verbose == "auto" else int(verbose), model.steps_per_execution
    level = level if is_first() else 0
    params = {"epochs": epochs, "steps": steps, "verbose": level}
    return CallbackList(callbacks, history, level > 0, model, 1 if isinstance(group, str) else group, **params)


def takes_text(model: Any) -> bool:
    """True if a model takes columns of text: an input or another layer of it is meant for them."""
    return any(layer._takes_text for layer in model.collect_contents().sublayers)


def check_counts(name: str, least: int = 0, **counts: int | None) -> None:
    """Refuse counts that are no whole numbers; None says nothing."""
    for argument, count in counts.items():
        whole(f"{name}: {argument}", count, least, optional=True)


def listed(logs: Logs) -> Any:
    """The loss alone, or a list with the loss first."""
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


COUNTS = ("batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size")
"""The arguments of `fit` that are whole numbers from 1 on, or None."""


class FitPlan(NamedTuple):
    """The plan of a call of `fit`.

    Attributes:
        feed, validation: the batches; None for no validation.
        epochs: their numbers.
        frequency: which of them are validated, as in `Model.fit`.
    """

    feed: Feed
    validation: Feed | None
    epochs: range
    frequency: Any

    @classmethod
    def of(cls, model: ModelLike, given: Mapping[str, Any]) -> FitPlan:
        """The plan for a model and the arguments of `Model.fit` by name, which are checked."""
        check_counts("fit", **{name: given[name] for name in ("epochs", "initial_epoch")})
        check_counts("fit", 1, **{name: given[name] for name in COUNTS})
        epochs, limit, frequency = given["epochs"], max_epochs(), given["validation_freq"]
        if limit is not None and limit < epochs:
            warn_caller(f"Limiting epochs to {limit}, see keras.config.set_max_epochs.")
            epochs = limit
        if not isinstance(frequency, (list, tuple, set)) and not (isinstance(frequency, int) and frequency > 0):
            raise ValueError(
                f"Expected `validation_freq` to be a list or an int above 0. Received: validation_freq={frequency!r}."
            )
        text, batched, validated = takes_text(model), batches.is_iterable_of_batches(given["x"]), given["validation_data"]
        x, y, weight = given["x"], given["y"], given["sample_weight"]
        if share := given["validation_split"]:
            if batched:
                raise ValueError("validation_split needs arrays; split batches yourself and give validation_data.")
            columns = batches.as_columns(x, text), batches.as_columns(y), batches.as_columns(weight)
            (x, y, weight), validated = batches.split(columns, share)
        size, classes = given["batch_size"], given["class_weight"]
        source = batches.source("fit", x, y, weight, size, given["shuffle"], classes, text=text)
        feed, validation = Feed(source, given["steps_per_epoch"]), None
        if validated is not None:
            x, y, weight = batches.unpack_x_y_sample_weight(validated)
            rows = given["validation_batch_size"] or (None if batched else size)
            rows = None if batches.is_iterable_of_batches(x) else rows
            validation = Feed(batches.source("evaluate", x, y, weight, rows, False, text=text), given["validation_steps"])
        return cls(feed, validation, range(given["initial_epoch"], epochs), frequency)

    def validation_of(self, epoch: int) -> Feed | None:
        """The batches of validation after an epoch, if it is due."""
        number, frequency = epoch + 1, self.frequency
        is_due = number % frequency == 0 if isinstance(frequency, int) else number in frequency
        return self.validation if is_due else None


def feed_of(model: ModelLike, name: str, x: Any, y: Any, weight: Any, batch_size: int | None, steps: int | None) -> Feed:
    """The batches for `evaluate` or `predict`."""
    check_counts(name, 1, batch_size=batch_size, steps=steps)
    return Feed(batches.source(name, x, y, weight, batch_size, False, text=takes_text(model)), steps)


def on_device_of(model: ModelLike, name: str) -> contextlib.AbstractContextManager[None]:
    """A block on the device of the model's weights; on the current one if it has none yet.

    Args:
        model: whose weights.
        name: of the method that is called.

    Raises:
        InvalidArgumentError: if a `with tf.device` block around it names another one.
    """
    home = next((one.device for one in model.collect_contents().variables if isinstance(one, Weight)), None)
    if home is None or home == current_device():
        return contextlib.nullcontext()
    if chosen_device() is not None:
        raise InvalidArgumentError(
            f"{name}: the weights of model '{model.name}' are on {home}, and the block around it says {current_device()}. "
            f"Leave the block out, or make the model within it: weights stay where they are made. Another model takes them "
            "over by set_weights(model.get_weights())."
        )
    return device(home)
