"""Fashion-MNIST: 28 x 28 grey images of clothes, 10 classes, 60,000 + 10,000 of them; 5,000 + 1,000 are shipped."""

import functools
import os
from typing import Literal

from minikeras.errors import DatasetUnavailableError, InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import FASHION_MNIST, FASHION_MNIST_6K
from minikeras.keras.datasets.formats import Split, images_from_idx, images_from_npz
from minikeras.keras.datasets.policy import announce

CLASS_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def load_data(path: str | os.PathLike[str] | None = None, subset: Literal["full", "6k"] | None = None) -> tuple[Split, Split]:
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
        InvalidArgumentError: `subset` is none of the three.

    Source: https://github.com/zalandoresearch/fashion-mnist
    Licence: MIT, (c) 2017 Zalando SE.

    >>> (x_train, y_train), (x_test, y_test) = load_data(subset="6k")
    >>> x_train.shape, x_train.dtype, CLASS_NAMES[y_train[0]]
    ((5000, 28, 28), dtype('uint8'), 'Ankle boot')
    """
    if subset not in (None, "full", "6k"):
        raise InvalidArgumentError(f"subset is {subset!r}; it has to be 'full', '6k' or None")
    if subset == "6k":
        return _load_6k(path)
    try:
        _, contents = locate.find((FASHION_MNIST,), path)
    except DatasetUnavailableError:
        if subset == "full" or path is not None:
            raise
        substitute = _load_6k(None)
        _announce_substitution()
        return substitute
    return images_from_idx(contents, FASHION_MNIST.shape)


def _load_6k(path: str | os.PathLike[str] | None) -> tuple[Split, Split]:
    _, contents = locate.find((FASHION_MNIST_6K,), path)
    (name,) = contents
    return images_from_npz(contents[name], name, 5_000, 1_000, FASHION_MNIST_6K.shape)


@functools.cache
def _announce_substitution() -> None:
    """Say once per process that 6,000 images stand in for 70,000: accuracies are not comparable."""
    announce(
        "the full Fashion-MNIST was not found; using the shipped subset of 5,000 + 1,000 images "
        "(load_data(subset='full') says where it was looked for)"
    )
