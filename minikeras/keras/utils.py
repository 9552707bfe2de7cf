"""Small public tools: one-hot labels, seeds, files, pictures of models and of training, names of classes."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..absent import error as _error
from ..boundary import explaining
from ..core import Tensor, convert_to_tensor
from ..figures import plot_history
from .batches import PyDataset, pack_x_y_sample_weight, unpack_x_y_sample_weight
from .models.drawing import model_drawing, model_to_dot, plot_model
from .names import clear_session
from .saving import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from .seeds import set_random_seed

__all__ = [
    "CustomObjectScope",
    "PyDataset",
    "clear_session",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_file",
    "get_registered_name",
    "get_registered_object",
    "model_drawing",
    "model_to_dot",
    "pack_x_y_sample_weight",
    "plot_history",
    "plot_model",
    "register_keras_serializable",
    "serialize_keras_object",
    "set_random_seed",
    "to_categorical",
    "unpack_x_y_sample_weight",
]
__path__: list[str] = []  # a package without modules: Python then asks finders for names that it lacks, and one explains them


@explaining
def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Integer labels as one-hot rows, float32: an array, for a Tensor a Tensor.

    >>> to_categorical([0, 2]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    Raises:
        ValueError: if a label is not in [0, num_classes).
    """
    labels = np.asarray(x, dtype=np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max()) + 1 if num_classes is None else num_classes
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise ValueError(f"to_categorical: labels from {labels.min()} to {labels.max()} do not fit num_classes={count}.")
    rows = np.eye(count, dtype=np.float32)[labels]
    return convert_to_tensor(rows) if isinstance(x, Tensor) else rows


def get_file(*arguments: Any, **options: Any) -> str:
    """Download a file once and verify it; see `keras.datasets.get_file`."""
    from . import datasets

    return datasets.get_file(*arguments, **options)


def __getattr__(name: str) -> NoReturn:
    """What Keras has and this package has not is explained."""
    raise _error(__name__, name)
