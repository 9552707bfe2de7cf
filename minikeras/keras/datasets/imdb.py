"""IMDB: 25,000 + 25,000 reviews of films as lists of word numbers, negative or positive. Not shipped: found, or downloaded."""

import os

import numpy as np

from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import IMDB
from minikeras.keras.datasets.reviews import Texts, limited, marked, parse_texts, shuffled, word_index

CLASS_NAMES = ("negative", "positive")


def load_data(
    path: str | os.PathLike[str] = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> tuple[Texts, Texts]:
    """Load the reviews, words numbered by their frequency.

    Args:
        path: `"imdb.npz"` means the cached copy, the usual places, then a download. Anything else names a file or a
            directory, and only that is used.
        num_words: Words from this number on are replaced by `oov_char`; None for the largest number, as in Keras.
        skip_top: So are the numbers below this one.
        maxlen: Only reviews that are shorter.
        seed: Seed of the shuffle.
        start_char: Number that begins each review, or None.
        oov_char: Number of words that are left out; None to drop them.
        index_from: Added to the numbers of all words.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: arrays of lists, and int64 labels, positions in `CLASS_NAMES`.

    Raises:
        DatasetUnavailableError: No intact copy was found; the message lists every place and what to do.

    Source: Maas et al., Learning Word Vectors for Sentiment Analysis (2011).

    >>> load_data("/no/such/directory")
    Traceback (most recent call last):
        ...
    minikeras.errors.DatasetUnavailableError: dataset 'imdb' was asked for, but no intact copy was found. Tried:
      ...
    """
    _, contents = locate.find((IMDB,), None if path == "imdb.npz" else path)
    ((name, content),) = contents.items()
    random = np.random.RandomState(seed)
    parts = [shuffled(*parse_texts(content, name, part), random) for part in ("_train", "_test")]
    (train, y_train), (test, y_test) = (marked(*part, start_char, index_from, maxlen) for part in parts)
    x = limited([*train, *test], num_words, skip_top, oov_char)
    return (x[: len(train)], y_train), (x[len(train) :], y_test)


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The number of each word, without `index_from`; downloaded into the cache under the name `path`, so the
    example is not run.

    >>> tf.keras.datasets.imdb.get_word_index()["the"]  # doctest: +SKIP
    1
    """
    return word_index(path, "imdb_word_index.json", "bfafd718b763782e994055a2d397834f")
