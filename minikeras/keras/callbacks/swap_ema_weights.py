"""The moving averages of the weights in the place of the weights, while a model is tested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.arrays import to_numpy
from ...core.variable import Snapshot, restore, snapshot
from ..logs import Logs
from .callback import Callback


class SwapEMAWeights(Callback):
    """Evaluates and predicts with the moving averages of the weights that the optimizer keeps (`use_ema=True`).

    Args:
        swap_on_epoch: also at the end of each epoch until the next one begins, so that what is saved there are averages.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.SGD(0.1, use_ema=True), "mse")
    >>> swap = tf.keras.callbacks.SwapEMAWeights()
    >>> history = model.fit([[1.0]], [[1.0]], epochs=3, validation_data=([[1.0]], [[1.0]]), callbacks=[swap], verbose=0)
    >>> len(history.history["val_loss"])
    3
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        self.swap_on_epoch = swap_on_epoch
        self._weights: Snapshot | None = None
        """The values of the Variables for training, while the averages stand in."""

    def _put_averages(self) -> None:
        """Assign the averages to the weights of the model; the optimizer keeps them too."""
        if self._weights is None:
            kept = _averages(self.model.optimizer)
            self._weights = snapshot(one.variable for one in kept)
            restore((one.variable, one.slots["average"].array) for one in kept)

    def _put_weights(self) -> None:
        """Have the model hold what is trained."""
        restore(self._weights or ())
        self._weights = None

    def get_state(self) -> dict[str, Any]:
        """The weights that are trained, if the model does not hold them."""
        return {"weights": None if self._weights is None else [to_numpy(array) for _, array in self._weights]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Hold them again."""
        if state["weights"] is not None:
            pairs = zip(_averages(self.model.optimizer), state["weights"], strict=True)
            self._weights = [(one.variable, one.variable.convert(array)) for one, array in pairs]

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start with the weights, also after a test that was broken off."""
        self._put_weights()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._put_weights()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._put_averages()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Leave the averages, which `finalize_variable_values` has put in their place for good."""
        self._weights = None

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._put_averages()

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._put_weights()

    on_predict_begin, on_predict_end = on_test_begin, on_test_end


def _averages(optimizer: Any) -> list[Any]:
    """The slots of all Variables whose moving averages an optimizer, or one within it, keeps."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    found = [one for one in getattr(inner, "optimizers", [inner]) if getattr(one, "use_ema", False)]
    if not found:
        raise ValueError(f"SwapEMAWeights: the optimizer '{inner.name}' keeps no moving averages. Make it with use_ema=True.")
    return [kept for one in found for kept in one.state.slots.values()]
