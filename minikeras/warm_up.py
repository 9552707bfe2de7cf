"""Compiles ahead what most training with `jit_compile=True` is made of: `python -m minikeras.warm_up`.

A program that is new compiles what it needs at its first call, some 10 ms a kernel, and later processes read it from the disk.
So this is not needed; it is for the image of a container, or before a demonstration.
"""

from __future__ import annotations

import time

import numpy as np

from . import keras
from .compiler.executors.llvm import missing
from .keras.layers import Input
from .keras.models import Sequential

OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Nadam", "Adamax", "Lion")
CLASSES = 3


def main() -> None:
    """Take a few steps with each optimizer, and say what was done."""
    if missing():
        print(f"Nothing to compile: {' and '.join(missing())} not installed. To have LLVM: pip install 'minikeras[jit]'.")
        return
    from .compiler.executors.llvm.jit import folder

    began = time.perf_counter()
    for number, name in enumerate(OPTIMIZERS, 1):
        print(f"{number} of {len(OPTIMIZERS)}: {name}", flush=True)
        train(name)
    count = len(list(folder().iterdir())) if folder().is_dir() else 0
    print(f"{count} kernels in {folder()}, {time.perf_counter() - began:.1f} s")


def train(optimizer: str) -> None:
    """Two epochs of a small classifier, with whole batches and a smaller last one."""
    model = Sequential(
        [
            Input((4,)),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=True)
    model.fit(np.ones((20, 4), np.float32), np.arange(20) % CLASSES, batch_size=8, epochs=2, verbose=0)


if __name__ == "__main__":
    main()
