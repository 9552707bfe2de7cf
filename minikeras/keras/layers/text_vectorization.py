"""TextVectorization: lines of text as the places of their words in a vocabulary."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ...core import Tensor, by_elements
from ...errors import ShapeError
from ...functions.shaping import pad
from ...types import Array, ShapeLike
from ..arguments import whole
from ..saving.objects import deserialize_keras_object
from .encoding import AdaptedLayer, Shape, as_column, texts
from .inputs import called
from .layer import Layer
from .lookup import StringLookup
from .options import Kept

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_STANDARDS: dict[Any, dict[int, Any]] = {
    None: {},
    "lower": _LOWER,
    "strip_punctuation": _NO_PUNCTUATION,
    "lower_and_strip_punctuation": _LOWER | _NO_PUNCTUATION,
}
"""By name of the standardization, the table of characters for `str.translate`; letters beyond ASCII stay, as in TensorFlow."""
_SPLITS: dict[Any, Callable[[str], list[str]]] = {"whitespace": re.compile(r"[^ \t\n\v\f\r]+").findall, "character": list}


def _tokens_of(x: Array, standardize: Any, split: Any, ngrams: tuple[int, ...] | None, encoding: str) -> Array:
    """The tokens of each line along a new last axis, or of each row of tokens if nothing is split; "" where a row has fewer."""
    lines = texts(x, encoding)
    if callable(standardize):
        lines = [str(line) for line in np.asarray(standardize(np.array(lines, str).reshape(x.shape))).ravel().tolist()]
    elif table := _STANDARDS[standardize]:
        lines = [line.translate(table) for line in lines]
    shape = x.shape
    if callable(split):
        rows = [list(map(str, np.asarray(row).tolist())) for row in split(np.array(lines, str))]
    elif split is not None:
        rows = list(map(_SPLITS[split], lines))
    else:
        shape, width = x.shape[:-1], x.shape[-1] if x.ndim else 1
        rows = [lines[start : start + width] for start in range(0, len(lines), max(width, 1))]
    if ngrams is not None:
        rows = [[" ".join(row[i : i + n]) for n in ngrams for i in range(len(row) - n + 1)] for row in rows]
    found = np.full((len(rows), max(map(len, rows), default=0)), "", object)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found.reshape(*shape, found.shape[-1])


_split_text = by_elements("split_text", _tokens_of)

P = ParamSpec("P")
R = TypeVar("R")


def _of_lookup(method: Callable[Concatenate[StringLookup, P], R]) -> Callable[Concatenate[TextVectorization, P], R]:
    """A method that is that of the lookup within."""

    def called(self: TextVectorization, /, *arguments: P.args, **options: P.kwargs) -> R:
        return method(self._lookup_layer, *arguments, **options)

    functools.update_wrapper(called, method)
    return called


class TextVectorization(AdaptedLayer, described=True):
    """Lines of text as the places of their words in a vocabulary, or as one row of numbers each.

    Each line is standardized and split into tokens; these are joined to n-grams and looked up, with the mask "".

    Args:
        max_tokens: the largest size of the vocabulary, special tokens included; None for any.
        standardize: 'lower_and_strip_punctuation', 'lower' (ASCII's letters), 'strip_punctuation', None, or a function of
            an array of texts.
        split: 'whitespace', 'character', None for rows of tokens, or a function of an array of texts that gives lists of
            tokens.
        ngrams: n, for all of 1 to n tokens, or several n.
        output_mode: 'int', 'multi_hot', 'count' or 'tf_idf', as in `StringLookup`.
        output_sequence_length: in mode 'int' the number of tokens, more are cut off and fewer padded with 0; None for that of
            the longest line.
        pad_to_max_tokens, vocabulary, idf_weights, encoding: as in `StringLookup`.
        sparse, ragged: not available; False.
        options: `name`, `dtype`, as there.

    Shapes: (batch,) or (batch, 1) to (batch, tokens), in other modes than 'int' to (batch, vocabulary size). The tokens are
    text, which recorded steps do not hold: a step with this layer in it runs eagerly. Use it in `Dataset.map`.

    >>> layer = tf.keras.layers.TextVectorization(output_sequence_length=4)
    >>> layer.adapt(["The cat sat.", "The mat!"])
    >>> layer.get_vocabulary()
    ['', '[UNK]', 'the', 'sat', 'mat', 'cat']
    >>> print(layer(["the dog SAT"]).numpy())
    [[2 1 3 0]]
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: Kept[Any] = "lower_and_strip_punctuation",
        split: Kept[Any] = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: Kept[int | None] = None,
        pad_to_max_tokens: bool = False,
        vocabulary: Any = None,
        idf_weights: Any = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: Kept[str] = "utf-8",
        name: str | None = None,
        **options: Any,
    ) -> None:
        size = options.pop("vocabulary_size", None)
        options.pop("dtype", None)
        super().__init__(name=name, **options)
        if ragged:
            raise ValueError("TextVectorization: ragged=True is not available: rows are padded with 0, for `mask_zero`.")
        for argument, value, known in (("standardize", standardize, _STANDARDS), ("split", split, [None, *_SPLITS])):
            if not callable(value) and value not in known:
                raise ValueError(f"TextVectorization: {argument} must be a function or one of {[*known]}, found {value!r}.")
        widths = ngrams if isinstance(ngrams, (list, tuple)) else [1 if ngrams is None else ngrams]
        if not widths or not all(isinstance(n, int) and n > 0 for n in widths):
            raise ValueError(f"TextVectorization: ngrams must be a positive integer or several, found {ngrams!r}.")
        modes = ("int", "multi_hot", "count", "tf_idf")
        self.output_mode, self.sparse, self.ragged = self._check_mode(output_mode, modes, sparse), False, False
        whole("TextVectorization: output_sequence_length", output_sequence_length, 1, optional=True)
        if output_sequence_length is not None and self.output_mode != "int":
            raise ValueError(
                "`output_sequence_length` is for output_mode 'int' only. Received: "
                f"{output_sequence_length} with {output_mode!r}. Leave it out: rows are as long as the vocabulary."
            )
        self.ngrams = ngrams if ngrams is None or isinstance(ngrams, int) else tuple(ngrams)
        told: dict[str, Any] = {
            "vocabulary": vocabulary,
            "idf_weights": idf_weights,
            "vocabulary_size": size,
            "encoding": encoding,
        }
        told |= {"output_mode": self.output_mode, "pad_to_max_tokens": pad_to_max_tokens}
        self._lookup_layer = StringLookup(max_tokens, mask_token="", **told)

    def _tokens(self, x: Tensor) -> Tensor:
        x = self._lookup_layer._keys(x)
        if self.split is not None and x.ndim > 1:
            if x.shape[1:] != (1,):
                raise ShapeError(
                    f"{called(self)}: to split text, the input rank must be 1 or the last shape dimension must be 1. Received: "
                    f"{x.shape}."
                )
            x = x[:, 0]
        ngrams = tuple(range(1, self.ngrams + 1)) if isinstance(self.ngrams, int) else self.ngrams
        how = {"standardize": self.standardize, "split": self.split, "ngrams": ngrams, "encoding": self.encoding}
        return _split_text(x, **how)

    def build(self, input_shape: ShapeLike = None) -> None:
        """Nothing: there are no weights."""

    def call(self, inputs: Tensor) -> Tensor:
        found: Tensor = self._lookup_layer(self._tokens(inputs))
        length = self.output_sequence_length
        if length is None:
            return found
        missing = max(length - found.shape[-1], 0)
        return pad(found[..., :length], [[0, 0]] * (found.ndim - 1) + [[0, missing]])

    output_dtype = property(attrgetter("_lookup_layer.output_dtype"), doc="The dtype of the result.")

    def compute_output_shape(self, input_shape: ShapeLike) -> Shape:
        """(batch, tokens), or (batch, vocabulary size)."""
        if self.output_mode == "int":
            return (*(input_shape[:1] if self.split is not None else input_shape[:-1]), self.output_sequence_length)
        return self._lookup_layer.compute_output_shape((*input_shape[:1], None))

    # What the lookup does --------------------------------------------------------------------------------------------------

    _can_adapt = property(attrgetter("_lookup_layer._can_adapt"))

    def adapt(  # type: ignore[override]  # as in Keras, `batch_size` comes first
        self, data: Any, batch_size: int | None = None, steps: int | None = None
    ) -> None:
        """Take the tokens of lines as the vocabulary, as `StringLookup` does; `batch_size` is accepted."""
        super().adapt(data, steps)

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch of lines."""
        self._lookup_layer.update_state(self._tokens(as_column(data)))

    finalize_state, reset_state = _of_lookup(StringLookup.finalize_state), _of_lookup(StringLookup.reset_state)
    get_vocabulary = _of_lookup(StringLookup.get_vocabulary)
    set_vocabulary = _of_lookup(StringLookup.set_vocabulary)
    vocabulary_size = _of_lookup(StringLookup.vocabulary_size)
    save_own_variables = _of_lookup(StringLookup.save_own_variables)
    load_own_variables = _of_lookup(StringLookup.load_own_variables)
    save_assets, load_assets = _of_lookup(StringLookup.save_assets), _of_lookup(StringLookup.load_assets)

    def get_config(self) -> dict[str, Any]:
        lookup = self._lookup_layer.get_config()
        names = ("max_tokens", "pad_to_max_tokens", "vocabulary", "idf_weights", "vocabulary_size")
        return super().get_config() | {name: lookup[name] for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer from `get_config`, with functions that are registered."""
        functions = {name: deserialize_keras_object(config[name]) for name in ("standardize", "split") if name in config}
        StringLookup.check_config(config)
        return cls(**config | functions)
