"""Callbacks that watch a value of the logs, such as EarlyStopping and that of Optuna, and those that set the learning rate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.warnings import warn_caller
from ...errors import kind_of
from ...extras import imported
from ..arguments import made_with_numpy
from .callback import Callback, Logs, Remembering, tell


class Monitor(Remembering):
    """A callback that watches a value of the logs: direction ('auto' asks the metric), least improvement, best value so far."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0, best: float | None = None) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode must be 'auto', 'min' or 'max', found {mode!r}.")
        self.monitor, self.mode, self.min_delta, self.best = monitor, mode, abs(min_delta), best

    def is_better(self, value: float, reference: float | None) -> bool:
        """True if a value beats another by more than `min_delta`; NaN beats nothing, and every other number beats None."""
        direction = self.direction()
        if reference is None:
            return not math.isnan(value)
        return value - self.min_delta > reference if direction == "max" else value + self.min_delta < reference

    def is_best(self, value: float) -> bool:
        """True if a value beats the best so far; it is then kept as the best."""
        better = self.is_better(value, self.best)
        if better:
            self.best = value
        return better

    def direction(self) -> str:
        """'min' or 'max'; ValueError if the metric does not say."""
        if self.mode != "auto":
            return self.mode
        found = self.model.metric_direction(self.monitor.removeprefix("val_"))
        if found is None:
            raise ValueError(
                f"{type(self).__name__}: monitor={self.monitor!r} names no metric that says whether more or less is better. "
                "Pass mode='max' or mode='min'."
            )
        self.mode = found
        return found

    @property
    def monitor_op(self) -> Any:
        """`np.greater` or `np.less`: whether more or less is better. None until the model is known, for 'auto'."""
        if self.mode == "auto" and self.model is None:
            return None
        return np.greater if self.direction() == "max" else np.less

    def value(self, logs: Logs | None) -> Any:
        """The value in the logs; None, with a warning, if there is none."""
        found = (logs or {}).get(self.monitor)
        if found is None:
            warn_caller(
                f"{type(self).__name__}: {self.monitor!r} is not in the logs. There are: {', '.join(logs or ()) or 'none'}."
            )
        return found


