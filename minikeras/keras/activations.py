# mypy: implicit-reexport
"""Activations by name: smooth ones, rectifiers, clipped lines, thresholds, shrinkage, and those that look along an axis.

The docstring says which slope a kink has. Formulas that `tf.nn` has are there, with their sources.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..core import Tensor, hook, warn_caller
from ..errors import ShapeError
from ..functions import abs, cast, clip_by_value, cumsum, elementwise, minimum, nn, range, reduce_max, sort, sqrt, square, where
from ..functions.catalogue import row, takes_symbols
from ..functions.operands import beside, inexact, negative_axes, negative_axis, rounded_once, tensor
from ..functions.shaping import reshape, split, transpose
from ..types import Axis, TensorLike
from .arguments import Catalogue

F = TypeVar("F", bound=Callable[..., Any])

catalogue = Catalogue("activation")


def activation(*names: str, symbolic: Callable[[Any], Callable[..., Any]] | None = None) -> Callable[[F], F]:
    """A decorator that enters a function under its own and further names.

    Args:
        symbolic: the function of KerasTensors, given `keras`; that of `keras.ops` of the same name if None.
    """

    def enter(function: F) -> F:
        signature = inspect.signature(function)

        def step(*args: Any, **options: Any) -> Any:
            keras = hook("keras")
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            found = getattr(keras.ops, function.__name__) if symbolic is None else symbolic(keras)
            return found(**bound.arguments)

        entered: F = catalogue.add(*names)(takes_symbols(function, step))
        return entered

    return enter


def _entered(
    name: str, function: Callable[..., Any], summary: str, example: str, *names: str, symbolic: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function from one row, as in the catalogue, entered under its own and further names; options are floats."""
    types = dict.fromkeys(("alpha", "b", "threshold", "default_value"), "float")
    return activation(*names, symbolic=symbolic)(row(name, function, summary, example, types=types))


def named(function: F, *names: str) -> F:
    """A function of `tf.nn` or `tf.math`, entered under its own and further names."""
    return catalogue.add(*names)(function if hasattr(function, "takes_symbols") else takes_symbols(function))


def get(identifier: Any) -> Callable[..., Tensor]:
    """The function for a name, a configuration, a function or a layer; None is linear.

    >>> print(tf.keras.activations.get("relu")([-1.0, 2.0]).numpy())
    [0. 2.]
    """
    return catalogue.get("linear" if identifier is None else identifier)


def serialize(activation: str | Callable[..., Any] | None) -> Any:
    """The name of an activation of this package; the configuration of a layer or of another function.

    >>> tf.keras.activations.serialize(tf.keras.activations.relu)
    'relu'
    """
    known = catalogue.name_of(activation)
    return catalogue.serialize(activation) if known is None else known


def deserialize(config: Any, custom_objects: Any = None) -> Callable[..., Tensor]:
    """The function for what `serialize` gave.

    >>> tf.keras.activations.deserialize("relu") is tf.keras.activations.relu
    True
    """
    return catalogue.deserialize(config, custom_objects)


sigmoid = named(elementwise.sigmoid)
tanh = named(elementwise.tanh)
softplus = named(elementwise.softplus)
log_sigmoid = named(elementwise.log_sigmoid)
selu = named(nn.selu)
silu = swish = named(nn.silu, "swish")
softsign = named(nn.softsign)


# fmt: off
elu = _entered("elu", lambda x, alpha=1.0: nn.elu(x, alpha),
    "x where x > 0, else alpha (e**x - 1).\n\nSource: Clevert, Unterthiner and Hochreiter (2015), equation (15).",
    "print(tf.keras.activations.elu([2.0]).numpy()) -> [2.]")
celu = _entered("celu", lambda x, alpha=1.0: alpha * nn.elu(inexact("celu", tensor(x)) / alpha),
    "x where x > 0, else alpha (e**(x / alpha) - 1): an elu whose slope is 1 on both sides of 0 for any alpha > 0.\n\n"
    "Source: Barron (2017), Continuously Differentiable Exponential Linear Units, equation (2).",
    "print(tf.keras.activations.celu([-1000.0, 2.0], alpha=0.5).numpy()) -> [-0.5  2. ]")
gelu = _entered("gelu", lambda x, approximate=False: nn.gelu(x, approximate),
    "x Phi(x), with Phi the normal distribution function; by tanh if `approximate`.",
    "print(tf.keras.activations.gelu([0.0]).numpy()) -> [0.]")
