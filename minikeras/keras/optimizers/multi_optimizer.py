"""MultiOptimizer: `PerLayer` as Keras writes it, with regular expressions on paths or a function that chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from ...core import Variable
from ..arguments import as_call
from ..names import PathMap, check_patterns
from ..saving.objects import deserialize_keras_object
from .lookup import deserialize, serialize
from .loss_scale import LossScaleOptimizer
from .optimizer import Optimizer
from .per_layer import Member, PerLayer
from .state import name_of


class OptimizerMap(PathMap[Optimizer]):
    """Which optimizer a Variable has, by its path: the entry of that very path, else the one whose regular expression matches
    all of it, else the default.

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
        return self[name_of(variable).removesuffix(":0")]

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
        self._default, self._owner, self.members, self.needs_loss = None, {}, [], False
        if isinstance(optimizer_map, OptimizerMap):
            self._admit([*optimizer_map.values(), optimizer_map.default_optimizer])

    def _admit(self, optimizers: Iterable[Optimizer]) -> None:
        """Have these among the members too."""
        for optimizer in optimizers:
            if not any(optimizer is member.optimizer for member in self.members):
                optimizer.loss_scale_factor = self.loss_scale_factor
                self.members = [*self.members, Member(_member(optimizer).name, optimizer, optional=True)]
                self.state.include(optimizer.state)

    def build(self, variables: Iterable[Variable]) -> None:
        """Ask which optimizer each Variable has, and let these make their slots."""
        chosen = list(variables)
        self._admit([_member(self.optimizer_map(variable)) for variable in chosen if variable.key not in self._owner])
        super().build(chosen)

    def _candidates(self, variable: Variable) -> list[Member]:
        optimizer = self.optimizer_map(variable)
        return [member for member in self.members if member.optimizer is optimizer]

    @property
    def variables(self) -> list[Variable]:
        """As in `PerLayer`, with a learning rate of its own, which stands there for Keras's files only."""
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
    """What may be one of several."""
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, (LossScaleOptimizer, PerLayer)) or optimizer.needs_loss:
        raise ValueError(
            f"MultiOptimizer: expected optimizers of first order for single Variables, found {optimizer!r:.100}. PerLayer "
            "takes those of second order; put a LossScaleOptimizer around the whole."
        )
    return optimizer
