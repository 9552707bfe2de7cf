"""Several optimizers for one model, each for some variables, in one step: `PerLayer`; and `MultiOptimizer`, as Keras has it."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from ... import markup
from ...core import GradientTape, Tensor, Variable
from ...functions.operands import tensor
from ..arguments import as_call, as_text
from ..names import PathMap, check_patterns
from ..saving.objects import deserialize_keras_object
from .gradients import checked_pairs, needs_exchange
from .loss_scale import LossScaleOptimizer
from .loss_step import Repeatable, Sweep, run_directly, run_step
from .optimizer import Optimizer, deserialize, get, serialize
from .state import Change, OptimizerState, SlotState, path_of

Pattern = Any


class Every(NamedTuple):
    """An optimizer, as in `PerLayer`, whose turn comes at every n-th step: those with (step - offset) % every == 0.

    >>> head = tf.keras.optimizers.Every(2, tf.keras.optimizers.SGD(0.1))
    >>> optimizer = tf.keras.optimizers.PerLayer({"head": head, "*": "adam"})
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(1, name="head")])
    >>> model.compile(optimizer, "mse")
    >>> history = model.fit([[1.0]], [[2.0]], epochs=2, verbose=0)
    >>> head.every
    2
    """

    every: int
    optimizer: Any
    offset: int = 0


class RateMultiple:
    """A learning rate that is a multiple of another optimizer's present one; a copy follows the copy of that optimizer."""

    def __init__(self, optimizer: Optimizer, factor: float) -> None:
        self.optimizer = optimizer
        self.factor = factor

    def __call__(self) -> Tensor:
        return tensor(self.optimizer.learning_rate) * self.factor


class Member(NamedTuple):
    """One entry of a `PerLayer`; without an optimizer it is frozen."""

    pattern: Pattern
    optimizer: Optimizer | None
    every: int = 1
    offset: int = 0
    factor: float | None = None
    """Factor to the learning rate of the '*' entry, if the entry was given as a number."""
    optional: bool = False
    """True if it may match no variable."""

    @property
    def label(self) -> str:
        return self.pattern if isinstance(self.pattern, str) else str(getattr(self.pattern, "path", self.pattern))

    @property
    def rule(self) -> Any:
        """The rule of the entry, as `PerLayer` takes it."""
        given = self.optimizer if self.factor is None else self.factor
        return given if self.every == 1 else Every(self.every, given, self.offset)

    def matches(self, variable: Variable) -> bool:
        """True if the pattern names a variable; '*', which takes what is left, names none."""
        if isinstance(self.pattern, str):
            return self.pattern != "*" and any(fnmatch.fnmatchcase(name, self.pattern) for name in dotted_names(variable))
        held = self.pattern if isinstance(self.pattern, (list, tuple)) else getattr(self.pattern, "variables", [self.pattern])
        return any(variable is other for other in held)


def cycle(rules: Mapping[Pattern, Any]) -> dict[Pattern, Every]:
    """Rules whose entries take turns, step by step: the first, the second, ..., and again.

    >>> cycle({"a": "sgd", "b": "adam"})
    {'a': Every(every=2, optimizer='sgd', offset=0), 'b': Every(every=2, optimizer='adam', offset=1)}
    """
    return {pattern: Every(len(rules), optimizer, turn) for turn, (pattern, optimizer) in enumerate(rules.items())}


