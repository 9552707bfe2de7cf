"""Optimizer: what all optimizers share around their formula.

Key idea: a subclass is its formula, a pure function of gradient, value and slots that returns new values. Everything is
computed before anything is assigned, so a step that fails leaves the model as it was. Slots are made per Variable, so any
subset of Variables may be updated. Next: `sgd.py`, `adam.py`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays import namespace
from ...core import Tensor, Variable
from ...errors import ShapeError
from ...functions.publish import tensor
from ...module import snake_case
from ...types import Array
from ..config import floatx
from ..names import auto_name
from .blocks import stepped


class Optimizer:
    """Base class.

    The order within a step: gradients that are None are left out, clipping, weight decay w -= w * weight_decay * lr, the
    formula, constraints, iterations += 1. `t` in formulas is iterations + 1.

    Args:
        learning_rate: a float, a function of the iteration (a schedule), or a function without arguments.
        weight_decay: decoupled from the gradient; None for none.
        clipnorm: largest Euclidean norm of each gradient.
        clipvalue: largest absolute value of each element.
        global_clipnorm: largest Euclidean norm of all gradients together. At most one of the three.
        name: shown in messages.

    Raises:
        ValueError: for a learning rate that is no float, or two ways of clipping.
    """

    slot_names: tuple[str, ...] = ()
    elementwise = False
    """Whether the formula works on each element by itself; then large arrays may be handed to it in pieces."""

    def __init__(
        self,
        learning_rate: Any = 0.01,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {unknown}")
        limits = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        chosen = {key: value for key, value in limits.items() if value is not None}
        if len(chosen) > 1 or any(value <= 0 for value in chosen.values()):
            raise ValueError(
                f"{type(self).__name__}: give at most one of clipnorm, clipvalue and global_clipnorm, above 0; found {chosen}."
            )
        self.name = name or auto_name(snake_case(type(self).__name__))
        self.weight_decay, self.clipnorm, self.clipvalue, self.global_clipnorm = (
            weight_decay,
            clipnorm,
            clipvalue,
            global_clipnorm,
        )
        self._undecayed: list[Any] = []
        self.iterations = Variable(np.int64(0), trainable=False, name="iteration")
        self._slots: dict[int, tuple[Variable, list[Variable]]] = {}
        if isinstance(learning_rate, (float, np.floating)):
            self._learning_rate: Any = Variable(float(learning_rate), trainable=False, name="learning_rate", dtype=floatx())
        elif callable(learning_rate):
            self._learning_rate = learning_rate
        else:
            raise ValueError(
                f"Argument `learning_rate` should be float, or an instance of LearningRateSchedule, or a callable. Received "
                f"instead: learning_rate={learning_rate!r}."
            )

    # Learning rate and state -------------------------------------------------------------------------------------------

    @property
    def learning_rate(self) -> Any:
        """The learning rate: a Variable, or the present value of a schedule."""
        return self._learning_rate if isinstance(self._learning_rate, Variable) else self._scheduled()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if not isinstance(self._learning_rate, Variable):
            if callable(value):
                self._learning_rate = value
                return
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` or a callable as its `learning_rate`, so its "
                "learning rate cannot be set to a number. Assign another schedule, or make the optimizer with a float."
            )
        if callable(value) and not hasattr(value, "key"):
            self._learning_rate = value
        else:
            self._learning_rate.assign(value)

    lr = learning_rate

    def _scheduled(self) -> Any:
        """The schedule at the present iteration; a function without arguments is just called."""
        schedule = self._learning_rate
        code = getattr(schedule, "__code__", None)
        takes_none = code is not None and code.co_argcount == (1 if hasattr(schedule, "__self__") else 0)
        return tensor(schedule() if takes_none else schedule(self.iterations.value()))

    @property
    def built(self) -> bool:
        """Whether slots exist."""
        return bool(self._slots)

    @property
    def variables(self) -> list[Variable]:
        """Iteration, learning rate (unless scheduled), then the slots, Variable by Variable."""
        own = [self.iterations]
        if isinstance(self._learning_rate, Variable):
            own.append(self._learning_rate)
        return own + [slot for _, slots in self._slots.values() for slot in slots]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of Variables that have none yet."""
        for variable in variables:
            if variable.key not in self._slots:
                slots = [self.make_slot(name, variable) for name in self.slot_names]
                self._slots[variable.key] = (variable, slots)

    def make_slot(self, name: str, variable: Variable) -> Variable:
        """A slot for a Variable: zeros like it."""
        path = getattr(variable, "path", None) or variable.name.removesuffix(":0")
        zeros = namespace(variable._array).zeros_like(variable._array)
        return Variable(zeros, trainable=False, name=f"{path.replace('/', '_')}_{name}")

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Leave Variables out of weight decay: by object, or by a regular expression found in their name.

        Raises:
            ValueError: after the first step.
        """
        if self._slots:
            raise ValueError("`exclude_from_weight_decay()` can only be configured before the optimizer is built.")
        keys = {variable.key for variable in var_list or ()}
        patterns = [re.compile(name) for name in var_names or ()]
        self._undecayed.append(lambda variable: variable.key in keys or any(p.search(variable.name) for p in patterns))

    # The step ----------------------------------------------------------------------------------------------------------

    def begin_step(self, t: int, learning_rate: float) -> Any:
        """Numbers that the formula needs and that are the same for all Variables."""
        return learning_rate

    def formula(self, step: Any, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        """New value and new slots. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement formula(step, gradient, value, *slots).")

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Variable:
        """Update Variables by pairs of gradient and Variable.

        Returns:
            The iteration counter.

        Raises:
            ValueError: if all gradients are None, or a Variable is unknown to an optimizer that was built.
            ShapeError: if a gradient has another shape than its Variable.
        """
        pairs = list(grads_and_vars)
        return self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Variable:
        """Update Variables, all those it was built for by default. As `apply_gradients`."""
        if trainable_variables is None:
            trainable_variables = [variable for variable, _ in self._slots.values()]
        gradients, variables = self._paired(list(grads), list(trainable_variables))
        if not self._slots:
            self.build(trainable_variables)
        unknown = [variable for variable in variables if variable.key not in self._slots]
        if unknown:
            raise ValueError(
                f"Unknown variable: {unknown[0]!r}. This optimizer can only be called for the variables it was originally "
                "built with. When working with a new set of variables, you should recreate a new optimizer instance, or call "
                "optimizer.build(variables) to add slots for them."
            )
        gradients = self._clipped(gradients)
        rate = float(self.learning_rate)
        step = self.begin_step(int(self.iterations._array) + 1, rate)
        decay = None if self.weight_decay is None else self.weight_decay * rate
        updates: list[tuple[Variable, Array]] = []
        with np.errstate(all="ignore"):
            for gradient, variable in zip(gradients, variables, strict=True):
                updates += self._updated(step, decay, gradient, variable)
            updates = [(variable, _constrained(variable, array)) for variable, array in updates]
        self._commit([*updates, (self.iterations, self.iterations._array + 1)])
        return self.iterations

    @staticmethod
    def _commit(updates: list[tuple[Variable, Array]]) -> None:
        """Let all Variables hold their new arrays; an interrupt on the way gives them all the old ones back."""
        before = [variable._array for variable, _ in updates]
        try:
            for variable, array in updates:
                variable.exchange(array)
        except BaseException:
            for (variable, _), array in zip(updates, before, strict=True):
                variable._array, variable._spare = array, None
            raise

    def _paired(self, grads: list[Any], variables: list[Variable]) -> tuple[list[Array], list[Variable]]:
        """Arrays of the gradients that are there, with their Variables, checked."""
        if len(grads) != len(variables):
            raise ValueError(
                f"apply: {len(grads)} gradients for {len(variables)} variables; give one for each, None to leave one out."
            )
        if len({variable.key for variable in variables}) < len(variables):
            raise ValueError(f"apply: a variable is given twice among {_names(variables)}. Add its gradients and give it once.")
        missing = [variable for gradient, variable in zip(grads, variables, strict=True) if gradient is None]
        kept = [(gradient, variable) for gradient, variable in zip(grads, variables, strict=True) if gradient is not None]
        if not kept:
            raise ValueError(f"No gradients provided for any variable. Variables: {_names(variables) or 'none'}.")
        if missing:
            warnings.warn(f"Gradients do not exist for variables {_names(missing)} when minimizing the loss.", stacklevel=4)
        for gradient, variable in kept:
            if tuple(gradient.shape) != variable._array.shape:
                raise ShapeError(
                    f"apply: the gradient of '{_names([variable])}' has shape {tuple(gradient.shape)}, "
                    f"the variable {tuple(variable.shape)}."
                )
        return [_array(gradient, variable) for gradient, variable in kept], [variable for _, variable in kept]

    def _clipped(self, gradients: list[Array]) -> list[Array]:
        """Gradients limited in one of the three ways.

        clipnorm: g * c / max(|g|, c); global_clipnorm: g * c / max(|G|, c) with one norm over all; clipvalue: elementwise.
        """
        if self.clipvalue is not None:
            low, high = -self.clipvalue, self.clipvalue
            return [gradient.clip(low, high) for gradient in gradients]
        if self.clipnorm is not None:
            return [gradient * (self.clipnorm / max(_norm([gradient]), self.clipnorm)) for gradient in gradients]
        if self.global_clipnorm is not None:
            norm = _norm(gradients)
            factor = self.global_clipnorm / max(norm, self.global_clipnorm) if math.isfinite(norm) else math.nan
            return [gradient * factor for gradient in gradients]
        return gradients

    def _updated(self, step: Any, decay: float | None, gradient: Array, variable: Variable) -> list[tuple[Variable, Array]]:
        """The new arrays of one Variable and its slots."""
        shrink = decay is not None and not any(excluded(variable) for excluded in self._undecayed)

        def formula(g: Array, w: Array, *slots: Array) -> tuple[Array, ...]:
            return self.formula(step, g, w - w * decay if shrink else w, *slots)

        targets = [variable, *self._slots[variable.key][1]]
        if self.elementwise:
            return list(zip(targets, stepped(formula, targets, gradient), strict=True))
        return list(zip(targets, formula(gradient, *[target._array for target in targets]), strict=True))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        rate = self._learning_rate
        config: dict[str, Any] = {
            "name": self.name,
            "learning_rate": float(rate) if isinstance(rate, Variable) else rate,
        }
        for key in ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm"):
            config[key] = getattr(self, key)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Optimizer:
        """An optimizer from `get_config`."""
        return cls(**config)


def _names(variables: Iterable[Variable]) -> str:
    """Paths of weights, names of other Variables."""
    return ", ".join(getattr(variable, "path", variable.name) for variable in variables)


def _array(gradient: Any, variable: Variable) -> Array:
    """A gradient as an array of its Variable's dtype."""
    array = gradient._array if isinstance(gradient, Tensor) else tensor(gradient)._array
    return array if array.dtype == variable._array.dtype else array.astype(variable._array.dtype)


def _constrained(variable: Variable, array: Array) -> Array:
    """A new value within the Variable's constraint."""
    if variable.constraint is None:
        return array
    projected = variable._convert(variable.constraint(Tensor(array)))
    if projected.shape != array.shape:
        raise ShapeError(
            f"apply: the constraint of '{_names([variable])}' turned shape {array.shape} into "
            f"{projected.shape}; it must keep the shape."
        )
    return projected


def _norm(gradients: Sequence[Array]) -> float:
    """The Euclidean norm of all elements together."""
    return math.sqrt(sum(float((gradient * gradient).sum()) for gradient in gradients))
