"""How long it takes to restore 100 MB, beside the `safetensors` package's load of the same file without any check."""

import hashlib
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minikeras as tf

from .report import Row


def timed(megabytes: int = 100, repeats: int = 7) -> Row:
    """The best of several."""
    from safetensors.numpy import load_file

    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.standard_normal((1 << 18,)).astype("float32")) for _ in range(megabytes)]
    checkpoint = tf.train.Checkpoint(variables=variables)
    with tempfile.TemporaryDirectory() as name:
        path = checkpoint.write(name + "/large")
        (data,) = (one for one in pathlib.Path(name).iterdir() if one.suffix == ".safetensors")
        raw = _best(lambda: load_file(data), repeats)
        hashing = _hashing(data.read_bytes(), repeats)
        restoring = _best(lambda: checkpoint.read(path), repeats)
    figures = f"{restoring:.3f} s; safetensors alone {raw:.3f} s, hashing alone {hashing:.3f} s"
    slow = restoring > 1.5 * raw + hashing
    return Row(f"restore of {megabytes} MB", repeats, int(slow), f"{figures}; bad: more than 1.5 x + hashing")


def _hashing(content: bytes, repeats: int) -> float:
    return _best(lambda: hashlib.sha256(content).digest(), repeats)


def _best(action: Callable[[], Any], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        kept = action()
        found.append(time.perf_counter() - began)
        del kept
    return min(found)