exponential = _entered("exponential", lambda x: elementwise.exp(x), "e**x.",
    "print(tf.keras.activations.exponential([0.0]).numpy()) -> [1.]", symbolic=lambda keras: keras.ops.exp)
mish = _entered("mish", lambda x: (x := inexact("mish", tensor(x))) * tanh(softplus(x)),
    "x tanh(softplus(x)).\n\n"
    "Source: Misra (2019), Mish: A Self Regularized Non-Monotonic Activation Function, equation (1).",
    "print(tf.keras.activations.mish([0.0, 1.0]).numpy().round(4)) -> [0.     0.8651]",
    symbolic=lambda keras: lambda x: x * keras.ops.tanh(keras.ops.softplus(x)))
tanh_shrink = _entered("tanh_shrink", lambda x: (x := inexact("tanh_shrink", tensor(x))) - tanh(x), "x - tanh(x).",
    "print(tf.keras.activations.tanh_shrink([0.0, 1.0]).numpy().round(4)) -> [0.     0.2384]")
squareplus = _entered("squareplus", lambda x, b=4.0: ((x := inexact("squareplus", tensor(x))) + sqrt(square(x) + b)) / 2.0,
    "(x + sqrt(x**2 + b)) / 2: a softplus without exponentials.\n\n"
    "Source: Barron (2021), Squareplus: A Softplus-Like Algebraic Rectifier, equation (1).",
    "print(tf.keras.activations.squareplus([0.0, 1.5]).numpy()) -> [1. 2.]")
linear = _entered("linear", lambda x: tensor(x), "x itself.", "print(tf.keras.activations.linear(2.0).numpy()) -> 2.0",
    symbolic=lambda keras: lambda x: x)
leaky_relu = _entered("leaky_relu", lambda x, negative_slope=0.2: nn.leaky_relu(x, negative_slope),
    "x where x > 0, else negative_slope x.", "print(tf.keras.activations.leaky_relu([-1.0], 0.5).numpy()) -> [-0.5]")
hard_sigmoid = _entered("hard_sigmoid", lambda x: nn.relu6(inexact("hard_sigmoid", tensor(x)) + 3.0) / 6.0,
    "x / 6 + 1 / 2, limited to [0, 1].\n\n"
    "Source: Courbariaux, Bengio and David (2015), BinaryConnect, equation (3), with another slope.",
    "print(tf.keras.activations.hard_sigmoid([-4.0, 0.0]).numpy()) -> [0.  0.5]")
hard_silu = hard_swish = _entered("hard_silu", lambda x: (x := tensor(x)) * hard_sigmoid(x),
    "x hard_sigmoid(x): 0 below -3, x above 3.\n\nSource: Howard et al. (2019), Searching for MobileNetV3, section 5.2.",
    "print(tf.keras.activations.hard_silu([-4.0, 0.0, 4.0]).numpy()) -> [-0.  0.  4.]", "hard_swish")
hard_tanh = _entered("hard_tanh", lambda x: clip_by_value(inexact("hard_tanh", tensor(x)), -1.0, 1.0),
    "x limited to [-1, 1]; the slope is 1 inside and at both edges.",
    "print(tf.keras.activations.hard_tanh([-2.0, 0.5, 2.0]).numpy()) -> [-1.   0.5  1. ]")
hard_shrink = _entered("hard_shrink", lambda x, threshold=0.5: where(abs(x := tensor(x)) > threshold, x, 0.0),
    "x where |x| > threshold, else 0.",
    "print(tf.keras.activations.hard_shrink([-1.0, 0.5, 1.0]).numpy()) -> [-1.  0.  1.]")
soft_shrink = _entered("soft_shrink", lambda x, threshold=0.5: (x := tensor(x)) - clip_by_value(x, -threshold, threshold),
    "x moved by the threshold toward 0, and 0 where it gets there.",
    "print(tf.keras.activations.soft_shrink([-1.0, 0.25, 2.0]).numpy()) -> [-0.5  0.   1.5]")
threshold = _entered("threshold", lambda x, threshold, default_value: where((x := tensor(x)) > threshold, x, default_value),
    "x where x > threshold, else default_value.",
    "print(tf.keras.activations.threshold([-1.0, 2.0], 0.0, 10.0).numpy()) -> [10.  2.]")
sparse_plus = _entered("sparse_plus",
    lambda x: square((clip_by_value(x := inexact("sparse_plus", tensor(x)), -1.0, 1.0) + 1.0) / 2.0) + nn.relu(x - 1.0),
    "0 below -1, (x + 1)**2 / 4 up to 1, x above: a softplus that reaches 0.",
    "print(tf.keras.activations.sparse_plus([-2.0, 0.0, 2.0]).numpy()) -> [0.   0.25 2.  ]")
