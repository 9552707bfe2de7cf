"""MNIST: 28 x 28 grey images of handwritten digits, 60,000 + 10,000. Not shipped: found, or downloaded."""

import os

from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import MNIST, MNIST_IDX
from minikeras.keras.datasets.formats import Split, images_from_idx, images_from_npz

CLASS_NAMES = tuple("0123456789")


def load_data(path: str | os.PathLike[str] = "mnist.npz") -> tuple[Split, Split]:
    """Load MNIST from Keras' `mnist.npz` or from the four IDX files, whichever is found first.

    Args:
        path: `"mnist.npz"`, as in Keras, means the cached copy, the usual places, then a download. Anything else
            names a file or a directory, and only that is used.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: uint8 images (n, 28, 28) with values 0 to 255, uint8 labels (n,) with
        values 0 to 9; n is 60,000 and 10,000.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.

    Source: Yann LeCun and Corinna Cortes, derived from NIST.
    Licence: CC BY-SA 3.0.

    >>> load_data("/no/such/directory")
    Traceback (most recent call last):
        ...
    minikeras.errors.DatasetUnavailableError: dataset 'mnist' was asked for, but no intact copy was found. Tried:
      ...
    """
    form, contents = locate.find((MNIST, MNIST_IDX), None if path == "mnist.npz" else path)
    if form is MNIST_IDX:
        return images_from_idx(contents, form.shape)
    (name,) = contents
    return images_from_npz(contents[name], name, 60_000, 10_000, form.shape)
