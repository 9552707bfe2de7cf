"""Products that sum over shared axes: linear in each factor, and the transpose in one is again a product."""

from __future__ import annotations

import contextlib
import math
import string
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ...types import Array, TensorLike
from ..families import bilinear, primitive, unbroadcast
from ..registry import find_hook
from .arithmetic import add, conj_if_complex
from .reductions import identity_like, total
from .shaping import broadcast_to, reshape, swap_last

LONG = 1 << 18
"""Multiplications from which a floor above may share a product among threads: OpenBLAS would take several."""


def _matrix_product(xp: ModuleType, a: Array, b: Array) -> Array:
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("matrices have at least two axes")
    if a.shape[-1] == 1 == b.shape[-2]:  # columns times rows: nothing to add up, and a product of elements is twice as fast
        return a * b
    if (kind := a.dtype.kind) == "V":  # bfloat16: NumPy adds up in float32 and leaves it there
        return (a @ b).astype(a.dtype)
    if xp is np and a.size * b.shape[-1] >= LONG and (product := find_hook("product")) is not None:
        return product(a, b)
    if xp is np and kind == "f" and a.ndim == 2 == b.ndim and a.flags.forc and b.flags.forc:
        return a.dot(b)  # the same call of BLAS, 0.5 us sooner; it needs memory without gaps
    return a @ b


def _left(g: TensorLike, a: TensorLike, b: TensorLike) -> Any:
    return unbroadcast(matrix_product(g, swap_last(conj_if_complex(b))), a)


def _right(g: TensorLike, a: TensorLike, b: TensorLike) -> Any:
    if len(a.shape) > 2 and len(b.shape) == 2:  # one product over all rows instead of a sum of many
        rows = math.prod(a.shape[:-1])  # named, since -1 says nothing where another size is 0
        a = reshape(a, shape=(rows, a.shape[-1]), rank=len(a.shape))
        g = reshape(g, shape=(rows, g.shape[-1]), rank=len(g.shape))
    return unbroadcast(matrix_product(swap_last(conj_if_complex(a)), g), b)


