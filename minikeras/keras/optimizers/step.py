"""The step of a first-order optimizer, written once: on arrays it computes, on the elements of a trace it becomes a program.

The order: loss scale, accumulation, clipping, weight decay, formula, moving average. `new_values` has it for one Variable; the
norm of all gradients comes before it. Flags that are truth values of Python choose a branch, so that nothing is computed twice;
where a program finds them anew in each run, both branches are computed and one is chosen.

`OnArrays` takes a step at once, one Variable after the other; `step_program.py` writes it as a program, which takes the steps
outside of compiled functions too, after a few over the same Variables: `EagerStep`.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.executors import Executable, by_numpy
from ...compiler.ir import Program, Slot
from ...compiler.passes import optimized
from ...core import Record, State, Tensor, Variable, cached_property, clock, effect, in_float32, is_short, restore, snapshot
from ...core.arrays import is_on_host, namespace, to_numpy
from ...functions.elementwise import cast
from ...types import Array
from .state import Change, SlotState, constrained

Flags = Mapping[str, Any]
"""Numbers of a step beside those of its formula, as far as it needs them:

updates     whether the gradients that were accumulated are used now
momentum    of the moving averages
overwrites  whether weights become their averages
scale       that gradients are divided by, if a `LossScaleOptimizer` is around the optimizer
decay       weight decay times learning rate
clipped     that gradients are clipped already
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


def columns_of(own: Any, state: SlotState) -> list[Variable]:
    """The Variables that a step changes for one Variable: itself, the slots of its formula, its accumulator and its average."""
    return [state.variable, *[state.slot(own, name) for name in (*own.slot_names(state.variable), *own._beside)]]


