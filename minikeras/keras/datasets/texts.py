"""Texts as lists of word numbers, by Keras's conventions: IMDB and Reuters. A class is the module of its name."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidArgumentError, LoadError
from .catalogue import IMDB, KERAS, REUTERS, find
from .download import get_file

Texts = tuple[NDArray[Any], NDArray[Any]]


class imdb:
    """IMDB: 25,000 + 25,000 reviews of films as lists of word numbers, negative or positive. Found, or downloaded."""

    CLASS_NAMES = ("negative", "positive")

    @staticmethod
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
            MissingExtraError: It has to be downloaded, and the package pooch is missing.

        Source: Maas et al., Learning Word Vectors for Sentiment Analysis (2011).

        >>> tf.keras.datasets.imdb.load_data("/no/such/directory")
        Traceback (most recent call last):
            ...
        minikeras.errors.DatasetUnavailableError: dataset 'imdb' was asked for, but no intact copy was found. Tried:
          ...
        """
        (content,) = find((IMDB,), None if path == "imdb.npz" else path)[1].values()
        random = np.random.RandomState(seed)
        (train, y_train), (test, y_test) = (
            _read_texts(content, part, random, start_char, index_from, maxlen) for part in ("_train", "_test")
        )
        x = _limit_words([*train, *test], num_words, skip_top, oov_char)
        return (x[: len(train)], y_train), (x[len(train) :], y_test)

    @staticmethod
    def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
        """The number of each word, without `index_from`; downloaded into the cache under the name `path`, so the
        example is not run.

        >>> tf.keras.datasets.imdb.get_word_index()["the"]  # doctest: +SKIP
        1
        """
        return _word_index(path, "imdb_word_index.json", "bfafd718b763782e994055a2d397834f")


class reuters:
    """Reuters: 11,228 newswires as lists of word numbers, 46 topics. Not shipped: found, or downloaded."""

    CLASS_NAMES = (
        "cocoa", "grain", "veg-oil", "earn", "acq", "wheat", "copper", "housing", "money-supply", "coffee", "sugar", "trade",
        "reserves", "ship", "cotton", "carcass", "crude", "nat-gas", "cpi", "money-fx", "interest", "gnp", "meal-feed", "alum",
        "oilseed", "gold", "tin", "strategic-metal", "livestock", "retail", "ipi", "iron-steel", "rubber", "heat", "jobs",
        "lei", "bop", "zinc", "orange", "pet-chem", "dlr", "gas", "silver", "wpi", "hog", "lead",
    )  # fmt: skip

    @staticmethod
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
            MissingExtraError: It has to be downloaded, and the package pooch is missing.
            InvalidArgumentError: `test_split` is out of range.

        Source: Reuters-21578, by way of Keras.

        >>> tf.keras.datasets.reuters.load_data(test_split=2)
        Traceback (most recent call last):
            ...
        minikeras.errors.InvalidArgumentError: test_split is 2; it has to be at least 0 and less than 1
        """
        if not 0 <= test_split < 1:
            raise InvalidArgumentError(f"test_split is {test_split}; it has to be at least 0 and less than 1")
        (content,) = find((REUTERS,), None if path == "reuters.npz" else path)[1].values()
        texts, labels = _read_texts(content, "", np.random.RandomState(seed), start_char, index_from, maxlen)
        x, train = _limit_words(texts, num_words, skip_top, oov_char), int(len(texts) * (1 - test_split))
        return (x[:train], labels[:train]), (x[train:], labels[train:])

    @staticmethod
    def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
        """The number of each word, without `index_from`; downloaded into the cache under the name `path`, so the
        example is not run.

        >>> tf.keras.datasets.reuters.get_word_index()["the"]  # doctest: +SKIP
        1
        """
        return _word_index(path, "reuters_word_index.json", "4d44cc38712099c9e383dc6e5f11a921")

    @staticmethod
    def get_label_names() -> tuple[str, ...]:
        """The topics, by the numbers of the labels.

        >>> tf.keras.datasets.reuters.get_label_names()[3]
        'earn'
        """
        return reuters.CLASS_NAMES


def _read_texts(
    content: bytes, part: str, random: np.random.RandomState, start_char: int | None, index_from: int, maxlen: int | None
) -> tuple[list[list[int]], NDArray[Any]]:
    """Texts and labels, which an .npz file holds as `x` and `y` with the ending `part`, in a random order.

    Words are counted from `index_from` on, after a mark for the start; only texts that are shorter than `maxlen`.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        texts = parse_object_lists(archive.read(f"x{part}.npy"), f"x{part}.npy")
        labels = np.lib.format.read_array(io.BytesIO(archive.read(f"y{part}.npy")), allow_pickle=False)
    order = np.arange(len(texts))
    random.shuffle(order)
    start = [] if start_char is None else [start_char]
    shuffled = [start + [word + index_from for word in texts[row]] for row in order]
    kept = [row for row, text in enumerate(shuffled) if not maxlen or len(text) < maxlen]
    if not kept:
        raise InvalidArgumentError(f"no text has fewer than maxlen={maxlen} words; increase maxlen")
    return [shuffled[row] for row in kept], labels[order][kept]


