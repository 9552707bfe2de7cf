"""Layers over one, two and three axes between batch and channels, and the windows that slide along these."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import ShapeError
from ...nn_ops.convolution import places
from ..config import image_data_format
from .inputs import InputSpec
from .layer import Layer


class SpatialLayer(Layer):
    """Base of layers whose inputs have `rank` axes between batch and channels: `class Conv2D(Convolution, rank=2)`."""

    rank: int
    data_format = "channels_last"

    def __init_subclass__(cls, rank: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if rank is not None:
            cls.rank = rank

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _first_axis(self) -> int:
        """The first axis that is neither that of the batch nor that of the channels."""
        return 2 if self.data_format == "channels_first" else 1

    @property
    def _channel_axis(self) -> int:
        return 1 if self.data_format == "channels_first" else -1

    def _with_sizes(self, input_shape: Any, sizes: Any, channels: Any = None) -> tuple[Any, ...]:
        """The input's shape with other sizes between batch and channels, and other channels if some are given."""
        depth = input_shape[self._channel_axis] if channels is None else channels
        return (input_shape[0], depth, *sizes) if self._first_axis == 2 else (input_shape[0], *sizes, depth)


class WindowGeometry(NamedTuple):
    """A window that slides along the axes between batch and channels."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    data_format: str
    dilation: tuple[int, ...]

    @classmethod
    def checked(cls, layer: Any, window: Any, strides: Any, padding: Any, data_format: Any, dilation: Any) -> WindowGeometry:
        """The geometry of a convolution, from what its constructor is given."""
        return cls(
            one_for_each(layer, "kernel_size", window, layer.rank),
            one_for_each(layer, "strides", strides, layer.rank),
            checked_padding(layer, padding, layer.may_be_causal),
            checked_format(layer, data_format),
            one_for_each(layer, "dilation_rate", dilation, layer.rank),
        )

    def output_shape(self, layer: Layer, input_shape: Any, channels: int | None = None) -> tuple[Any, ...]:
        """The shape after the window slid over inputs of a shape, with other channels if some are given."""
        first = self.data_format == "channels_first"
        shape, window = tuple(input_shape), self.window
        if len(shape) != len(window) + 2:
            raise ShapeError(
                f"Layer '{layer.name}' ({type(layer).__name__}) needs inputs with {len(window) + 2} axes, found shape {shape}."
            )
        sizes, kept = (shape[2:], shape[1]) if first else (shape[1:-1], shape[-1])
        found = []
        for size, w, step, d in zip(sizes, window, self.strides, self.dilation, strict=True):
            fitting = None if size is None else -(-size // step)
            if size is not None and self.padding == "valid":
                (fitting,) = places((size,), (w,), (step,), ((0, 0),), (d,))
            found.append(fitting)
        if any(n is not None and n < 1 for n in found):
            raise ShapeError(
                f"Layer '{layer.name}' ({type(layer).__name__}): a window of {window} does not fit into inputs of shape "
                f"{shape}; use padding='same', a smaller window, or larger inputs."
            )
        depth = kept if channels is None else channels
        return (shape[0], depth, *found) if first else (shape[0], *found, depth)


def check_positive(layer: Any, **numbers: Any) -> None:
    """Refuse what is no positive int."""
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
            raise ValueError(f"{type(layer).__name__}: `{name}` must be a positive integer, found {number!r}.")


def one_for_each(layer: Any, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """Ints of at least so much, one for each axis, from one for all or a sequence."""
    found = (value,) * rank if isinstance(value, int) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(found) != rank or any(not isinstance(n, int) or isinstance(n, bool) or n < least for n in found):
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{type(layer).__name__}: `{name}` must be {kind} or a tuple of {rank}. Received: {name}={value!r}.")
    return found


def checked_padding(layer: Any, padding: Any, causal: bool = False) -> str:
    """'valid', 'same' or, where it is allowed, 'causal'."""
    allowed = ("valid", "same", "causal")[: 3 if causal else 2]
    if not isinstance(padding, str) or padding.lower() not in allowed:
        raise ValueError(f"{type(layer).__name__}: padding must be one of {allowed}, found {padding!r}.")
    return padding.lower()


def checked_format(layer: Any, data_format: Any) -> str:
    """'channels_last' or 'channels_first'."""
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(
            f"{type(layer).__name__}: data_format must be 'channels_last' or 'channels_first', found {data_format!r}."
        )
    return data_format or image_data_format()
