"""Activation functions by name, each a plain function of a Tensor.

Formulas with their sources are in `functions/nn.py` and `functions/elementwise.py`; this file is the table of names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import Tensor
from ..functions import elementwise, nn
from ..functions.publish import tensor
from ..types import TensorLike
from .catalogue import Catalogue

catalogue = Catalogue("activation")


@catalogue.add()
def linear(x: TensorLike) -> Tensor:
    """x itself.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.linear(2.0).numpy())
    2.0
    """
    return tensor(x)


@catalogue.add()
def relu(x: TensorLike, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """max(x, 0); with options: x from `threshold` to `max_value`, the slope `negative_slope` below.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.relu([-1.0, 2.0]).numpy())
    [0. 2.]
    """
    x = tensor(x)
    if not negative_slope and max_value is None and not threshold:
        return nn.relu(x)
    above = elementwise.cast(x > threshold, x.dtype)
    y = x * above + negative_slope * (x - threshold) * (1.0 - above)
    return y if max_value is None else elementwise.minimum(y, float(max_value))


@catalogue.add()
def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.softmax([[0.0, 0.0]]).numpy())
    [[0.5 0.5]]
    """
    return nn.softmax(x, axis)


@catalogue.add()
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e**x - 1).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.elu([2.0]).numpy())
    [2.]
    """
    return nn.elu(x, alpha)


@catalogue.add()
def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """x where x > 0, else negative_slope x.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.leaky_relu([-1.0], 0.5).numpy())
    [-0.5]
    """
    return nn.leaky_relu(x, negative_slope)


@catalogue.add()
def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """x Phi(x).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.gelu([0.0]).numpy())
    [0.]
    """
    return nn.gelu(x, approximate)


@catalogue.add()
def exponential(x: TensorLike) -> Tensor:
    """e**x.

    >>> import minikeras as tf
    >>> print(tf.keras.activations.exponential([0.0]).numpy())
    [1.]
    """
    return elementwise.exp(x)


@catalogue.add()
def hard_sigmoid(x: TensorLike) -> Tensor:
    """x / 6 + 1 / 2, limited to [0, 1].

    >>> import minikeras as tf
    >>> print(tf.keras.activations.hard_sigmoid([-4.0, 0.0]).numpy())
    [0.  0.5]
    """
    return nn.relu6(tensor(x) + 3.0) / 6.0  # type: ignore[no-any-return]


def _named(function: Callable[..., Tensor], *names: str) -> Callable[..., Tensor]:
    catalogue.add(*names)(function)
    return function


sigmoid = _named(elementwise.sigmoid)
tanh = _named(elementwise.tanh)
softplus = _named(elementwise.softplus)
log_sigmoid = _named(elementwise.log_sigmoid)
selu = _named(nn.selu)
silu = _named(nn.silu, "swish")
swish = silu
softsign = _named(nn.softsign)
relu6 = _named(nn.relu6)
log_softmax = _named(nn.log_softmax)


def get(identifier: Any) -> Callable[..., Tensor]:
    """The function for a name, a function, or None (linear)."""
    return linear if identifier is None else catalogue.get(identifier)  # type: ignore[no-any-return]


def serialize(function: Any) -> Any:
    """The name of an activation, or the configuration of a layer used as one."""
    return function.get_config() if hasattr(function, "get_config") else function.__name__
