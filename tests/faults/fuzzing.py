"""Mutated files for every loader: an error of the one family or a good file, within bounds of time and memory.

Each batch of inputs runs in a process of its own, so that a crash would be seen.
"""

import functools
import io
import pathlib
import random
import signal
import sys
import tarfile
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from audit import audited

import minikeras as tf
from minikeras.errors import LoadError
from minikeras.files import excerpt, tensors
from minikeras.keras.datasets import download as archives

from . import kinds
from .children import exit_code, forked
from .damaging import GOLDEN
from .report import Row

SECONDS, MEGABYTES, MULTIPLE = 5.0, 64, 4
ALLOWED_EVENTS = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "shutil.rmtree", "os.link"}
NUMBERS = [0, 1, 127, 255, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1]
TEXTS = [b"[", b"{", b'"', b"1e999", b"NaN", b"999999999999999999999", b"null", b"../", b"\0", b"os.system"]
LOADERS = 9
"""Their number."""
EXPECTED = (LoadError, tf.errors.NotFoundError, tf.errors.ShapeError)


class Loader(NamedTuple):
    """Something that reads files.

    Attributes:
        name: in the table.
        suffix: of the file.
        seeds: good files.
        load: reads one.
    """

    name: str
    suffix: str
    seeds: list[bytes]
    load: Callable[[pathlib.Path], Any]


def mutated(rng: random.Random, content: bytes) -> bytes:
    """A file with a few changes: bits, interesting numbers, pieces moved, removed and repeated, another end."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not changed:
            break
        at = rng.randrange(len(changed)) if rng.random() < 0.5 else rng.randrange(min(len(changed), 600))
        size = rng.choice([1, 2, 4, 8])
        kind = rng.randrange(7)
        if kind <= 1:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            number = rng.choice([*NUMBERS, len(changed), rng.randrange(2**32)])
            changed[at : at + size] = (number % 256**size).to_bytes(size, "little")
        elif kind == 3:
            other = rng.randrange(len(changed))
            changed[at : at + 8 * size] = changed[other : other + 8 * size]
        elif kind == 4:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 5:
            changed[at:at] = rng.randbytes(rng.randrange(1, 20))
        else:
            text = rng.choice(TEXTS)
            changed[at : at + len(text)] = text
    return bytes(changed)


def loaders(folder: pathlib.Path) -> list[Loader]:
    """All loaders, with good files to start from."""
    made = kinds.model()
    seeds = {}
    for kind in kinds.KINDS:
        (folder / "seed").mkdir(exist_ok=True)
        kind.save(made, folder / "seed")
        seeds[kind.name] = [path.read_bytes() for path in kind.files(folder / "seed")]
    index, arrays = seeds[kinds.CHECKPOINT.name][1], seeds[kinds.CHECKPOINT.name][0]
    (folder / "ckpt").mkdir()
    data_name = kinds.CHECKPOINT.files(folder / "seed")[0].name
    (folder / "ckpt" / data_name).write_bytes(arrays)
    golden = {path.name: path.read_bytes() for path in GOLDEN.iterdir()}
    other = tf.keras.models.load_model(GOLDEN / "sequential.keras")
    subject = kinds.model()

    def weights_into(target: Any) -> Callable[[pathlib.Path], Any]:
        return lambda path: target.load_weights(path)

    def extracted(path: pathlib.Path) -> None:
        archives.unpack(path, folder / "out" / str(time.monotonic_ns()))

    (folder / "out").mkdir()
    return [
        Loader(".keras", ".keras", [golden["sequential.keras"], *seeds[kinds.WHOLE.name]], tf.keras.models.load_model),
        Loader(".weights.h5", ".weights.h5", [golden["sequential.weights.h5"]], weights_into(other)),
        Loader(".weights.h5 written here", ".weights.h5", seeds[kinds.WEIGHTS.name], weights_into(subject)),
        Loader(".h5 of old", ".h5", [golden["sequential_legacy.h5"]], tf.keras.models.load_model),
        Loader(".safetensors", ".safetensors", seeds[kinds.TENSORS.name], weights_into(subject)),
        Loader("safetensors, arrays alone", ".safetensors", [_plain()], tensors.load),
        Loader("Checkpoint, index", ".index", [index], lambda path: _restore(folder / "ckpt", index=path)),
        Loader("Checkpoint, arrays", ".data", [arrays], lambda path: _restore(folder / "seed", data=path)),
        Loader("archives of data", ".zip", [_zip(), _tar("w"), _tar("w:gz")], extracted),
    ]


def _plain() -> bytes:
    import safetensors.numpy

    return safetensors.numpy.save({"a": np.ones((2, 3), "float32"), "b": np.arange(4)})


def _restore(folder: pathlib.Path, index: pathlib.Path | None = None, data: pathlib.Path | None = None) -> None:
    """Restore a checkpoint of which one file is the mutated one."""
    source = index or data
    assert source is not None
    target = folder / "here.index" if index else next(path for path in folder.iterdir() if ".data-" in path.name)
    target.write_bytes(source.read_bytes())
    tf.train.Checkpoint(model=kinds.model()).read(folder / "here").expect_partial()


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("folder/a.txt", b"hello" * 50)
        file.writestr("b.txt", b"")
    return buffer.getvalue()


def _tar(mode: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:
        for name, content in (("folder/a.txt", b"hello" * 50), ("b.txt", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def fuzzed(number: int, count: int, seed: int = 0) -> Row:
    """Loader number `number` on `count` mutated files."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        loader = loaders(folder)[number]
        crashes, reports = 0, []
        for start in range(0, count, 1000):
            report = folder / "report"
            batch = functools.partial(_batch, loader, folder, min(1000, count - start), seed + start)
            code = exit_code(forked(functools.partial(_report, report, batch)))
            if code or not report.exists():
                crashes += 1
            else:
                reports.append(report.read_text())
                report.unlink()
        lines = [line for text in reports for line in text.splitlines()]
    bad = [line for line in lines if not line.startswith("#")]
    figures = [line.split() for line in lines if line.startswith("#")]
    refused = sum(int(row[1]) for row in figures)
    slowest = max((float(row[2]) for row in figures), default=0.0)
    memory = max((float(row[3]) for row in figures), default=0.0)
    note = f"{refused:,} refused, slowest {slowest:.2f} s, most memory {memory:.1f} MiB"
    found = [*bad[:3], *([f"{crashes} crashes"] if crashes else [])]
    return Row(f"mutated files, {loader.name}", count, len(bad) + crashes, "; ".join([note, *found]))


