"""Optuna's trials, ended early: the callback that reports to a trial and asks whether to go on."""

from __future__ import annotations

import math
from typing import Any

from ...errors import MissingExtraError, kind_of
from ..arguments import made_with_numpy
from ..logs import Logs
from .callback import Callback


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
        try:
            import optuna
        except ImportError as error:
            raise MissingExtraError("OptunaPruning needs optuna: pip install 'minikeras[optuna]', or optuna alone.") from error
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
