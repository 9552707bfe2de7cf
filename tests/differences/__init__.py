"""Where minikeras differs from TensorFlow and from Keras, as data: code, what it gives here and there, and why.

The pages `docs/differences-from-tensorflow.md` and `docs/differences-from-keras.md` are written from the rows, a section for
each file of the folders `tensorflow` and `keras`; code that several rows begin with stands once, below `beginnings`.
Tests run the code of every row here; Keras's column is run on Keras.

    python -m tests.differences          writes the two pages
    python -m tests.differences check    runs all code on the peers that are installed; prints what they give otherwise
"""

import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PEERS = ("tensorflow", "keras")


@dataclass(frozen=True)
class Row:
    """One difference.

    Attributes:
        what: the case, in a few words of Markdown.
        code: runs with the names of `names`; its last line is an expression.
        ours: what `shown` makes of its value here. If it raises: "Error", or "Error: part of the message".
        theirs: the same for the peer.
        why: one sentence: the reason to differ.
    """

    what: str
    code: str
    ours: str
    theirs: str
    why: str


@dataclass(frozen=True)
class Section:
    """The rows of one file."""

    title: str
    rows: list[Row]


def sections(peer: str) -> list[Section]:
    """The sections of a peer's page, in the order of the files' names."""
    return [_section(**tomllib.loads(path.read_text())) for path in sorted((Path(__file__).parent / peer).glob("*.toml"))]


def _section(title: str, rows: list[dict[str, str]], beginnings: Mapping[str, str] = {}) -> Section:
    for row in rows:
        row["code"] = (beginnings[row.pop("after")] if "after" in row else "") + row["code"]
    return Section(title, [Row(**row) for row in rows])


def names(library: Any) -> dict[str, Any]:
    """What the code of rows may use.

    Args:
        library: `minikeras`, `tensorflow`, or a stand-in with Keras as its attribute `keras`.
    """
    keras = library.keras
    return {
        "tf": library,
        "keras": keras,
        "K": keras,
        "L": keras.layers,
        "layers": keras.layers,
        "losses": keras.losses,
        "metrics": keras.metrics,
        "optimizers": keras.optimizers,
        "np": np,
        "ones": lambda *shape: np.ones(shape, "float32"),
        "warned": _warned,
    }


def outcome(code: str, library: Any) -> str:
    """What the code of a row gives: its last value as `shown`, or the error."""
    *lines, last = code.strip().splitlines()
    while last.startswith((" ", ")", "]", "}")):  # an expression over several lines
        last = f"{lines.pop()}\n{last}"
    space = names(library)
    try:
        exec("\n".join(lines), space)
        return shown(eval(last, space))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        space.clear()  # a function of the code holds these names, and they hold it


def agrees(found: str, expected: str) -> bool:
    """Whether an outcome is the expected one; of an error the class, and a part of the message, are enough."""
    kind, _, message = expected.partition(": ")
    if kind.isidentifier() and kind.endswith(("Error", "Exception")):
        return found.startswith(f"{kind}:") and message in found
    return found == expected


def shown(value: Any) -> str:
    """A value as plain text: tensors as lists, numbers with four digits, None as None."""
    if isinstance(value, (str, bool, type(None))):
        return str(value)
    if isinstance(value, np.dtype) or (hasattr(value, "as_numpy_dtype") and hasattr(value, "name")):
        return str(value.name)
    if type(value).__name__ == "TensorShape":
        return shown(tuple(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(shown(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, (int, float, complex, np.number)):
        return f"{value:.4g}" if not isinstance(value, (int, np.integer)) else str(int(value))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        array = np.asarray(value)
        return shown(array.astype("float32").tolist() if array.dtype.kind == "V" else array.tolist())
    return str(value)


def _warned(call: Callable[[], Any]) -> str:
    """The first warning of a call, or "no warning"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return f"{caught[0].category.__name__}: {caught[0].message}" if caught else "no warning"
