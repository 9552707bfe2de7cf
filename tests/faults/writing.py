"""Several programs that save into one folder: what was acknowledged stays until its own writer lets go of it."""

import os
import pathlib
import struct
import tempfile

import numpy as np

import minikeras as tf
from minikeras import bundle

from .children import exit_code, forked
from .report import Row

KEPT = 3


def written(writers: int, saves: int, same_name: bool) -> Row:
    """Let some processes save `saves` times in all, each with a manager of its own."""
    with tempfile.TemporaryDirectory() as name:
        pipes = [_start(number, saves // writers, pathlib.Path(name), same_name) for number in range(writers)]
        results = [_result(*pipe) for pipe in pipes]
    acknowledged, lost = (sum(one[i] for one in results) for i in (0, 1))
    names = "one name" if same_name else "a name each"
    note = f"{acknowledged} acknowledged, {lost} of them lost or changed"
    return Row(f"{writers} writers of a folder, {names}", saves, lost + saves // writers * writers - acknowledged, note)


def _start(number: int, saves: int, folder: pathlib.Path, same_name: bool) -> tuple[int, int]:
    """A process that saves, and the end of the pipe that it reports to."""
    reading, writing = os.pipe()

    def save() -> None:
        counts = _save_and_look(number, saves, folder, "ckpt" if same_name else f"writer{number}")
        os.write(writing, struct.pack("<2i", *counts))

    child = forked(save)
    os.close(writing)
    return child, reading


def _result(child: int, reading: int) -> tuple[int, int]:
    code = exit_code(child)
    with os.fdopen(reading, "rb") as stream:
        return struct.unpack("<2i", stream.read()) if code == 0 else (0, 0)


def _save_and_look(number: int, saves: int, folder: pathlib.Path, name: str) -> tuple[int, int]:
    """How many saves were acknowledged, and how many of them were not there, or not as saved, before they were let go."""
    value = tf.Variable(np.zeros(64))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value), folder, KEPT, checkpoint_name=name)
    kept: dict[str, float] = {}
    lost = set()
    for step in range(saves):
        value.assign(np.full(64, number * 1e6 + step))
        path = manager.save()
        kept = dict([*kept.items(), (path, number * 1e6 + step)][-KEPT:])
        for one, expected in kept.items():
            try:
                sound = bool((bundle.read(pathlib.Path(one)).arrays["value"] == expected).all())
            except (ValueError, OSError, tf.errors.NotFoundError):
                sound = False
            if not sound:
                lost.add((one, expected))
    return saves, len(lost)
