"""Axes taken apart, reordered and joined, by a pattern of their names."""

from __future__ import annotations

import math
import re

from ...core import Tensor, convert_to_tensor
from ...errors import ShapeError
from ...functions.shaping import reshape, transpose
from ...types import TensorLike
from ..symbolic.operation import operation


@operation(given="pattern")
def rearrange(tensor: TensorLike, pattern: str, **axes_lengths: int) -> Tensor:
    """The same elements, with axes taken apart, reordered and joined.

    Args:
        tensor: with one axis for each name or parenthesis on the left of the pattern.
        pattern: such as 'b (h w) c -> b c h w'.
        axes_lengths: sizes of the axes in a parenthesis on the left; one of them may be left out.

    >>> tf.keras.ops.rearrange(tf.ones([2, 6, 3]), "b (h w) c -> b c h w", h=2).shape
    TensorShape([2, 3, 2, 3])
    """
    x = convert_to_tensor(tensor)
    left, _, right = pattern.partition("->")
    before, after = _groups(left), _groups(right)
    names = [name for group in before for name in group]
    same = sorted(set(names)) == sorted(name for group in after for name in group)
    if len(before) != x.ndim or not same or len(set(names)) < len(names):
        raise ShapeError(
            f"rearrange: '{pattern}' for shape {x.shape}: there must be one name or parenthesis for each axis, and the same "
            "different names on both sides."
        )
    sizes: dict[str, int] = {}
    for group, size in zip(before, x.shape, strict=True):
        known = math.prod(axes_lengths.get(name, 1) for name in group)
        sizes |= {name: axes_lengths.get(name, size // max(known, 1)) for name in group}
        if math.prod(sizes[name] for name in group) != size:
            raise ShapeError(f"rearrange: ({' '.join(group)}) of '{pattern}' must hold {size} elements, with {axes_lengths}.")
    apart = reshape(x, [sizes[name] for name in names])
    order = [names.index(name) for group in after for name in group]
    return reshape(transpose(apart, order), [math.prod(sizes[name] for name in group) for group in after])


def _groups(side: str) -> list[list[str]]:
    """The names of each axis."""
    axis = r"\([^()]*\)|[^\s()]+"
    if rest := re.sub(axis, "", side).strip():
        raise ShapeError(
            f"rearrange: parentheses must stand in pairs, one in another nowhere; found {rest:.20} in '{side:.80}'."
        )
    return [part.strip("()").split() for part in re.findall(axis, side)]
