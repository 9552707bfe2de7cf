"""What IMDB and Reuters share: texts as lists of word numbers, by Keras's conventions."""

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import InvalidArgumentError, LoadError
from minikeras.keras.datasets.object_lists import parse_object_lists
from minikeras.keras.datasets.remote_file import get_file

FOLDER = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
Texts = tuple[NDArray[Any], NDArray[Any]]


def parse_texts(content: bytes, name: str, part: str = "") -> tuple[list[list[int]], NDArray[Any]]:
    """Texts and labels, which an .npz file holds as `x` and `y` with the ending `part`."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            texts = parse_object_lists(archive.read(f"x{part}.npy"), f"{name}, x{part}")
            labels = np.lib.format.read_array(io.BytesIO(archive.read(f"y{part}.npy")), allow_pickle=False)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{name}: damaged .npz file ({str(error)[:120]})") from error
    if labels.shape != (len(texts),):
        raise LoadError(f"{name}: {len(texts)} texts need as many labels, found shape {labels.shape}")
    return texts, labels


def shuffled(
    texts: list[list[int]], labels: NDArray[Any], random: np.random.RandomState
) -> tuple[list[list[int]], NDArray[Any]]:
    """Both in the same random order, as in Keras."""
    order = np.arange(len(texts))
    random.shuffle(order)
    return [texts[row] for row in order], labels[order]


def marked(
    texts: list[list[int]], labels: NDArray[Any], start_char: int | None, index_from: int, maxlen: int | None
) -> tuple[list[list[int]], NDArray[Any]]:
    """Words counted from `index_from` on, after a mark for the start; only texts that are shorter than `maxlen`."""
    if start_char is not None or index_from:
        start = [] if start_char is None else [start_char]
        texts = [start + [word + index_from for word in text] for text in texts]
    if not maxlen:
        return texts, labels
    kept = [row for row, text in enumerate(texts) if len(text) < maxlen]
    if not kept:
        raise InvalidArgumentError(f"no text has fewer than maxlen={maxlen} words; increase maxlen")
    return [texts[row] for row in kept], labels[kept]


def limited(texts: Sequence[list[int]], num_words: int | None, skip_top: int, oov_char: int | None) -> NDArray[Any]:
    """Words below `skip_top` and from `num_words` on replaced by `oov_char`, or left out if that is None."""
    limit = num_words or max(map(max, filter(None, texts)), default=0)
    found = np.empty(len(texts), object)
    for row, text in enumerate(texts):
        inside = [skip_top <= word < limit for word in text]
        if oov_char is None:
            found[row] = [word for word, known in zip(text, inside, strict=True) if known]
        else:
            found[row] = [word if known else oov_char for word, known in zip(text, inside, strict=True)]
    return found


def word_index(path: str, name: str, md5: str) -> dict[str, int]:
    """The numbers of words, most frequent first; Keras publishes an MD5 of the file only."""
    with open(get_file(path, FOLDER + name, md5_hash=md5), encoding="utf-8") as file:
        return json.load(file)
