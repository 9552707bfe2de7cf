"""What an optimizer is told: its learning rate, the options that all optimizers share, and the way to write them down.

Key idea: the counter of steps and the learning rate stay in host memory whatever the device, so that reading them never waits
for a GPU. Next: `optimizer.py`, which keeps the slots and takes the steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ...arrays import device
from ...core import Variable
from ...core.changes import Watched, live
from ...functions.publish import tensor
from ...module import snake_case
from ...program.recorder import PLAIN
from ..arguments import with_options
from ..config import floatx
from ..names import auto_name
from ..weight import KerasVariable
from . import schedules


class Configuration(Watched):
    """Learning rate and common options of an optimizer; `Optimizer` describes them."""

    _passing = ("_learning_rate", "_slots", "_portioned", "_owner")
    """Rate and slots are looked up in each step, also in a recorded one."""
    settings: tuple[str, ...] = ()
    """Names of the constructor's arguments beyond the common ones, which are attributes too."""
    _common = (
        *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum"),
        *("ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps"),
    )

    def __init__(
        self,
        learning_rate: Any = 0.01,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        kind = type(self).__name__
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments passed to {kind}: {unknown}")
        limits = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        chosen = {key: value for key, value in limits.items() if value is not None}
        if len(chosen) > 1 or any(value <= 0 for value in chosen.values()):
            raise ValueError(f"{kind}: give at most one of clipnorm, clipvalue and global_clipnorm, above 0; found {chosen}.")
        if not 0.0 <= ema_momentum <= 1.0:
            raise ValueError(f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={ema_momentum}")
        _check_count("ema_overwrite_frequency", ema_overwrite_frequency, 1)
        _check_count("gradient_accumulation_steps", gradient_accumulation_steps, 2)
        if loss_scale_factor is not None and not loss_scale_factor > 0:
            raise ValueError(f"`loss_scale_factor` must be above 0. Received: loss_scale_factor={loss_scale_factor}")
        self.weight_decay, self.clipnorm, self.clipvalue = weight_decay, clipnorm, clipvalue
        self.global_clipnorm, self.loss_scale_factor = global_clipnorm, loss_scale_factor
        self.use_ema, self.ema_momentum, self.ema_overwrite_frequency = bool(use_ema), ema_momentum, ema_overwrite_frequency
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.name = name or auto_name(snake_case(kind))
        self._iterations = host_variable(np.int64(0), "iteration")
        if isinstance(learning_rate, (float, np.floating)):
            self._learning_rate: Any = host_variable(learning_rate, "learning_rate", floatx())
        elif callable(learning_rate):
            self._learning_rate = learning_rate
        else:
            raise ValueError(
                f"Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a callable. Received "
                f"instead: learning_rate={learning_rate!r}."
            )

    @property
    def iterations(self) -> Any:
        """How many updates were made: the counter itself, or with accumulation a Tensor, the counter // steps."""
        steps = self.gradient_accumulation_steps
        return self._iterations if steps is None else tensor(self._iterations.value() // steps)

    @property
    def learning_rate(self) -> Any:
        """The learning rate: a Variable, or the present value of a schedule as a Tensor."""
        return self._learning_rate if isinstance(self._learning_rate, Variable) else self._scheduled()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value) and not hasattr(value, "key"):
            self._learning_rate = value
        elif isinstance(self._learning_rate, Variable):
            self._learning_rate.assign(value)
        else:
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` or a callable as its `learning_rate`, so its "
                "learning rate cannot be set to a number. Assign another schedule, or make the optimizer with a float."
            )

    lr = learning_rate

    def _rate(self) -> float:
        """The present learning rate as a number."""
        held = self._learning_rate
        return float(held._array if isinstance(held, Variable) else self._scheduled())

    @live
    def _scheduled(self) -> Any:
        """The schedule at the number of steps taken, accumulating ones included; what needs no argument gets none."""
        schedule = self._learning_rate
        with device("CPU"):
            return tensor(schedule() if _needs_nothing(schedule) else schedule(self._iterations.value()))

    def scale_loss(self, loss: Any) -> Any:
        """The loss times `loss_scale_factor`, to be differentiated in its place; `apply` divides by it again."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def _plain_options(self) -> dict[str, Any]:
        """The options that are plain values, by name: what a recorded step takes for granted. The learning rate is none of
        them, and the name of an optimizer says nothing of its steps."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "name"}
        return {name: value for name, value in public.items() if type(value) in PLAIN}

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a schedule as `schedules.serialize` writes it."""
        rate = self._learning_rate
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = schedules.serialize(rate)
        elif isinstance(rate, Variable):
            rate = float(rate)
        return {"name": self.name, "learning_rate": rate} | {key: getattr(self, key) for key in self._common + self.settings}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """An optimizer from `get_config`."""
        rate = config.get("learning_rate")
        return cls(**(config | {"learning_rate": schedules.deserialize(rate)} if isinstance(rate, dict) else config))

    __repr__ = with_options


def host_variable(value: Any, name: str, dtype: Any = None) -> Variable:
    """A number that is kept in host memory and trained by nobody."""
    with device("CPU"):
        return KerasVariable(value, trainable=False, name=name, dtype=dtype)


def _needs_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True


def _check_count(name: str, value: Any, least: int) -> None:
    if value is not None and (not isinstance(value, int) or value < least):
        raise ValueError(f"`{name}` must be an integer >= {least} or None. Received: {name}={value!r}")
