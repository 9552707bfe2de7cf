"""CIFAR-100: 32 x 32 colour images, 100 classes in 20 groups, 50,000 + 10,000. Not shipped: found, or downloaded (169 MB)."""

import os
from typing import Literal

import numpy as np

from minikeras.errors import InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import CIFAR100
from minikeras.keras.datasets.cifar import Images, images_from_tar


def load_data(
    label_mode: Literal["fine", "coarse"] = "fine", path: str | os.PathLike[str] | None = None
) -> tuple[Images, Images]:
    """Load CIFAR-100 from its binary archive, whose records are those that Keras reads from pickles.

    Args:
        label_mode: `"fine"` for the 100 classes, `"coarse"` for their 20 groups.
        path: Archive or its directory to use instead of searching.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 images (n, 32, 32, 3), int64 labels (n, 1).

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
        InvalidArgumentError: `label_mode` is none of the two.

    Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009).

    >>> load_data("all")
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: label_mode is 'all'; it has to be 'fine' or 'coarse'
    """
    if label_mode not in ("fine", "coarse"):
        raise InvalidArgumentError(f"label_mode is {label_mode!r}; it has to be 'fine' or 'coarse'")
    _, contents = locate.find((CIFAR100,), path)
    ((name, content),) = contents.items()
    column = 1 if label_mode == "fine" else 0
    (x_train, y_train), (x_test, y_test) = (
        images_from_tar(content, name, [file], rows, 2, column) for file, rows in (("train.bin", 50_000), ("test.bin", 10_000))
    )
    return (x_train, y_train.astype(np.int64)), (x_test, y_test.astype(np.int64))