def _report(path: pathlib.Path, batch: Callable[[], str]) -> None:
    path.write_text(batch())


def _batch(loader: Loader, folder: pathlib.Path, count: int, seed: int) -> str:
    """Some mutated files in this process: a line for each that goes wrong, and one of figures."""
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    path = folder / f"mutated{loader.suffix}"
    bad, refused, slowest, most = [], 0, 0.0, 0.0
    path.write_bytes(loader.seeds[0])
    attempt(loader.load, path)
    excerpt("\n")  # now all is imported that loaders need
    tracemalloc.start()
    for _ in range(count):
        content = mutated(rng, rng.choice(loader.seeds))
        path.write_bytes(content)
        tracemalloc.reset_peak()
        before, began = tracemalloc.get_traced_memory()[0], time.process_time()
        with audited() as events:
            outcome = attempt(loader.load, path)
        seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1] - before
        refused += outcome == "refused"
        slowest, most = max(slowest, seconds), max(most, peak / 2**20)
        touched = [event for event in events if event[0] not in ALLOWED_EVENTS or not _within(event[1], folder)]
        if outcome not in ("refused", "accepted"):
            bad.append(outcome.replace("\n", " ")[:200])
        elif seconds > SECONDS or peak > (MEGABYTES << 20) + MULTIPLE * len(content):
            bad.append(f"{seconds:.1f} s, {peak / 2**20:.0f} MiB")
        elif touched:
            bad.append(f"touched {touched[0]}")
    tracemalloc.stop()
    return "\n".join([*bad, f"# {refused} {slowest} {most}"])


def _within(name: str, folder: pathlib.Path) -> bool:
    """In the folder, or a file of this package or another one: the line that raises an error tells whether it is of ours."""
    return not name.startswith("/") or name.startswith((str(folder), sys.prefix, str(pathlib.Path(tf.__file__).parent)))


def attempt(load: Callable[[pathlib.Path], Any], path: pathlib.Path) -> str:
    """'refused' or 'accepted', or what went wrong."""

    def late(*arguments: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
    try:
        load(path)
    except EXPECTED:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "accepted"