def new_values(own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> tuple[Any, ...]:
    """New values of the columns, see `columns_of`: of their elements, or of the whole arrays.

    Args:
        own: the optimizer.
        step: what its `begin_step` gave.
        known: further numbers.
        gradient, before: the gradient, None for none, and the values of the columns.
    """
    columns, updates = before[: len(before) - len(own._beside)], known.get("updates", True)
    gradient, total = incoming(own, known, gradient, before)
    new: Any = columns
    if updates is not False and gradient is not None:
        gradient = clipped(own, known, gradient)
        weight = decayed(columns[0], known["decay"]) if "decay" in known else columns[0]
        new = own.formula(step, gradient, weight, *columns[1:])
        if not isinstance(new, (tuple, list)) or len(new) != len(columns):
            found = f"{len(new)} values" if isinstance(new, (tuple, list)) else type(new).__name__
            names = f"the new value and {len(columns) - 1} new slots, such as (value, *slots)"
            raise ValueError(f"{type(own).__name__}.formula: expected a tuple of {names}; found {found}.")
    new = [chosen(updates, now, then) for now, then in zip(new, columns, strict=True)]
    if total is not None:
        new.append(chosen(updates, namespace(total).zeros_like(total) if updates is True else 0.0, total))
    if own.use_ema:
        average = averaged(before[-1], new[0], known["momentum"])
        new[0] = chosen(known.get("overwrites", False), average, new[0])
        new.append(average)
    if "missing" in known:
        new = [np.where(known["missing"] == 0, now, then) for now, then in zip(new, before, strict=True)]
    return tuple(new)


def incoming(own: Any, known: Flags, gradient: Any, before: Sequence[Any]) -> tuple[Any, Any]:
    """The gradient that is clipped next, and the sum of all gradients since the last update."""
    steps = own.gradient_accumulation_steps
    gathered = None if steps is None else before[-len(own._beside)]
    if "gathered" in known or gradient is None:
        return gradient, gathered
    if "scale" in known:
        gradient = gradient / known["scale"]
    if own.loss_scale_factor is not None:
        gradient = gradient / own.loss_scale_factor
    if steps is None:
        return gradient, None
    total = gradient + gathered
    return total / steps, total


def clipped(own: Any, known: Flags, gradient: Any) -> Any:
    """The gradient that the formula takes."""
    if own.clipvalue is not None:
        return clipped_by_value(gradient, own.clipvalue)
    if "clipped" in known:
        return gradient
    if own.clipnorm is not None:
        return clipped_by_norm(gradient, own.clipnorm)
    if own.global_clipnorm is not None:
        return clipped_by_global_norm(gradient, known["norm"], own.global_clipnorm)
    return gradient


def square(own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
    """The square of the gradient that is clipped: the sum of all is 'norm'."""
    gradient, _ = incoming(own, known, gradient, before)
    return gradient * gradient


def missing(own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
    """0 for a gradient that is finite, else 1: the sum of all is 'missing'."""
    return (~np.isfinite(gradient)).astype(gradient.dtype)


def stepping(optimizer: Any) -> Any:
    """The optimizer within a loss scale, else the optimizer itself."""
    return optimizer.inner_optimizer if optimizer.scales else optimizer


def shares_of(optimizer: Any, states: Sequence[SlotState]) -> Sequence[tuple[Any, Sequence[int]]]:
    """The optimizers whose formulas a step takes, each with the positions of its Variables."""
    inner = stepping(optimizer)  # the optimizer as it is given here: perhaps a weak reference
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


def begun(own: Any, taken: int) -> tuple[float, Any]:
    """The learning rate of an optimizer, and what its `begin_step` gives, after so many steps."""
    rate = own._rate_now()
    return rate, own.begin_step(taken // (own.gradient_accumulation_steps or 1) + 1, rate)


def numbers_of(own: Any, taken: int, decays: Sequence[float], flags: Sequence[str], scale: float = 1.0) -> tuple[float, ...]:
    """The numbers of `begin_step`, flattened, then the products of weight decay and learning rate, then the flags.

    Args:
        own: the optimizer.
        taken: the number of steps taken.
        decays: weight decays.
        flags: their names.
        scale: the divisor of gradients.
    """
    rate, step = begun(own, taken)
    numbers = (step,) if type(step) is float else tuple(step)
    if not decays and not flags:
        return numbers
    known = {"scale": scale, **flags_of(own, taken)}
    return (*numbers, *[decay * rate for decay in decays], *[float(known[name]) for name in flags])


def counted(optimizer: Any, owns: Iterable[Any]) -> list[Change]:
    """One step more for an optimizer, and for those whose formulas it has taken."""
    counters = {one.state.iterations.key: one.state.iterations for one in (stepping(optimizer), *owns)}
    return [(count, count.array + 1) for count in counters.values()]


present_rate = effect(
    "learning_rate", lambda *, optimizer: optimizer._scheduled_rate().array, reads=(State.VARIABLES,), writes=(State.VARIABLES,)
)
"""The learning rate of a schedule, computed anew in each run."""


def all_finite(arrays: Sequence[Array]) -> bool:
    """True if no element is NaN or infinite; on a GPU, the one number that a step waits for."""
    finite = [namespace(array).isfinite(array).all() for array in arrays]
    return not finite or bool(to_numpy(functools.reduce(operator.and_, finite)))


# The step on arrays ------------------------------------------------------------------------------------------------------


class OnArrays:
    """Takes the step of one optimizer on arrays, one Variable after the other. Nothing is assigned.

    Args:
        own: the optimizer.
        states: of the Variables that have gradients.
        known: the loss scale, if there is one, see `Flags`.
        changes: new values that there are already, beside which averages and accumulators change.

    Attributes:
        changes: all new values; of two for one Variable the last counts.
    """

    def __init__(
        self, own: Any, states: Sequence[SlotState], known: Flags | None = None, changes: Iterable[Change] = ()
    ) -> None:
        self._own, self._states, self._taken = own, states, int(own.state.iterations.array)
        self._known: dict[str, Any] = {**flags_of(own, self._taken), **(known or {})}
        self._clips_first = not own.assigns and clips_first(own, "scale" in self._known)
        if self._clips_first:
            self._known["clipped"] = True
        self._updates: bool = self._known.get("updates", True)
        self._clips_all = self._updates and own.global_clipnorm is not None
        self._rate, self._step = 0.0, None
        self.changes = [*changes]

    @cached_property
    def _new(self) -> dict[int, Array]:
        """The new values when this is first asked for, by the keys of Variables."""
        return {variable.key: array for variable, array in self.changes}

    def step(self, gradients: Sequence[Array]) -> None:
        """Note all that changes."""
        own, states, steps, updates = self._own, self._states, self._own.gradient_accumulation_steps, self._updates
        if own.sums or own.clipnorm is not None:  # contiguous, so that sums have the order of a compiled step
            gradients = [gradient.reshape(-1).reshape(gradient.shape) for gradient in gradients]
        with np.errstate(all="ignore"):
            if updates and states and (own.changes_numbers or not own.assigns):
                self._rate, self._step = begun(own, self._taken)
                self.changes += own.end_step(self._step)
            if updates and steps is not None and own.exchange is not None:
                gradients = own.exchange.gathered(steps, [total for _, total in self._incoming(gradients)])
                self._known["gathered"] = True
            if self._clips_first:
                gradients = [in_float32(clipped_by_norm)(gradient, limit=own.clipnorm) for gradient in gradients]
            if own.assigns:
                self._assign(gradients)
            groups: list[Any] = [] if own.assigns else [*zip(states, gradients, strict=True)]
            if own._beside and len(groups) < len(own.state.slots):
                given = {state.variable.key for state, _ in groups}
                groups += [(state, None) for key, state in own.state.slots.items() if key not in given]
            if self._clips_all and not own.assigns:
                self._known["norm"] = self._squares(gradients)
            for state, gradient in groups:
                self._take(state, gradient)

    def _incoming(self, gradients: Sequence[Array]) -> list[tuple[Array, Array]]:
        """For each Variable the gradient that is clipped next, and the sum of all since the last update."""
        own, known = self._own, self._known
        before = [[state.slot(own, name).array for name in own._beside] for state in self._states]
        return [incoming(own, known, *pair) for pair in zip(gradients, before, strict=True)]

    def _squares(self, gradients: Sequence[Array]) -> Array:
        """The sum of all squares over each of the groups that a compiled step has, as it adds up; 16-bit floats in float32."""
        given, found = [gradient.reshape(-1) for gradient, _ in self._incoming(gradients)], []
        for places, _ in groups_alike(self._own, self._states, apart=not self._own.elementwise):
            parts = [given[place] for place in places]
            whole = parts[0] if len(parts) == 1 else namespace(parts[0]).concatenate(parts)
            whole = whole.astype("float32") if is_short(whole.dtype) else whole
            found.append((whole * whole).sum())
        return sum(found[1:], found[0])

    def _take(self, state: SlotState, gradient: Array | None) -> None:
        """Note the new values of a Variable and its slots; without a gradient, those of its average and its accumulator."""
        own, known = self._own, self._known
        if decay := state.decay(own):
            known = {**known, "decay": decay * self._rate}
        columns = columns_of(own, state)
        before = [column.array for column in columns]
        if gradient is None and self.changes:
            before = [self._new.get(column.key, array) for column, array in zip(columns, before, strict=True)]
        found = in_float32(functools.partial(new_values, own, self._step, known))(gradient, *before)
        rows = zip(columns, before, found, strict=True)
        self.changes += [(column, new.astype(was.dtype, copy=False)) for column, was, new in rows if new is not was]

    def _assign(self, gradients: Sequence[Array]) -> None:
        """Note what Keras's `update_step` assigns for these gradients. Nothing stays assigned."""
        own, states, pairs = self._own, self._states, self._incoming(gradients)
        if self._updates:
            known = {"norm": self._squares(gradients)} if self._clips_all else {}
            clip = in_float32(functools.partial(clipped, own, known))
            before = snapshot([*(state.variable for state in own.state.slots.values()), *own.variables])
            try:
                take_updates(own, [Tensor(clip(gradient)) for gradient, _ in pairs], states)
                self.changes += [(variable, variable.array) for variable, array in before if variable.array is not array]
            finally:
                restore(before)
        if own.gradient_accumulation_steps is not None:
            rows = zip(states, pairs, strict=True)
            self.changes += [(state.slots["gradient_accumulator"], total) for state, (_, total) in rows]


def take_updates(optimizer: Any, gradients: Sequence[Any], states: Sequence[SlotState]) -> None:
    """Weight decay, then `update_step` for each Variable: an optimizer written for Keras assigns where a formula returns."""
    rate = optimizer.learning_rate
    for state in states:
        variable = state.variable
        if decay := state.decay(optimizer):
            variable.assign_sub(variable * decay * cast(rate, variable.dtype))
    optimizer._backend_update_step(gradients, [state.variable for state in states], rate)


def changes_of_step(optimizer: Any, gradients: list[Array], states: list[SlotState]) -> list[Change]:
    """All changes of one step, by one formula or several; under a loss scale only the scale's, unless all is finite."""
    found: list[Change] = []
    known: dict[str, float] = {}
    if optimizer.scales:
        finite = all_finite(gradients)
        found += optimizer.changes_of_scale(finite)
        if not finite:
            return found
        known = {"scale": float(optimizer.dynamic_scale.array)}
    shares = shares_of(optimizer, states)
    for own, places in shares:
        on = OnArrays(own, [states[place] for place in places], known)
        on.step([gradients[place] for place in places])
        found += [constrained(*change) if change[0].constraint is not None else change for change in on.changes]
    return found + counted(optimizer, [own for own, _ in shares])


# Steps outside of compiled functions ---------------------------------------------------------------------------------------

STEPS = 6
"""The number of steps over the same Variables before their program is compiled, which takes as long as fifty."""


class EagerStep:
    """The steps of one optimizer over the Variables that it was given last, and the program that takes them.

    It is called with the locks held.

    >>> w, optimizer = tf.Variable([1.0, 2.0]), tf.keras.optimizers.SGD(0.5)
    >>> for _ in range(STEPS + 1):
    ...     _ = optimizer.apply([tf.ones([2])], [w])
    >>> [record.primitive.name for record in optimizer._eager_step.program.records]
    ['step_numbers', 'reshape', 'read_flat', 'loop', 'assign_flat', 'step_counted']
    """

    __slots__ = ("_looked", "_run", "_states", "_steps", "_targets")

    def __init__(self) -> None:
        self._states: list[SlotState] = []
        self._steps = 0
        self._looked = -1
        self._run: Executable | None = None
        self._targets: list[Variable] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return EagerStep, ()  # a copied optimizer has other Variables

    @property
    def program(self) -> Program | None:
        """The program that takes the steps; None as long as there is none."""
        return None if self._run is None else self._run.program

    def take(self, optimizer: Any, gradients: list[Array], states: list[SlotState]) -> None:
        """Take a step, whole or not at all.

        Args:
            optimizer: whose step it is.
            gradients: of the shapes and dtypes of the Variables.
            states: of those Variables.
        """
        now, run = clock.now, self._run
        if states != self._states or (
            run is not None and now != self._looked and not all([holds() for holds in run.program.guards])
        ):
            self._states, self._steps, self._run = states, 0, None
        self._looked = now  # options are compared again only if anything was set since: that takes 2 us
        self._steps += 1
        if self._steps == STEPS + 1:
            self._run = _compiled(optimizer, gradients, states)
            self._targets = [*optimizer.variables, *(state.variable for state in states)]
        if self._run is None:
            optimizer.commit(optimizer.changes(gradients, states))
            return
        before = list(map(_ARRAY, self._targets))
        try:
            self._run(gradients)
        except BaseException:
            restore(zip(self._targets, before, strict=True))
            raise


_ARRAY = operator.attrgetter("array")


def _compiled(optimizer: Any, gradients: Sequence[Array], states: Sequence[SlotState]) -> Executable | None:
    """The program of a step; None if the formula is not elementwise, or if the formula or the function of its learning rate is
    the user's: they may read anything, at any time.
    """
    if not all(map(is_on_host, gradients)):
        return None  # a device's program is that of the whole step
    if not optimizer.is_own or not optimizer.rate_is_own:
        return None  # compiling would call it once more
    held = weakref.proxy(optimizer)  # which has the program; the two are freed with the last reference to the optimizer
    slots = [Slot(number, tuple(array.shape), array.dtype) for number, array in enumerate(gradients)]
    record = Record(optimizer_step, slots, {"optimizer": held, "variables": [state.variable for state in states]}, ())
    program = optimized(Program(slots, [record], [], None))
    return None if any(one.primitive is optimizer_step for one in program.records) else by_numpy(program)


def _run_step(*gradients: Array, optimizer: Any, variables: Sequence[Variable]) -> tuple[()]:
    optimizer.prepare(variables)  # `built = False` drops slots
    known = optimizer.state.slots
    states = [known[variable.key] for variable in variables]
    arrays = [
        g if g.dtype == variable.array.dtype else g.astype(variable.array.dtype)
        for g, variable in zip(gradients, variables, strict=True)
    ]
    optimizer.commit(optimizer.changes(arrays, states))
    return ()


optimizer_step = effect("optimizer_step", _run_step, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""A step as one operation: interpreters see it whole, and a pass expands it."""
