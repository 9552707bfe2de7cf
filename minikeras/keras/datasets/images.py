"""What the image datasets share: turning the bytes of their files into Keras' four arrays."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import LoadError
from minikeras.keras.datasets.formats import parse_idx, parse_npz

Split = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def images_from_idx(contents: Mapping[str, bytes], image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)` from the four IDX files of MNIST and its look-alikes.

    Args:
        contents: Verified bytes by file name.
        image_shape: Height and width.

    Returns:
        uint8 images (n, height, width) with values 0 to 255 and uint8 labels (n,), all writable.

    Raises:
        LoadError: A header contradicts its file, or images and labels differ in number.
    """
    train, test = (_idx_split(contents, prefix, image_shape) for prefix in ("train", "t10k"))
    return train, test


def _idx_split(contents: Mapping[str, bytes], prefix: str, image_shape: tuple[int, int]) -> Split:
    """Images and labels of one part."""
    images_name, labels_name = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    images = parse_idx(contents[images_name], images_name, (-1, *image_shape))
    labels = parse_idx(contents[labels_name], labels_name, (-1,))
    if len(images) != len(labels):
        raise LoadError(f"{images_name} holds {len(images)} images, but {labels_name} holds {len(labels)} labels")
    return images, labels


def images_from_npz(content: bytes, name: str, train: int, test: int, image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)` from an .npz file in Keras' form.

    Args:
        content: Verified bytes of the file.
        name: File name for the error message.
        train: Number of training images.
        test: Number of test images.
        image_shape: Height and width.

    Returns:
        uint8 images (n, height, width) with values 0 to 255 and uint8 labels (n,), all writable.

    Raises:
        LoadError: The file holds anything else.
    """
    shapes = {"x_train": (train, *image_shape), "y_train": (train,), "x_test": (test, *image_shape), "y_test": (test,)}
    arrays = parse_npz(content, name, shapes)
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
