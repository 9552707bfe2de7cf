"""StringLookup and IntegerLookup: the place of each token in a vocabulary, or the token of each place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...core import Tensor, by_elements, only_shapes, to_numpy
from ...errors import DTypeError, InvalidArgumentError
from ...files import limits
from ...functions.creation import constant
from ...types import Array, DTypeLike, TensorLike
from ..arguments import whole
from ..config import floatx
from ..saving.objects import described
from .encoding import AdaptedLayer, as_column, encode, texts
from .hashing import bins_of, checked_salt
from .inputs import called
from .layer import Layer
from .options import Flag, Kept, one_of

_MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")
_UNKNOWN, _DROPPED = -2, -1
_FILE = "vocabulary.txt"


class Vocabulary:
    """Tokens with their places. It does not change, so recorded steps tell it by its identity.

    Args:
        tokens: all, those for masks and unknown ones in front.
        start: the place of the first that stands for itself.
        mask: a further token with its place, or None.
        weights: of the tokens, where they were given.
    """

    __slots__ = ("places", "tokens", "weights")

    def __init__(self, tokens: Sequence[Any], start: int = 0, mask: tuple[Any, int] | None = None, weights: Any = None) -> None:
        self.tokens, self.weights = tuple(tokens), weights
        self.places = dict(zip(tokens[start:], range(start, len(tokens)), strict=True)) | dict([mask] if mask else [])


def _places(x: Array, vocabulary: Vocabulary, oov: tuple[int, int, str, Any], encoding: str) -> Array:
    """The place of each element. For tokens out of the vocabulary `oov` has the number of places, the first of them, the method
    that spreads tokens over them, and a key.
    """
    flat, look_up = x.ravel(), vocabulary.places.get
    found = np.fromiter(map(look_up, flat.tolist(), repeat(_UNKNOWN)), np.int64, flat.size)
    unknown = np.flatnonzero(found == _UNKNOWN)
    if unknown.size and x.dtype.kind in "OS":  # they may be bytes
        found[unknown] = [look_up(value, _UNKNOWN) for value in texts(flat[unknown], encoding)]
        unknown = np.flatnonzero(found == _UNKNOWN)
    if unknown.size:
        count, first, method, key = oov
        others = flat[unknown]
        if not count and not only_shapes():
            named = sorted(set(texts(others, encoding)))[:10]
            raise InvalidArgumentError(
                f"When `num_oov_indices=0` all inputs should be in vocabulary, found OOV values {named}, consider setting "
                "`num_oov_indices=1`."
            )
        by_remainder = method == "floormod" and x.dtype.kind not in "OSU"
        found[unknown] = first + (0 if count < 2 else others % count if by_remainder else bins_of(others, count, key))
    return found.reshape(x.shape)


def _tokens(x: Array, vocabulary: Vocabulary, other: TensorLike) -> Array:
    tokens = vocabulary.tokens
    found = [tokens[place] if 0 <= place < len(tokens) else other for place in x.ravel().tolist()]
    return np.array(found, object if isinstance(other, str) else np.int64).reshape(x.shape)


_look_up, _look_back = by_elements("places_of_tokens", _places), by_elements("tokens_of_places", _tokens)


Method = Annotated[str, one_of("floormod", "farmhash")]


class IndexLookup(AdaptedLayer):
    """Base of both lookups: `_text` is True if tokens are texts, False if they are integers."""

    _text: bool
    _not_walked = ("_vocabulary", "_input", "_counts", "_found_in")

    def __init__(
        self, vocabulary: Any, idf_weights: Any, sparse: bool, oov_method: Method = "floormod", salt: Any = None, **options: Any
    ) -> None:
        options.pop("dtype", None)  # the results are int64 or the default float dtype, as in Keras
        vocabulary_size = options.pop("vocabulary_size", None)  # of a configuration, whose vocabulary comes later
        super().__init__(**options)
        kind, output_mode, count = type(self).__name__, self.output_mode, self.num_oov_indices
        whole(f"{kind}: max_tokens", self.max_tokens, 2, optional=True)
        if self.pad_to_max_tokens and self.max_tokens is None:
            raise ValueError(f"{kind}: If pad_to_max_tokens is True, must set `max_tokens`.")
        whole(f"{kind}: num_oov_indices", count, 0)
        if salt is not None and not self._text and oov_method != "farmhash":
            raise ValueError(f"{kind}: `salt` can only be used when `oov_method='farmhash'`. Received: oov_method={oov_method}")
        self.output_mode, self.sparse = self._check_mode(output_mode, _MODES, sparse), False
        if self.invert and self.output_mode != "int":
            raise ValueError(f"{kind}: `output_mode` must be `'int'` when `invert` is true. Received: {output_mode}")
        if idf_weights is not None and self.output_mode != "tf_idf":
            raise ValueError(
                f"{kind}: `idf_weights` should only be set if `output_mode` is `'tf_idf'`. Received: {output_mode}"
            )
        if vocabulary is not None and idf_weights is None and self.output_mode == "tf_idf":
            raise ValueError(f"{kind}: with a `vocabulary` in mode 'tf_idf' the `idf_weights` argument must also be provided.")
        whole(f"{kind}: vocabulary_size", vocabulary_size, 0, optional=True)
        padded = self.pad_to_max_tokens and idf_weights is not None
        limits.spend_state((count + (self.max_tokens or 0) * padded,), 8, "tokens")
        self.salt = checked_salt(kind, salt)
        if self.invert and self.oov_token is None:
            raise ValueError(f"{kind}: with `invert` an `oov_token` is needed for places beyond the vocabulary, found None.")
        self.idf_weights: Any = None
        self._size, self._vocabulary = vocabulary_size, Vocabulary(())
        self._input: Vocabulary | None = None
        self._is_static = vocabulary is not None
        self.reset_state()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    # The vocabulary --------------------------------------------------------------------------------------------------------

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The tokens in the order of their places, with those for masks and unknown ones in front, or without."""
        return list(self._vocabulary.tokens if include_special_tokens else self._vocabulary.tokens[len(self._special()) :])

    def vocabulary_size(self) -> int:
        """The number of tokens, those for masks and unknown ones included."""
        return len(self._vocabulary.tokens) or len(self._special())

    def _special(self) -> list[Any]:
        masks = [self.mask_token] if self.mask_token is not None and self.output_mode == "int" else []
        return masks + [self.oov_token] * self.num_oov_indices

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Replace the vocabulary by these tokens.

        Args:
            vocabulary: a list or array of tokens, the special ones in front or left out; or the name of a file with one in each
                line.
            idf_weights: for mode 'tf_idf', and only for it, the weight of each token.

        Raises:
            ValueError: for repeated or misplaced tokens, too many of them, or weights that do not fit.
            RuntimeError: if results have one element for each token, and the layer was called with another number of them.
        """
        if (idf_weights is None) == (self.output_mode == "tf_idf"):
            raise ValueError(
                f"`idf_weights` must be set if output_mode is 'tf_idf', and only then; it is {self.output_mode!r}."
            )
        is_path = isinstance(vocabulary, (str, os.PathLike))
        given, special = self._read(vocabulary) if is_path else self._listed(vocabulary), self._special()
        complete = given[: len(special)] == special
        tokens = given[len(special) :] if complete else given
        if repeated := [token for token, count in Counter(tokens).items() if count > 1]:
            raise ValueError(f"The passed vocabulary has at least one repeated term. The repeated terms are: {repeated[:10]}")
        reserved = {"mask": self.mask_token, "OOV": self.oov_token if self.invert else None}
        for name in [name for name, token in reserved.items() if token is not None and token in tokens]:
            raise ValueError(
                f"Found reserved {name} token at unexpected location in `vocabulary`: {reserved[name]!r}. Leave all mask and "
                f"OOV tokens out, or have them at the start in precisely this order: {special}."
            )
        if self.max_tokens is not None and len(special) + len(tokens) > self.max_tokens:
            raise ValueError(
                "Attempted to set a vocabulary larger than the maximum vocab size. Received vocabulary size is "
                f"{len(special) + len(tokens)}; `max_tokens` is {self.max_tokens}."
            )
        weights = None
        if idf_weights is not None:
            weights = np.asarray(idf_weights, np.float64)
            if weights.shape != (len(given),):
                raise ValueError(
                    f"`idf_weights` must be the same length as vocabulary: {len(given)} tokens, found shape {weights.shape}."
                )
            weights = weights if complete else np.concatenate([np.full(len(special), weights.mean()), weights])
        self._have(tokens, weights)
        self._input = Vocabulary(given, weights=idf_weights) if self._is_static and not is_path else None

    def _have(self, tokens: Sequence[Any], idf_weights: Any) -> None:
        """Take these tokens as vocabulary, with a weight for each and for the special ones."""
        special = self._special()
        size, counted = len(special) + len(tokens), self.output_mode != "int" and not self.pad_to_max_tokens
        if counted and self._built and self._size not in (None, size):
            raise RuntimeError(
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens=False`, the vocabulary size cannot be "
                f"changed after the layer is called. Old vocab size is {self._size}, new vocab size is {size}"
            )
        if idf_weights is not None:
            rest = self.max_tokens - size if self.pad_to_max_tokens and self.max_tokens else 0
            self.idf_weights = constant(np.pad(idf_weights, (0, rest)), floatx())
        mask = None if self.mask_token is None else (self.mask_token, 0 if self.output_mode == "int" else _DROPPED)
        self._vocabulary, self._size = Vocabulary([*special, *tokens], len(special), mask), size

    def _listed(self, vocabulary: Any) -> list[Any]:
        values = as_column(list(vocabulary) if isinstance(vocabulary, tuple) else vocabulary)
        column = self._column(values)
        if not column.size or column.ndim != 1:
            said = "Cannot set an empty vocabulary." if not column.size else "A vocabulary has one axis."
            raise ValueError(f"{said} Received: vocabulary of shape {column.shape}.")
        if not self._text and (to_numpy(values.array) != column).any():
            raise ValueError(f"A vocabulary of integers of 64 bits is needed, found {vocabulary!r:.80}.")
        return texts(column, self.encoding)

    def _read(self, path: Any) -> list[Any]:
        if self.output_mode == "tf_idf":
            raise ValueError("output_mode 'tf_idf' does not support loading a vocabulary from file: its weights are not there.")
        if not os.path.exists(path):
            raise ValueError(f"Vocabulary file {path} does not exist.")
        lines = Path(path).read_text(encoding=self.encoding).split("\n")
        return self._parsed(lines[: -1 if lines[-1] == "" else None])

    def _parsed(self, lines: Iterable[str]) -> list[Any]:
        return list(lines) if self._text else list(map(int, lines))

    def _column(self, x: Tensor) -> Array:
        """Values on the host: text, or int64."""
        return to_numpy(self._keys(x).array) if x.shape.num_elements() else np.empty(x.shape, object)

    def _keys(self, x: Tensor) -> Tensor:
        if not self._text:
            return self._as_integers(x)
        if x.dtype.name != "string":
            raise DTypeError(f"{called(self)} takes text, found {x.dtype.name}{list(x.shape)}. Use IntegerLookup for integers.")
        return x

    # Learning it -----------------------------------------------------------------------------------------------------------

    _can_adapt = property(lambda self: not self._is_static)

    def update_state(self, data: Any) -> None:
        """Count the tokens of a batch; one axis is one row."""
        if self._is_static:
            raise ValueError(
                f"Cannot adapt layer '{self.name}' after setting a static vocabulary via `vocabulary` argument. Leave that out."
            )
        column = self._column(as_column(data))
        self._counts.update(texts(column, self.encoding))
        if self.output_mode == "tf_idf":
            rows = column if column.ndim > 1 else column.reshape(1, -1)
            self._documents += len(rows)
            for row in rows:
                self._found_in.update(set(texts(row, self.encoding)))

    def finalize_state(self) -> None:
        """Take the tokens that were counted as vocabulary."""
        for token in (self.mask_token, self.oov_token):
            self._counts.pop(token, None)
        if not self._counts:
            raise ValueError(f"Cannot `adapt` layer '{self.name}': there is no data.")
        tokens = [token for _, token in sorted(((count, token) for token, count in self._counts.items()), reverse=True)]
        if self.max_tokens is not None:
            tokens = tokens[: max(self.max_tokens - len(self._special()), 0)]
        weights = None
        if self.output_mode == "tf_idf":
            weights = np.log(1 + self._documents / (1 + np.array([self._found_in[token] for token in tokens])))
            weights = np.concatenate([np.full(len(self._special()), weights.mean()), weights])
        self._have(tokens, weights)
        self.reset_state()

    def reset_state(self) -> None:
        """Forget what was counted; the vocabulary stays."""
        self._counts: Counter[Any] = Counter()
        self._found_in: Counter[Any] = Counter()
        self._documents = 0

    # Looking up ------------------------------------------------------------------------------------------------------------

    @property
    def output_dtype(self) -> str:
        """The dtype of the result."""
        text = self.invert and self._text
        return "string" if text else "int64" if self.output_mode == "int" else floatx()

    _depth = property(lambda self: self.max_tokens if self.pad_to_max_tokens else self._size)

    def call(self, inputs: Tensor) -> Tensor:
        if not self._vocabulary.tokens:
            raise RuntimeError(
                f"When using `output_mode={self.output_mode}` and `pad_to_max_tokens={self.pad_to_max_tokens}`, you must set "
                f"the vocabulary of layer '{self.name}' before calling it: give it a `vocabulary`, or call `adapt` with data."
            )
        if self.invert:
            found: Tensor = _look_back(self._as_integers(inputs), vocabulary=self._vocabulary, other=self.oov_token)
            return found
        method = "farmhash" if self._text else self.oov_method
        first = len(self._special()) - self.num_oov_indices
        oov = (self.num_oov_indices, first, method, self.salt)
        found = _look_up(self._keys(inputs), vocabulary=self._vocabulary, oov=oov, encoding=self.encoding)
        if self.output_mode == "int":
            return found
        mode, some_absent = self.output_mode.replace("tf_idf", "count"), self.mask_token is not None
        rows = encode(found, mode, self._depth or 0, floatx(), some_absent=some_absent)
        return rows * self.idf_weights if self.output_mode == "tf_idf" else rows

    # Files -----------------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        given = self._input
        return super().get_config() | {
            "vocabulary": None if given is None else list(given.tokens),
            "idf_weights": None if given is None else described(given.weights),
            "vocabulary_size": self._size,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer from `get_config`; a ValueError for the name of a file, which another's configuration is not to open."""
        cls.check_config(config)
        return super().from_config(config)

    @classmethod
    def check_config(cls, config: Mapping[str, Any]) -> None:
        """Refuse a configuration that names a file to be opened."""
        if isinstance(config.get("vocabulary"), str):
            raise ValueError(f"{cls.__name__}: a configuration may not name a vocabulary file: {config['vocabulary']!r:.80}.")

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """The weights of mode 'tf_idf'."""
        if self.output_mode == "tf_idf" and self.idf_weights is not None:
            store["idf_weights"] = self.idf_weights.numpy()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Read what `save_own_variables` wrote."""
        if self.output_mode == "tf_idf":
            if np.shape(store["idf_weights"]) != (self._depth,):
                raise ValueError(
                    f"idf_weights of shape {np.shape(store['idf_weights'])} are no weights of {self._depth} tokens."
                )
            self.idf_weights = constant(np.asarray(store["idf_weights"]), floatx())

    def save_assets(self, dir_path: Any) -> None:
        """Write the vocabulary to a file in a folder, one token in each line, unless the configuration holds it."""
        if self._input is not None:
            return
        lines = list(map(str, self.get_vocabulary()))
        if broken := next((line for line in lines if len((line + "|").splitlines()) > 1), None):
            raise ValueError(
                f"Layer '{self.name}': token {broken!r} has a line break, and a vocabulary file one token in each line."
            )
        Path(dir_path, _FILE).write_bytes("\n".join(lines).encode("utf-8"))

    def load_assets(self, dir_path: Any) -> None:
        """Have the vocabulary that `save_assets` wrote."""
        if self._input is not None or not (path := Path(dir_path, _FILE)).exists():
            return
        lines, special = path.read_bytes().decode("utf-8").split("\n"), self._special()
        while lines and lines[-1] == "" and len(lines) != self._size:
            lines.pop()
        known = lines[: len(special)] == list(map(str, special))
        tokens, weights = self._parsed(lines[len(special) if known else 0 :]), self.idf_weights
        needed = None if self.output_mode != "tf_idf" else self._depth if self.pad_to_max_tokens else len(special) + len(tokens)
        if len(set(tokens)) != len(tokens) or needed != (None if weights is None else len(weights)):
            raise ValueError(f"{_FILE}: its tokens are not all different, or they have no weights of their number.")
        self._have(tokens, None)


class StringLookup(IndexLookup, described=True, makes_nothing=True):
    """The place of each text in a vocabulary.

    In mode 'int' the places are: 0 for the mask, if there is one; then `num_oov_indices` for texts that are not in the
    vocabulary, among which they are spread by their hash; then the vocabulary. In the other modes the mask counts nowhere.
    `adapt` takes the tokens of data, the most frequent ones first, among equally frequent ones the later in order first; with
    the special ones at most `max_tokens`. In mode 'tf_idf' the weight of a token is log(1 + rows / (1 + rows with it)).

    Args:
        max_tokens: the largest size of the vocabulary, special tokens included; None for any.
        num_oov_indices: how many places there are for texts that are not in the vocabulary; with 0 these are an error.
        mask_token: the text that stands for no entry, or None.
        oov_token: what `invert` gives for the place of an unknown text.
        vocabulary: a list or array of texts, or the name of a file with one in each line; None if `adapt` will find it.
        idf_weights: in mode 'tf_idf' the weight of each token of `vocabulary`.
        invert: give texts for places instead.
        output_mode: 'int'; 'one_hot', 'multi_hot' or 'count' as in `CategoryEncoding`; 'tf_idf', counts times weights.
        pad_to_max_tokens: whether rows have `max_tokens` elements however many tokens there are.
        encoding: of texts that are given as bytes.
        salt: an integer or two, with which unknown texts are spread by SipHash instead of FarmHash.
        options: `name`; `oov_method` is accepted, and `dtype`, which changes nothing: the result is int64, or rows of the
            default float dtype.

    Raises:
        ValueError: for arguments that contradict each other.
        InvalidArgumentError: for an unknown text where there is no place for it.

    >>> layer = tf.keras.layers.StringLookup()
    >>> layer.adapt(["a", "c", "d", "d", "z", "b"])
    >>> layer.get_vocabulary()
    ['[UNK]', 'd', 'z', 'c', 'b', 'a']
    >>> print(layer(["d", "a", "new"]).numpy())
    [1 5 0]
    """

    _text = True

    def __init__(
        self,
        max_tokens: Kept[int | None] = None,
        num_oov_indices: Kept[int] = 1,
        mask_token: Kept[str | None] = None,
        oov_token: Kept[str | None] = "[UNK]",
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: Flag = False,
        output_mode: Kept[str] = "int",
        pad_to_max_tokens: Flag = False,
        sparse: bool = False,
        encoding: Kept[str] = "utf-8",
        name: str | None = None,
        salt: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(vocabulary, idf_weights, sparse, salt=salt, name=name, **options)


class IntegerLookup(IndexLookup, described=True, makes_nothing=True):
    """The place of each integer in a vocabulary: as `StringLookup`, for integers.

    Args:
        max_tokens, num_oov_indices, vocabulary, idf_weights, invert, output_mode, sparse, pad_to_max_tokens: as there.
        mask_token: the integer that stands for no entry, or None.
        oov_token: what `invert` gives for the place of an unknown integer.
        vocabulary_dtype: 'int64'.
        oov_method: how unknown integers are spread over several places: by remainder ('floormod') or by hash ('farmhash').
        salt: an integer or two, for SipHash in place of FarmHash; only with 'farmhash'.
        options: `name`, and `dtype`, which changes nothing.

    Raises:
        ValueError: for arguments that contradict each other.
        InvalidArgumentError: for an unknown integer where there is no place for it.

    >>> layer = tf.keras.layers.IntegerLookup(vocabulary=[12, 36, 1138, 42], num_oov_indices=2)
    >>> print(layer([[12, 1138, 42], [37, 1000, 36]]).numpy())
    [[2 4 5]
     [1 0 3]]
    """

    _text = False

    def __init__(
        self,
        max_tokens: Kept[int | None] = None,
        num_oov_indices: Kept[int] = 1,
        mask_token: Kept[int | None] = None,
        oov_token: Kept[int | None] = -1,
        vocabulary: Any = None,
        vocabulary_dtype: Kept[DTypeLike] = "int64",
        idf_weights: Any = None,
        invert: Flag = False,
        output_mode: Kept[str] = "int",
        sparse: bool = False,
        pad_to_max_tokens: Flag = False,
        oov_method: str = "floormod",
        salt: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if vocabulary_dtype != "int64":
            raise ValueError(f"Only `vocabulary_dtype='int64'` is supported. Received: vocabulary_dtype={vocabulary_dtype!r}")
        super().__init__(vocabulary, idf_weights, sparse, oov_method, salt, name=name, **options)
