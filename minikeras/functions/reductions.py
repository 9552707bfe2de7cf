"""Sums, means, extrema, norms and running sums along axes. `axis` is turned into negative axes here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core import Primitive, Tensor, convert_to_tensor
from ..core.ops import arithmetic, reductions, shaping, transcendental
from ..errors import ShapeError
from ..types import Axis, DTypeLike, TensorLike
from .catalogue import name_like_definition, row
from .elementwise import cast, lgamma
from .operands import inexact, negative_axes, negative_axis, rounded_once, tensor
from .shaping import expand_dims, reshape, squeeze, stack, transpose
from .shaping import reverse as reverse_along

_DOCUMENTATION = """{summary} along axes.

Args:
    input_tensor: tensor of any shape.
    axis: an axis, a list of axes, or None for all.
    keepdims: keep the reduced axes with size 1.

Returns:
    A Tensor without the axes that were reduced. Derivative: {derivative}.

Raises:
    ShapeError: if there is no such axis.

>>> print(tf.{name}({sample}).numpy())
{expected}
"""


def _reduction(
    primitive: Primitive, name: str, summary: str, derivative: str, sample: str, expected: str, kinds: str = ""
) -> Callable[..., Tensor]:
    """The public function over a reducing primitive."""

    def function(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        x = tensor(input_tensor)
        if kinds:
            inexact(function.__name__, x, kinds)
        axes = negative_axes(axis, len(x.array.shape), function.__name__)
        return primitive(x, axes=axes, keepdims=bool(keepdims))

    place = "math." + name if name == "reduce_euclidean_norm" else name
    text = _DOCUMENTATION.format(summary=summary, derivative=derivative, name=place, sample=sample, expected=expected)
    return name_like_definition(function, name, __name__, text)


# fmt: off
reduce_sum = _reduction(reductions.reduce_sum, "reduce_sum", "Sum", "1", "[1.0, 2.0, 3.0]", "6.0")
reduce_mean = _reduction(reductions.reduce_mean, "reduce_mean", "Mean; truncated for integers", "1/n", "[1.0, 2.0, 3.0]", "2.0")
reduce_max = _reduction(reductions.reduce_max, "reduce_max", "Maximum", "1, shared evenly at a tie", "[1.0, 3.0, 2.0]", "3.0")
reduce_min = _reduction(reductions.reduce_min, "reduce_min", "Minimum", "1, shared evenly at a tie", "[1.0, 3.0, 2.0]", "1.0")
reduce_prod = _reduction(reductions.reduce_prod, "reduce_prod", "Product", "the product of the others, exact with zeros",
    "[1.0, 2.0, 3.0]", "6.0")
reduce_logsumexp = _reduction(reductions.reduce_logsumexp, "reduce_logsumexp", "ln(sum(exp(x))), without overflow,",
    "softmax(x)", "[1000.0, 0.0]", "1000.0", "f")
reduce_euclidean_norm = _reduction(reductions.reduce_euclidean_norm, "reduce_euclidean_norm", "sqrt(sum(|x|**2))",
    "x / |x|, 0 at the origin", "[3.0, 4.0]", "5.0", "fc")
reduce_any = _reduction(reductions.reduce_any, "reduce_any", "True if any element is", "none", "[True, False]", "True")
reduce_all = _reduction(reductions.reduce_all, "reduce_all", "True if all elements are", "none", "[True, False]", "False")
# fmt: on


@rounded_once
def reduce_variance(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Population variance along axes: mean(|x - mean(x)|**2), real, in two passes so that a large mean costs no accuracy.

    >>> print(tf.math.reduce_variance([1.0, 3.0]).numpy())
    1.0
    """
    x = inexact("reduce_variance", tensor(input_tensor))
    return reductions.variance(x, negative_axes(axis, x.ndim, "reduce_variance"), keepdims)


