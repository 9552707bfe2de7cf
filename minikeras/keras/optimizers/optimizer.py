"""Optimizer: what all optimizers share around their formula, a pure function of gradient, value and slots.

A step first computes all that changes, as pairs of a Variable and its new array, and then commits all of it or nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Self

import numpy as np

from ...compiler.ir import PLAIN
from ...core import BOTTOM, GradientTape, Tensor, Variable, clock, current, decide, in_float32, perform, watched
from ...core.arrays import device, namespace, to_device
from ...errors import ShapeError
from ...functions import ones_like, tensor
from ...module import snake_case
from ...types import Array, DTypeLike, TensorLike
from .. import initializers
from ..arguments import Catalogue
from ..calls import context
from ..config import floatx
from ..names import auto_name
from ..weight import KerasVariable
from . import options, schedules
from .gradients import exchange_of, paired, unzipped
from .state import Change, OptimizerState, SlotState, commit, in_dtype_of, name_of, slot_name
from .step import EagerStep, changes_of_step, optimizer_step, present_rate


@watched
class Optimizer:
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
        gradient_accumulation_steps: update at every n-th step only, with the mean of the gradients since the last
            update, where a gradient that was None counts as zero. What a Variable gathered is dropped if it is not among those
            given with a gradient at the update. A schedule sees all steps; `iterations` and the formula's t count updates.
        name: shown in messages.

    Raises:
        ValueError: for a learning rate that is no float, or options out of their range.

    >>> class SignDescent(tf.keras.optimizers.Optimizer):
    ...     def formula(self, step, gradient, value):
    ...         return (value - step * tf.sign(gradient).numpy(),)
    >>> w = tf.Variable(1.0)
    >>> _ = SignDescent(0.5).apply([tf.constant(-7.0)], [w])
    >>> print(w.numpy())
    1.5
    """

    needs_loss = False
    """True if a step needs the loss as a function: `minimize(loss_fn, variables)` in place of `apply`."""
    exchange: Any = None
    """The gradient sync over all ranks before a step, as `DistributedOptimizer` sets it."""
    scales = False
    """True if it is a loss scale around the optimizer that steps."""
    elementwise = sums = False
    """True if the formula is elementwise: it may be given pieces of arrays, or several at once. `sums`: apart from sums."""
    package_class: type | None = None
    """The class itself if it is one of the package's; a class that a user derives inherits it and is another."""
    _unwatched = ("_learning_rate", "_eager_step")
    """Attributes that every step looks up, a recorded one too, so that no guard watches them."""
    settings: tuple[str, ...] = ()
    """Names of the constructor's arguments beyond the common ones, which are attributes too; `register` asks it for them."""
    rule: Callable[..., tuple[Array, ...]] | None = None
    """The formula as a function of gradient, value, slots, what `begin_step` gives, and the settings."""
    slot_groups: tuple[tuple[str, ...] | dict[str, str], ...] = ()
    """Names of the slots in the formula's order. `variables` lists them group by group, in a group Variable by Variable. A dict
    has slots that are kept only while an option is True or above 0: from their names to that of the option.
    """

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.01,
        *,
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
        self.weight_decay = weight_decay
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum, self.ema_overwrite_frequency = bool(use_ema), ema_momentum, ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        options.check(self, unknown)
        self.name = name or auto_name(snake_case(type(self).__name__))
        self.state = OptimizerState(self.name)
        self._learning_rate = options.rate_from(self.name, learning_rate)
        self._undecayed: list[Variable] = []
        self._undecayed_names: list[re.Pattern[str]] = []
        self._eager_step = EagerStep()

    # What a subclass defines ---------------------------------------------------------------------------------------------

    def begin_step(self, t: int, learning_rate: float) -> Any:
        """Numbers that the formula needs and that are the same for all Variables."""
        return learning_rate

    def formula(self, step: Any, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        """New value and new slots; it should change nothing, a compiled step only traces it. Override it, or name a `rule`."""
        if self.rule is None:
            raise NotImplementedError(f"{type(self).__name__} must implement formula(step, gradient, value, *slots).")
        return self.rule(gradient, value, *slots, step, *[getattr(self, name) for name in self.settings])

    def end_step(self, step: Any) -> list[Change]:
        """The changes beside those of the Variables and their slots."""
        return []

    @property
    def changes_numbers(self) -> bool:
        """True if a step has changes beside those of the Variables and their slots."""
        return self.overrides("end_step")

    @classmethod
    def overrides(cls, *methods: str) -> bool:
        """True if a subclass has any of these methods of its own."""
        return any([getattr(cls, name) is not getattr(Optimizer, name) for name in methods])

    def decay_of(self, variable: Variable) -> float | None:
        """The weight decay of a Variable that is not excluded from it."""
        return self.weight_decay

    def slot_names(self, variable: Variable) -> Sequence[str]:
        """Names of the slots that the formula needs for a Variable, as the options are now, in its order."""
        groups = self.slot_groups
        return [x for group in groups for x in group if not isinstance(group, dict) or (getattr(self, group[x]) or 0) > 0]

    @property
    def _beside(self) -> list[str]:
        """Names of the slots that are not the formula's, in the order in which a step gives them."""
        found = ["average"] if self.use_ema else []
        return found if self.gradient_accumulation_steps is None else ["gradient_accumulator", *found]

    def initial_slot(self, name: str, value: Array) -> Array:
        """The initial value of a slot, given the Variable's value: zeros."""
        return namespace(value).zeros_like(value)

    def logs(self) -> dict[str, float]:
        """Numbers for the logs of training, by name."""
        return {}

    # What a subclass written for Keras defines ---------------------------------------------------------------------------

    @property
    def assigns(self) -> bool:
        """True if a step is Keras's `update_step`, not a formula."""
        return self.overrides("update_step")

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Keras's way to write an optimizer: assign new values to a Variable and to the Variables that `build` made beside it.
        This one takes the formula's step for one Variable.

        >>> class Momentum(tf.keras.optimizers.Optimizer):
        ...     def build(self, variables):
        ...         super().build(variables)
        ...         self.momentums = self.add_optimizer_variables(variables, "momentum")
        ...     def update_step(self, gradient, variable, learning_rate):
        ...         m = self.momentums[self._get_variable_index(variable)]
        ...         self.assign(m, 0.9 * m - learning_rate * gradient)
        ...         self.assign_add(variable, m)
        >>> w = tf.Variable(1.0)
        >>> _ = Momentum(0.1).apply([tf.constant(1.0)], [w])
        >>> print(w.numpy())
        0.9
        """
        step = self.begin_step(int(self.iterations) + 1, float(learning_rate))
        targets = [variable, *[self.slot(variable, name) for name in self.slot_names(variable)]]
        formula = in_float32(functools.partial(self.formula, step))
        found = formula(tensor(gradient).array, *[target.array for target in targets])
        for target, array in zip(targets, found, strict=True):
            target.assign(Tensor(array.astype(target.array.dtype, copy=False)))

    def add_variable(
        self,
        shape: Sequence[int],
        initializer: Any = "zeros",
        dtype: DTypeLike = None,
        aggregation: str = "none",
        layout: Any = None,
        name: str | None = None,
    ) -> Variable:
        """Another Variable that is saved with the optimizer. `aggregation` and `layout` are about several devices: unused."""
        value = initializers.get(initializer)(tuple(shape), dtype=floatx() if dtype is None else dtype)
        return self.state.keep(self._own(value, name or "variable"))

    def _own(self, value: Any, name: str) -> Variable:
        """A Variable under the name of this optimizer."""
        return KerasVariable(value, trainable=False, name=name, path=context.path(self.name, name))

    def add_variable_from_reference(
        self, reference_variable: Variable, name: str | None = None, initializer: Any = "zeros"
    ) -> Variable:
        """Another slot of a Variable: of its shape, dtype and device."""
        value, name = reference_variable.array, name or "var"
        first = to_device(initializers.get(initializer)(value.shape, dtype=reference_variable.dtype).array, namespace(value))
        slot = self._own(Tensor(first), slot_name(reference_variable, name))
        return self.state.keep(slot, reference_variable, name)

    def add_optimizer_variables(self, trainable_variables: Iterable[Variable], name: Any, initializer: Any = "zeros") -> Any:
        """Slots of all Variables, as of `add_variable_from_reference`, in a list; for several names a tuple of lists."""
        names = [name] if isinstance(name, str) else name
        several = initializer if isinstance(initializer, (list, tuple)) else [initializer] * len(names)
        if len(names) != len(several):
            raise ValueError(f"add_optimizer_variables: {len(names)} names need as many initializers, found {len(several)}.")
        pairs = list(zip(names, several, strict=True))
        rows = [[self.add_variable_from_reference(variable, *pair) for pair in pairs] for variable in trainable_variables]
        columns = tuple([[row[column] for row in rows] for column in range(len(names))])
        return columns[0] if isinstance(name, str) else columns

    def assign(self, variable: Variable, value: TensorLike) -> None:
        """Let a Variable hold a value, in its own dtype."""
        variable.assign(in_dtype_of(variable, value))

    def assign_add(self, variable: Variable, value: TensorLike) -> None:
        """Add a value to a Variable."""
        variable.assign_add(in_dtype_of(variable, value))

    def assign_sub(self, variable: Variable, value: TensorLike) -> None:
        """Subtract a value from a Variable."""
        variable.assign_sub(in_dtype_of(variable, value))

    def _get_variable_index(self, variable: Variable) -> int:
        """The position of a Variable among those that the optimizer was built with."""
        return list(self.state.slots).index(variable.key)

    def _get_current_learning_rate(self) -> Any:
        return self.learning_rate

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Sequence[Variable], learning_rate: float | Callable[..., Any]
    ) -> None:
        """`update_step` for all Variables. Keras's Nadam overrides it, for what happens once in a step."""
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            self.update_step(gradient, variable, learning_rate)

    def _overwrite_variable_with_gradient(self, variable: Variable) -> bool:
        """False: there is no training in 8 bits, which Keras's optimizers ask about."""
        return False

    # Learning rate and options -------------------------------------------------------------------------------------------

    @property
    def iterations(self) -> Any:
        """The number of updates: the counter itself, or with accumulation a Tensor, the counter // steps."""
        count, steps = self.state.iterations, self.gradient_accumulation_steps
        return count if steps is None else tensor(count.read_value() // steps)

    @property
    def learning_rate(self) -> Any:
        """A Variable, or the present value of a schedule as a Tensor."""
        held = self._learning_rate
        return held if isinstance(held, Variable) else perform(present_rate, (), {"optimizer": self})

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._learning_rate = options.changed_rate(self._learning_rate, value)
        if not isinstance(self._learning_rate, Variable):
            clock.tick()  # a program may depend on where the rate comes from

    lr = property(lambda self: self.learning_rate, lambda self, value: setattr(self, "learning_rate", value))

    @property
    def is_own(self) -> bool:
        """True if the formula is the package's: a user's may read and change anything, at any time."""
        return type(self).package_class is type(self)

    @property
    def rate_is_own(self) -> bool:
        """True if the learning rate depends on nothing but Variables of this optimizer; a user's function may read others."""
        rate = self._learning_rate
        return isinstance(rate, Variable) or type(rate).__module__ == schedules.__name__

    def _rate_now(self) -> float:
        held = self._learning_rate
        return float(held.array if isinstance(held, Variable) else self._scheduled_rate())

    def _scheduled_rate(self) -> Any:
        """The schedule at the number of steps taken, accumulating ones included; called without arguments if it needs none."""
        schedule = self._learning_rate
        with device("CPU"), np.errstate(all="ignore"):
            return tensor(schedule() if options.needs_nothing(schedule) else schedule(self.state.iterations.read_value()))

    def scale_loss(self, loss: Any) -> Any:
        """The loss times `loss_scale_factor`, to be differentiated in its place; `apply` divides by it again."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Leave Variables out of weight decay: by object, or by a regular expression found in their name.

        Raises:
            ValueError: after the first step.
        """
        if self.built:
            raise ValueError("`exclude_from_weight_decay()` can only be configured before the optimizer is built.")
        self._undecayed += var_list or ()
        self._undecayed_names += [re.compile(name) for name in var_names or ()]

    def plain_options(self) -> dict[str, Any]:
        """The options that are plain values, by name; a recorded step is guarded by them."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "name"}
        return {name: value for name, value in public.items() if type(value) in PLAIN}

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a schedule as `schedules.serialize` writes it."""
        rate = self._learning_rate
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = schedules.serialize(rate)
        elif isinstance(rate, Variable):
            rate = float(rate)
        shared = {name: getattr(self, name) for name in (*options.COMMON, *self.settings)}
        return {"name": self.name, "learning_rate": rate} | shared

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        rate = config.get("learning_rate")
        return cls(**(config | {"learning_rate": schedules.deserialize(rate)} if isinstance(rate, dict) else config))

    __repr__, _repr_html_ = options.as_call_with_rate, options.as_html

    # State ---------------------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """True if slots exist. Assigning False drops them; assigning True has no effect."""
        return bool(self.state.slots)

    @built.setter
    def built(self, value: bool) -> None:
        if not value:
            self.state.restore({})
            clock.tick()  # programs have the slots

    @property
    def variables(self) -> list[Variable]:
        """Iteration, learning rate (unless scheduled), averages, accumulators, the slots of the formula, and what was added."""
        rate = [self._learning_rate] if isinstance(self._learning_rate, Variable) else []
        held, beside = self.state.slots.values(), self._beside[::-1]
        asked = [(found.slots, {*beside, *self.slot_names(found.variable)} & found.slots.keys()) for found in held]
        groups = (*zip(beside), *self.slot_groups)
        slots = [known[name] for group in groups for known, names in asked for name in group if name in names]
        return [self.state.iterations, *rate, *slots, *self.state.added, *self._in_containers()]

    def _in_containers(self) -> list[Variable]:
        """Variables that `build` put into lists or dicts without `add_variable`; no Variables that are trained."""
        return self.state.unknown_in([one for name, one in vars(self).items() if name != "_undecayed"]) if self.assigns else []

    @property
    def counters(self) -> list[Variable]:
        """The `variables` that are not slots."""
        slots = self.state.slot_keys
        return [variable for variable in self.variables if variable.key not in slots]

    def __setattr__(self, name: str, value: Any) -> None:
        """A Variable that becomes an attribute is saved with the optimizer."""
        if isinstance(value, Variable) and name not in ("_learning_rate", *vars(self)) and self.assigns:
            self.state.keep(value)
        super().__setattr__(name, value)

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of Variables that have none yet."""
        if not isinstance(variables, Iterable):
            raise TypeError(f"build: expected a list of Variables, found {variables!r:.200}.")
        known = self.state.slots
        new = [variable for variable in variables if getattr(variable, "key", None) not in known]
        for variable in new:
            if not isinstance(variable, Variable):
                raise TypeError(f"build: expected Variables, such as model.trainable_variables, found {variable!r:.200}.")
        if new:
            self.state.add([self._slot_state(variable) for variable in new])

    def prepare(self, variables: Sequence[Variable]) -> None:
        """Build, unless that was done. An optimizer with `update_step` builds only once."""
        known = self.state.slots
        if not known:
            self.state.begin()
        if not known or (not self.assigns and any(variable.key not in known for variable in variables)):
            self.build(variables)

    def _slot_state(self, variable: Variable) -> SlotState:
        value = variable.array
        first = {name: value if name == "average" else namespace(value).zeros_like(value) for name in self._beside[::-1]}
        first |= {name: self.initial_slot(name, value) for name in self.slot_names(variable)}
        slots = {name: self._own(Tensor(array), slot_name(variable, name)) for name, array in first.items()}
        excluded = any(variable is other for other in self._undecayed) or any(
            pattern.search(variable.name) for pattern in self._undecayed_names
        )
        return SlotState(variable, slots, not excluded)

    def slot(self, variable: Variable, name: str) -> Variable:
        """A slot of a Variable by its name: 'average', 'gradient_accumulator' or one of the formula.

        Raises:
            ValueError: if there is none, with the names there are.
        """
        return (self.state.slots.get(variable.key) or SlotState(variable, {})).slot(self, name)

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Write all of `variables` to a mapping, by their position: '0', '1' and so on."""
        for position, variable in enumerate(self.variables):
            store[str(position)] = variable.numpy()

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Give all of `variables` their values; otherwise as `load_own_variables`."""
        self.load_own_variables({str(position): value for position, value in enumerate(weights)})

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Load what `save_own_variables` wrote; if number or shapes differ, raise ValueError and change nothing."""
        variables = self.variables
        if len(store) != len(variables):
            hint = "" if self.built else " It has no slots yet: call optimizer.build(model.trainable_variables) first."
            raise ValueError(
                f"Optimizer '{self.name}' has {len(variables)} variables, the saved one {len(store)}. Nothing was loaded.{hint}"
            )
        arrays = [variable.convert(store[str(position)]) for position, variable in enumerate(variables)]
        for variable, array in zip(variables, arrays, strict=True):
            if array.shape != variable.array.shape:
                raise ShapeError(
                    f"Optimizer variable '{name_of(variable)}' has shape {tuple(variable.shape)}, the saved one {array.shape}. "
                    "Nothing was loaded."
                )
        decide(self.state.iterations)
        self.commit(list(zip(variables, arrays, strict=True)))

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Replace weights by their moving averages, where the optimizer keeps these."""
        decide(self.state.iterations)
        if self.use_ema:
            known = [variable for variable in var_list if variable.key in self.state.slots]
            self.commit([(variable, self.slot(variable, "average").array) for variable in known])

    commit = staticmethod(commit)

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        """The objects that a checkpoint keeps beside the slots, by name."""
        for name, value in vars(self).items():
            if name == "state":
                yield "iterations", self.state.iterations
            elif isinstance(value, (Variable, Optimizer)) or name == "_numbers":
                yield name.lstrip("_"), value
        yield "added", [*self.state.shared(), *self._in_containers()]

    def checkpoint_slots(self) -> list[tuple[Variable, dict[str, Variable]]]:
        """The slots of each Variable, unless they are those of an inner optimizer."""
        return [(found.variable, found.slots) for found in self.state.own.values()]

    # The step ------------------------------------------------------------------------------------------------------------

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Any:
        """Update Variables by pairs of gradient and Variable; otherwise as `apply`."""
        grads, variables = unzipped(grads_and_vars)
        return self.apply(grads, variables)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Any:
        """Update Variables by their gradients. If anything fails, nothing has changed.

        Steps that several threads take follow one another. On a part of a batch, where a strategy lets each rank compute on its
        rows, the gradients are those of all rows: their mean, weighted by the rows of the ranks.

        Args:
            grads: one for each Variable; None leaves it out, with a warning.
            trainable_variables: any of those that the optimizer was built with; the first call builds it. None for all.

        Returns:
            The number of updates, `iterations`.

        Raises:
            ValueError: if all gradients are None, or a Variable is unknown to an optimizer that was built.
            ShapeError: if a gradient has another shape than its Variable.
        """
        state, exchange = self.state, exchange_of(self)
        if exchange is not None:
            grads = exchange(grads)
        with state.step(() if state.slots else trainable_variables or ()):
            gradients, arrays, states = paired(self, grads, trainable_variables)
            if current() is BOTTOM:
                self._eager_step.take(self, arrays, states)
            else:  # interpreters see one operation, which looks up numbers and slots anew at each repetition
                perform(optimizer_step, gradients, {"optimizer": self, "variables": [found.variable for found in states]})
        return self.iterations

    def stateless_apply(
        self, optimizer_variables: Sequence[Any], grads: Sequence[Any], trainable_variables: Sequence[Any]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """New values of the Variables that the optimizer was built with, and of `variables`, after a step from these values."""
        trained, own = [known.variable for known in self.state.slots.values()], self.variables
        for name, variables, values in (
            ("trainable_variables", trained, trainable_variables),
            ("optimizer_variables", own, optimizer_variables),
        ):
            if len(variables) != len(values) or not trained:
                raise ValueError(
                    f"stateless_apply: {name} must be {len(variables)} values, one for each Variable that the optimizer was "
                    f"built with, found {len(values)}. Call optimizer.build(model.trainable_variables) first."
                )
        held = [(variable, variable.read_value()) for variable in (*trained, *own)]
        try:
            for (variable, _), value in zip(held, (*trainable_variables, *optimizer_variables), strict=True):
                self.assign(variable, value)
            self.apply(grads, trained)
            return [variable.read_value() for variable in trained], [variable.read_value() for variable in own]
        finally:
            for variable, value in held:
                variable.assign(value)

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Tensor:
        """Take one step, given the loss.

        Args:
            loss: a function without arguments, or a Tensor that `tape` has recorded.
            var_list: Variables, or a function that returns them once the loss was computed.
            tape: if given, it records the function too.

        Returns:
            The loss before the step.
        """
        if not callable(loss) and tape is None:
            raise ValueError(
                "minimize: a loss that is a Tensor needs the `tape` that recorded it; or give the loss as a function."
            )
        recording: GradientTape = GradientTape() if tape is None else tape
        if callable(loss):
            with recording:
                recording.watch([] if callable(var_list) else list(var_list))
                loss = tensor(loss())
        variables = list(var_list() if callable(var_list) else var_list)
        scaled = self.scale_loss(ones_like(loss))
        self.apply(recording.gradient(loss, variables, output_gradients=scaled), variables)
        return loss

    def learning(self, variables: Sequence[Variable]) -> Sequence[int] | None:
        """The positions of Variables that are not frozen; None for an optimizer that freezes none."""
        return None

    changes = changes_of_step

    def divided(self, states: Sequence[SlotState]) -> Sequence[tuple[Optimizer, Sequence[int]]] | None:
        """The optimizers that step, each with the positions of its Variables; None if this one steps itself."""
        return None


# Optimizers by name and as configurations -------------------------------------------------------------------------------

catalogue = Catalogue("optimizer")
serialize, deserialize = catalogue.serialize, catalogue.deserialize


def register(kind: type[Optimizer]) -> type:
    """Register one of the package's classes under its name; `get` ignores case."""
    kind.package_class = kind
    if kind.get_config is Optimizer.get_config and "settings" not in vars(kind):
        others = *options.COMMON, "learning_rate", "name", "options", "return"
        kind.settings = tuple([name for name in kind.__init__.__annotations__ if name not in others])
    return catalogue.add(kind.__name__.lower())(kind)


def get(identifier: Any) -> Any:
    """The optimizer for a name such as 'adam', a configuration, rules of a `PerLayer`, a class or an object; None for None.

    Raises:
        ValueError: if there is none of that name, or it is something else.

    >>> tf.keras.optimizers.get("RMSprop").get_config()["rho"]
    0.9
    """
    if isinstance(identifier, Mapping) and "class_name" not in identifier:
        return catalogue.entry("PerLayer")(identifier)
    found = catalogue.get(identifier.lower() if isinstance(identifier, str) else identifier)
    if found is not None and not isinstance(found, Optimizer):
        raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}. Give a name or an optimizer.")
    return found
