"""Where training takes place: on the device of the weights, whatever the data come from."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from ...core.arrays import chosen_device, current_device, device
from ...errors import InvalidArgumentError
from ..layers.layer import Layer
from ..weight import Weight

_HERE: AbstractContextManager[None] = contextlib.nullcontext()


def on_device_of(model: Layer, name: str) -> AbstractContextManager[None]:
    """A block on the device of the model's weights; on the current one if it has none yet.

    Args:
        model: whose weights.
        name: of the method that is called.

    Raises:
        InvalidArgumentError: if a `with tf.device` block around it names another one.
    """
    home = next((one.device for one in model._collect().variables if isinstance(one, Weight)), None)
    if home is None or home == current_device():
        return _HERE
    if chosen_device() is not None:
        raise InvalidArgumentError(
            f"{name}: the weights of model '{model.name}' are on {home}, and the block around it says {current_device()}. "
            f"Leave the block out, or make the model within it: weights stay where they are made. Another model takes them "
            "over by set_weights(model.get_weights())."
        )
    return device(home)
