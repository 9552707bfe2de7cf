"""Reuters: 11,228 newswires as lists of word numbers, 46 topics. Not shipped: found, or downloaded."""

import os

import numpy as np

from minikeras.errors import InvalidArgumentError
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import REUTERS
from minikeras.keras.datasets.reviews import Texts, limited, marked, parse_texts, shuffled, word_index

CLASS_NAMES = (
    "cocoa", "grain", "veg-oil", "earn", "acq", "wheat", "copper", "housing", "money-supply", "coffee", "sugar", "trade",
    "reserves", "ship", "cotton", "carcass", "crude", "nat-gas", "cpi", "money-fx", "interest", "gnp", "meal-feed", "alum",
    "oilseed", "gold", "tin", "strategic-metal", "livestock", "retail", "ipi", "iron-steel", "rubber", "heat", "jobs", "lei",
    "bop", "zinc", "orange", "pet-chem", "dlr", "gas", "silver", "wpi", "hog", "lead",
)  # fmt: skip


def load_data(
    path: str | os.PathLike[str] = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> tuple[Texts, Texts]:
    """Load the newswires; for the other arguments see `imdb.load_data`.

    Args:
        path: `"reuters.npz"` means the cached copy, the usual places, then a download.
        test_split: Share of the newswires for the test part.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: arrays of lists, and int64 labels, positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.
        InvalidArgumentError: `test_split` is out of range.

    Source: Reuters-21578, by way of Keras.

    >>> load_data(test_split=2)
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: test_split is 2; it has to be at least 0 and less than 1
    """
    if not 0 <= test_split < 1:
        raise InvalidArgumentError(f"test_split is {test_split}; it has to be at least 0 and less than 1")
    _, contents = locate.find((REUTERS,), None if path == "reuters.npz" else path)
    ((name, content),) = contents.items()
    texts, labels = marked(*shuffled(*parse_texts(content, name), np.random.RandomState(seed)), start_char, index_from, maxlen)
    x, train = limited(texts, num_words, skip_top, oov_char), int(len(texts) * (1 - test_split))
    return (x[:train], labels[:train]), (x[train:], labels[train:])


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The number of each word, without `index_from`; downloaded into the cache under the name `path`, so the
    example is not run.

    >>> tf.keras.datasets.reuters.get_word_index()["the"]  # doctest: +SKIP
    1
    """
    return word_index(path, "reuters_word_index.json", "4d44cc38712099c9e383dc6e5f11a921")


def get_label_names() -> tuple[str, ...]:
    """The topics, by the numbers of the labels.

    >>> get_label_names()[3]
    'earn'
    """
    return CLASS_NAMES