def _product_of_stacks(batch: Any, product: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Stacks of matrices times one matrix are one tall matrix times it: one product instead of many."""
    a, b = (x.stacked if batch.holds(x) else x for x in inputs)
    if len(a.shape) == 3 and len(b.shape) == 2 and len(inputs[0].shape) == 2:
        tall = product(reshape(a, shape=(a.shape[0] * a.shape[1], a.shape[2]), rank=3), b)
        return reshape(tall, shape=(a.shape[0], a.shape[1], b.shape[-1]), rank=2)
    return batch.align(product, inputs, params)


matrix_product = bilinear(
    "matrix_product", _matrix_product, _left, _right, batching=_product_of_stacks, accumulates=True, weight=1
)


def _affine(xp: ModuleType, x: Array, kernel: Array, bias: Array) -> Array:
    y = _matrix_product(xp, x, kernel)
    if type(y) is np.ndarray and len(y) == 1 == bias.ndim:
        row = y[0]  # NumPy adds arrays of one shape 0.4 us sooner
        row += bias
    else:
        y += bias
    return y


def _affine_rule(
    wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    x, kernel, bias = inputs
    rules = (lambda: _left(g, x, kernel), lambda: _right(g, x, kernel), lambda: unbroadcast(g, bias))
    return [rules[i]() for i in wanted]


def _affine_jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    (x, kernel, _), (s, t, u) = inputs, tangents
    parts = [None if s is None else matrix_product(s, kernel), None if t is None else matrix_product(x, t), u]
    sum_of_parts = total([part for part in parts if part is not None])
    return sum_of_parts if sum_of_parts.shape == y.shape else broadcast_to(sum_of_parts, shape=tuple(y.shape), rank=1)


def _affine_of_stacks(batch: Any, operation: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    x, kernel, bias = inputs
    stacked = batch.holds(x) or batch.holds(kernel)
    product = _product_of_stacks(batch, matrix_product, (x, kernel), {}) if stacked else matrix_product(x, kernel)
    rows = reshape(bias.stacked, shape=(batch.size, 1, bias.shape[-1]), rank=2) if batch.holds(bias) else bias
    return add(product, rows)


# A layer's product and sum in one Record, with the sum written into the product's memory.
affine = primitive("affine", _affine, vjp=_affine_rule, jvp=_affine_jvp, batching=_affine_of_stacks, accumulates=True, weight=1)


def _einsum(xp: ModuleType, *xs: Array, terms: tuple[str, ...], result: str) -> Array:
    if xs[0].dtype.kind == "V":  # bfloat16, which NumPy's einsum does not know
        return _einsum(xp, *[x.astype("float32") for x in xs], terms=terms, result=result).astype(xs[0].dtype)
    # Leading axes beyond the labelled ones are a batch.
    batched = [x.ndim > len(term) for x, term in zip(xs, terms, strict=True)]
    inputs = ",".join("..." * more + term for term, more in zip(terms, batched, strict=True))
    equation = f"{inputs}->{'...' * any(batched)}{result}"
    quiet_blas = find_hook("quiet_blas")
    with contextlib.nullcontext() if quiet_blas is None else quiet_blas():
        return xp.einsum(equation, *xs, optimize=True) if len(xs) > 1 else xp.einsum(equation, *xs)


def _einsum_vjp(i: int, g: TensorLike, xs: Any, terms: tuple[str, ...], result: str) -> Any:
    """The product of the cotangent with the other factors, labelled like factor i."""
    terms, result = _with_batch_labels(xs, terms, result)
    x, term = xs[i], terms[i]
    others = [j for j in range(len(xs)) if j != i]
    reachable = set(result).union(*(terms[j] for j in others))
    unique = "".join(dict.fromkeys(term))
    known = "".join(label for label in unique if label in reachable)
    factors = [g, *(conj_if_complex(xs[j]) for j in others)]
    cotangent = einsum(*factors, terms=(result, *(terms[j] for j in others)), result=known)
    if known != unique:  # a label that only this factor has was summed away: spread it again
        sizes = dict(zip(term, x.shape, strict=True))
        kept = tuple(sizes[label] if label in known else 1 for label in unique)
        cotangent = reshape(cotangent, shape=kept, rank=len(known))
        cotangent = broadcast_to(cotangent, shape=tuple(sizes[label] for label in unique), rank=len(unique))
    if unique != term:  # a repeated label read a diagonal: write one
        cotangent = _onto_diagonal(cotangent, unique, term, x)
    return cotangent


def _with_batch_labels(xs: Any, terms: tuple[str, ...], result: str) -> tuple[tuple[str, ...], str]:
    """The equation with a label for every leading axis, so that a factor without them collects a sum over the batch."""
    extra = [len(x.shape) - len(term) for x, term in zip(xs, terms, strict=True)]
    if not any(extra):
        return terms, result
    unused = [label for label in string.ascii_letters if label not in "".join(terms)]
    lead = "".join(unused[: max(extra)])
    return tuple(lead[len(lead) - n :] + term for n, term in zip(extra, terms, strict=True)), lead + result


def _onto_diagonal(value: Any, unique: str, term: str, like: Any) -> Any:
    """`value` with labels `unique`, placed where all axes of one repeated label agree, zero elsewhere."""
    factors, labels = [value], [unique]
    spare = [chr(code) for code in range(0x100, 0x200)]
    target, seen = "", set()
    for label, size in zip(term, like.shape, strict=True):
        if label in seen:
            fresh = spare.pop()
            factors.append(identity_like(value, n=size, trailing=0))
            labels.append(label + fresh)
            target += fresh
        else:
            seen.add(label)
            target += label
    # Both spare and given labels become ASCII letters, which is all that einsum takes.
    letters = {ord(label): letter for label, letter in zip(dict.fromkeys("".join(labels)), string.ascii_letters, strict=False)}
    return einsum(*factors, terms=tuple(label.translate(letters) for label in labels), result=target.translate(letters))


def _einsum_jvp(tangents: Sequence[Any], y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    moved = [
        einsum(*(t if j == i else x for j, x in enumerate(inputs)), **params) for i, t in enumerate(tangents) if t is not None
    ]
    return total(moved)


def _einsum_of_stacks(batch: Any, product: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """As it is, unless a stack lacks leading axes that another factor has: then axes of size 1 stand for them."""
    extra = [len(x.shape) - len(term) for x, term in zip(inputs, params["terms"], strict=True)]
    ready = []
    for x, n in zip(inputs, extra, strict=True):
        missing = (1,) * (max(extra) - n)
        if not batch.holds(x):
            ready.append(x)
        elif missing:
            whole = x.stacked
            ready.append(reshape(whole, shape=(batch.size, *missing, *whole.shape[1:]), rank=len(whole.shape)))
        else:
            ready.append(x.stacked)
    return product(*ready, **params)


einsum = primitive(
    "einsum",
    _einsum,
    vjp=lambda wanted, g, y, inputs, params: [_einsum_vjp(i, g, inputs, **params) for i in wanted],
    jvp=_einsum_jvp,
    batching=_einsum_of_stacks,
    accumulates=True,
)
