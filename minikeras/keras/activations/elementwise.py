"""Activations of one element: smooth ones, rectifiers, clipped lines, thresholds, shrinkage.

The docstring says which slope a kink has. Formulas that `tf.nn` has are there, with their sources.
"""

from __future__ import annotations

from ...core import Tensor
from ...functions import elementwise, nn
from ...functions.elementwise import abs, cast, clip_by_value, minimum, sqrt, square, where
from ...functions.publish import inexact, tensor
from ...types import TensorLike
from .table import activation, named

sigmoid = named(elementwise.sigmoid)
tanh = named(elementwise.tanh)
softplus = named(elementwise.softplus)
log_sigmoid = named(elementwise.log_sigmoid)
selu = named(nn.selu)
silu = swish = named(nn.silu, "swish")
softsign = named(nn.softsign)


@activation()
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e**x - 1).

    Source: Clevert, Unterthiner and Hochreiter (2015), equation (15).

    >>> print(tf.keras.activations.elu([2.0]).numpy())
    [2.]
    """
    return nn.elu(x, alpha)


@activation()
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e**(x / alpha) - 1): an elu whose slope is 1 on both sides of 0 for any alpha > 0.

    Source: Barron (2017), Continuously Differentiable Exponential Linear Units, equation (2).

    >>> print(tf.keras.activations.celu([-1000.0, 2.0], alpha=0.5).numpy())
    [-0.5  2. ]
    """
    return alpha * nn.elu(inexact("celu", tensor(x)) / alpha)


@activation()
def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """x Phi(x), with Phi the normal distribution function; by tanh if `approximate`.

    >>> print(tf.keras.activations.gelu([0.0]).numpy())
    [0.]
    """
    return nn.gelu(x, approximate)


@activation(symbolic=lambda keras: keras.ops.exp)
def exponential(x: TensorLike) -> Tensor:
    """e**x.

    >>> print(tf.keras.activations.exponential([0.0]).numpy())
    [1.]
    """
    return elementwise.exp(x)


@activation(symbolic=lambda keras: lambda x: x * keras.ops.tanh(keras.ops.softplus(x)))
def mish(x: TensorLike) -> Tensor:
    """x tanh(softplus(x)).

    Source: Misra (2019), Mish: A Self Regularized Non-Monotonic Activation Function, equation (1).

    >>> print(tf.keras.activations.mish([0.0, 1.0]).numpy().round(4))
    [0.     0.8651]
    """
    x = inexact("mish", tensor(x))
    return x * tanh(softplus(x))


@activation()
def tanh_shrink(x: TensorLike) -> Tensor:
    """x - tanh(x).

    >>> print(tf.keras.activations.tanh_shrink([0.0, 1.0]).numpy().round(4))
    [0.     0.2384]
    """
    x = inexact("tanh_shrink", tensor(x))
    return x - tanh(x)


@activation()
def squareplus(x: TensorLike, b: float = 4.0) -> Tensor:
    """(x + sqrt(x**2 + b)) / 2: a softplus without exponentials.

    Source: Barron (2021), Squareplus: A Softplus-Like Algebraic Rectifier, equation (1).

    >>> print(tf.keras.activations.squareplus([0.0, 1.5]).numpy())
    [1. 2.]
    """
    x = inexact("squareplus", tensor(x))
    return (x + sqrt(square(x) + b)) / 2.0


@activation(symbolic=lambda keras: lambda x: x)
def linear(x: TensorLike) -> Tensor:
    """x itself.

    >>> print(tf.keras.activations.linear(2.0).numpy())
    2.0
    """
    return tensor(x)


@activation(symbolic=lambda keras: lambda x, **options: keras.layers.ReLU(**options)(x))
def relu(x: TensorLike, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """max(x, 0); with options: x from `threshold` to `max_value`, the slope `negative_slope` below.

    >>> print(tf.keras.activations.relu([-1.0, 2.0]).numpy())
    [0. 2.]
    """
    x = tensor(x)
    if not negative_slope and max_value is None and not threshold:
        return nn.relu(x)
    above = cast(x > threshold, x.dtype)
    y = x * above + negative_slope * (x - threshold) * (1.0 - above)
    return y if max_value is None else minimum(y, float(max_value))


relu6 = named(nn.relu6)


@activation()
def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """x where x > 0, else negative_slope x.

    >>> print(tf.keras.activations.leaky_relu([-1.0], 0.5).numpy())
    [-0.5]
    """
    return nn.leaky_relu(x, negative_slope)


@activation()
def hard_sigmoid(x: TensorLike) -> Tensor:
    """x / 6 + 1 / 2, limited to [0, 1].

    Source: Courbariaux, Bengio and David (2015), BinaryConnect, equation (3), with another slope.

    >>> print(tf.keras.activations.hard_sigmoid([-4.0, 0.0]).numpy())
    [0.  0.5]
    """
    return nn.relu6(inexact("hard_sigmoid", tensor(x)) + 3.0) / 6.0


@activation("hard_swish")
def hard_silu(x: TensorLike) -> Tensor:
    """x hard_sigmoid(x): 0 below -3, x above 3.

    Source: Howard et al. (2019), Searching for MobileNetV3, section 5.2.

    >>> print(tf.keras.activations.hard_silu([-4.0, 0.0, 4.0]).numpy())
    [-0.  0.  4.]
    """
    x = tensor(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@activation()
def hard_tanh(x: TensorLike) -> Tensor:
    """x limited to [-1, 1]; the slope is 1 inside and at both edges.

    >>> print(tf.keras.activations.hard_tanh([-2.0, 0.5, 2.0]).numpy())
    [-1.   0.5  1. ]
    """
    return clip_by_value(inexact("hard_tanh", tensor(x)), -1.0, 1.0)


@activation()
def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """x where |x| > threshold, else 0.

    >>> print(tf.keras.activations.hard_shrink([-1.0, 0.5, 1.0]).numpy())
    [-1.  0.  1.]
    """
    x = tensor(x)
    return where(abs(x) > threshold, x, 0.0)


@activation()
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """x moved by the threshold toward 0, and 0 where it gets there.

    >>> print(tf.keras.activations.soft_shrink([-1.0, 0.25, 2.0]).numpy())
    [-0.5  0.   1.5]
    """
    x = tensor(x)
    return x - clip_by_value(x, -threshold, threshold)


@activation()
def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
    """x where x > threshold, else default_value.

    >>> print(tf.keras.activations.threshold([-1.0, 2.0], 0.0, 10.0).numpy())
    [10.  2.]
    """
    x = tensor(x)
    return where(x > threshold, x, default_value)


@activation()
def sparse_plus(x: TensorLike) -> Tensor:
    """0 below -1, (x + 1)**2 / 4 up to 1, x above: a softplus that reaches 0.

    >>> print(tf.keras.activations.sparse_plus([-2.0, 0.0, 2.0]).numpy())
    [0.   0.25 2.  ]
    """
    x = inexact("sparse_plus", tensor(x))
    return square((clip_by_value(x, -1.0, 1.0) + 1.0) / 2.0) + nn.relu(x - 1.0)


@activation()
def sparse_sigmoid(x: TensorLike) -> Tensor:
    """(x + 1) / 2 limited to [0, 1], the slope of `sparse_plus`; its own is 1 / 2 inside and at both edges.

    >>> print(tf.keras.activations.sparse_sigmoid([-2.0, 0.0, 2.0]).numpy())
    [0.  0.5 1. ]
    """
    return clip_by_value((inexact("sparse_sigmoid", tensor(x)) + 1.0) / 2.0, 0.0, 1.0)