@rounded_once
def reduce_std(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Population standard deviation along axes. For equal values it is 0 with the subgradient 0; of nothing it is NaN.

    Where second derivatives at equal values matter, write its square as `tf.math.reduce_variance(x)`.

    >>> print(tf.math.reduce_std([1.0, 3.0]).numpy())
    1.0
    """
    x = inexact("reduce_std", tensor(input_tensor))
    axes = negative_axes(axis, x.ndim, "reduce_std")
    root = math.sqrt(reductions.count(x.shape, axes))
    return reductions.reduce_euclidean_norm(reductions.centred(x, axes), axes=axes, keepdims=keepdims) / root


@rounded_once
def norm(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Norm of vectors, or of all elements.

    Args:
        tensor: float or complex tensor.
        ord: 'euclidean', 'fro', 1, 2, any positive number p for (sum |x|**p)**(1/p), or infinity.
        axis: None for all elements, an axis for vectors, a pair of axes for matrices ('euclidean', 'fro', 1, inf, 2).
        keepdims: keep the reduced axes with size 1.

    Returns:
        A Tensor, real also for complex `tensor`. The gradient at the origin is the subgradient 0, which is right for first
        derivatives only: for second ones write the square of the norm as `tf.reduce_sum(tf.square(x))`.

    >>> print(tf.norm([3.0, -4.0]).numpy(), tf.norm([3.0, -4.0], ord=1).numpy())
    5.0 7.0
    """
    x = inexact("norm", convert_to_tensor(tensor))
    axes = negative_axes(axis, x.ndim, "norm")
    pair = isinstance(axis, (list, tuple)) and len(axis) == 2
    if ord in ("euclidean", "fro") or (ord == 2 and not pair):
        return reduce_euclidean_norm(x, axes, keepdims)
    if pair:
        places = [negative_axis(one, x.ndim, "norm") for one in axis]
        if ord not in (1, math.inf) and (ord != 2 or sorted(places) != [-2, -1]):
            raise ValueError(f"norm: ord {ord!r} is not available for matrices along axes {places}; use 'fro', 1, 2 or inf.")
        return matrix_norm(x, ord, sorted(places) if ord == 2 else places, keepdims)
    size = arithmetic.absolute(x)
    if ord == math.inf:
        return reduce_max(size, axes, keepdims)
    if ord == 1:
        return reduce_sum(size, axes, keepdims)
    if not isinstance(ord, (int, float)) or ord <= 0:
        raise ValueError(f"norm: ord must be 'euclidean', 'fro', a positive number or inf, found {ord!r}.")
    total = reduce_sum(arithmetic.power(size, float(ord)), axes, keepdims)
    root = arithmetic.power(total, 1.0 / ord)
    # The root has an infinite slope at 0, where the norm has the subgradient 0: there nothing goes back through it.
    return arithmetic.select(total > 0, root, arithmetic.zeros_like(total))


def matrix_norm(x: Tensor, ord: float | str, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Norms of matrices whose rows and columns lie along two negative axes: ord 1, -1, inf, -inf, 2, -2 or 'nuc'."""
    from ..nn_ops.linalg import singular_values

    rows, columns = axes
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (rows, columns) if ord in (1, -1) else (columns, rows)
        extremum = reduce_max if ord > 0 else reduce_min
        found = extremum(reduce_sum(arithmetic.absolute(x), inner, True), outer, True)
        return found if keepdims else squeeze(found, list(axes))
    order = [*(one for one in range(-x.ndim, 0) if one not in axes), rows, columns]
    turned = x if order == list(range(-x.ndim, 0)) else transpose(x, order)
    found = {2: reduce_max, -2: reduce_min, "nuc": reduce_sum}[ord](rounded_once(singular_values)(turned), -1)
    for one in sorted([axis + x.ndim for axis in axes]) if keepdims else ():
        found = expand_dims(found, one)
    return found


def _position(primitive: Primitive, name: str, value: TensorLike, axis: Axis, dtype: DTypeLike) -> Tensor:
    from ..types import as_dtype

    x = tensor(value)
    where = negative_axis(0 if axis is None else axis, x.ndim, name)
    return primitive(x, axis=where, dtype=as_dtype("int64" if dtype is None else dtype).name)


def cumsum(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sum along an axis: y_k = x_0 + ... + x_k.

    Args:
        x: tensor with at least one axis.
        axis: along which to add.
        exclusive: leave x_k itself out.
        reverse: run from the end.

    >>> print(tf.cumsum([1.0, 2.0, 3.0]).numpy())
    [1. 3. 6.]
    """
    value = tensor(x)
    return reductions.cumsum(value, axis=negative_axis(axis, value.ndim, "cumsum"), exclusive=exclusive, reverse=reverse)


def cumulative_logsumexp(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running ln(sum(exp(x))) along an axis without overflow; options as in `cumsum`.

    >>> print(tf.math.cumulative_logsumexp([1000.0, 1000.0, 0.0]).numpy().round(2))
    [1000.   1000.69 1000.69]
    """
    value = inexact("cumulative_logsumexp", tensor(x), "f")
    place = negative_axis(axis, value.ndim, "cumulative_logsumexp")
    value = reverse_along(value, [place]) if reverse else value
    value = shaping.shifted(value, place, 1, -math.inf) if exclusive and value.shape[place] else value
    value = reductions.running_logsumexp(value, axis=place)
    return reverse_along(value, [place]) if reverse else value


def _nonzero(x: Tensor) -> Tensor:
    return x if x.dtype.is_bool else arithmetic.not_equal(x, "" if x.dtype == "string" else 0)


def _in_order(x: TensorLike, relation: Primitive) -> Tensor:
    flat = reshape(tensor(x), (-1,))
    return reduce_all(relation(flat[1:], flat[:-1]))


@rounded_once
def l2_normalize(x: TensorLike, axis: Axis = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """x / sqrt(max(sum(|x|**2), epsilon)) along axes; the zero vector stays zero.

    >>> print(tf.math.l2_normalize([3.0, 4.0]).numpy())
    [0.6 0.8]
    """
    value = inexact("l2_normalize", tensor(x))
    squares = arithmetic.real(value * arithmetic.conj(value)) if value.dtype.is_complex else value * value
    total = reductions.reduce_sum(squares, axes=negative_axes(axis, value.ndim, "l2_normalize"), keepdims=True)
    factor = transcendental.rsqrt(arithmetic.maximum(total, float(epsilon)))
    return value * (arithmetic.cast(factor, dtype=value.dtype.name) if value.dtype.is_complex else factor)


def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Tensor:
    """sqrt(sum of squares) over all tensors of a list together; None is left out.

    >>> print(tf.linalg.global_norm([[3.0], [4.0]]).numpy())
    5.0
    """
    present = [tensor(t) for t in t_list if t is not None]
    return _in_their_dtype(_common_length([_widened(t) for t in present]), present)


def _common_length(tensors: list[Tensor]) -> Tensor:
    """The norm of all tensors together."""
    if not tensors:
        return convert_to_tensor(0.0)
    # A norm of norms has the subgradient 0 at the origin, which the root of a sum has not.
    return reduce_euclidean_norm(stack([reduce_euclidean_norm(t) for t in tensors]))


def _widened(x: Tensor) -> Tensor:
    return cast(x, "float32") if x.dtype.is_floating and x.dtype.size == 2 else x


def _in_their_dtype(length: Tensor, tensors: list[Tensor]) -> Tensor:
    """A length of tensors, rounded to their dtype if they have one in common."""
    dtypes = {t.dtype.name for t in tensors}
    return cast(length, dtypes.pop()) if len(dtypes) == 1 else length


@rounded_once
def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: Axis = None, name: str | None = None) -> Tensor:
    """`t` scaled down to Euclidean norm `clip_norm` if it is longer: t * c / max(|t|, c).

    >>> print(tf.clip_by_norm([3.0, 4.0], 1.0).numpy())
    [0.6 0.8]
    """
    value = inexact("clip_by_norm", tensor(t), "f")
    length = reduce_euclidean_norm(value, axes, True)
    clipped = value * clip_norm / arithmetic.maximum(length, clip_norm)
    if clipped.shape != value.shape:
        raise ShapeError(f"clip_by_norm: the norms make {value.shape} into {clipped.shape}; give one, or one for each row.")
    return clipped


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None], clip_norm: TensorLike, use_norm: TensorLike = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """All tensors scaled by one factor so that their global norm is at most `clip_norm`; None stays None.

    Returns:
        The list, each tensor in its dtype, and the global norm before clipping. A norm that is not finite makes all
        results NaN.

    >>> clipped, norm = tf.clip_by_global_norm([[3.0], None, [4.0]], 1.0)
    >>> print(clipped[0].numpy(), clipped[1], norm.numpy())
    [0.6] None 5.0
    """
    given = [None if t is None else inexact("clip_by_global_norm", tensor(t), "f") for t in t_list]
    wide = [None if t is None else _widened(t) for t in given]
    length = _common_length([t for t in wide if t is not None]) if use_norm is None else tensor(use_norm)
    known = _widened(length)
    scale = clip_norm * arithmetic.minimum(arithmetic.reciprocal(known), 1.0 / clip_norm)
    scale = arithmetic.select(arithmetic.is_finite(known), scale, float("nan"))
    scaled = [None if t is None else t * cast(scale, t.dtype) for t in wide]
    clipped = [x if x is None or t is None else cast(x, t.dtype) for x, t in zip(scaled, given, strict=True)]
    present = [t for t in given if t is not None]
    return clipped, _in_their_dtype(length, present) if use_norm is None else length


# fmt: off
argmax = row("argmax",
    lambda input, axis=None, output_type="int64", name=None: _position(reductions.argmax, "argmax", input, axis, output_type),
    "Index of the largest element along an axis (default 0); the first one at a tie.",
    "print(tf.argmax([1.0, 3.0, 2.0]).numpy()) -> 1")
argmin = row("argmin",
    lambda input, axis=None, output_type="int64", name=None: _position(reductions.argmin, "argmin", input, axis, output_type),
    "Index of the smallest element along an axis (default 0); the first one at a tie.",
    "print(tf.argmin([2.0, 3.0, 1.0]).numpy()) -> 2")
zero_fraction = row("zero_fraction",
    lambda value, name=None: reduce_mean(cast(arithmetic.logical_not(_nonzero(tensor(value))), "float32")),
    "The share of elements that are zero, in float32.", "print(tf.math.zero_fraction([0.0, 2.0, -1.0, 0.0]).numpy()) -> 0.5")
count_nonzero = row("count_nonzero",
    lambda input, axis=None, keepdims=False, dtype="int64", name=None:
        reduce_sum(cast(_nonzero(tensor(input)), dtype), axis, keepdims),
    "Number of elements along axes that are not zero.", "print(tf.math.count_nonzero([0.0, 2.0, -1.0]).numpy()) -> 2")
is_non_decreasing = row("is_non_decreasing", lambda x, name=None: _in_order(x, arithmetic.greater_equal),
    "True if no element is smaller than the one before it, in row-major order.",
    "print(tf.math.is_non_decreasing([1.0, 2.0, 2.0]).numpy()) -> True")
is_strictly_increasing = row("is_strictly_increasing", lambda x, name=None: _in_order(x, arithmetic.greater),
    "True if each element is larger than the one before it, in row-major order.",
    "print(tf.math.is_strictly_increasing([1.0, 2.0, 2.0]).numpy()) -> False")
cumprod = row("cumprod",
    lambda x, axis=0, exclusive=False, reverse=False, name=None:
        reductions.cumprod(x := tensor(x), axis=negative_axis(axis, x.ndim, "cumprod"), exclusive=exclusive, reverse=reverse),
    "Running product along an axis; options as in `cumsum`. Gradients are exact with zeros, at n**2 cost in the axis.",
    "print(tf.math.cumprod([1.0, 2.0, 3.0]).numpy()) -> [1. 2. 6.]", types={"axis": "int"})
lbeta = row("lbeta",
    lambda x, name=None: reduce_sum(lgamma(x := inexact("lbeta", tensor(x), "f")), -1) - lgamma(reduce_sum(x, -1)),
    "Logarithm of the absolute value of the multivariate beta function of the last axis: sum(ln gamma(x)) - ln gamma(sum(x)).",
    "print(f'{tf.math.lbeta([2.0, 3.0]):.4f}') -> -2.4849")
# fmt: on
