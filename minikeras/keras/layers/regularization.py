"""Layers that add noise in training and nothing otherwise."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.nn import dropout_mask
from ..seeds import SeedGenerator
from .layer import Layer


class Dropout(Layer):
    """In training each element is zero with probability `rate`, and the others are scaled by 1 / (1 - rate).

    Args:
        rate: in [0, 1].
        noise_shape: shape of the mask, broadcast over the input; None entries follow the input.
        seed: an int repeats the masks.
        options: `name`, `dtype`, as in `Layer`.

    Source: Srivastava et al. (2014), section 4, in the inverted form.

    >>> import minikeras as tf
    >>> layer = tf.keras.layers.Dropout(0.5, seed=1)
    >>> sorted(set(layer(tf.ones([100]), training=True).numpy().tolist())), float(layer(2.0))
    ([0.0, 2.0], 2.0)
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
            raise ValueError(
                f"Invalid value received for argument `rate`. Expected a float value between 0 and 1. Received: rate={rate!r}."
            )
        self.rate, self.seed = float(rate), seed
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)
        self.seed_generator = SeedGenerator(seed) if rate > 0 else None

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.seed_generator is None:
            return inputs
        if self.rate == 1.0:
            return inputs * 0.0  # type: ignore[no-any-return]
        shape = tuple(inputs.shape)
        if self.noise_shape is not None:
            shape = tuple(size if wanted is None else wanted for wanted, size in zip(self.noise_shape, shape, strict=True))
        return inputs * dropout_mask(self.seed_generator.generator(), shape, self.rate, inputs)  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The input's."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "noise_shape": self.noise_shape, "seed": self.seed}
