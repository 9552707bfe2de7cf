"""Every public loss, class or function, with what it is given."""

import numpy as np

import minikeras as tf

losses = tf.keras.losses
CLASSES, LOGITS = np.array([0, 2, 1, 2, 0]), np.random.default_rng(3).normal(size=(5, 3)).astype("float32")
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
SEQUENCES = np.array([[1, 2, 0], [2, 2, 1], [1, 0, 0]]), np.random.default_rng(3).normal(size=(3, 6, 4)).astype("float32")
NO_LOSS = {"Loss", "LossFunctionWrapper", "Reduction", "get", "serialize", "deserialize"}
LOSSES = sorted({name for name in losses.__all__ if callable(getattr(losses, name))} - NO_LOSS)


def loss_of(name):
    """A loss by its name, as a function of targets and predictions, and both."""
    found = getattr(losses, name)
    loss = found() if isinstance(found, type) else found
    plain = name.lower().replace("_", "")
    if plain == "ctc":
        return loss, *SEQUENCES
    of_classes = plain.startswith("sparse") or plain in ("circle", "categoricalgeneralizedcrossentropy")
    return loss, CLASSES if of_classes else np.eye(3, dtype="float32")[CLASSES], SHARES
