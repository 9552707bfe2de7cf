"""Images as a batch with the channels last, and back."""

from __future__ import annotations

from collections.abc import Callable

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions.shaping import expand_dims, squeeze, transpose
from ....types import TensorLike
from ..nn.sliding import checked_format

Back = Callable[[Tensor], Tensor]


def as_batch(name: str, images: TensorLike, data_format: str | None, rank: int = 2) -> tuple[Tensor, Back]:
    """Images as (batch, *sizes, channels), and what brings such a tensor into the form that they had.

    Args:
        rank: number of sizes: 2 of images, 3 of volumes.

    Raises:
        ShapeError: if they have another number of axes.
    """
    x, first = convert_to_tensor(images), checked_format(data_format) == "channels_first"
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: needs one image of {rank + 1} axes or a batch of them, found shape {x.shape}.")
    alone = x.ndim == rank + 1
    x = expand_dims(x, 0) if alone else x

    def back(y: Tensor) -> Tensor:
        y = transpose(y, [0, y.ndim - 1, *range(1, y.ndim - 1)]) if first else y
        return squeeze(y, 0) if alone else y

    return transpose(x, [0, *range(2, x.ndim), 1]) if first else x, back