def _limit_words(texts: Sequence[list[int]], num_words: int | None, skip_top: int, oov_char: int | None) -> NDArray[Any]:
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


def _word_index(path: str, name: str, md5: str) -> dict[str, int]:
    """The numbers of words, most frequent first; Keras publishes an MD5 of the file only."""
    with open(get_file(path, KERAS + name, md5_hash=md5), encoding="utf-8") as file:
        return json.load(file)


# NumPy's file of an array of lists of ints -----------------------------------------------------------------------------------
#
# It is a pickle, read as data, so that nothing in it is called. Only the instructions of such files are known, of protocols 2
# and 3; any other refuses the file. Of what they make only ints and lists matter: a tuple counts as its last item, an object as
# the state that it is given, anything else as None.


_INTS = re.compile(rb"(?:K.|M..|J....)+", re.DOTALL)
_INT = re.compile(rb"K(.)|M(..)|J(....)", re.DOTALL)
_VALUES = {
    **{b"\x80": (1, 0, 0), b"q": (1, 0, 0), b"r": (4, 0, 0)},  # the protocol; put into the memory
    **{b"h": (1, 0, 1), b"j": (4, 0, 1), b"N": (0, 0, 1), b"\x88": (0, 0, 1), b"\x89": (0, 0, 1), b")": (0, 0, 1)},
    **{b"R": (0, 2, 1)},  # the result of a call
}
"""Bytes that follow an instruction, values that it takes off the stack, values that it puts there: all of them None."""
_TEXTS = {b"U": 1, b"C": 1, b"X": 4}
"""Bytes of the length of a text that follows an instruction."""
_TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}


def parse_object_lists(content: bytes, name: str) -> list[list[int]]:
    """The lists in an .npy file of an array of objects; LoadError for anything else.

    >>> parse_object_lists(b"no file", "x.npy")
    Traceback (most recent call last):
        ...
    minikeras.errors.LoadError: x.npy: not an array of lists of ints
    """
    refused = LoadError(f"{name}: not an array of lists of ints")
    if not content.startswith(b"\x93NUMPY\x01\x00") or b"'descr': '|O'" not in content[:128]:
        raise refused
    try:
        rows = _read(content, 10 + int.from_bytes(content[8:10], "little"))
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise refused from error
    if not isinstance(rows, list) or not all(type(row) is list and set(map(type, row)) <= {int} for row in rows):
        raise refused
    return rows


def _read(data: bytes, at: int) -> Any:
    """The value that the instructions from `at` on leave on their stack."""
    stack: list[Any] = []
    marks: list[int] = []
    while (code := data[at : at + 1]) != b".":
        if ints := _INTS.match(data, at):
            stack += [int.from_bytes(k or m or j, "little", signed=bool(j)) for k, m, j in _INT.findall(ints[0])]
            at = ints.end()
            continue
        at += 1
        if code in _VALUES:
            follow, taken, put = _VALUES[code]
            at += follow
            stack[len(stack) - taken :] = [None] * put
        elif code == b"c":  # a function, by two lines
            at = data.index(b"\n", data.index(b"\n", at) + 1) + 1
            stack.append(None)
        elif code in _TUPLES:
            stack[-_TUPLES[code] :] = [stack[-1]]
        elif code == b"\x8a":  # a long int
            stack.append(int.from_bytes(data[at + 1 : at + 1 + data[at]], "little", signed=True))
            at += 1 + data[at]
        elif code == b"(":
            marks.append(len(stack))
        elif code == b"]":
            stack.append([])
        elif code == b"a":
            value = stack.pop()
            stack[-1].append(value)
        elif code == b"e":
            start = marks.pop()
            items, stack[start:] = stack[start:], []
            stack[-1].extend(items)
        elif code == b"t":
            stack[marks.pop() :] = [stack[-1]]
        elif code == b"b":
            stack[-2:] = [stack[-1]]
        else:
            at += _TEXTS[code] + int.from_bytes(data[at : at + _TEXTS[code]], "little")
            stack.append(None)
    return stack.pop()
