"""Rebuild `fashion_mnist_6k/fashion_mnist_6k.npz` from the full Fashion-MNIST and compare it with the shipped file.

    python datasets/make/fashion_mnist_6k.py [--source DIRECTORY] [--write]

The choice needs no random numbers: the first 500 images of each class in the order of the training file, and the
first 100 of each class in the order of the test file (Zalando shuffled both). Rows keep the order of the source.
Exit status 0 if the arrays agree with the shipped file, 1 if they do not.
"""

import argparse
import gzip
import io
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TARGET = Path(__file__).resolve().parents[1] / "fashion_mnist_6k" / "fashion_mnist_6k.npz"
DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")


def main() -> int:
    """Build the subset, then write it (`--write`) or compare it with the shipped file."""
    parser = argparse.ArgumentParser(description="Rebuild the 6,000-image subset of Fashion-MNIST.")
    parser.add_argument("--source", type=Path, default=DEBIAN_DIRECTORY, help="directory of the four .gz files")
    parser.add_argument("--write", action="store_true", help="replace the shipped file")
    arguments = parser.parse_args()
    arrays = subset(arguments.source)
    if arguments.write:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_bytes(encode(arrays))
    return compare(arrays)


def subset(source: Path) -> dict[str, NDArray[np.uint8]]:
    """The four arrays of the subset, chosen from the IDX files in `source`."""
    arrays = {}
    for split, prefix, per_class in (("train", "train", 500), ("test", "t10k", 100)):
        images = read_idx(source / f"{prefix}-images-idx3-ubyte.gz", header_bytes=16).reshape(-1, 28, 28)
        labels = read_idx(source / f"{prefix}-labels-idx1-ubyte.gz", header_bytes=8)
        chosen = np.sort(np.concatenate([np.flatnonzero(labels == label)[:per_class] for label in range(10)]))
        arrays[f"x_{split}"], arrays[f"y_{split}"] = images[chosen], labels[chosen]
    return arrays


def read_idx(path: Path, header_bytes: int) -> NDArray[np.uint8]:
    """The flat values of a gzipped IDX file."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header_bytes)


def encode(arrays: dict[str, NDArray[np.uint8]]) -> bytes:
    """The bytes of the .npz file; NumPy writes a constant time stamp, so only zlib's version can change them."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, x_train=arrays["x_train"], y_train=arrays["y_train"], x_test=arrays["x_test"], y_test=arrays["y_test"]
    )
    return buffer.getvalue()


def compare(arrays: dict[str, NDArray[np.uint8]]) -> int:
    """Report array by array; identical arrays in a differently compressed file are still a success."""
    differing = []
    with np.load(TARGET, allow_pickle=False) as shipped:
        for name, array in arrays.items():
            same = name in shipped and shipped[name].shape == array.shape and bool((shipped[name] == array).all())
            print(f"{name:8} {array.shape!s:16} {'identical' if same else 'DIFFERENT'}")
            differing += [] if same else [name]
    same_bytes = encode(arrays) == TARGET.read_bytes()
    print(f"file     {TARGET.stat().st_size:<16} {'identical' if same_bytes else 'compressed differently'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
