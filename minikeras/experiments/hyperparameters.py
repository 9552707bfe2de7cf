"""Numbers of layers that differ from member to member, such as a dropout rate: `MemberNumber` stands where a float stood.

Among themselves and with Python's numbers they are floats; beside a Tensor each takes its dtype, as a Python number does. So
each member has the bits that it has alone.
"""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import PLAIN
from ..core import Tensor
from ..core.arrays import namespace
from ..core.batch import Batch, BatchedTensor
from ..errors import InvalidArgumentError
from ..keras import layers, regularizers
from ..keras.models import Model
from ..keras.saving.description import is_described
from ..keras.weight import Weight
from ..types import Array, DType


def options_of(kind: type) -> tuple[str, ...]:
    """The options of a class that may be different numbers for each member, as `_member_numbers` lists them. A user's subclass
    may compute with them as one number for all members, so it must list them itself.

    >>> options_of(tf.keras.layers.SpatialDropout1D), options_of(tf.keras.layers.Dense)
    (('rate',), ())
    """
    found: tuple[str, ...] = (
        getattr(kind, "_member_numbers", ()) if is_described(kind) else vars(kind).get("_member_numbers", ())
    )
    return found


_PUBLIC = [getattr(module, name) for module in (layers, regularizers) for name in module.__all__]
OPTIONS: dict[type, tuple[str, ...]] = {kind: options_of(kind) for kind in _PUBLIC if options_of(kind)}
"""The options of the package's classes."""


_PLAIN, _UNWATCHED = frozenset(PLAIN), frozenset(Model._unwatched)


class ModelOptions:
    """The options of a model's layers and regularizers, in an order that is the same for all models of one structure."""

    def __init__(self, model: Model) -> None:
        self._model, self._contents = model, model.collect_contents()
        self._layers = (model, *self._contents.sublayers)
        self._weights = [variable for variable in self._contents.variables if isinstance(variable, Weight)]

    @property
    def _holders(self) -> list[Any]:
        """The objects with options that may differ from member to member."""
        found = [one for layer in self._layers for one in (layer, layer.activity_regularizer)]
        return [*found, *(weight.regularizer for weight in self._weights)]

    def take_numbers(self, models: Sequence[Model], batch: Batch) -> None:
        """Let this copy of the first model have the numbers of all models, where they differ."""
        for weight in self._weights:
            weight.regularizer = copy.copy(weight.regularizer)  # a copied Variable shares it with the first one
        every = [ModelOptions(one)._holders for one in models]
        for position, holder in enumerate(self._holders):
            found = [own[position] for own in every]
            for name in options_of(type(holder)):
                values = [getattr(one, name) for one in found]
                if len(set(values)) > 1:
                    setattr(holder, name, MemberNumber(values, batch))

    def settings(self) -> list[Any]:
        """Plain attributes of the layers, numbers of regularizers, the trainable weights, and the optimizer: to detect that
        anything was set anew. Other private attributes change with the first call of a layer.
        """
        known = [
            [
                value
                for name, value in vars(layer).items()
                if type(value) in _PLAIN and name not in _UNWATCHED and (name[0] != "_" or name == "_trainable")
            ]
            for layer in self._layers
        ]
        numbers = [[getattr(one, name) for name in options_of(type(one))] for one in self._holders]
        return [known, numbers, [variable.trainable for variable in self._contents.variables], self._model.optimizer]


class MemberNumber:
    """A number that has a value of its own for each member.

    >>> number = MemberNumber([0.25, 0.5], Batch(2))
    >>> 1.0 / (1.0 - number)
    MemberNumber(1.3333333333333333, 2.0)
    """

    __slots__ = ("batch", "values")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Sequence[float], batch: Batch | weakref.ref[Batch]) -> None:
        self.values = tuple(values)
        self.batch = batch if isinstance(batch, weakref.ref) else weakref.ref(batch)  # its Variables may hold this number

    def beside(self, dtype: DType, like: Array) -> Tensor:
        """The numbers beside a Tensor of a dtype, on the device of an array."""
        batch = self.batch()
        assert batch is not None, "the model of the stack is run without its members"
        return BatchedTensor(Tensor(namespace(like).asarray(np.array(self.values, np.float64).astype(dtype.numpy))), batch)

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, MemberNumber):
            return MemberNumber(list(map(function, self.values, other.values)), self.batch)
        if type(other) in (int, float):
            return MemberNumber([function(value, other) for value in self.values], self.batch)
        return NotImplemented

    def _holds(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """The one answer for all members; NotImplemented beside a Tensor."""
        found = self._with(other, function)
        if not isinstance(found, MemberNumber):
            return found
        if len(set(found.values)) > 1:
            raise InvalidArgumentError(
                f"the number {self!r} of an ensemble decides otherwise for some members than for others: compared to {other!r} "
                "it has several answers. Train such members with Sweep, which makes groups."
            )
        return found.values[0]

    def __neg__(self) -> MemberNumber:
        return MemberNumber([-value for value in self.values], self.batch)

    def __bool__(self) -> bool:
        """True unless all members have 0: a 0.0 is a number like others where another member has more."""
        return any(self.values)

    def _refuse(self) -> Any:
        raise InvalidArgumentError(
            f"{self!r} is another number for each member of an ensemble, and what it is used for takes one Python number. "
            "Train such members with Sweep, which makes groups."
        )

    __float__ = __int__ = __index__ = _refuse

    def __repr__(self) -> str:
        return f"MemberNumber({', '.join(map(repr, self.values))})"

    def __deepcopy__(self, memo: dict[int, Any]) -> MemberNumber:
        return self


def _operators() -> None:
    for name in ("add", "sub", "mul", "truediv", "pow"):
        function = getattr(operator, name)
        setattr(MemberNumber, f"__{name}__", lambda self, other, f=function: self._with(other, f))
        setattr(MemberNumber, f"__r{name}__", lambda self, other, f=function: self._with(other, lambda a, b: f(b, a)))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        function = getattr(operator, name)
        setattr(MemberNumber, f"__{name}__", lambda self, other, f=function: self._holds(other, f))


_operators()
