"""The options that all optimizers share, the learning rate, and limits on gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import markup
from ...core import Variable, warn_caller
from ..arguments import as_call, as_text, unrecognized
from ..config import floatx
from .state import host_variable

COMMON = (
    *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum"),
    *("ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps"),
)
"""Names of the common options, in the order in which a configuration lists them."""


def check(optimizer: Any, unknown: dict[str, Any]) -> None:
    """Refuse options out of their range."""
    kind = type(optimizer).__name__
    if unknown.pop("decay", None):
        warn_caller(f"{kind}: decay is left out, as in Keras; give learning_rate a schedule.")
    if unknown:
        raise unrecognized(optimizer, unknown, (*COMMON, "name"))
    limits = {name: getattr(optimizer, name) for name in ("clipnorm", "clipvalue", "global_clipnorm")}
    chosen = {name: value for name, value in limits.items() if value is not None}
    if len(chosen) > 1 or any(value <= 0 for value in chosen.values()):
        raise ValueError(f"{kind}: give at most one of clipnorm, clipvalue and global_clipnorm, above 0; found {chosen}.")
    if not 0.0 <= optimizer.ema_momentum <= 1.0:
        raise ValueError(f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={optimizer.ema_momentum}")
    for name, least in (("ema_overwrite_frequency", 1), ("gradient_accumulation_steps", 2)):
        count = getattr(optimizer, name)
        if count is not None and (not isinstance(count, int) or count < least):
            raise ValueError(f"`{name}` must be an integer >= {least} or None. Received: {name}={count!r}")
    scale = optimizer.loss_scale_factor
    if scale is not None and not scale > 0:
        raise ValueError(f"`loss_scale_factor` must be above 0. Received: loss_scale_factor={scale}")


def rate_from(owner: str, learning_rate: float | Callable[..., Any]) -> Any:
    """A Variable for a number; a schedule or another function as it is."""
    if isinstance(learning_rate, (float, np.floating)):
        return host_variable(owner, learning_rate, "learning_rate", floatx())
    if callable(learning_rate):
        return learning_rate
    raise ValueError(
        f"Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a callable. Received "
        f"instead: learning_rate={learning_rate!r}."
    )


def changed_rate(held: Any, value: Any) -> Any:
    """The new learning rate after an assignment: another schedule, or the same Variable with another value."""
    if callable(value) and not hasattr(value, "key"):
        return value
    if not isinstance(held, Variable):
        raise TypeError(
            "This optimizer was created with a `LearningRateSchedule` or a callable as its `learning_rate`, so its "
            "learning rate cannot be set to a number. Assign another schedule, or make the optimizer with a float."
        )
    held.assign(value)
    return held


def as_call_with_rate(optimizer: Any) -> str:
    """An optimizer as the call that makes another one like it; the learning rate is always given."""
    rate = optimizer._learning_rate
    return as_call(optimizer, learning_rate=float(rate) if isinstance(rate, Variable) else rate)


def as_html(optimizer: Any) -> str:
    """The HTML that a notebook shows: the call, then the options of the class and the number of steps taken."""
    config = optimizer.get_config()
    own = {name: config[name] for name in config if name not in (*COMMON, "name") and type(config[name]) is not dict}
    told = {"learning_rate": float(optimizer.learning_rate)} | own | {"iterations": int(optimizer.iterations)}
    rows = [[name, as_text(value)] for name, value in told.items()]
    return markup.table(["option", "value"], rows, caption=repr(optimizer))


def needs_nothing(function: Callable[..., Any]) -> bool:
    """True if a function can be called without arguments."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True
