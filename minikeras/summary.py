"""`tf.summary`: numbers, pictures and text for TensorBoard, in event files that the package `tensorboard` writes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .absent import late as _late
from .compiler.tracing.watch import unwatched
from .core import convert_to_tensor
from .errors import MissingExtraError
from .functions.image import convert_image_dtype
from .functions.printing import tell
from .types import Array

__all__ = ["SummaryWriter", "create_file_writer", "histogram", "image", "scalar", "text", "trace_export", "trace_on"]


class SummaryWriter:
    """The event files of a folder, begun by the first event. `tf.summary.create_file_writer` is another name.

    Raises:
        MissingExtraError: at the first event, without the package `tensorboard`.

    >>> with tf.summary.create_file_writer("logs/train").as_default(step=3) as writer:
    ...     print(writer.logdir)
    logs/train
    """

    def __init__(self, logdir: Any) -> None:
        self.logdir = os.fspath(logdir)

    @functools.cached_property
    def _file(self) -> Any:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingExtraError(
                "TensorBoard event files are written by the package `tensorboard`: pip install 'minikeras[tensorboard]'."
            ) from None
        return EventFileWriter(self.logdir)

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Within the block the functions of `tf.summary` write here, by default for a step."""
        before = _here.writer, _here.step
        _here.writer, _here.step = self, before[1] if step is None else step
        try:
            yield self
        finally:
            _here.writer, _here.step = before
            self.flush()

    def flush(self) -> None:
        """Write what waits in the queue."""
        if "_file" in vars(self):
            self._file.flush()

    def close(self) -> None:
        """Write what waits in the queue and close the file; the next event begins another."""
        if "_file" in vars(self):
            self._file.close()
            del self._file

    def write(self, summary: Any, step: int) -> None:
        """Append an event with a `Summary` of tensorboard."""
        from tensorboard.compat.proto.event_pb2 import Event

        self._file.add_event(Event(wall_time=time.time(), step=step, summary=summary))


create_file_writer = SummaryWriter


class _Here(threading.local):
    writer: SummaryWriter | None = None
    step: Any = None


_here = _Here()


def _told(summary: Callable[[Array], Any], data: Any, step: Any) -> bool:
    """Write what `summary` makes of an array, in each run of a compiled function, with the writer that is the default then."""

    @unwatched
    def show(arrays: list[Array]) -> None:
        number = arrays[1] if len(arrays) > 1 else _here.step
        if _here.writer is not None and number is None:
            raise ValueError("tf.summary: no step is given. Write step=..., or writer.as_default(step=...).")
        if _here.writer is not None:
            _here.writer.write(summary(np.asarray(arrays[0])), int(number))

    tell([convert_to_tensor(one) for one in (data, step) if one is not None], show)
    return _here.writer is not None


def _by_plugin(kind: str, name: str, data: Any, step: Any, *options: Any) -> bool:
    def summary(values: Array) -> Any:
        made = getattr(importlib.import_module(f"tensorboard.plugins.{kind}.summary_v2"), f"{kind}_pb")
        return made(name, values.astype(str) if kind == "text" else values, *options)

    return _told(summary, data, step)


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number under a name, for a step. Whether there is a default writer: without one nothing is written.

    >>> tf.summary.scalar("loss", 0.5, step=1)
    False
    """
    return _by_plugin("scalar", name, data, step, description)


def histogram(name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None) -> bool:
    """Write how numbers are distributed, in 30 buckets by default; as `scalar`.

    >>> tf.summary.histogram("weights", tf.ones([3]), step=1)
    False
    """
    return _by_plugin("histogram", name, data, step, buckets, description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write text, which TensorBoard reads as Markdown; as `scalar`.

    >>> tf.summary.text("note", "a **good** run", step=1)
    False
    """
    return _by_plugin("text", name, data, step, description)


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3) -> bool:
    """Write the first images of a batch (batch, height, width, 1, 3 or 4), integers or floats in [0, 1]; as `scalar`.

    >>> tf.summary.image("digits", tf.zeros([2, 28, 28, 1]), step=1)
    False
    """

    def summary(values: Array) -> Any:
        from PIL.Image import fromarray
        from tensorboard.compat.proto.summary_pb2 import Summary

        found = Summary()
        for number, pixels in enumerate(convert_image_dtype(values[:max_outputs], "uint8", saturate=True).numpy()):
            written = io.BytesIO()
            fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(written, "PNG")
            shown = Summary.Image(height=len(pixels), width=pixels.shape[1], encoded_image_string=written.getvalue())
            found.value.add(tag=f"{name}/image/{number}", image=shown)
        return found

    return _told(summary, data, step)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Warns: there is no graph to write. A program that asks for one goes on, and `trace_export` writes nothing.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     tf.summary.trace_on()
    """
    warnings.warn("tf.summary.trace_on: graphs and profiles are not available and left out. Use cProfile.", stacklevel=2)


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Nothing, since `trace_on` records nothing.

    >>> tf.summary.trace_export("graph", step=0)
    """


__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__ = _late(__name__, {})
