"""Convolutions and pools: bilinear operations that are each other's transposes, over windows gathered by plain slices.

x (batch, *sizes, inputs), kernel (*window, inputs / groups, outputs), g (batch, *places, outputs); a pair of `padding` a size.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, bilinear, elementwise, linear, primitive, unbroadcast
from ..core.ops.arithmetic import choose
from ..parallel import in_parallel, on_one_thread, product
from ..types import Array, TensorLike

Sizes = tuple[int, ...]
Pairs = tuple[Sizes, ...]


BLOCK = 1 << 18
"""The number of elements under the windows of one block of images, so that intermediate results stay in the cache."""
ROWS = 256
"""Fewest windows of a block, so that the kernel is not packed for a few of them."""
PARTS = 8
"""Parts of a sum over images, so that its bits do not depend on the number of threads."""
ADDED = 8
"""Fewest windows of a block of such a sum for each output, so that adding the parts up is a small part of the work."""


class SamePadding(tuple[Sizes, ...]):
    """Pairs that were found from the word 'SAME', for a recording or export for other sizes."""

    __slots__ = ()


def places(sizes: Sizes, window: Sizes, strides: Sizes, padding: Pairs, dilation: Sizes) -> Sizes:
    """The number of windows that fit along each axis."""
    return tuple(
        max(0, (size + before + after - (width - 1) * spread - 1) // step + 1)
        for size, width, step, (before, after), spread in zip(sizes, window, strides, padding, dilation, strict=True)
    )


def offsets(window: Sizes, count: Sizes, strides: Sizes, dilation: Sizes) -> Iterator[tuple[Any, ...]]:
    """For each element of the window, the key of the inputs under it in all places; the last axis holds channels."""
    for position in itertools.product(*map(range, window)):
        parts = zip(position, count, strides, dilation, strict=True)
        yield (
            Ellipsis,
            *(slice(i * spread, i * spread + step * (n - 1) + 1 if n else 0, step) for i, n, step, spread in parts),
            slice(None),
        )


def _images_at_once(x: TensorLike, window: Sizes, count: Sizes, channels: int) -> int:
    """The number of images in a block; 0 if they are taken whole: few of them, or arrays that are not NumPy's."""
    batch, covered = len(x) if x.ndim else 0, math.prod(count)
    each = covered * math.prod(window) * channels
    size = max(1, BLOCK // max(each, 1), ROWS // max(covered, 1))
    return size if x.dtype.kind in "fi" and batch >= 2 * size else 0


def _share(work: Callable[[int, int], Any], count: int) -> None:
    """Share `count` pieces of work among threads, each with one thread of BLAS."""
    one_thread = on_one_thread()
    if one_thread is None:  # it may take all processors for each piece
        work(0, count)
        return
    with one_thread:
        in_parallel(work, count, 1, 1)


def _by_images(kernel: bool = False, transposed: bool = False) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """A function of images in blocks of images, which threads share.

    Args:
        kernel: whether its last operand is a kernel, which all images have in common.
        transposed: whether its first operand has the places of windows.
    """

    def decorate(function: Callable[..., Array]) -> Callable[..., Array]:
        @functools.wraps(function)
        def run(xp: ModuleType, *operands: Any, **geometry: Any) -> Array:
            x = operands[0]
            window = _window(operands[-1], geometry) if kernel else geometry["window"]
            if xp is not np or any(one.ndim != len(window) + 2 for one in operands):
                return function(xp, *operands, **geometry)
            count = tuple(x.shape[1:-1]) if transposed else _count(x, window, geometry)
            channels = operands[1].shape[-2] * geometry["groups"] if kernel else x.shape[-1]
            size = _images_at_once(x, window, count, channels)
            if not size:
                return function(xp, *operands, **geometry)
            shared = operands[1:] if kernel else ()
            cut = operands[:1] if kernel else operands
            first = function(xp, *(one[:size] for one in cut), *shared, **geometry)
            whole = np.empty((len(x), *first.shape[1:]), first.dtype)
            whole[:size] = first

            def work(start: int, stop: int) -> None:
                for block in range(start + 1, stop + 1):
                    rows = slice(block * size, (block + 1) * size)
                    whole[rows] = function(xp, *(one[rows] for one in cut), *shared, **geometry)

            _share(work, -(-len(x) // size) - 1)
            return whole

        return run

    return decorate


def _padded(xp: ModuleType, x: Array, padding: Pairs, value: Any = 0) -> Array:
    if not any(map(any, padding)):
        return x
    return xp.pad(x, ((0, 0),) * (x.ndim - len(padding) - 1) + padding + ((0, 0),), constant_values=value)


def _count(x: TensorLike, window: Sizes, geometry: dict[str, Any]) -> Sizes:
    """The number of windows that fit along each axis of x."""
    return places(
        tuple(x.shape[-len(window) - 1 : -1]), window, *(geometry[name] for name in ("strides", "padding", "dilation"))
    )


def _windows(xp: ModuleType, x: Array, window: Sizes, geometry: dict[str, Any]) -> Array:
    """The windows, without a copy: (..., batch, *places, *window, inputs)."""
    strides, dilation = geometry["strides"], geometry["dilation"]
    rank, count, source = len(window) + 1, _count(x, window, geometry), _padded(xp, x, geometry["padding"])
    *outer, last = source.strides
    steps = outer[1 - rank :]
    apart = [step * n for several in (strides, dilation) for step, n in zip(steps, several, strict=True)]
    shape = (*x.shape[: 1 - rank - 1], *count, *window, x.shape[-1])
    return xp.lib.stride_tricks.as_strided(source, shape, (*outer[: 1 - rank], *apart, last))


def _columns(xp: ModuleType, x: Array, window: Sizes, geometry: dict[str, Any]) -> Array:
    """The windows as rows: (..., groups, batch * places, window * inputs / groups)."""
    groups, channels, count = geometry["groups"], x.shape[-1], _count(x, window, geometry)
    *lead, batch = x.shape[: -len(window) - 1]
    rows, inner = batch * math.prod(count), math.prod(window) * (channels // groups)
    if channels == 1:  # windows of few numbers: 48 instead of 133 us for 16 images of 28 * 28 under 3 * 3
        source = _padded(xp, x, geometry["padding"])
        columns = xp.zeros((*lead, batch, *count, math.prod(window)), dtype=x.dtype)
        for i, key in enumerate(offsets(window, count, geometry["strides"], geometry["dilation"])):
            columns[..., i] = source[key][..., 0]
        return columns.reshape(*lead, 1, rows, inner)
    windows = _windows(xp, x, window, geometry)
    split = windows.reshape(*windows.shape[:-1], groups, channels // groups)
    return xp.moveaxis(split, -2, len(lead)).reshape(*lead, groups, rows, inner)


def _kernel_matrix(xp: ModuleType, kernel: Array, groups: int, window: Sizes) -> Array:
    """(..., groups, window * inputs / groups, outputs / groups)."""
    lead = kernel.shape[: kernel.ndim - len(window) - 2]
    inner, outputs = math.prod(window) * kernel.shape[-2], kernel.shape[-1]
    return xp.moveaxis(kernel.reshape(*lead, inner, groups, outputs // groups), -2, -3)


def _product(a: Array, b: Array) -> Array:
    """The matrix product in the dtype of `a`: NumPy leaves that of bfloat16 in float32."""
    if type(a) is np.ndarray and a.ndim == b.ndim == 3 and len(a) == len(b) == 1 and a.dtype.kind == "f":
        return product(a[0], b[0])[None]
    found = a @ b
    return found if found.dtype == a.dtype else found.astype(a.dtype)


def _beside(xp: ModuleType, product: Array) -> Array:
    """The outputs of all groups beside one another, in memory too: the last bit of products with them depends on it."""
    moved = xp.moveaxis(product, -3, -2)
    return moved.copy() if product.shape[-3] > 1 else moved


def _grouped(xp: ModuleType, g: Array, groups: int, rank: int) -> Array:
    """(..., groups, batch * places, outputs / groups)."""
    lead, rows = g.shape[: g.ndim - rank], math.prod(g.shape[g.ndim - rank : -1])
    return xp.moveaxis(g.reshape(*lead, rows, groups, g.shape[-1] // groups), -2, -3)


def _in_blocks_of_images(x: Array, kernel: Array, size: int, geometry: dict[str, Any]) -> Array:
    """A convolution of one group: windows of a few images are copied to where they stay in the cache, and multiplied."""
    window = _window(kernel, geometry)
    count, outputs = _count(x, window, geometry), kernel.shape[-1]
    windows, matrix = _windows(np, x, window, geometry), kernel.reshape(-1, outputs)
    whole = np.empty((len(x), *count, outputs), np.result_type(x, kernel))

    def work(start: int, stop: int) -> None:
        columns = np.empty((size, *windows.shape[1:]), x.dtype)
        for block in range(start, stop):
            part, out = windows[block * size : (block + 1) * size], whole[block * size : (block + 1) * size]
            np.copyto(columns[: len(part)], part)
            np.matmul(columns[: len(part)].reshape(-1, len(matrix)), matrix, out=out.reshape(-1, outputs))

    _share(work, -(-len(x) // size))
    return whole


def _convolve(xp: ModuleType, x: Array, kernel: Array, **geometry: Any) -> Array:
    window = _window(kernel, geometry)
    rank, groups = len(window) + 2, geometry["groups"]
    count = _count(x, window, geometry)
    size = _images_at_once(x, window, count, x.shape[-1]) if xp is np and x.ndim == kernel.ndim == rank else 0
    if size and groups == 1 < x.shape[-1] and kernel.dtype == x.dtype:
        return _in_blocks_of_images(x, kernel, size, geometry)
    if groups > 1 == kernel.shape[-2]:
        parts = _repeated_parts(xp, x, window, kernel.shape[-1] // groups, geometry)
        rows = _kernel_rows(xp, kernel, window)
        total = next(parts) * next(rows)
        for part, row in zip(parts, rows, strict=True):
            total += part * row
        return total
    columns = _columns(xp, x, window, geometry)
    found = _product(columns, _kernel_matrix(xp, kernel, groups, window))
    return _beside(xp, found).reshape(*found.shape[:-3], x.shape[-rank], *count, kernel.shape[-1])


def _window(kernel: Any, geometry: dict[str, Any]) -> Sizes:
    """The sizes of the window, from the shape of a kernel."""
    return tuple(kernel.shape[-2 - len(geometry["strides"]) : -2])


def _spread(xp: ModuleType, g: Array, kernel: Array, sizes: Sizes, **geometry: Any) -> Array:
    """The transpose in x: each place adds its row, times the kernel, to what lies under its window."""
    window, count, padding = _window(kernel, geometry), tuple(g.shape[1:-1]), geometry["padding"]
    plain = {1} == {*geometry["strides"], *geometry["dilation"], geometry["groups"]} and g.shape[-1] > 1
    if plain and xp is np and g.ndim == kernel.ndim == len(window) + 2 and g.dtype == kernel.dtype:
        pairs = zip(window, padding, sizes, count, strict=True)
        around = tuple((width - 1 - before, n + before - places) for width, (before, _), n, places in pairs)
        size = _images_at_once(g, window, count, g.shape[-1])
        if size and min(map(min, around)) >= 0:  # each element gathers what the others would add to it
            turned = np.ascontiguousarray(np.flip(kernel, tuple(range(len(window)))).swapaxes(-1, -2))
            return _in_blocks_of_images(g, turned, size, geometry | {"padding": around})
    found: Array = _scatter(xp, g, kernel, sizes=sizes, **geometry)
    return found


@_by_images(kernel=True, transposed=True)
def _scatter(xp: ModuleType, g: Array, kernel: Array, sizes: Sizes, **geometry: Any) -> Array:
    strides, padding, dilation, groups = (geometry[name] for name in ("strides", "padding", "dilation", "groups"))
    window = _window(kernel, geometry)
    rank, count = len(window) + 2, tuple(g.shape[-len(window) - 1 : -1])
    if groups > 1 == kernel.shape[-2]:
        rows = list(_kernel_rows(xp, kernel, window))
        return _added(xp, lambda i: _sum_of_each(g * rows[i], groups), sizes, window, strides, padding, dilation)
    matrix = _kernel_matrix(xp, kernel, groups, window)
    rows = _product(_grouped(xp, g, groups, rank), matrix.swapaxes(-1, -2))
    lead, channels = tuple(rows.shape[:-3]), kernel.shape[-2] * groups
    split = rows.reshape(*lead, groups, rows.shape[-2], math.prod(window), kernel.shape[-2])
    columns = xp.moveaxis(split, -4, -2).reshape(*lead, g.shape[-rank], *count, math.prod(window), channels)
    return _added(xp, lambda i: columns[..., i, :], sizes, window, strides, padding, dilation)


def _correlate(xp: ModuleType, x: Array, g: Array, window: Sizes, **geometry: Any) -> Array:
    """The transpose in the kernel: for each element of the window, x under it times g, over all places."""
    rank, groups = len(window) + 2, geometry["groups"]
    if groups == x.shape[-1] > 1:
        parts = _repeated_parts(xp, x, window, g.shape[-1] // groups, geometry)
        sums = [_sum_of_places(part * g, rank - 1) for part in parts]
        return xp.stack(sums, axis=-2).reshape(*sums[0].shape[:-1], *window, 1, g.shape[-1])
    found = _products_over_images(xp, x, g, window, geometry)
    inner = x.shape[-1] // groups
    return _beside(xp, found).reshape(*found.shape[:-3], *window, inner, g.shape[-1])


def _products_over_images(xp: ModuleType, x: Array, g: Array, window: Sizes, geometry: dict[str, Any]) -> Array:
    """The windows times g, added up over all places: (..., groups, window * inputs / groups, outputs / groups)."""
    rank, groups, outputs = len(window) + 2, geometry["groups"], g.shape[-1]
    each = math.prod(g.shape[-rank + 1 : -1])
    plain = xp is np and x.ndim == g.ndim == rank and x.dtype == g.dtype and groups == 1 < x.shape[-1]
    size = _images_at_once(x, window, g.shape[1:-1], x.shape[-1]) if plain else 0
    size = max(size, -(-ADDED * outputs // each)) if size else 0  # so that sums are a small part of the work
    if not size or len(x) < 2 * size:
        return _product(_columns(xp, x, window, geometry).swapaxes(-1, -2), _grouped(xp, g, groups, rank))
    windows, rows = _windows(np, x, window, geometry), g.reshape(-1, outputs)
    blocks, inner = -(-len(x) // size), math.prod(window) * x.shape[-1]
    sums = np.zeros((min(PARTS, blocks), 1, inner, outputs), x.dtype)

    def work(start: int, stop: int) -> None:
        columns, found = np.empty((size, *windows.shape[1:]), x.dtype), np.empty((inner, outputs), x.dtype)
        for part in range(start, stop):
            for block in range(blocks * part // len(sums), blocks * (part + 1) // len(sums)):
                images = windows[block * size : (block + 1) * size]
                np.copyto(columns[: len(images)], images)
                turned = columns[: len(images)].reshape(-1, inner).T
                np.matmul(turned, rows[block * size * each : (block + 1) * size * each], out=found)
                sums[part] += found

    _share(work, len(sums))
    return sums.sum(0)


# Where each of several groups has one input, sums of products take a third of the time of products of matrices.


def _repeated_parts(xp: ModuleType, x: Array, window: Sizes, times: int, geometry: dict[str, Any]) -> Iterator[Array]:
    """For each element of the window, the inputs under it in all places, each channel repeated `times` times."""
    return _under(xp, xp.repeat(x, times, -1) if times > 1 else x, geometry | {"window": window})


def _kernel_rows(xp: ModuleType, kernel: Array, window: Sizes) -> Iterator[Array]:
    """For each element of the window, its factor for each output: (..., 1, *ones, outputs)."""
    lead = kernel.shape[: kernel.ndim - len(window) - 2]
    rows = kernel.reshape(*lead, math.prod(window), *(1,) * (len(window) + 1), kernel.shape[-1])
    rows = xp.moveaxis(rows, len(lead), 0)
    return (rows[i] for i in range(rows.shape[0]))


def _sum_of_each(g: Array, groups: int) -> Array:
    """The outputs of each group added up."""
    times = g.shape[-1] // groups
    return sum((g[..., i::times] for i in range(1, times)), start=g[..., ::times])


def _sum_of_places(x: Array, axes: int) -> Array:
    """The sum over `axes` axes in front of the last, in turn: less is lost than in one long sum."""
    for _ in range(axes):
        x = x.sum(-2)
    return x


def _sizes_of(x: TensorLike, geometry: dict[str, Any]) -> Sizes:
    return tuple(x.shape[-1 - len(geometry["strides"]) : -1])


convolve: Primitive = bilinear(
    "convolve",
    _convolve,
    lambda g, x, kernel, **geometry: unbroadcast(spread(g, kernel, sizes=_sizes_of(x, geometry), **geometry), x),
    lambda g, x, kernel, **geometry: unbroadcast(correlate(x, g, window=_window(kernel, geometry), **geometry), kernel),
    accumulates=True,
)
spread: Primitive = bilinear(
    "spread_windows",
    _spread,
    lambda h, g, kernel, sizes, **geometry: unbroadcast(convolve(h, kernel, **geometry), g),
    lambda h, g, kernel, sizes, **geometry: unbroadcast(correlate(h, g, window=_window(kernel, geometry), **geometry), kernel),
    accumulates=True,
)
correlate: Primitive = bilinear(
    "correlate_windows",
    _correlate,
    lambda h, x, g, window, **geometry: unbroadcast(spread(g, h, sizes=_sizes_of(x, geometry), **geometry), x),
    lambda h, x, g, window, **geometry: unbroadcast(convolve(x, h, **geometry), g),
    accumulates=True,
)


# Pools ---------------------------------------------------------------------------------------------------------------------


def _under(xp: ModuleType, x: Array, geometry: dict[str, Any], value: Any = 0) -> Iterator[Array]:
    """For each element of the window, the inputs under it in all places."""
    window, count = geometry["window"], _count(x, geometry["window"], geometry)
    source = _padded(xp, x, geometry["padding"], value)
    return (source[key] for key in offsets(window, count, geometry["strides"], geometry["dilation"]))


def _lowest(x: Array) -> Any:
    """The least value of x's dtype, which no maximum prefers."""
    if x.dtype.kind in "iu":
        return -(2 ** (8 * x.dtype.itemsize - 1)) if x.dtype.kind == "i" else 0
    return -float("inf")


@_by_images()
def _max_pool(xp: ModuleType, x: Array, **geometry: Any) -> Array:
    parts = _under(xp, x, geometry, _lowest(x))
    largest = next(parts)
    for part in parts:
        largest = xp.maximum(largest, part)
    return largest


@_by_images()
def _first_largest(xp: ModuleType, x: Array, **geometry: Any) -> Array:
    """The number of the element of each window that is largest, the first of several."""
    parts = _under(xp, x, geometry, _lowest(x))
    largest = next(parts)
    chosen = xp.zeros(largest.shape, dtype="int32")
    for i, part in enumerate(parts, 1):
        larger = part > largest
        chosen, largest = choose(xp, larger, i, chosen), choose(xp, larger, part, largest)
    return chosen.astype("int32")


@_by_images()
def _pick(xp: ModuleType, x: Array, chosen: Array, **geometry: Any) -> Array:
    total = None
    for i, part in enumerate(_under(xp, x, geometry)):
        part = choose(xp, xp.equal(chosen, i), part, 0)
        total = part if total is None else total + part
    return total


def _added(xp: ModuleType, part: Any, sizes: Sizes, window: Sizes, strides: Sizes, padding: Pairs, dilation: Sizes) -> Array:
    """Zeros, with `part(i)` added under the element i of all windows."""
    first = part(0)
    rank = len(sizes) + 1
    padded = [n + sum(pair) for n, pair in zip(sizes, padding, strict=True)]
    whole = xp.zeros((*first.shape[:-rank], *padded, first.shape[-1]), dtype=first.dtype)
    for i, key in enumerate(offsets(window, tuple(first.shape[-rank:-1]), strides, dilation)):
        whole[key] += part(i) if i else first
    inside = [slice(before, before + n) for (before, _), n in zip(padding, sizes, strict=True)]
    return whole[(Ellipsis, *inside, slice(None))]


@_by_images(transposed=True)
def _put(xp: ModuleType, g: Array, chosen: Array, **geometry: Any) -> Array:
    return _added(xp, lambda i: choose(xp, xp.equal(chosen, i), g, 0), **geometry)


@_by_images(transposed=True)
def _window_spread(xp: ModuleType, g: Array, sizes: Sizes, **geometry: Any) -> Array:
    """Each element under all of its window: repeated, where the windows lie side by side and cover all."""
    window, places = geometry["window"], g.shape[-len(sizes) - 1 : -1]
    covered = sizes == tuple(n * width for n, width in zip(places, window, strict=True))
    if not covered or window != geometry["strides"] or any(map(any, geometry["padding"])):
        return _added(xp, lambda i: g, sizes=sizes, **geometry)
    for axis, width in zip(range(-2, -len(sizes) - 2, -1), reversed(window), strict=True):
        g = xp.repeat(g, width, axis)
    return g


@_by_images()
def _window_sum(xp: ModuleType, x: Array, **geometry: Any) -> Array:
    total = None
    for part in _under(xp, x, geometry):
        total = part if total is None else total + part
    return total


first_largest = elementwise("first_largest_in_window", _first_largest, None, batching="keep")
pick: Primitive = linear(
    "pick_from_window",
    _pick,
    lambda g, x, chosen, **geometry: [put(g, chosen, sizes=_sizes_of(x, geometry), **geometry), None],
    uniform=False,
    batching="fill",
)
put: Primitive = linear(
    "put_into_window",
    _put,
    lambda g, x, chosen, sizes, **geometry: [pick(g, chosen, **geometry), None],
    uniform=False,
    batching="fill",
    accumulates=True,
)
max_pool = primitive(
    "max_pool",
    _max_pool,
    lambda g, y, x, **geometry: put(g, first_largest(x, **geometry), sizes=_sizes_of(x, geometry), **geometry),
    jvp=lambda t, y, x, params: pick(t[0], first_largest(x[0], **params), **params),
    batching="keep",
)
window_sum: Primitive = linear(
    "window_sum",
    _window_sum,
    lambda g, x, **geometry: window_spread(g, sizes=_sizes_of(x, geometry), **geometry),
    accumulates=True,
)
window_spread: Primitive = linear(
    "window_spread", _window_spread, lambda h, g, sizes, **geometry: window_sum(h, **geometry), accumulates=True
)