class PerLayer(Optimizer):
    """Different optimizers for different parts of a model.

    `compile(optimizer={...})` makes one. Every trainable variable must belong to exactly one entry; '*' takes what is left.

    Args:
        rules: from a pattern to an optimizer. A pattern is a layer (all of it), a Variable in a list of pairs, or a glob
            on the dotted path: 'hidden*' matches layers 'hidden_1' and 'hidden_2', '*.bias' all biases, 'encoder.dense.kernel'
            one kernel; a model's own name in front may be left out. The optimizer is an object, a name, an `Every`, None to
            freeze, or a number: a factor to the learning rate of the '*' entry, with an optimizer like that one.
        name: shown in messages.

    Second-order members are given the loss, the others its gradient; all at the point before the step. A frozen part needs no
    gradient. The count of steps is that of all calls; each member counts its own updates.

    Raises:
        ValueError: at the first step or `build`, for variables that two entries match, entries that match nothing and variables
            without entry: all of them at once, by name.

    >>> model = tf.keras.Sequential(
    ...     [tf.keras.Input((2,)), tf.keras.layers.Dense(3, name="hidden"), tf.keras.layers.Dense(1, name="head")]
    ... )
    >>> model.compile(optimizer={"hidden": tf.keras.optimizers.Adam(0.01), "head": tf.keras.optimizers.SGD(0.1)}, loss="mse")
    >>> _ = model.fit(tf.ones([4, 2]), tf.ones([4, 1]), verbose=0)
    >>> print(model.optimizer.optimizer_for(model.get_layer("head").kernel).name[:3])
    sgd
    """

    def __init__(self, rules: Mapping[Pattern, Any] | Sequence[tuple[Pattern, Any]], name: str | None = None) -> None:
        super().__init__(0.0, name=name)  # learning rates are the members'
        pairs = list(rules.items() if isinstance(rules, Mapping) else rules)
        if not pairs:
            raise ValueError("PerLayer: no rules are given; write for example {'head': SGD(0.1), '*': Adam()}.")
        default = next((_turn(rule).optimizer for pattern, rule in pairs if _is_default(pattern)), None)
        self._default = get(default) if default is not None else None
        self.members = [self._member(pattern, _turn(rule)) for pattern, rule in pairs]
        self.state = OptimizerState(self.name, [optimizer.state for optimizer in self.optimizers])
        self.needs_loss = any(optimizer.needs_loss for optimizer in self.optimizers)

    def _member(self, pattern: Pattern, turn: Every) -> Member:
        given, every, offset = turn.optimizer, turn.every, turn.offset
        if every < 1 or not 0 <= offset < max(every, 1):
            raise ValueError(f"PerLayer: every must be at least 1 and offset in [0, every), found {turn} for {pattern!r}.")
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return Member(pattern, self._multiplied(pattern, float(given)), every, offset, float(given))
        default = _is_default(pattern)
        return Member(pattern, self._default if default else get(given), every, offset, optional=default)

    def _multiplied(self, pattern: Pattern, factor: float) -> Optimizer:
        """An optimizer like the default one, at a multiple of its present learning rate."""
        default = self._default
        if default is None or _is_default(pattern):
            raise ValueError(f"PerLayer: {factor} for {pattern!r} is a factor to the optimizer of '*', and there is none.")
        config = {key: value for key, value in default.get_config().items() if key != "name"}
        return type(default)(**{**config, "learning_rate": RateMultiple(default, factor)})

    # Who owns what -------------------------------------------------------------------------------------------------------

    def build(self, variables: Iterable[Variable]) -> None:
        """Find the owner of each variable, and let the members make their slots."""
        known = self.state.own
        new = [variable for variable in variables if variable.key not in known]
        if not new:
            return
        candidates = [(variable, self._candidates(variable)) for variable in new]
        problems = [
            f"{path_of(variable)} belongs to {' and '.join(repr(self.members[number].label) for number in found)}"
            if found
            else f"{path_of(variable)} belongs to no entry (a '*' entry would take it)"
            for variable, found in candidates
            if len(found) != 1
        ]
        if not known:
            used = {number for _, found in candidates for number in found}
            unused = [one for number, one in enumerate(self.members) if number not in used and not one.optional]
            problems += [f"entry {member.label!r} matches no variable" for member in unused]
        if problems:
            count = "one thing does" if len(problems) == 1 else f"{len(problems)} things do"
            raise ValueError(f"PerLayer: {count} not fit:\n  " + "\n  ".join(problems))
        self.state.add([SlotState(variable, {}, member=number) for variable, (number,) in candidates])
        for number, member in enumerate(self.members):
            if member.optimizer is not None:
                member.optimizer.prepare(self._owned(number, new))

    def _number_of(self, variable: Variable) -> int:
        """The number of the member that owns a Variable."""
        return self.state.own[variable.key].member

    def _owned(self, number: int, variables: Iterable[Variable]) -> list[Variable]:
        return [variable for variable in variables if self._number_of(variable) == number]

    def optimizer_for(self, variable: Variable) -> Optimizer | None:
        """The optimizer of a variable; None if it is frozen or belongs to no entry."""
        found = [self._number_of(variable)] if variable.key in self.state.own else self._candidates(variable)
        return self.members[found[0]].optimizer if found else None

    def _candidates(self, variable: Variable) -> list[int]:
        """The numbers of the members that a Variable may belong to."""
        found = [number for number, member in enumerate(self.members) if member.matches(variable)]
        return found or [number for number, member in enumerate(self.members) if _is_default(member.pattern)]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The members' optimizers, each once."""
        return list({id(m.optimizer): m.optimizer for m in self.members if m.optimizer is not None}.values())

    @property
    def leaders(self) -> list[Optimizer]:
        """The optimizers with a learning rate of their own; the others follow that of '*' and must not be set."""
        following = {id(member.optimizer) for member in self.members if member.factor is not None}
        return [optimizer for optimizer in self.optimizers if id(optimizer) not in following]

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        yield from super().checkpoint_children()
        yield "optimizers", self.optimizers

    @property
    def variables(self) -> list[Variable]:
        return [self.state.iterations, *(variable for optimizer in self.optimizers for variable in optimizer.variables)]

    @property
    def learning_rate(self) -> Any:
        """The members' learning rates by pattern. There is no one rate to set; set `optimizers[i].learning_rate`."""
        return {member.label: member.optimizer.learning_rate for member in self.members if member.optimizer is not None}

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise TypeError(
                f"PerLayer has a learning rate for each of {list(self.learning_rate)}: give a dict, found {value!r}."
            )
        rates = {member.label: member.optimizer for member in self.members if member.optimizer is not None}
        if unknown := [label for label in value if label not in rates]:
            raise ValueError(f"PerLayer: no entry {unknown} among {list(rates)}.")
        for label, rate in value.items():
            rates[label].learning_rate = rate

    def logs(self) -> dict[str, Any]:
        return {key: value for optimizer in self.optimizers for key, value in optimizer.logs().items()}

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        listed = list(var_list)
        for optimizer in self.optimizers:
            optimizer.finalize_variable_values([variable for variable in listed if variable.key in optimizer.state.slots])

    @property
    def is_own(self) -> bool:
        return super().is_own and all(optimizer.is_own for optimizer in self.optimizers)

    @property
    def rate_is_own(self) -> bool:
        return all(optimizer.rate_is_own for optimizer in self.optimizers)

    # The step ------------------------------------------------------------------------------------------------------------

    def _due(self) -> dict[int, Any]:
        """The optimizers whose turn it is, by the number of the member."""
        step, members = int(self.state.iterations.array), enumerate(self.members)
        return {i: one.optimizer for i, one in members if one.optimizer is not None and (step - one.offset) % one.every == 0}

    def learning(self, variables: Sequence[Variable]) -> list[int]:
        if any(optimizer.needs_loss for optimizer in self._due().values()):
            raise TypeError(f"{self.name} has members that need the loss: optimizer.minimize(loss_fn, variables).")
        self.build(variables)
        return [i for i, variable in enumerate(variables) if self.optimizer_for(variable) is not None]

    def divided(self, states: Sequence[SlotState]) -> list[tuple[Optimizer, list[int]]]:
        """The optimizers whose turn it is, each with the positions of its Variables."""
        due, groups = self._due(), dict[int, tuple[Optimizer, list[int]]]()
        for i, known in enumerate(states):
            if (number := self._number_of(known.variable)) in due:
                groups.setdefault(id(due[number]), (due[number], []))[1].append(i)
        return list(groups.values())

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Tensor:
        """Take one step, given the loss as a function. If anything fails, nothing has changed.

        Args:
            loss: a function without arguments; returns a scalar. An `Objective` where a member asks for one.
            var_list: the Variables to change.
            tape: for a loss that it recorded, if no member needs the function.

        Returns:
            The loss before the step.
        """
        if tape is not None or not callable(loss) or (not self.needs_loss and needs_exchange(self)):
            return super().minimize(loss, var_list, tape)
        chosen = list(var_list)
        with self.state.step(chosen):
            self.build(chosen)
            return run_step(self, loss, chosen)

    @property
    def sweeps(self) -> Sequence[str] | None:
        """As in `SecondOrder`, with a member's number in front of its own; None if members take turns."""
        found = ["gradients"]
        for number, member in enumerate(self.members):
            optimizer = member.optimizer
            if optimizer is None:
                continue
            own = getattr(optimizer, "sweeps", None) if optimizer.needs_loss else ()
            if member.every != 1 or own is None:
                return None
            found += [f"{number}/{name}" for name in own]
        return found

    def loss_and_changes(
        self,
        loss_fn: Callable[[], Any],
        variables: Sequence[Variable],
        runs: Repeatable | None = None,
        sweep: Sweep = run_directly,
    ) -> tuple[Tensor, list[Change]]:
        """As in `SecondOrder`, for all members whose turn it is."""
        due, runs = self._due(), runs or Repeatable(loss_fn)
        first = [number for number, optimizer in due.items() if not optimizer.needs_loss]
        learning = [variable for variable in variables if self._number_of(variable) in first]
        loss, *found = sweep("gradients", lambda: _differentiated(runs, learning))
        _, gradients, states = checked_pairs(self, found, learning) if learning else ([], [], [])
        changes = self.changes(gradients, states)
        for number, optimizer in due.items():
            if optimizer.needs_loss and (owned := self._owned(number, variables)):
                # others may have sweeps of that name
                own = lambda name, *given, number=number: sweep(f"{number}/{name}", *given)
                changes += optimizer.loss_and_changes(loss_fn, owned, runs, own)[1]
        return loss, changes

    # Configuration -------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Patterns and the members' configurations; layers as their dotted paths."""
        rules = []
        for member in self.members:
            given = member.factor if member.factor is not None or member.optimizer is None else serialize(member.optimizer)
            rules.append([member.label.replace("/", "."), given, member.every, member.offset])
        return {"name": self.name, "rules": rules}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> PerLayer:
        rules = [
            (pattern, Every(every, deserialize(written) if isinstance(written, Mapping) else written, offset))
            for pattern, written, every, offset in config["rules"]
        ]
        return cls(rules, name=config.get("name"))

    def __repr__(self) -> str:
        return as_call(self, rules={member.label.replace("/", "."): member.rule for member in self.members})

    def _repr_html_(self) -> str:
        rows = [[member.label.replace("/", "."), as_text(member.rule)] for member in self.members]
        return markup.table(["variables", "optimizer"], rows, caption=f"{type(self).__name__} {self.name}")


