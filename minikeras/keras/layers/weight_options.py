"""Options that a layer keeps for each of its weights, and the activation behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import activations, constraints, initializers, regularizers
from ..weight import Weight

if TYPE_CHECKING:
    from .layer import Layer

ABSENT = ("lora_rank", "lora_alpha", "quantization_config")


def keep(layer: Layer, name: str, initializer: Any, regularizer: Any = None, constraint: Any = None) -> None:
    """Keep what the weight of that name will be made with, in attributes such as `kernel_initializer`."""
    setattr(layer, f"{name}_initializer", initializers.get(initializer))
    setattr(layer, f"{name}_regularizer", regularizers.get(regularizer))
    setattr(layer, f"{name}_constraint", constraints.get(constraint))


def add(layer: Layer, kept: str, shape: tuple[int, ...], autocast: bool = True, name: str | None = None) -> Weight:
    """Make a weight with what `keep` kept under a name, which is also its own unless it has another."""
    initializer, regularizer, constraint = (
        getattr(layer, f"{kept}_{option}") for option in ("initializer", "regularizer", "constraint")
    )
    return layer.add_weight(
        shape, initializer, autocast=autocast, regularizer=regularizer, constraint=constraint, name=name or kept
    )


def activated(layer: Any, y: Any) -> Any:
    """The activation of a tensor, as `layer.activation` is now: an attribute that may be set at any time."""
    activation = layer.activation
    return y if activation is None or activation is activations.linear else activation(y)


def without_absent(layer: Layer, options: dict[str, Any]) -> dict[str, Any]:
    """The options without those of Keras that are deliberately absent here; anything but None for them is an error."""
    for name in ABSENT:
        if options.get(name) is not None:
            raise NotImplementedError(
                f"{type(layer).__name__}: {name} is not available: there is no low-rank adaptation and no quantization here. "
                "Leave it out; to train few weights, freeze layers with layer.trainable = False."
            )
    return {name: value for name, value in options.items() if name not in ABSENT}