sparse_sigmoid = _entered("sparse_sigmoid",
    lambda x: clip_by_value((inexact("sparse_sigmoid", tensor(x)) + 1.0) / 2.0, 0.0, 1.0),
    "(x + 1) / 2 limited to [0, 1], the slope of `sparse_plus`; its own is 1 / 2 inside and at both edges.",
    "print(tf.keras.activations.sparse_sigmoid([-2.0, 0.0, 2.0]).numpy()) -> [0.  0.5 1. ]")
# fmt: on


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
def softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, or along several as if they were one; along all if None. An axis of size 1, over
    which all results are 1, is warned about.

    >>> print(tf.keras.activations.softmax([[0.0, 0.0]]).numpy())
    [[0.5 0.5]]
    >>> print(tf.keras.activations.softmax([[0.0, 0.0], [0.0, 0.0]], axis=(0, 1)).numpy())
    [[0.25 0.25]
     [0.25 0.25]]
    """
    result = _along(nn.softmax, x, axis)
    if isinstance(axis, int) and result.shape[axis] == 1:
        shape = ["..."] * result.ndim  # a trial on zeros has sizes of its own
        shape[axis] = "1"
        warn_caller(
            f"You are using a softmax over axis {axis} of a tensor of shape ({', '.join(shape)}). This axis has size 1. The "
            "softmax operation will always return the value 1, which is likely not what you intended. Did you mean to use a "
            "sigmoid instead?"
        )
    return result


@activation()
def log_softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """The logarithm of softmax, exact where softmax underflows; along an axis, or along several (all if
    None) as if they were one.

    >>> print(tf.keras.activations.log_softmax([1000.0, 0.0]).numpy())
    [    0. -1000.]
    """
    return _along(nn.log_softmax, x, axis)


def _along(function: Callable[..., Tensor], x: TensorLike, axis: Axis) -> Tensor:
    """A function along one axis of `x`; several are moved to the end and laid out as one."""
    if axis is not None and not isinstance(axis, (tuple, list)):
        return function(x, axis)
    x = tensor(x)
    axis = np.arange(x.ndim).tolist() if axis is None else axis
    if not axis:
        raise ValueError(f"{function.__name__}: no axis was given, found axis={axis!r}. Give one or several, such as -1.")
    axes = negative_axes(axis, x.ndim, function.__name__)
    order = sorted(np.arange(-x.ndim, 0).tolist(), key=lambda place: (place in axes, place))
    moved = transpose(x, [place + x.ndim for place in order])
    shape = tuple(moved.shape)
    joined = reshape(moved, (*shape[: -len(axes)], math.prod(shape[-len(axes) :])))
    return transpose(reshape(function(joined, -1), shape), np.argsort(order).tolist())


@activation()
@rounded_once
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """max(x - tau, 0) along an axis, with tau such that the sum is 1: the nearest distribution, in which small shares are 0.

    tau is the largest of (sum of the k largest - 1) / k over all k.

    Source: Martins and Astudillo (2016), From Softmax to Sparsemax, proposition 1.

    >>> print(tf.keras.activations.sparsemax([[1.0, 0.5, -1.0]]).numpy())
    [[0.75 0.25 0.  ]]
    """
    x = inexact("sparsemax", tensor(x))
    place = negative_axis(axis, x.ndim, "sparsemax")
    counts = reshape(cast(beside(x, range(1, x.shape[place] + 1)), x.dtype), (-1, *[1] * (-place - 1)))
    tau = reduce_max((cumsum(sort(x, place, "DESCENDING"), place) - 1.0) / counts, place, keepdims=True)
    return nn.relu(x - tau)


@activation()
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """a sigmoid(b), for a and b the two halves of x along an axis.

    Raises:
        ShapeError: if the axis has an odd size.

    Source: Dauphin et al. (2017), Language Modeling with Gated Convolutional Networks, equation (1).

    >>> print(tf.keras.activations.glu([[3.0, 0.0]]).numpy())
    [[1.5]]
    """
    x = inexact("glu", tensor(x))
    place = negative_axis(axis, x.ndim, "glu")
    if x.shape[place] % 2:
        raise ShapeError(f"glu: axis {axis} of shape {x.shape} has the odd size {x.shape[place]}; it is split in two halves.")
    values, gates = split(x, 2, place)
    return values * sigmoid(gates)


globals()["__all__"] = sorted([*catalogue.names(), "deserialize", "get", "serialize"])
