"""Flipped bits and missing ends: no wrong number may be loaded without an error."""

import pathlib
import random
import tempfile

import minikeras as tf
from minikeras.errors import LoadError

from . import kinds
from .report import Row

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "files"
REFUSED = (LoadError, tf.errors.NotFoundError)


def flipped(kind: kinds.Kind, count: int, seed: int = 0) -> Row:
    """One random bit of a file, `count` times."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        original, files, contents = _saved(kind, folder)
        silent = refused = 0
        for _ in range(count):
            number = rng.choices(range(len(files)), [len(content) for content in contents])[0]
            changed = bytearray(contents[number])
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            files[number].write_bytes(changed)
            outcome = _outcome(kind, folder, original)
            silent, refused = silent + (outcome == "wrong"), refused + (outcome == "refused")
            files[number].write_bytes(contents[number])
    return Row(f"one flipped bit, {kind.name}", count, silent, f"{refused} refused, the rest harmless; bad: wrong numbers")


def cut(kind: kinds.Kind, step: int = 1) -> Row:
    """The file, or each file, cut off after every number of bytes (every `step`-th)."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        original, files, contents = _saved(kind, folder)
        lengths = [(number, length) for number in range(len(files)) for length in range(0, len(contents[number]), step)]
        accepted = 0
        for number, length in lengths:
            files[number].write_bytes(contents[number][:length])
            accepted += _outcome(kind, folder, original) != "refused"
            files[number].write_bytes(contents[number])
    return Row(f"cut off at every byte, {kind.name}", len(lengths), accepted, "bad: accepted")


def _saved(kind: kinds.Kind, folder: pathlib.Path) -> tuple[list, list[pathlib.Path], list[bytes]]:
    made = kinds.model()
    kind.save(made, folder)
    files = kind.files(folder)
    return kinds.numbers(made), files, [path.read_bytes() for path in files]


def _outcome(kind: kinds.Kind, folder: pathlib.Path, original: list) -> str:
    made = kinds.model(value=9.0)
    before = kinds.numbers(made)
    try:
        kind.load(made, folder)
    except REFUSED:
        return "refused" if kinds.same(kinds.numbers(made), before) else "wrong"
    return "harmless" if kinds.same(kinds.numbers(made), original) else "wrong"


def foreign(count: int, seed: int = 0) -> Row:
    """One random bit of a `.weights.h5` that Keras wrote, which carries no checksum: what the format allows."""
    rng = random.Random(seed)
    content = (GOLDEN / "sequential.weights.h5").read_bytes()
    made = tf.keras.models.load_model(GOLDEN / "sequential.keras", compile=False)
    expected = made.get_weights()
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "m.weights.h5"
        silent = refused = 0
        for _ in range(count):
            changed = bytearray(content)
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            path.write_bytes(changed)
            made.set_weights([weight * 0 for weight in expected])
            try:
                made.load_weights(path)
            except ValueError:
                refused += 1
            else:
                silent += not kinds.same(made.get_weights(), expected)
    note = f"{refused} refused; the format has no checksum, so {silent} gave other numbers"
    return Row("one flipped bit, .weights.h5 written by Keras", count, 0, note)
