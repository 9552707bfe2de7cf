"""Penalties on weights that are added to the loss."""

from __future__ import annotations

from typing import Any

from ..core import Tensor
from ..functions.elementwise import abs, square
from ..functions.reductions import reduce_sum
from ..types import TensorLike
from .catalogue import Catalogue

catalogue = Catalogue("regularizer")
get = catalogue.get


class Regularizer:
    """Base: a function from a weight to a scalar."""

    def __call__(self, x: TensorLike) -> Tensor:
        """The penalty."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(x).")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """A regularizer from `get_config`."""
        return cls(**config)


@catalogue.add("l1_l2")
class L1L2(Regularizer):
    """l1 sum |x| + l2 sum x**2.

    >>> import minikeras as tf
    >>> print(tf.keras.regularizers.L1L2(l1=0.5, l2=0.25)([2.0, -2.0]).numpy())
    4.0
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = _factor("l1", l1), _factor("l2", l2)

    def __call__(self, x: TensorLike) -> Tensor:
        terms = [self.l1 * reduce_sum(abs(x))] if self.l1 else []
        terms += [self.l2 * reduce_sum(square(x))] if self.l2 else []
        return terms[0] + terms[1] if len(terms) == 2 else terms[0] if terms else reduce_sum(x) * 0.0  # type: ignore[no-any-return]

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


@catalogue.add("l1")
class L1(L1L2):
    """l1 sum |x|.

    >>> import minikeras as tf
    >>> print(tf.keras.regularizers.L1(0.5)([2.0, -2.0]).numpy())
    2.0
    """

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


@catalogue.add("l2")
class L2(L1L2):
    """l2 sum x**2.

    >>> import minikeras as tf
    >>> print(tf.keras.regularizers.L2(0.5)([2.0, -2.0]).numpy())
    4.0
    """

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


def _factor(name: str, value: float) -> float:
    if not isinstance(value, (int, float)) or value < 0 or value != value or value == float("inf"):
        raise ValueError(f"Invalid value for regularizer {name}: expected a finite number >= 0, found {value!r}.")
    return float(value)


def l1(l1: float = 0.01) -> L1:
    """L1(l1)."""
    return L1(l1)


def l2(l2: float = 0.01) -> L2:
    """L2(l2)."""
    return L2(l2)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """L1L2(l1, l2)."""
    return L1L2(l1, l2)
