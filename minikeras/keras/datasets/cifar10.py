"""CIFAR-10: 32 x 32 colour images, 10 classes, 50,000 + 10,000. Not shipped: found, or downloaded (170 MB)."""

import os

from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import CIFAR10
from minikeras.keras.datasets.cifar import Images, images_from_tar

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load_data(path: str | os.PathLike[str] | None = None) -> tuple[Images, Images]:
    """Load CIFAR-10 from its binary archive, whose records are those that Keras reads from pickles.

    Args:
        path: Archive or its directory to use instead of searching.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 images (n, 32, 32, 3), uint8 labels (n, 1), positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.

    Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009).

    >>> load_data("/no/such/directory")
    Traceback (most recent call last):
        ...
    minikeras.errors.DatasetUnavailableError: dataset 'cifar10' was asked for, but no intact copy was found. Tried:
      ...
    """
    _, contents = locate.find((CIFAR10,), path)
    ((name, content),) = contents.items()
    train = [f"data_batch_{number}.bin" for number in range(1, 6)]
    return images_from_tar(content, name, train, 10_000, 1, 0), images_from_tar(content, name, ["test_batch.bin"], 10_000, 1, 0)