def _differentiated(run: Callable[[], Any], variables: Sequence[Variable]) -> list[Any]:
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(variables)
        loss = tensor(run())
    found = tape.gradient(loss, list(variables)) if variables else []
    return [loss, *[None if gradient is None else tensor(gradient) for gradient in found]]


def dotted_names(variable: Variable) -> list[str]:
    """'hidden', 'hidden.kernel', ...: the path with dots, up to each layer on it, with and without the outermost name."""
    parts = path_of(variable).split("/")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return names + [".".join(parts[1:end]) for end in range(2, len(parts) + 1)]


def _is_default(pattern: Pattern) -> bool:
    return isinstance(pattern, str) and pattern == "*"


def _turn(rule: Any) -> Every:
    return rule if isinstance(rule, Every) else Every(1, rule)


# As Keras writes it ------------------------------------------------------------------------------------------------------


class OptimizerMap(PathMap[Optimizer]):
    """A map from a Variable to its optimizer by path: the entry of that very path, else the one whose regular expression
    matches all of it, else the default.

    Args:
        default_optimizer: for Variables that no entry matches.
        optimizer_map: the entries, from a path or regular expression to an optimizer.

    Raises:
        ValueError: for a key that is there already; when a path is looked up, if several patterns match it.

    >>> optimizers = tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD())
    >>> optimizers["encoder/.*"] = tf.keras.optimizers.Adam()
    >>> type(optimizers["encoder/dense/kernel"]).__name__, type(optimizers["head/kernel"]).__name__
    ('Adam', 'SGD')
    """

    def __init__(self, default_optimizer: Optimizer, optimizer_map: Mapping[str, Optimizer] | None = None) -> None:
        if not isinstance(default_optimizer, Optimizer) or not isinstance(optimizer_map, (Mapping, type(None))):
            raise TypeError(
                "OptimizerMap: expected an optimizer and a dict from patterns to optimizers, found "
                f"{default_optimizer!r:.100} and {optimizer_map!r:.100}."
            )
        super().__init__()
        self.default_optimizer = default_optimizer
        self.update(optimizer_map or {})

    @property
    def _default(self) -> Optimizer:
        return self.default_optimizer

    def _checked(self, value: Any) -> Optimizer:
        return _member(value)

    def __call__(self, variable: Variable) -> Optimizer:
        """The optimizer of a Variable."""
        return self[path_of(variable)]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        entries = {key: serialize(optimizer) for key, optimizer in self._entries.items()}
        return {"default_optimizer": serialize(self.default_optimizer), "optimizer_map": entries}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A map from `get_config`; ValueError for a pattern that could take long to match."""
        check_patterns(config["optimizer_map"])
        entries = {key: deserialize(written) for key, written in config["optimizer_map"].items()}
        return cls(deserialize(config["default_optimizer"]), entries)

    def __repr__(self) -> str:
        return as_call(self, default_optimizer=self.default_optimizer, optimizer_map=self._entries)


class MultiOptimizer(PerLayer):
    """Several optimizers for one model, with Keras's arguments; `PerLayer` says more.

    Args:
        optimizer_map: an `OptimizerMap`, or a function from a Variable to its optimizer.
        loss_scale_factor: as in `Optimizer`, for all of them.
        name: shown in messages.

    >>> rates = {".*kernel": tf.keras.optimizers.SGD(0.1), ".*bias": tf.keras.optimizers.SGD(0.5)}
    >>> optimizer = tf.keras.optimizers.MultiOptimizer(tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.Adam(), rates))
    >>> kernel, bias = tf.Variable(1.0, name="kernel"), tf.Variable(1.0, name="bias")
    >>> _ = optimizer.apply([tf.constant(1.0), tf.constant(1.0)], [kernel, bias])
    >>> print(kernel.numpy(), bias.numpy())
    0.9 0.5
    """

    def __init__(
        self, optimizer_map: Callable[[Variable], Optimizer], loss_scale_factor: float | None = None, name: str | None = None
    ) -> None:
        Optimizer.__init__(self, 0.0, loss_scale_factor=loss_scale_factor, name=name)
        if not callable(optimizer_map):
            raise TypeError(
                f"MultiOptimizer: expected an OptimizerMap or a function of a Variable, found {optimizer_map!r:.100}."
            )
        self.optimizer_map = optimizer_map
        self._default, self.members, self.needs_loss = None, [], False
        if isinstance(optimizer_map, OptimizerMap):
            self._admit([*optimizer_map.values(), optimizer_map.default_optimizer])

    def _admit(self, optimizers: Iterable[Optimizer]) -> None:
        """Add these to the members."""
        for optimizer in optimizers:
            if not any(optimizer is member.optimizer for member in self.members):
                optimizer.loss_scale_factor = self.loss_scale_factor
                self.members = [*self.members, Member(_member(optimizer).name, optimizer, optional=True)]
                self.state.include(optimizer.state)

    def build(self, variables: Iterable[Variable]) -> None:
        """Look up the optimizer of each Variable, and let each optimizer make its slots."""
        chosen = list(variables)
        self._admit([_member(self.optimizer_map(variable)) for variable in chosen if variable.key not in self.state.own])
        super().build(chosen)

    def _candidates(self, variable: Variable) -> list[int]:
        optimizer = self.optimizer_map(variable)
        return [number for number, member in enumerate(self.members) if member.optimizer is optimizer]

    @property
    def variables(self) -> list[Variable]:
        """As in `PerLayer`, with a learning rate of its own, which only Keras's files need."""
        first, *others = super().variables
        return [first, self._learning_rate, *others]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"optimizer_map": serialize(self.optimizer_map), "loss_scale_factor": self.loss_scale_factor, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "optimizer_map": deserialize_keras_object(config["optimizer_map"])})

    def __repr__(self) -> str:
        return as_call(self, optimizer_map=self.optimizer_map)


def _member(optimizer: Any) -> Optimizer:
    """The optimizer, if it may be one of several."""
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, (LossScaleOptimizer, PerLayer)) or optimizer.needs_loss:
        raise ValueError(
            f"MultiOptimizer: expected optimizers of first order for single Variables, found {optimizer!r:.100}. PerLayer "
            "takes those of second order; put a LossScaleOptimizer around the whole."
        )
    return optimizer
