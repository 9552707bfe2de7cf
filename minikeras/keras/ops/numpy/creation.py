"""New tensors, under Keras's names. The dtype is `floatx()` where nothing says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....errors import DTypeError
from ....functions import creation as tf
from ....functions.catalogue import row as plain_row
from ....functions.catalogue import takes_symbols
from ....functions.elementwise import bitcast, cast, pow
from ....functions.operands import integer, static_shape
from ....functions.shaping import broadcast_to, expand_dims, reshape
from ....types import DTypeLike, TensorLike, as_dtype
from ... import config
from ...promotion import floating, promoted, result_type
from ...symbolic.keras_tensor import KerasTensor
from ...symbolic.operation import operation
from ...symbolic.trial import cost_of_anything
from ..rows import anything, row
from .shaping import tril


def array(x: TensorLike, dtype: DTypeLike = None) -> Any:
    """The value as a Tensor of a dtype.

    >>> print(tf.keras.ops.array([1, 2]).numpy())
    [1 2]
    """
    if isinstance(x, KerasTensor):
        return _array(x, dtype)
    x = convert_to_tensor(x)
    return x if dtype is None else cast(x, dtype)


@operation(name="Array")
def _array(x: TensorLike, dtype: DTypeLike = None) -> Tensor:
    return array(convert_to_tensor(x), dtype)


@operation(cost=cost_of_anything)
def arange(start: TensorLike, stop: TensorLike = None, step: TensorLike = None, dtype: DTypeLike = None) -> Tensor:
    """start, start + step, and so on, below `stop`; from 0 to `start` if there is no `stop`.

    >>> print(tf.keras.ops.arange(3).numpy(), tf.keras.ops.arange(1, 2, 0.5).numpy())
    [0 1 2] [1.  1.5]
    """
    if dtype is None:
        dtype = result_type(*(getattr(one, "dtype", type(one)) for one in (start, stop, step) if one is not None))
    limits = (0, start) if stop is None else (start, stop)
    numbers = [convert_to_tensor(one).numpy() for one in (*limits, 1 if step is None else step)]
    return cast(convert_to_tensor(np.arange(*numbers)), dtype)


@operation
def view(x: TensorLike, dtype: DTypeLike = None) -> Tensor:
    """The same bytes as another dtype: the last axis has more elements of a smaller one, fewer of a larger one.

    Raises:
        DTypeError: if the bytes of the last axis are no whole number of elements, or there is none.

    >>> print(tf.keras.ops.view([1.0], "int32").numpy(), tf.keras.ops.view([[1, 2, 3]], "int16").shape)
    [1065353216] (1, 6)
    """
    x = convert_to_tensor(x)
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    if wanted.size == x.dtype.size:
        return bitcast(x, wanted)
    count, rest = divmod(x.shape[-1] * x.dtype.size, wanted.size) if x.ndim else (0, 1)
    if rest:
        raise DTypeError(f"view: the last axis of {x.dtype.name}{list(x.shape)} does not hold whole {wanted.name}s.")
    parts = [count, wanted.size // x.dtype.size] if wanted.size > x.dtype.size else x.shape[-1:]
    return reshape(bitcast(reshape(x, [*x.shape[:-1], *parts]), wanted), [*x.shape[:-1], count])


@operation(cost=cost_of_anything)
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Any:
    """Numbers at equal distances from `start` to `stop`, which is left out if `endpoint` is False.

    Returns:
        A Tensor with a new axis; with `retstep` the distance too.

    >>> print(tf.keras.ops.linspace(0, 1, 3).numpy())
    [0.  0.5 1. ]
    """
    first, last = map(floating, promoted(start, stop))
    num = integer(num)
    parts = num - 1 if endpoint else num
    step = (last - first) / max(parts, 1) if parts else (last - first) * float("nan")
    found = tf.linspace(first, last if endpoint else first + step * (num - 1), num, axis=axis)
    found = found if dtype is None else cast(found, dtype)
    return (found, step) if retstep else found


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Tensor:
    """Powers of `base` with exponents at equal distances.

    >>> print(tf.keras.ops.logspace(0, 2, 3).numpy())
    [  1.  10. 100.]
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    found = pow(cast(base, exponents.dtype), exponents)
    return found if dtype is None else cast(found, dtype)


@operation(cost=cost_of_anything)
def geomspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Tensor:
    """Numbers at equal quotients from `start` to `stop`, two numbers of one sign.

    >>> print(tf.keras.ops.geomspace(1, 100, 3).numpy())
    [  1.  10. 100.]
    """
    first, last = map(floating, promoted(start, stop))
    ratio = last / first
    base, quotient = expand_dims(broadcast_to(first, ratio.shape), axis), expand_dims(ratio, axis)
    found = base * pow(quotient, linspace(tf.zeros_like(ratio), tf.ones_like(ratio), num, endpoint, axis=axis))
    return found if dtype is None else cast(found, dtype)


# Windows of signals --------------------------------------------------------------------------------------------------------


def _window(function: Callable[..., Any], places: Any, *options: float) -> Tensor:
    return cast(convert_to_tensor(function(int(convert_to_tensor(places).numpy()), *options)), config.floatx())


