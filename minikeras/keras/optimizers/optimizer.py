"""Optimizer: what all optimizers share around their formula.

Key idea: a subclass is its formula, a pure function of gradient, value and slots that returns new values. A step first computes
all that changes, as pairs of a Variable and its new array, and then binds all of it or nothing. Slots are made per Variable,
so updating any subset of them is the normal path. `apply` needs gradients only; a method that needs the loss as a function
says so in the signature of a method of its own beside `apply`, gathers such pairs, and shares `commit`.
Next: `sgd.py`, `adam.py`; then `slots.py` and `blocks.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays import namespace
from ...core import Primitive, Tensor, Variable
from ...core.dispatch import BOTTOM, current, perform
from ...errors import ShapeError
from ...functions.publish import tensor
from ...types import Array
from .blocks import Change as Change
from .blocks import Formula, Portion, portions
from .clipping import clipped_by_global_norm, clipped_by_norm, clipped_by_value
from .slots import Kept as Kept
from .slots import SlotKeeper, name_of, names_of


class Optimizer(SlotKeeper):
    """Base class.

    The order within a step: gradients that are None are left out, division by the loss scale, accumulation, clipping, weight
    decay w -= w * weight_decay * lr, the formula, the moving average, constraints, iterations += 1. `t` in formulas is
    iterations + 1; the learning rate is that of the old iteration.

    Args:
        learning_rate: a float, a schedule, a function of the number of steps taken, or a function without arguments.
        weight_decay: decoupled from the gradient; None for none.
        clipnorm: largest Euclidean norm of each gradient.
        clipvalue: largest absolute value of each element.
        global_clipnorm: largest Euclidean norm of all gradients together. At most one of the three.
        use_ema: keep a moving average of each weight, a <- ema_momentum * a + (1 - ema_momentum) * w, from the first update on.
            `finalize_variable_values` puts it in the place of the weights; `fit` calls that at its end.
        ema_momentum: see above, in [0, 1].
        ema_overwrite_frequency: let the weights be their averages after each so many updates; None for never.
        loss_scale_factor: gradients are divided by it; `scale_loss` multiplies the loss by it.
        gradient_accumulation_steps: update at every so-manieth step only, with the mean of the gradients since the last
            update, where a gradient that was None counts as zero. What a Variable gathered is dropped if it is not among those
            given with a gradient at the update. A schedule sees all steps; `iterations` and the formula's t count updates.
        name: shown in messages.

    Raises:
        ValueError: for a learning rate that is no float, or options out of their range.

    >>> import minikeras as tf
    >>> class SignDescent(tf.keras.optimizers.Optimizer):
    ...     def formula(self, step, gradient, value):
    ...         return (value - step * tf.sign(gradient).numpy(),)
    >>> w = tf.Variable(1.0)
    >>> _ = SignDescent(0.5).apply([tf.constant(-7.0)], [w])
    >>> print(w.numpy())
    1.5
    """

    needs_loss = False
    """Whether a step needs the loss as a function: `minimize(loss_fn, variables)` in place of `apply`."""
    elementwise = False
    """Whether the formula works on each element by itself; then large arrays may be handed to it in pieces, and small ones
    together."""

    def __init__(self, learning_rate: Any = 0.01, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self._portioned: tuple[list[Kept], list[Portion]] = [], []
        """The rows of the last step in portions, since the next step will most likely have the same."""

    def logs(self) -> dict[str, float]:
        """Numbers for the logs of training, by name."""
        return {}

    # What a subclass defines ---------------------------------------------------------------------------------------------

    def begin_step(self, t: int, learning_rate: float) -> Any:
        """Numbers that the formula needs and that are the same for all Variables."""
        return learning_rate

    def formula(self, step: Any, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        """New value and new slots. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement formula(step, gradient, value, *slots).")

    def end_step(self, step: Any) -> list[Change]:
        """What changes beside the Variables and their slots."""
        return []

    def decay_of(self, variable: Variable) -> float | None:
        """The weight decay of a Variable that is not excluded from it."""
        return self.weight_decay

    # The step ------------------------------------------------------------------------------------------------------------

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Any:
        """Update Variables by pairs of gradient and Variable; otherwise as `apply`."""
        grads, variables = _unzipped(grads_and_vars)
        return self.apply(grads, variables)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Any:
        """Update Variables by their gradients. If anything fails, nothing has changed.

        Steps that several threads take follow one another.

        Args:
            grads: one for each Variable; None leaves it out, with a warning.
            trainable_variables: any of those that the optimizer was built with; the first call builds it. None for all.

        Returns:
            The number of updates, `iterations`.

        Raises:
            ValueError: if all gradients are None, or a Variable is unknown to an optimizer that was built.
            ShapeError: if a gradient has another shape than its Variable.
        """
        before = self._slots
        if not before:
            self._update_lock.join(trainable_variables or ())
        lock = self._update_lock.acquire()
        try:
            arrays, rows = self.paired(grads, trainable_variables)
            if current() is BOTTOM:
                self.commit(self.changes(arrays, rows))
            else:
                self._announced(grads, [row.variable for row in rows], trainable_variables)
        except BaseException:
            self._slots = before
            raise
        finally:
            lock.release()
        return self.iterations

    def _announced(self, grads: Sequence[Any], present: list[Variable], given: Sequence[Variable] | None) -> None:
        """A step that those who watch see as one operation: at each repetition it looks up numbers and slots anew."""
        variables = [kept.variable for kept in self._slots.values()] if given is None else given
        chosen = {variable.key for variable in present}
        inputs = [tensor(g) for g, variable in zip(grads, variables, strict=True) if variable.key in chosen and g is not None]
        perform(optimizer_step, inputs, {"optimizer": self, "variables": present})

    def paired(self, grads: Sequence[Any], variables: Sequence[Variable] | None) -> tuple[list[Array], list[Kept]]:
        """Arrays of the gradients that are there, and what is kept for their Variables; both checked."""
        if variables is None:
            if not self.built:
                raise ValueError(f"apply: {type(self).__name__} is not built yet; say which variables the gradients belong to.")
            variables = [kept.variable for kept in self._slots.values()]
        if len(grads) != len(variables):
            raise ValueError(
                f"apply: {len(grads)} gradients for {len(variables)} variables; give one for each, None to leave one out."
            )
        arrays: list[Array] = []
        present: list[Variable] = []
        for gradient, variable in zip(grads, variables, strict=True):
            if not isinstance(variable, Variable):
                raise TypeError(_no_variable(gradient, variable))
            if gradient is None:
                continue
            array = gradient._array if type(gradient) is Tensor else tensor(gradient)._array
            value = variable._array
            if array.shape != value.shape:
                raise ShapeError(
                    f"apply: the gradient of '{name_of(variable)}' has shape {array.shape}, the variable {value.shape}."
                )
            arrays.append(array if array.dtype == value.dtype else array.astype(value.dtype))
            present.append(variable)
        if len(present) < len(variables) or not present:
            _report_missing(grads, variables)
        if not self._slots:
            self.build(variables)
        known, keys = self._slots, [variable.key for variable in present]
        if len(set(keys)) < len(keys):
            raise ValueError(f"apply: a variable is given twice among {names_of(present)}. Add its gradients and give it once.")
        for variable in present:
            if variable.key not in known:
                raise ValueError(
                    f"Unknown variable: {variable!r}. This optimizer can only be called for the variables it was originally "
                    "built with. When working with a new set of variables, you should recreate a new optimizer instance, or "
                    "call optimizer.build(variables) to add slots for them."
                )
        return arrays, [known[key] for key in keys]

    def changes(self, gradients: list[Array], rows: list[Kept]) -> list[Change]:
        """All that one step changes. Nothing is assigned."""
        count, steps = int(self._iterations._array), self.gradient_accumulation_steps
        changes: list[Change] = []
        with np.errstate(all="ignore"):
            if self.loss_scale_factor is not None:
                gradients = [gradient / self.loss_scale_factor for gradient in gradients]
            if steps is not None:
                gradients, changes = self._accumulated(gradients, rows, steps, (count + 1) % steps == 0)
                count //= steps
            if gradients:
                changes += self._updates(self._clipped(gradients), rows, count + 1)
            if self.use_ema:
                changes += self._averages(changes, count)
            changes = [_constrained(*change) if change[0].constraint is not None else change for change in changes]
        changes.append((self._iterations, self._iterations._array + 1))
        return changes

    def _accumulated(
        self, gradients: list[Array], rows: list[Kept], steps: int, update: bool
    ) -> tuple[list[Array], list[Change]]:
        """At an update the mean gradients, and accumulators set to zero; else no gradients, and accumulators added to."""
        slots = [row.slots["gradient_accumulator"] for row in rows]
        sums = [gradient + slot._array for gradient, slot in zip(gradients, slots, strict=True)]
        if not update:
            return [], list(zip(slots, sums, strict=True))
        slots = [row.slots["gradient_accumulator"] for row in self._slots.values()]
        return [gathered / steps for gathered in sums], [
            (slot, namespace(slot._array).zeros_like(slot._array)) for slot in slots
        ]

    def _clipped(self, gradients: list[Array]) -> list[Array]:
        """Gradients limited in one of the three ways."""
        if self.clipnorm is not None:
            return clipped_by_norm(gradients, self.clipnorm)
        if self.global_clipnorm is not None:
            return clipped_by_global_norm(gradients, self.global_clipnorm)
        if self.clipvalue is not None:
            return clipped_by_value(gradients, self.clipvalue)
        return gradients

    def _updates(self, gradients: list[Array], rows: list[Kept], t: int) -> list[Change]:
        """Weight decay and the formula: new values of the Variables and of their slots."""
        rate = self._rate()
        step = self.begin_step(t, rate)
        plain = functools.partial(self.formula, step)
        changes = self.end_step(step)
        for portion in self._portions(rows):
            first = rows[portion.places[0]]
            decay = self.decay_of(first.variable) if first.decays else None
            changes += portion.stepped(_decaying(plain, decay * rate) if decay else plain, gradients)
        return changes

    def _portions(self, rows: list[Kept]) -> list[Portion]:
        """The rows in portions of one weight decay each."""
        if rows != self._portioned[0]:
            found = portions([row.targets for row in rows], self.elementwise, [row.decays for row in rows])
            self._portioned = rows, found
        return self._portioned[1]

    def _averages(self, changes: list[Change], count: int) -> list[Change]:
        """The moving averages of all weights, and the weights set to them where that is due."""
        new, known = {variable.key: array for variable, array in changes}, self._slots.values()
        weights = [new.get(kept.variable.key, kept.variable._array) for kept in known]
        momentum = self.ema_momentum if count else 0.0
        updates: list[Change] = []
        for portion in portions([(kept.slots["average"],) for kept in known], True, [None] * len(known)):
            updates += portion.stepped(lambda w, a: (a * momentum + w * (1.0 - momentum),), weights)
        if self.ema_overwrite_frequency is not None and (count + 1) % self.ema_overwrite_frequency == 0:
            arrays = {average.key: array for average, array in updates}
            updates += [(kept.variable, arrays[kept.slots["average"].key]) for kept in known]
        return updates


