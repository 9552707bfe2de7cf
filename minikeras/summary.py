"""`tf.summary`: numbers, pictures and text for TensorBoard, in event files that the package `tensorboard` writes."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .absent import late as _late
from .core import cached_property, convert_to_tensor, warn_caller
from .extras import imported
from .functions.python import tell
from .types import Array

__all__ = [
    *("SummaryWriter", "create_file_writer", "flush", "histogram", "image", "scalar", "text", "trace_export", "trace_on"),
]


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

    @cached_property
    def file(self) -> Any:
        """The file, which the first event begins."""
        module = "tensorboard.summary.writer.event_file_writer"
        return imported(module, "TensorBoard event files are written by the package `tensorboard`").EventFileWriter(self.logdir)

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
        if "file" in vars(self):
            self.file.flush()

    def close(self) -> None:
        """Write what waits in the queue and close the file; the next event begins another."""
        if "file" in vars(self):
            self.file.close()
            del self.file

    def write(self, step: int, rows: list[dict[str, Any]]) -> None:
        """Append an event, with a value for each row of fields of tensorboard's `Summary.Value`."""
        file, made = self.file, importlib.import_module("tensorboard.compat.proto.event_pb2").Event
        file.add_event(made(wall_time=time.time(), step=step, summary={"value": rows}))


create_file_writer = SummaryWriter


class _Here(threading.local):
    writer: SummaryWriter | None = None
    step: Any = None


_here = _Here()


def _told(rows: Callable[[Array], list[dict[str, Any]]], data: Any, step: Any) -> bool:
    """Write what `rows` makes of an array, in each run of a compiled function, with the writer that is the default then."""

    def show(arrays: list[Array]) -> None:
        number = arrays[1] if len(arrays) > 1 else _here.step
        if _here.writer is not None and number is None:
            raise ValueError("tf.summary: no step is given. Write step=..., or writer.as_default(step=...).")
        if _here.writer is not None:
            _here.writer.write(int(number), rows(np.asarray(arrays[0])))

    tell([convert_to_tensor(one) for one in (data, step) if one is not None], show)
    return _here.writer is not None


def scalar(name: str, data: Any, step: Any = None) -> bool:
    """Write a number under a name, for a step. Returns True if there is a default writer; without one nothing is written.

    >>> tf.summary.scalar("loss", 0.5, step=1)
    False
    """
    return _told(lambda value: [{"tag": name, "simple_value": float(value)}], data, step)


def histogram(name: str, data: Any, step: Any = None, buckets: int | None = None) -> bool:
    """Write how numbers are distributed, in 30 buckets by default; as `scalar`.

    >>> tf.summary.histogram("weights", tf.ones([3]), step=1)
    False
    """
    return _told(lambda values: [histogram_of(name, values, buckets)], data, step)


def histogram_of(name: str, values: Array, buckets: int | None = None) -> dict[str, Any]:
    """The distribution of the finite values, as a row for `SummaryWriter.write`."""
    elements = values.ravel().astype(np.float64)
    elements = elements[np.isfinite(elements)]
    counts, edges = np.histogram(elements, bins=buckets or 30)
    spread = {"min": elements.min(initial=np.inf), "max": elements.max(initial=-np.inf), "num": elements.size}
    sums = {"sum": elements.sum(), "sum_squares": (elements**2).sum()}
    return {"tag": name, "histo": {**spread, **sums, "bucket_limit": edges[1:].tolist(), "bucket": counts.tolist()}}


def text(name: str, data: Any, step: Any = None) -> bool:
    """Write a text, which TensorBoard reads as Markdown; as `scalar`.

    >>> tf.summary.text("note", "a **good** run", step=1)
    False
    """
    kind = {"tag": name, "metadata": {"plugin_data": {"plugin_name": "text"}}}
    held: Callable[[Array], Any] = lambda value: {"dtype": "DT_STRING", "string_val": [str(value).encode()], "tensor_shape": {}}
    return _told(lambda value: [{**kind, "tensor": held(value)}], data, step)


def flush(writer: SummaryWriter | None = None) -> None:
    """Write what waits in the queue of a writer, by default the writer of the block around.

    >>> tf.summary.flush()
    """
    if chosen := writer or _here.writer:
        chosen.flush()


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3) -> bool:
    """Write the first images of a batch (batch, height, width, 1, 3 or 4), uint8 or floats in [0, 1]; as `scalar`.

    >>> tf.summary.image("digits", tf.zeros([2, 28, 28, 1]), step=1)
    False
    """

    def rows(values: Array) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        bytes_of = values if values.dtype == np.uint8 else (np.clip(values, 0.0, 1.0) * 255.5).astype(np.uint8)
        for pixels in bytes_of[:max_outputs]:
            written, flat = io.BytesIO(), pixels[..., 0] if pixels.shape[-1] == 1 else pixels
            importlib.import_module("PIL.Image").fromarray(flat).save(written, "PNG")
            shown = {"height": len(pixels), "width": pixels.shape[1], "encoded_image_string": written.getvalue()}
            found.append({"tag": f"{name}/image/{len(found)}", "image": shown})
        return found

    return _told(rows, data, step)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Warns: there is no graph to write. A program that asks for one goes on, and `trace_export` writes nothing.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     tf.summary.trace_on()
    """
    warn_caller("tf.summary.trace_on: graphs and profiles are not available and left out. Use cProfile.")


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Do nothing, since `trace_on` records nothing.

    >>> tf.summary.trace_export("graph", step=0)
    """


__getattr__, __dir__ = _late(__name__, {})
