"""The step of a first-order optimizer, written once: on arrays it computes, on the elements of a trace it becomes a program.

The order: loss scale, accumulation, clipping, weight decay, formula, moving average. `StepFormula` has it for one Variable,
`carry_out` puts before it what looks at several. Flags that are truth values of Python choose a branch, so that nothing is
computed twice; where a program finds them anew in each run, both branches are computed and one is chosen.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import Variable
from ...core.arrays import namespace, to_numpy
from ...core.effects import State, effect
from ...types import Array
from .state import BESIDE, Change, SlotState

Flags = Mapping[str, Any]
"""Numbers of a step beside those of its formula, as far as it needs them:

updates     whether the gradients that were accumulated are used now
momentum    of the moving averages
overwrites  whether weights become their averages
scale       that gradients are divided by, if a `LossScaleOptimizer` is around the optimizer
decay       weight decay times learning rate
missing     the number of gradient elements that are not finite
norm        the sum of the squares of all gradients
"""


# Parts of the step -------------------------------------------------------------------------------------------------------


def decayed(weight: Array, factor: Any) -> Array:
    """A weight after decoupled weight decay, w <- w - w * factor, with factor = weight_decay * lr.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2, line 12, as a step of its own.
    """
    return weight - weight * factor


def averaged(average: Array, weight: Array, momentum: Any) -> Array:
    """A moving average, a <- momentum * a + (1 - momentum) * w."""
    return average * momentum + weight * (1.0 - momentum)


def clipped_by_value(gradient: Array, limit: float) -> Array:
    """g <- min(max(g, -limit), limit), element by element."""
    xp = namespace(gradient)
    return xp.minimum(xp.maximum(gradient, -limit), limit)


def clipped_by_norm(gradient: Array, limit: float) -> Array:
    """g <- g * limit / max(|g|, limit), with the Euclidean norm of the gradient."""
    return clipped_by_squares(gradient, (gradient * gradient).sum(), limit)


def clipped_by_squares(gradient: Array, squares: Array, limit: Any) -> Array:
    """As `clipped_by_norm`, given the square of the norm."""
    return scaled(gradient, limit / _at_least(squares, limit)[1])


def clipped_by_global_norm(gradient: Array, squares: Array, limit: Any) -> Array:
    """g <- g * limit / max(|G|, limit), with the norm of all gradients together, whose square is `squares`; NaN if that is not
    finite.

    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (2013), algorithm 1.
    """
    norm, divisor = _at_least(squares, limit)
    return scaled(gradient, limit / divisor + (norm - norm))


def scaled(gradient: Array, factor: Array) -> Array:
    """A gradient times a factor, in its own dtype."""
    return (gradient * factor).astype(gradient.dtype, copy=False)


def _at_least(squares: Array, limit: Any) -> tuple[Array, Array]:
    """A norm, given its square, and the norm but not less than the limit."""
    xp = namespace(squares)
    norm = xp.sqrt(squares)
    return norm, xp.maximum(norm, limit)


def chosen(flag: Any, now: Any, then: Any) -> Any:
    """One of two values: a branch of Python for a bool, a select for a flag that a program computes."""
    return (now if flag else then) if type(flag) is bool else np.where(flag, now, then)


# The step of one Variable ------------------------------------------------------------------------------------------------


def columns_of(state: SlotState) -> list[Variable]:
    """The Variables that a step changes for one Variable: itself, the slots of its formula, its accumulator and its average."""
    return [*state.targets, *[state.slots[name] for name in BESIDE if name in state.slots]]


class StepFormula:
    """The step of one Variable, on its elements or on the whole arrays.

    Args:
        targets: the number of columns that are the Variable and its formula's slots.
        clips: whether gradients are still to be clipped.
    """

    __slots__ = ("clips", "targets")

    def __init__(self, targets: int, clips: bool = True) -> None:
        self.targets, self.clips = targets, clips

    def __call__(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> tuple[Any, ...]:
        """New values of the columns, see `columns_of`.

        Args:
            own: the optimizer.
            step: what its `begin_step` gave.
            known: further numbers.
            gradient, before: the gradient, None for none, and the values of the columns.
        """
        columns, updates = before[: self.targets], known.get("updates", True)
        gradient, total = self.incoming(own, known, gradient, before)
        new = columns
        if updates is not False and gradient is not None:
            gradient = self.clipped(own, known, gradient)
            weight = decayed(columns[0], known["decay"]) if "decay" in known else columns[0]
            new = own.formula(step, gradient, weight, *columns[1:])
        return self.finished(own, known, new, total, before)

    def incoming(self, own: Any, known: Flags, gradient: Any, before: Sequence[Any]) -> tuple[Any, Any]:
        """The gradient that is clipped next, and the sum of all gradients since the last update."""
        steps = own.gradient_accumulation_steps
        if "gathered" in known or gradient is None:
            return gradient, None if steps is None else before[self.targets]
        if "scale" in known:
            gradient = gradient / known["scale"]
        if own.loss_scale_factor is not None:
            gradient = gradient / own.loss_scale_factor
        if steps is None:
            return gradient, None
        total = gradient + before[self.targets]
        return total / steps, total

    def clipped(self, own: Any, known: Flags, gradient: Any) -> Any:
        """The gradient that the formula takes."""
        if own.clipvalue is not None:
            return clipped_by_value(gradient, own.clipvalue)
        if own.clipnorm is not None and self.clips:
            return clipped_by_norm(gradient, own.clipnorm)
        if own.global_clipnorm is not None and self.clips:
            return clipped_by_global_norm(gradient, known["norm"], own.global_clipnorm)
        return gradient

    def finished(self, own: Any, known: Flags, new: Sequence[Any], total: Any, before: Sequence[Any]) -> tuple[Any, ...]:
        """New values of the columns, given what the formula made of the first of them, and the sum of gradients."""
        updates = known.get("updates", True)
        new = [chosen(updates, now, then) for now, then in zip(new, before[: self.targets], strict=True)]
        if total is not None:
            new.append(chosen(updates, namespace(total).zeros_like(total) if updates is True else 0.0, total))
        if own.use_ema:
            average = averaged(before[-1], new[0], known["momentum"])
            new[0] = chosen(known.get("overwrites", False), average, new[0])
            new.append(average)
        if "missing" in known:
            new = [np.where(known["missing"] == 0, now, then) for now, then in zip(new, before, strict=True)]
        return tuple(new)

    def square(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
        """The square of the gradient that is clipped: the sum of all is 'norm'."""
        gradient, _ = self.incoming(own, known, gradient, before)
        return gradient * gradient

    def missing(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
        """0 for a gradient that is finite, else 1: the sum of all is 'missing'."""
        return (~np.isfinite(gradient)).astype(gradient.dtype)


def carry_out(on: Any, groups: Sequence[Any], gradients: Sequence[Any], sums: Mapping[str, str], known: Flags) -> None:
    """Carry out a step: first what looks at several elements, then the formula.

    Args:
        on: what computes, or writes a program: `total` gives the sum of what a method of the formula gives for all elements,
            `take` gives a group's Variables their new values.
        groups: of the Variables.
        gradients: of all Variables.
        sums: names of the sums that the formula needs, in their order, and the methods that give what is added up.
        known: sums that are known already.
    """
    for name, part in sums.items():
        known = {**known, name: on.total(groups, part, gradients, known)}
    for group in groups:
        on.take(group, gradients, known)


def stepping(optimizer: Any) -> Any:
    """The optimizer within a loss scale, else the optimizer itself."""
    return optimizer.inner_optimizer if optimizer.scales else optimizer


def shares_of(optimizer: Any, states: Sequence[SlotState]) -> Sequence[tuple[Any, Sequence[int]]]:
    """The optimizers whose formulas a step takes, each with the positions of its Variables."""
    inner = stepping(optimizer)
    divided = inner.divided(states)
    return [(inner, range(len(states)))] if divided is None else divided


def groups_alike(optimizer: Any, states: Sequence[SlotState], apart: bool = False) -> list[tuple[list[int], float]]:
    """The positions of Variables of one dtype, device and weight decay, or each `apart`; and that decay, 0 for none."""
    groups: dict[Any, tuple[list[int], float]] = {}
    for place, state in enumerate(states):
        array, decay = state.variable.array, state.decay(optimizer)
        key = place if apart else (array.dtype, namespace(array), decay)
        groups.setdefault(key, ([], decay))[0].append(place)
    return list(groups.values())


def clips_first(own: Any, scales: bool) -> bool:
    """True if nothing comes before the clipping of each gradient by its norm: it may be done, and rounded, by itself."""
    options = own.loss_scale_factor, own.gradient_accumulation_steps
    return own.clipnorm is not None and not scales and options == (None, None)


def changes_others(optimizer: Any) -> bool:
    """True if a step also changes slots of Variables without a gradient: averages and accumulators."""
    return optimizer.use_ema or optimizer.gradient_accumulation_steps is not None


# Numbers of the step -----------------------------------------------------------------------------------------------------


def flags_of(optimizer: Any, taken: int) -> dict[str, Any]:
    """The flags of a step, given the number of steps taken before: see `Flags`."""
    steps, every = optimizer.gradient_accumulation_steps, optimizer.ema_overwrite_frequency
    count = taken // (steps or 1)
    flags: dict[str, Any] = {} if steps is None else {"updates": (taken + 1) % steps == 0}
    if optimizer.use_ema:
        flags["momentum"] = optimizer.ema_momentum if count else 0.0
        if every is not None:
            flags["overwrites"] = (count + 1) % every == 0
    return flags


def numbers_of(inner: Any, taken: int, decays: Sequence[float], flags: Sequence[str], scale: float = 1.0) -> tuple[float, ...]:
    """The numbers of `begin_step`, flattened, then the products of weight decay and learning rate, then the flags.

    Args:
        inner: the optimizer.
        taken: the number of steps taken.
        decays: weight decays.
        flags: their names.
        scale: the divisor of gradients.
    """
    rate = inner._rate()
    step = inner.begin_step(taken // (inner.gradient_accumulation_steps or 1) + 1, rate)
    own = (step,) if type(step) is float else tuple(step)
    if not decays and not flags:
        return own
    known = {"scale": scale, **flags_of(inner, taken)}
    return (*own, *[decay * rate for decay in decays], *[float(known[name]) for name in flags])


def counted(optimizer: Any, owns: Iterable[Any]) -> list[Change]:
    """One step more for an optimizer, and for those whose formulas it has taken."""
    counters = {one.state.iterations.key: one.state.iterations for one in (stepping(optimizer), *owns)}
    return [(count, count.array + 1) for count in counters.values()]


present_rate = effect(
    "learning_rate", lambda *, optimizer: optimizer._scheduled().array, reads=(State.VARIABLES,), writes=(State.VARIABLES,)
)
"""The learning rate of a schedule, computed anew in each run."""


def all_finite(arrays: Sequence[Array]) -> bool:
    """True if no element is NaN or infinite; on a GPU, the one number that a step waits for."""
    finite = [namespace(array).isfinite(array).all() for array in arrays]
    return bool(to_numpy(functools.reduce(operator.and_, finite)))