# fmt: off
full = row("full",
    lambda shape, fill_value, dtype=None:
        broadcast_to(cast(convert_to_tensor(fill_value), dtype or config.floatx()), static_shape(shape)),
    "One value, or what can be broadcast, in every place.", "print(tf.keras.ops.full((2,), 7.0).numpy()) -> [7. 7.]",
    cost=cost_of_anything)
zeros_like = row("zeros_like", lambda x, dtype=None: tf.zeros_like(convert_to_tensor(x), dtype),
    "Zeros of the shape of `x`, and of its dtype if no other one is given.",
    "print(tf.keras.ops.zeros_like([1, 2]).numpy()) -> [0 0]")
ones_like = row("ones_like", lambda x, dtype=None: tf.ones_like(convert_to_tensor(x), dtype),
    "Ones of the shape of `x`, and of its dtype if no other one is given.",
    "print(tf.keras.ops.ones_like([1, 2]).numpy()) -> [1 1]")
empty_like = row("empty_like", lambda x, dtype=None: tf.zeros_like(convert_to_tensor(x), dtype),
    "Elements of any values, zeros here, in the shape of `x`.", "tf.keras.ops.empty_like([1, 2]).shape -> TensorShape([2])")
zeros = plain_row("zeros", lambda shape, dtype=None: takes_symbols(tf.zeros)(shape, dtype or config.floatx()), "Zeros.",
    "print(tf.keras.ops.zeros((2,)).numpy()) -> [0. 0.]")
ones = plain_row("ones", lambda shape, dtype=None: takes_symbols(tf.ones)(shape, dtype or config.floatx()), "Ones.",
    "print(tf.keras.ops.ones((2,)).numpy()) -> [1. 1.]")
empty = plain_row("empty", lambda shape, dtype=None: zeros(shape, dtype), "Elements of any values; zeros here.",
    "tf.keras.ops.empty((2, 3)).shape -> TensorShape([2, 3])")
full_like = row("full_like", lambda x, fill_value, dtype=None: broadcast_to(cast(fill_value, dtype or x.dtype), x.shape),
    "One value in every place of the shape of `x`, in its dtype if no other one is given.",
    "print(tf.keras.ops.full_like([1, 2], 7).numpy()) -> [7 7]", takes=anything)
bartlett = plain_row("bartlett", lambda x: _window(np.bartlett, x), "The triangular window of so many places.",
    "print(tf.keras.ops.bartlett(3).numpy()) -> [0. 1. 0.]", types={"x": "int"})
blackman = plain_row("blackman", lambda x: _window(np.blackman, x),
    "Blackman's window: 0.42 - 0.5 cos(2 pi n / (x - 1)) + 0.08 cos(4 pi n / (x - 1)).",
    "print(tf.keras.ops.blackman(3).numpy().round(4) + 0.0) -> [0. 1. 0.]", types={"x": "int"})
hamming = plain_row("hamming", lambda x: _window(np.hamming, x), "Hamming's window: 0.54 - 0.46 cos(2 pi n / (x - 1)).",
    "print(tf.keras.ops.hamming(3).numpy()) -> [0.08 1.   0.08]", types={"x": "int"})
hanning = plain_row("hanning", lambda x: _window(np.hanning, x), "Hann's window: 0.5 - 0.5 cos(2 pi n / (x - 1)).",
    "print(tf.keras.ops.hanning(3).numpy()) -> [0. 1. 0.]", types={"x": "int"})
kaiser = plain_row("kaiser", lambda x, beta: _window(np.kaiser, x, float(convert_to_tensor(beta).numpy())),
    "Kaiser's window: I0(beta sqrt(1 - (2n / (x - 1) - 1)**2)) / I0(beta).",
    "print(tf.keras.ops.kaiser(3, 5.0).numpy().round(4)) -> [0.0367 1.     0.0367]",
    types={"x": "int", "beta": "float"})
eye = plain_row("eye",
    lambda N, M=None, k=0, dtype=None: convert_to_tensor(np.eye(N, M, k, dtype=as_dtype(dtype or config.floatx()).numpy)),
    "N rows and M columns with ones on the k-th diagonal.",
    "print(tf.keras.ops.eye(2).numpy().tolist()) -> [[1.0, 0.0], [0.0, 1.0]]")
identity = plain_row("identity", lambda n, dtype=None: eye(n, dtype=dtype), "The identity matrix.",
    "print(tf.keras.ops.identity(2).numpy().tolist()) -> [[1.0, 0.0], [0.0, 1.0]]")
tri = plain_row("tri", lambda N, M=None, k=0, dtype=None: tril(ones((N, N if M is None else M), dtype), k),
    "Ones on and below the k-th diagonal, else zeros.",
    "print(tf.keras.ops.tri(2).numpy().tolist()) -> [[1.0, 0.0], [1.0, 1.0]]")
vander = row("vander",
    lambda x, N=None, increasing=False:
        pow(x[:, None], cast(np.arange(x.shape[0] if N is None else N)[:: 1 if increasing else -1], x.dtype)),
    "Powers of a vector as columns: N of them, the highest first, or 1, x, x**2, and so on.",
    "print(tf.keras.ops.vander([1, 2, 3], increasing=True).numpy().tolist()) -> [[1, 1, 1], [1, 2, 4], [1, 3, 9]]",
    takes=anything, types={"N": "int | None"}, cost=cost_of_anything)
# fmt: on