@made_with_numpy
class EarlyStopping(Monitor):
    """Stops training when a value has not become better for some epochs.

    Args:
        monitor: the value in the logs to watch.
        min_delta: by how much it must be better to count.
        patience: epochs without improvement after which to stop; 0 and 1 both stop at the first one.
        verbose: 1 to say so.
        mode: 'min', 'max' or 'auto'.
        baseline: an improvement counts only if it is also better than this.
        restore_best_weights: whether the weights of the best epoch are put back at the end of training, stopped or not.
        start_from_epoch: epochs before it are not looked at.

    Attributes:
        best, best_epoch: the best value and its epoch.
        wait: epochs since the last improvement.
        stopped_epoch: where it stopped; 0 if it did not.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    >>> model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    >>> stop = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=2)
    >>> model.fit([[1.0]], [[1.0]], epochs=100, callbacks=[stop], verbose=0).epoch
    [0, 1, 2]
    """

    remembered = ("wait", "stopped_epoch", "best", "best_epoch", "best_weights")

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self._forget()

    def _forget(self) -> None:
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = None
        self.best_weights: list[Any] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start anew, so that the object can serve again."""
        self._forget()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        current = self.value(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self.is_best(current):
            self.best_epoch = epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.is_better(current, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            tell(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                tell(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


def learning_rates(optimizer: Any, which: str = "optimizers") -> dict[str, Any]:
    """The optimizers within by the name under which their learning rate is logged; 'leaders' are those that may be set."""
    several = getattr(optimizer, which, None)
    return {f"learning_rate_{one.name}": one for one in several} if several else {"learning_rate": optimizer}


def _log(logs: Any, optimizer: Any) -> None:
    """Add the present learning rates to the logs of an epoch."""
    if logs is not None:
        logs.update({name: float(one.learning_rate) for name, one in learning_rates(optimizer).items()})


@made_with_numpy
class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of each epoch, and logs it.

    Args:
        schedule: `schedule(epoch, learning_rate)`, or `schedule(epoch)`, gives the new one: a float, or a scalar Tensor or
            array of a float dtype.
        verbose: 1 to say so.

    Raises:
        ValueError: at the beginning of an epoch, if the schedule gives anything else.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    >>> halve = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    >>> model.fit([[1.0]], [[1.0]], epochs=3, callbacks=[halve], verbose=0).history["learning_rate"]
    [0.25, 0.125, 0.0625]
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose
        self._takes_rate = _takes_two(schedule)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        for name, optimizer in learning_rates(self.model.optimizer, "leaders").items():
            found = self.schedule(epoch, float(optimizer.learning_rate)) if self._takes_rate else self.schedule(epoch)
            if isinstance(found, int) or np.ndim(found) or np.asarray(found).dtype.kind != "f":
                raise ValueError(f"The output of the `schedule` function should be a float. Got: {found!r} at epoch {epoch}.")
            optimizer.learning_rate = rate = float(found)
            if self.verbose:
                tell(f"Epoch {epoch + 1}: LearningRateScheduler setting {name.replace('_', ' ', 1)} to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        _log(logs, self.model.optimizer)


def _takes_two(schedule: Callable[..., Any]) -> bool:
    """True if a schedule takes the present rate as well as the epoch."""
    try:
        inspect.signature(schedule).bind(0, 0.0)
    except TypeError:
        return False
    except ValueError:  # a function in C that does not tell
        return True
    return True


@made_with_numpy
class ReduceLROnPlateau(Monitor):
    """Makes the learning rate smaller when a value has not become better for some epochs, and logs it.

    Args:
        monitor: the value in the logs to watch.
        factor: the learning rate is multiplied by it; below 1.
        patience: epochs without improvement after which to do so.
        verbose: 1 to say so.
        mode: 'min', 'max' or 'auto'.
        min_delta: by how much the value must be better to count.
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the learning rate does not fall below it.

    Raises:
        ValueError: for a factor of 1 or more.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    >>> model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    >>> reduce = tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)
    >>> model.fit([[1.0]], [[1.0]], epochs=4, callbacks=[reduce], verbose=0).history["learning_rate"]
    [0.5, 0.5, 0.5, 0.25]
    """

    remembered = ("best", "wait", "cooldown_counter")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}.")
        self.factor, self.patience, self.verbose, self.cooldown, self.min_lr = factor, patience, verbose, cooldown, min_lr
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start anew, so that the object can serve again."""
        self.best = None
        self.wait = self.cooldown_counter = 0

    def in_cooldown(self) -> bool:
        """True during the `cooldown` epochs after a reduction, which do not count toward `patience`."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        _log(logs, self.model.optimizer)
        current = self.value(logs)
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_best(current):
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and self._reduced(epoch):
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _reduced(self, epoch: int) -> bool:
        """Reduce every learning rate; True if any was above the lower limit."""
        reduced = False
        for name, optimizer in learning_rates(self.model.optimizer, "leaders").items():
            old = float(optimizer.learning_rate)
            if old > np.float32(self.min_lr):
                optimizer.learning_rate = new = max(old * self.factor, self.min_lr)
                reduced = True
                if self.verbose:
                    tell(f"Epoch {epoch + 1}: ReduceLROnPlateau reducing {name.replace('_', ' ', 1)} to {new}.")
        return reduced


@made_with_numpy
class OptunaPruning(Callback):
    """Reports a value of the logs to a trial of Optuna after each epoch, and ends training if its pruner says so.

    Training ends as by `EarlyStopping`: the epoch and all other callbacks come to their end, files are closed, and then `fit`
    raises `optuna.TrialPruned`, which the study takes for a pruned trial. A NaN or an infinity prunes whatever the pruner says.

    Args:
        trial: what the objective was given. Its study has one objective.
        monitor: the value in the logs. In epochs without validation, where `validation_freq` leaves some out, nothing is asked.

    Raises:
        MissingExtraError: without the package `optuna`.
        TypeError: for what is no trial, or no name.
        ValueError: in `fit`, if the value is not in the logs, or if the study minimizes what should be large, or the reverse.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    ...     model.compile(tf.keras.optimizers.SGD(trial.suggest_float("rate", 0.1, 2.0)), "mse")
    ...     pruning = tf.keras.callbacks.OptunaPruning(trial, "loss")
    ...     return model.fit([[1.0]], [[3.0]], epochs=4, callbacks=[pruning], verbose=0).history["loss"][-1]
    >>> study = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=100.0))
    >>> study.enqueue_trial({"rate": 0.2})
    >>> study.enqueue_trial({"rate": 2.0})
    >>> study.optimize(objective, n_trials=2)
    >>> [trial.state.name for trial in study.trials], len(study.trials[1].intermediate_values)
    (['COMPLETE', 'PRUNED'], 2)

    Optuna: Akiba et al., "Optuna: A Next-generation Hyperparameter Optimization Framework", KDD 2019.
    """

    runs_last = True

    def __init__(self, trial: Any, monitor: str = "val_loss") -> None:
        optuna = imported("optuna", "OptunaPruning needs optuna")
        if not isinstance(trial, optuna.trial.BaseTrial):
            raise TypeError(f"OptunaPruning: trial should be what Optuna gave to the objective, found {kind_of(trial)}.")
        if not isinstance(monitor, str):
            raise TypeError(f"OptunaPruning: monitor should be a name in the logs, found {kind_of(monitor)}.")
        directions = [one.name for one in getattr(getattr(trial, "study", None), "directions", ())]
        if len(directions) > 1:
            raise ValueError(f"OptunaPruning: the study has {len(directions)} objectives, and Optuna prunes by one only.")
        self.trial, self.monitor = trial, monitor
        self._goal = {"MINIMIZE": "min", "MAXIMIZE": "max"}.get(directions[0] if directions else "")
        self._pruned: Exception | None = None
        self._found: bool | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Nothing was reported yet."""
        self._pruned = self._found = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Report, and stop training if the trial is to be pruned."""
        import optuna

        logs = logs or {}
        if self.monitor not in logs:
            validated = any(name.startswith("val_") for name in logs)
            if validated or not self.monitor.startswith("val_"):
                raise ValueError(f"OptunaPruning: {self.monitor!r} is not in the logs. There are: {', '.join(logs) or 'none'}.")
            self._found = self._found or False
            return
        self._check_direction()
        self._found, value = True, float(logs[self.monitor])
        self.trial.report(value, epoch)
        if not math.isfinite(value) or self.trial.should_prune():
            self._pruned = optuna.TrialPruned(f"Pruned after epoch {epoch + 1}, with {self.monitor}={value:.4g}.")
            self.model.stop_training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Raise what the study takes for a pruned trial; after the other callbacks, since this one runs last."""
        if self._pruned is not None:
            raise self._pruned
        if self._found is False:
            raise ValueError(
                f"OptunaPruning: no epoch was validated, so there was no {self.monitor!r} to report. Give validation_data or "
                "validation_split to fit, or monitor='loss'."
            )

    def _check_direction(self) -> None:
        """Refuse a study whose pruner would end the best trials."""
        better = self.model.metric_direction(self.monitor.removeprefix("val_"))
        if self._goal and better and better != self._goal:
            raise ValueError(
                f"OptunaPruning: of {self.monitor!r} {'more' if better == 'max' else 'less'} is better, but the study has the "
                f"direction {self._goal}imize, so its pruner would end the best trials. Monitor what the objective returns, "
                f"or use optuna.create_study(direction='{better}imize')."
            )
