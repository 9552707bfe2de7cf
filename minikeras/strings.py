"""`tf.strings`: functions of text, element by element, for lists, arrays and tensors of it.

Text is Python's `str` in arrays of objects, here and in `.numpy()`; bytes are read as UTF-8.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .absent import late as _late
from .core import Tensor, by_elements
from .errors import DTypeError, InvalidArgumentError
from .functions.operands import tensor
from .functions.python import text as _shown
from .types import Array, TensorLike, as_dtype

__all__ = [
    *("format", "join", "length", "lower", "regex_full_match", "regex_replace", "split", "strip", "to_number", "upper"),
]


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _computed(*arrays: Array, function: Callable[..., Any], kind: Any) -> Array:
    return np.asarray(np.frompyfunc(lambda *each: function(*map(_plain, each)), len(arrays), 1)(*arrays), kind)


_apply = by_elements("function_of_text", _computed)


def _text(name: str, value: TensorLike) -> Tensor:
    x = tensor(value)
    if x.dtype.name != "string":
        raise DTypeError(f"strings.{name}: needs text, found {x.dtype.name}{list(x.shape)}.")
    return x


def _each(name: str, value: TensorLike, function: Callable[..., Any], *others: TensorLike, kind: Any = object) -> Tensor:
    """A function of each element, beside the elements of other tensors."""
    found: Tensor = _apply(_text(name, value), *map(tensor, others), function=function, kind=kind)
    return found


class Cased(Protocol):
    """A function of texts and their encoding."""

    def __call__(self, input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor: ...


def _cased(case: str) -> Cased:
    def function(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
        if encoding not in ("", "utf-8"):
            raise InvalidArgumentError(f"strings.{case}: encoding must be '' or 'utf-8', found {encoding!r}.")
        change = getattr(str if encoding else bytes, case)
        return _each(case, input, lambda text: change(text) if encoding else change(text.encode()).decode())

    function.__name__ = function.__qualname__ = case
    function.__doc__ = f"""Each text in {case} case: ASCII's letters, with encoding='utf-8' all.

    >>> print(tf.strings.{case}(["Ab", "É"]).numpy(), tf.strings.{case}("é", encoding="utf-8").numpy())
    ['{getattr("Ab", case)()}' 'É'] {getattr("é", case)()}
    """
    return function


lower, upper = _cased("lower"), _cased("upper")


def strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Each text without white space at its ends.

    >>> print(tf.strings.strip([" a b ", "c"]).numpy())
    ['a b' 'c']
    """
    return _each("strip", input, lambda text: text.strip(string.whitespace))


def length(input: TensorLike, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The int32 number of bytes of each text in UTF-8, or of characters with unit='UTF8_CHAR'.

    >>> print(tf.strings.length(["né", ""]).numpy(), tf.strings.length("né", "UTF8_CHAR").numpy())
    [3 0] 2
    """
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise InvalidArgumentError(f"strings.length: unit must be 'BYTE' or 'UTF8_CHAR', found {unit!r}.")
    return _each("length", input, lambda text: len(text.encode() if unit == "BYTE" else text), kind="int32")


def join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """The texts of several tensors put together, element by element; a tensor of one text is repeated for each element.

    >>> print(tf.strings.join([["a", "b"], "c"], separator="-").numpy())
    ['a-c' 'b-c']
    """
    first, *others = [_text("join", one) for one in inputs] or [tensor("")]
    if len({tuple(x.shape) for x in (first, *others)} - {()}) > 1:
        raise InvalidArgumentError(f"strings.join: needs one shape, found {[list(x.shape) for x in (first, *others)]}.")
    return _each("join", first, lambda *parts: separator.join(parts), *others)


def split(input: TensorLike, sep: str | None = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of a text between separators, or between white space; at most `maxsplit` times.

    Returns:
        A Tensor (parts,) of one text. Of more texts lists of such Tensors, since there are no ragged ones.

    >>> print(tf.strings.split("a b  c").numpy(), [row.numpy().tolist() for row in tf.strings.split(["a,b", "c"], ",")])
    ['a' 'b' 'c'] [['a', 'b'], ['c']]
    """
    x = _text("split", input)
    if x.ndim:
        return [split(row, sep, maxsplit) for row in x]
    parts = _plain(x.numpy()).encode().split(sep.encode() if sep else None, maxsplit)
    return Tensor(np.array(list(map(_plain, parts)), object))


def regex_replace(
    input: TensorLike, pattern: str, rewrite: str, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Texts with matches of a regular expression replaced, all or the first; `\1` in `rewrite` is what group 1 matched.

    >>> print(tf.strings.regex_replace("Text.<br />More", "<[^>]+>", " ").numpy())
    Text. More
    """
    expression = re.compile(pattern, re.ASCII)
    written = lambda found: re.sub(r"\\(\d)", lambda group: found[int(group[1])] or "", rewrite)
    return _each("regex_replace", input, lambda text: expression.sub(written, text, 0 if replace_global else 1))


def regex_full_match(input: TensorLike, pattern: str, name: str | None = None) -> Tensor:
    """True where the whole of a text matches a regular expression of Python.

    >>> print(tf.strings.regex_full_match(["ab", "abc"], "a.").numpy())
    [ True False]
    """
    return _each("regex_full_match", input, re.compile(pattern, re.ASCII).fullmatch, kind="bool")


def to_number(input: TensorLike, out_type: Any = "float32", name: str | None = None) -> Tensor:
    """Each text as a number: of 32 or 64 bits, and no unsigned one.

    >>> print(tf.strings.to_number(["1.5", "-2e3"]).numpy(), tf.strings.to_number("7", tf.int32).numpy())
    [ 1.5e+00 -2.0e+03] 7
    """
    wanted = as_dtype(out_type)
    if wanted.name not in ("float32", "float64", "int32", "int64"):
        raise InvalidArgumentError(f"strings.to_number: float32, float64, int32 or int64, found {wanted.name}. Use tf.cast.")

    def number(text: str) -> Any:
        try:
            return wanted.numpy.type((float if wanted.is_floating else int)(text.replace("_", "x")))
        except (ValueError, OverflowError):
            raise InvalidArgumentError(f"strings.to_number: {text!r:.80} is no number of dtype {wanted.name}.") from None

    return _each("to_number", input, number, kind=wanted.numpy)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Tensor:
    """A text with tensors in the places that are marked, as `tf.print` shows them.

    >>> print(tf.strings.format("loss {} of {}", (tf.constant(0.5), tf.range(8))).numpy())
    loss 0.5 of [0 1 2 ... 5 6 7]
    """
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    first, *rest = template.split(placeholder)
    if len(values) != len(rest):
        raise ValueError(f"strings.format: {template!r:.80} has {len(rest)} places for {len(values)} tensors.")
    filled = [_shown(tensor(value).numpy(), summarize, quoted=True) + after for value, after in zip(values, rest, strict=True)]
    return Tensor(np.array(first + "".join(filled), object))


__getattr__, __dir__ = _late(__name__, {})
