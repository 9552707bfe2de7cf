"""What the image datasets share: turning the bytes of their files into Keras' four arrays."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import LoadError
from minikeras.keras.datasets.formats import parse_idx, parse_npz

Split = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def images_from_idx(contents: Mapping[str, bytes], image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`, writable, from the bytes of the four IDX files of MNIST and its look-alikes."""
    train, test = (_idx_split(contents, prefix, image_shape) for prefix in ("train", "t10k"))
    return train, test


def _idx_split(contents: Mapping[str, bytes], prefix: str, image_shape: tuple[int, int]) -> Split:
    images_name, labels_name = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    images = parse_idx(contents[images_name], images_name, (-1, *image_shape))
    labels = parse_idx(contents[labels_name], labels_name, (-1,))
    if len(images) != len(labels):
        raise LoadError(f"{images_name} holds {len(images)} images, but {labels_name} holds {len(labels)} labels")
    return images, labels


def images_from_npz(content: bytes, name: str, train: int, test: int, image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`, writable, from the verified bytes of an .npz file in Keras' form."""
    shapes = {"x_train": (train, *image_shape), "y_train": (train,), "x_test": (test, *image_shape), "y_test": (test,)}
    arrays = parse_npz(content, name, shapes)
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
