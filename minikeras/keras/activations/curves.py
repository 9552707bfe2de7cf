"""Smooth activations, and those that are smooth but for one point. Formulas that `tf.nn` has are there, with their sources."""

from __future__ import annotations

from ...core import Tensor
from ...functions import elementwise, nn
from ...functions.elementwise import sqrt, square
from ...functions.publish import inexact, tensor
from ...types import TensorLike
from .table import catalogue, named

sigmoid = named(elementwise.sigmoid)
tanh = named(elementwise.tanh)
softplus = named(elementwise.softplus)
log_sigmoid = named(elementwise.log_sigmoid)
selu = named(nn.selu)
silu = swish = named(nn.silu, "swish")
softsign = named(nn.softsign)


@catalogue.add()
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e**x - 1).

    Source: Clevert, Unterthiner and Hochreiter (2015), equation (15).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.elu([2.0]).numpy())
    [2.]
    """
    return nn.elu(x, alpha)


@catalogue.add()
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e**(x / alpha) - 1): an elu whose slope is 1 on both sides of 0 for any alpha > 0.

    Source: Barron (2017), Continuously Differentiable Exponential Linear Units, equation (2).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.celu([-1000.0, 2.0], alpha=0.5).numpy())
    [-0.5  2. ]
    """
    return alpha * nn.elu(inexact("celu", tensor(x)) / alpha)


@catalogue.add()
def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """x Phi(x), with Phi the normal distribution function; by tanh if `approximate`.

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
def mish(x: TensorLike) -> Tensor:
    """x tanh(softplus(x)).

    Source: Misra (2019), Mish: A Self Regularized Non-Monotonic Activation Function, equation (1).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.mish([0.0, 1.0]).numpy().round(4))
    [0.     0.8651]
    """
    x = inexact("mish", tensor(x))
    return x * tanh(softplus(x))


@catalogue.add()
def tanh_shrink(x: TensorLike) -> Tensor:
    """x - tanh(x).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.tanh_shrink([0.0, 1.0]).numpy().round(4))
    [0.     0.2384]
    """
    x = inexact("tanh_shrink", tensor(x))
    return x - tanh(x)


@catalogue.add()
def squareplus(x: TensorLike, b: float = 4.0) -> Tensor:
    """(x + sqrt(x**2 + b)) / 2: a softplus without exponentials.

    Source: Barron (2021), Squareplus: A Softplus-Like Algebraic Rectifier, equation (1).

    >>> import minikeras as tf
    >>> print(tf.keras.activations.squareplus([0.0, 1.5]).numpy())
    [1. 2.]
    """
    x = inexact("squareplus", tensor(x))
    return (x + sqrt(square(x) + b)) / 2.0