def _stepped(*gradients: Array, optimizer: Optimizer, variables: Sequence[Variable]) -> tuple[()]:
    known = optimizer._slots
    rows = [known[variable.key] for variable in variables]
    arrays = [
        g if g.dtype == variable._array.dtype else g.astype(variable._array.dtype)
        for g, variable in zip(gradients, variables, strict=True)
    ]
    optimizer.commit(optimizer.changes(arrays, rows))
    return ()


optimizer_step = Primitive(
    "optimizer_step", lambda xp: _stepped, differentiable=False, uniform=False, effect=True, registered=False
)


def _decaying(formula: Formula, factor: float) -> Formula:
    """The formula after decoupled weight decay.

        w <- w - w * factor,  factor = weight_decay * lr

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2, line 12, with the decay as a
    step of its own before the optimizer's.
    """
    return lambda gradient, value, *slots: formula(gradient, value - value * factor, *slots)


def _unzipped(pairs: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The gradients, and the Variables, of pairs of them."""
    try:
        grads, variables = zip(*pairs, strict=True)
    except (TypeError, ValueError):
        pairs = list(pairs) if isinstance(pairs, Iterable) else pairs
        if pairs == []:
            return (), ()
        raise TypeError(
            "apply_gradients: expected pairs of gradient and variable, such as zip(gradients, model.trainable_variables), "
            f"found {pairs!r:.200}."
        ) from None
    return grads, variables


def _no_variable(gradient: Any, variable: Any) -> str:
    """What to say where a Variable should be."""
    turned = " They are the other way round." if isinstance(gradient, Variable) else ""
    return (
        "apply: expected a gradient and its Variable, such as a pair of zip(gradients, model.trainable_variables), found "
        f"{type(gradient).__name__} and {type(variable).__name__}.{turned}"
    )


def _report_missing(grads: Sequence[Any], variables: Sequence[Variable]) -> None:
    """Warn of gradients that are None; raise if there is no other."""
    missing = [variable for gradient, variable in zip(grads, variables, strict=True) if gradient is None]
    if len(missing) == len(variables):
        raise ValueError(f"No gradients provided for any variable. Variables: {names_of(variables) or 'none'}.")
    warnings.warn(f"Gradients do not exist for variables {names_of(missing)} when minimizing the loss.", stacklevel=5)


def _constrained(variable: Variable, array: Array) -> Change:
    """A new value within the Variable's constraint."""
    projected = variable._convert(variable.constraint(Tensor(array)))  # type: ignore[misc]
    if projected.shape != array.shape:
        raise ShapeError(
            f"apply: the constraint of '{name_of(variable)}' turned shape {array.shape} into {projected.shape}; it must keep "
            "the shape."
        )
    return variable, projected
