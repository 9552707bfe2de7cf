"""Images: MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, as Keras's four arrays. A class is the module of its name."""

import functools
import io
import os
import sys
import tarfile
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import DatasetUnavailableError, InvalidArgumentError, MissingExtraError
from .catalogue import CIFAR10, CIFAR100, FASHION_MNIST, FASHION_MNIST_6K, MNIST, MNIST_IDX, Contents, find

Split = tuple[NDArray[np.uint8], NDArray[np.uint8]]
Images = tuple[NDArray[np.uint8], NDArray[np.integer]]


class mnist:
    """MNIST: 28 x 28 grey images of handwritten digits, 60,000 + 10,000. Not shipped: found, or downloaded."""

    CLASS_NAMES = tuple("0123456789")

    @staticmethod
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
            MissingExtraError: It has to be downloaded, and the package pooch is missing.

        Source: Yann LeCun and Corinna Cortes, derived from NIST.
        Licence: CC BY-SA 3.0.

        >>> tf.keras.datasets.mnist.load_data("/no/such/directory")
        Traceback (most recent call last):
            ...
        minikeras.errors.DatasetUnavailableError: dataset 'mnist' was asked for, but no intact copy was found. Tried:
          ...
        """
        form, contents = find((MNIST, MNIST_IDX), None if path == "mnist.npz" else path)
        return _from_idx(contents) if form is MNIST_IDX else _from_npz(contents)


class fashion_mnist:
    """Fashion-MNIST: 28 x 28 grey images of clothes, 10 classes, 60,000 + 10,000 of them; 5,000 + 1,000 are shipped."""

    CLASS_NAMES = (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    )  # fmt: skip

    @staticmethod
    def load_data(
        path: str | os.PathLike[str] | None = None, subset: Literal["full", "6k"] | None = None
    ) -> tuple[Split, Split]:
        """Load Fashion-MNIST.

        Args:
            path: Directory of the four IDX files (or the .npz file of the subset) to use instead of searching.
            subset: `"full"` for all 70,000 images, or an error; `"6k"` for the shipped 6,000, without any network;
                None for the full set where it can be found or downloaded, else the shipped 6,000, which one line on
                stderr then says.

        Returns:
            `(x_train, y_train), (x_test, y_test)`: uint8 images (n, 28, 28) with values 0 to 255, uint8 labels (n,) with
            values 0 to 9, positions in `CLASS_NAMES`. The 6,000 are 500 training and 100 test images of each class.

        Raises:
            DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
            MissingExtraError: It has to be downloaded, and the package pooch is missing.
            InvalidArgumentError: `subset` is none of the three.

        Source: https://github.com/zalandoresearch/fashion-mnist
        Licence: MIT, (c) 2017 Zalando SE.

        >>> (x_train, y_train), (x_test, y_test) = tf.keras.datasets.fashion_mnist.load_data(subset="6k")
        >>> x_train.shape, x_train.dtype, tf.keras.datasets.fashion_mnist.CLASS_NAMES[y_train[0]]
        ((5000, 28, 28), dtype('uint8'), 'Ankle boot')
        """
        if subset not in (None, "full", "6k"):
            raise InvalidArgumentError(f"subset is {subset!r}; it has to be 'full', '6k' or None")
        if subset == "6k":
            return _from_npz(find((FASHION_MNIST_6K,), path)[1])
        try:
            _, contents = find((FASHION_MNIST,), path)
        except (DatasetUnavailableError, MissingExtraError):
            if subset == "full" or path is not None:
                raise
            substitute = _from_npz(find((FASHION_MNIST_6K,))[1])
            _announce_substitution()
            return substitute
        return _from_idx(contents)


@functools.cache
def _announce_substitution() -> None:
    """Say once per process that 6,000 images stand in for 70,000: accuracies are not comparable."""
    print(
        "minikeras: the full Fashion-MNIST was not found; using the shipped subset of 5,000 + 1,000 images "
        "(load_data(subset='full') says where it was looked for)",
        file=sys.stderr,
        flush=True,
    )


class cifar10:
    """CIFAR-10: 32 x 32 colour images, 10 classes, 50,000 + 10,000. Found, or downloaded (170 MB)."""

    CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

    @staticmethod
    def load_data(path: str | os.PathLike[str] | None = None) -> tuple[Images, Images]:
        """Load CIFAR-10 from its binary archive, whose records are those that Keras reads from pickles.

        Args:
            path: Archive or its directory to use instead of searching.

        Returns:
            `(x_train, y_train), (x_test, y_test)`: uint8 images (n, 32, 32, 3), and uint8 labels (n, 1), positions in
            `CLASS_NAMES`.

        Raises:
            DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
            MissingExtraError: It has to be downloaded, and the package pooch is missing.

        Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009).

        >>> tf.keras.datasets.cifar10.load_data("/no/such/directory")
        Traceback (most recent call last):
            ...
        minikeras.errors.DatasetUnavailableError: dataset 'cifar10' was asked for, but no intact copy was found. Tried:
          ...
        """
        (content,) = find((CIFAR10,), path)[1].values()
        train, test = [f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"]
        return _from_tar(content, train), _from_tar(content, test)


class cifar100:
    """CIFAR-100: 32 x 32 colour images, 100 classes in 20 groups, 50,000 + 10,000. Found, or downloaded (169 MB)."""

    @staticmethod
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
            MissingExtraError: It has to be downloaded, and the package pooch is missing.
            InvalidArgumentError: `label_mode` is none of the two.

        Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009).

        >>> tf.keras.datasets.cifar100.load_data("all")
        Traceback (most recent call last):
            ...
        minikeras.errors.InvalidArgumentError: label_mode is 'all'; it has to be 'fine' or 'coarse'
        """
        if label_mode not in ("fine", "coarse"):
            raise InvalidArgumentError(f"label_mode is {label_mode!r}; it has to be 'fine' or 'coarse'")
        (content,) = find((CIFAR100,), path)[1].values()
        (x_train, y_train), (x_test, y_test) = (_from_tar(content, [name], labels=2) for name in ("train.bin", "test.bin"))
        column = slice(1, 2) if label_mode == "fine" else slice(1)
        return (x_train, y_train[:, column].astype(np.int64)), (x_test, y_test[:, column].astype(np.int64))


def _from_npz(contents: Contents) -> tuple[Split, Split]:
    """The four arrays of an .npz file in Keras' form."""
    (content,) = contents.values()
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])


def _from_idx(contents: Contents) -> tuple[Split, Split]:
    """The four arrays of the IDX files of MNIST and its look-alikes: bytes after a header of four, for images of 16."""
    arrays = [np.frombuffer(content, np.uint8, offset=16 if "images" in name else 8) for name, content in contents.items()]
    x_train, y_train, x_test, y_test = (array.copy() for array in arrays)
    return (x_train.reshape(-1, 28, 28), y_train), (x_test.reshape(-1, 28, 28), y_test)


def _from_tar(content: bytes, files: Sequence[str], labels: int = 1) -> Split:
    """Images (n, 32, 32, 3) and their labels (n, labels), from files of records: the labels, then the bytes of an image."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if stream is not None:
                found[member.name.rpartition("/")[2]] = stream.read()
    records = np.frombuffer(b"".join(found[name] for name in files), np.uint8).reshape(-1, labels + 3 * 32 * 32)
    images = records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, :labels].copy()
