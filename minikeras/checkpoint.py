"""Checkpoint: the values of any graph of objects, saved and brought back by the path of attributes.

Saving takes references, since arrays are never written while they are referred to; all else may happen beside the training.
CheckpointManager keeps a numbered sequence of checkpoints in a folder, of which the last few stay.
"""

from __future__ import annotations

import functools
import os
import time
from collections import UserList
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

from . import bundle
from .core import Variable, logger
from .errors import LoadError
from .state import COUNTER, Restoration, StateTree, is_trackable, listed, trackable_children


class CheckpointOptions:
    """Options of writing a checkpoint.

    Args:
        enable_async: return as soon as the values are taken; the files are written by another thread. An error shows at the
            next save or at `sync`, and the end of the program waits.
        durable: wait until the disk has everything; without it a save survives a kill, but not a loss of power.
        experimental_enable_async_checkpoint: the older name of `enable_async`.

    >>> import os, tempfile
    >>> checkpoint = tf.train.Checkpoint(w=tf.Variable(1.0))
    >>> prefix = os.path.join(tempfile.mkdtemp(), "run")
    >>> path = checkpoint.write(prefix, options=tf.train.CheckpointOptions())
    >>> os.path.basename(path)
    'run'
    """

    def __init__(
        self, enable_async: bool = False, durable: bool = True, experimental_enable_async_checkpoint: bool = False
    ) -> None:
        self.enable_async = bool(enable_async or experimental_enable_async_checkpoint)
        self.durable = bool(durable)


class _BackgroundSave:
    """At most one save at a time that goes on beside the program."""

    def __init__(self) -> None:
        self.identity = bundle.WriterIdentity()
        self._save: Future[None] | None = None

    def wait(self) -> None:
        """Wait for the save that is under way, and raise what went wrong in it."""
        save, self._save = self._save, None
        if save is not None:
            save.result()

    def start(self, task: Callable[[], None]) -> None:
        """Run a task beside the program, which waits for it when it ends, in a thread that ends with it."""
        thread = ThreadPoolExecutor(1, "checkpoint")
        self._save = thread.submit(task)
        thread.shutdown(wait=False)


class Checkpoint:
    """Saves and restores everything that its attributes hold.

    What counts: Variables, `tf.Module`s, layers, models, optimizers, metrics, random generators, objects with `get_state` and
    `set_state`, and lists, tuples and dicts of these. Values are matched by the path of attributes, so classes and the order of
    construction may change in between.

    Args:
        root: an object whose attributes are saved as if they were the checkpoint's own.
        kwargs: the objects, by the name of an attribute.

    Raises:
        ValueError: for an object that holds nothing which can be saved.

    >>> import tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> v = tf.Variable([1.0, 2.0])
    >>> checkpoint = tf.train.Checkpoint(v=v)
    >>> path = checkpoint.save(os.path.join(folder, "ckpt"))
    >>> os.path.basename(path)
    'ckpt-1'
    >>> _ = v.assign([0.0, 0.0])
    >>> _ = checkpoint.restore(path).assert_consumed()
    >>> v.numpy()
    array([1., 2.], dtype=float32)
    """

    _writer: _BackgroundSave
    _root: Any
    _counter: Variable | None
    _deferred: Any

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self.__dict__.update(_writer=_BackgroundSave(), _root=root, _counter=None)
        if root is not None:
            self._check("root", root)
            taken = {name for name, _ in trackable_children(root)} & set(kwargs)
            if taken:
                raise ValueError(f"Checkpoint: {sorted(taken)} are attributes of root and keyword arguments as well.")
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        deferred = self.__dict__.get("_deferred") if type(value) is list else None
        return value if deferred is None else AwaitingList(value, deferred.restoration)

    def __setattr__(self, name: str, value: Any) -> None:
        value = value.data if isinstance(value, AwaitingList) else value
        if hasattr(type(self), name):
            raise ValueError(f"Checkpoint: an attribute cannot be called '{name}', which is a part of Checkpoint itself.")
        self._check(name, value)
        object.__setattr__(self, name, value)
        if "_deferred" in self.__dict__:
            self._deferred.attribute_set(value)

    @staticmethod
    def _check(name: str, value: Any) -> None:
        if not is_trackable(value):
            raise ValueError(
                f"Checkpoint: `{name}` was expected to be a trackable object (a Variable, tf.Module, layer, model, optimizer, "
                f"metric, random generator, or a list or dict of these), found {type(value).__name__}: {value!r:.60}. "
                "Put numbers into a tf.Variable."
            )

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        if self._root is not None:
            yield from trackable_children(self._root)
        yield from ((name, value) for name, value in self.__dict__.items() if name not in _OWN)
        if self._counter is not None:
            yield COUNTER, self._counter

    @property
    def save_counter(self) -> Variable:
        """The number of times that `save` was called, as a Variable."""
        counter = self._counter
        if counter is None:
            counter = self.__dict__["_counter"] = Variable(np.int64(0), trainable=False, name=COUNTER)
        return counter

    # Saving --------------------------------------------------------------------------------------------------------------

    def save(self, file_prefix: str | os.PathLike[str], options: CheckpointOptions | None = None) -> str:
        """Write 'file_prefix-N', where N counts the calls, and note it in the file 'checkpoint' of the folder.

        Args:
            file_prefix: folder and beginning of the name; the folder is made if it is missing.
            options: see `CheckpointOptions`.

        Returns:
            The path for `restore`.

        Raises:
            OSError: if it cannot be written; earlier checkpoints are as they were.
            CheckpointBusyError: if another process is writing into this folder.
        """
        note = lambda path: bundle.write_list(Path(path).parent, {path: time.time()})
        return self._save_numbered(os.fspath(file_prefix), None, options, note)

    def _save_numbered(
        self, prefix: str, number: int | None, options: CheckpointOptions | None, done: Callable[[str], None]
    ) -> str:
        """Write 'prefix-number', by default with the next number that no other program has; `done` is told the path."""
        self._writer.wait()
        before = int(self.save_counter.numpy())
        self.save_counter.assign_add(1)
        try:
            while True:
                count = int(self.save_counter.numpy())
                path = f"{prefix}-{count if number is None else number}"
                try:
                    return self._write(path, options, functools.partial(done, path))
                except bundle.TakenError:
                    if number is not None:
                        raise
                    self.save_counter.assign(max(count, bundle.highest(prefix)) + 1)
        except BaseException:
            self.save_counter.assign(before)
            raise

    def write(self, file_prefix: str | os.PathLike[str], options: CheckpointOptions | None = None) -> str:
        """Write 'file_prefix' itself, without counting; otherwise as `save`."""
        self._writer.wait()
        return self._write(os.fspath(file_prefix), options)

    def _write(self, path: str, options: CheckpointOptions | None, done: Callable[[], None] | None = None) -> str:
        """Write what there is now; a counted checkpoint is one for which something is done afterwards."""
        chosen = options or CheckpointOptions()
        content = StateTree(("", self)).values()
        target = Path(path).absolute()

        def task() -> None:
            try:
                bundle.write(target, content, done is not None, chosen.durable, self._writer.identity, done)
            except bundle.TakenError:
                raise
            except BaseException:
                self._writer.identity.renew()
                raise

        if chosen.enable_async:
            if done is not None and bundle.is_taken(target, self._writer.identity.may_replace):
                raise bundle.TakenError(f"{path}: a checkpoint of this name belongs to another program, or is damaged.")
            self._writer.start(task)
        else:
            task()
        return path

    def sync(self) -> None:
        """Wait until an asynchronous save is complete; raises what went wrong in it."""
        self._writer.wait()

    # Restoring -----------------------------------------------------------------------------------------------------------

    def restore(
        self,
        save_path: str | os.PathLike[str] | None,
        options: CheckpointOptions | None = None,
        *,
        only: str | Collection[str] | None = None,
        skip_mismatch: bool = False,
        cast: bool = False,
    ) -> Any:
        """Bring back values by path; what has no place yet gets its value when it is made or assigned.

        Args:
            save_path: what `save` or `write` returned; None does nothing.
            options: accepted for compatibility.
            only: paths to restore, such as 'model/hidden', or patterns such as '*/bias'.
            skip_mismatch: leave out values whose shape or dtype does not fit their place.
            cast: convert values of another dtype.

        Returns:
            A status with `assert_consumed`, `assert_existing_objects_matched` and `expect_partial`.

        Raises:
            NotFoundError: if there is no such checkpoint.
            LoadError: if a byte of it is missing or wrong.
            ShapeError: if a shape or dtype differs. In all three cases nothing is changed.
        """
        if save_path is not None:
            self.save_counter  # noqa: B018  it goes on from the number that was saved
        return self.read(save_path, options, only=only, skip_mismatch=skip_mismatch, cast=cast)

    def read(
        self,
        save_path: str | os.PathLike[str] | None,
        options: CheckpointOptions | None = None,
        *,
        only: str | Collection[str] | None = None,
        skip_mismatch: bool = False,
        cast: bool = False,
    ) -> Any:
        """As `restore`, for what `write` wrote: `save_counter` is not made if it is not there."""
        self._writer.wait()
        if save_path is None:
            return NothingLoaded()
        path = os.fspath(save_path)
        restoration = Restoration(bundle.read(Path(path).absolute()), path, only, skip_mismatch, cast)
        restoration.visit(("", self))
        return LoadStatus(restoration, self)


_OWN = {"_writer", "_root", "_counter", "_deferred"}


class AwaitingList(UserList[Any]):
    """A list of a checkpoint under which values are due: what is added gets them. Changes are those of the list itself."""

    def __init__(self, values: list[Any], restoration: Restoration) -> None:
        self.data, self._restoration = values, restoration

    def insert(self, i: int, item: Any) -> None:
        """As `list.insert`; then restore values that are due in the new elements."""
        super().insert(i, item)
        self._restoration.revisit()

    def append(self, item: Any) -> None:
        """As `list.append`; then restore values that are due in the new elements."""
        self.extend([item])

    def extend(self, other: Iterable[Any]) -> None:
        """As `list.extend`; then restore values that are due in the new elements."""
        self.data.extend(other)
        self._restoration.revisit()

    def __iadd__(self, other: Iterable[Any]) -> Self:
        self.extend(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.data,)


class LoadStatus:
    """The result of `Checkpoint.restore`; each question returns the status itself, so that they can be chained."""

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root

    def _unmatched(self) -> list[str]:
        """Paths of objects that have got no value."""
        if self._restoration.due:
            self._restoration.visit(("", self._root))
        leaves = StateTree(("", self._root)).leaves
        return [path for path, leaf in leaves.items() if path != COUNTER and not self._restoration.is_done(leaf)]

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Every Variable there is by now has got its value from the checkpoint; an AssertionError names those that have not."""
        self._require(existing=self._unmatched(), unused=[])
        return self

    def assert_consumed(self) -> LoadStatus:
        """As `assert_existing_objects_matched`, and every saved value has found its place."""
        existing = self._unmatched()  # which may find places
        self._require(existing, sorted(self._restoration.due - {COUNTER}))
        return self

    def assert_nontrivial_match(self) -> LoadStatus:
        """At least one value has found its place."""
        self._unmatched()
        if not set(self._restoration.used) - {COUNTER}:
            self._require([], sorted(self._restoration.due) or ["nothing at all"])
        return self

    def expect_partial(self) -> LoadStatus:
        """Say nothing about saved values that are never used."""
        self._restoration.quiet = True
        return self

    def _require(self, existing: list[str], unused: list[str]) -> None:
        self._restoration.quiet = True
        if existing or unused:
            lines = [f"restore from '{self._restoration.source}': objects and values do not match."]
            lines += listed("objects without a value", existing) + listed("values without an object", unused)
            raise AssertionError("\n".join(lines))


class NothingLoaded:
    """The result of `restore(None)`: no checkpoint, so nothing matches, which is no error until it is asked."""

    def assert_consumed(self) -> NothingLoaded:
        """Raises AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> NothingLoaded:
        """Do nothing: there is nothing to silence."""
        return self


class CheckpointManager:
    """Saves one checkpoint after another into a folder and deletes old ones.

    A checkpoint is deleted only after a newer one is complete on the disk, and only if it has a name that this class gives.

    Args:
        checkpoint: what to save.
        directory: the folder; it is made if it is missing. Several programs may save into one: each numbers its checkpoints
            past those of the others, and deletes only its own and those of programs that have ended.
        max_to_keep: number of checkpoints to keep, at least 1; None keeps all.
        keep_checkpoint_every_n_hours: of checkpoints to be deleted, keep one for each such number of hours for good.
        checkpoint_name: beginning of the names; a number follows.
        step_counter: a Variable that counts steps; needed for `checkpoint_interval`.
        checkpoint_interval: save only if at least this number of steps was made since the last save.
        init_fn: called by `restore_or_initialize` if there is no checkpoint.

    Attributes:
        checkpoint, directory, checkpoint_interval: as given.

    Raises:
        ValueError: for a limit below 1, or an interval without a counter.

    >>> import tempfile, os
    >>> step = tf.Variable(0)
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), tempfile.mkdtemp(), max_to_keep=2)
    >>> for _ in range(3):
    ...     _ = step.assign_add(1)
    ...     path = manager.save()
    >>> [os.path.basename(path) for path in manager.checkpoints]
    ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Variable | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"CheckpointManager: expected a positive integer or None for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("CheckpointManager: `step_counter` is needed for `checkpoint_interval`.")
        if not checkpoint_name or os.path.basename(checkpoint_name) != checkpoint_name:
            raise ValueError(f"CheckpointManager: checkpoint_name {checkpoint_name!r} must be a plain file name.")
        self.checkpoint, self.directory, self._name = checkpoint, os.fspath(directory), checkpoint_name
        self._limit, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._counter, self.checkpoint_interval, self._init = step_counter, checkpoint_interval, init_fn
        self._last_step: int | None = None
        state = bundle.get_checkpoint_state(directory) or bundle.CheckpointState()
        listed = self._listed().items()
        self._known = {path: saved for path, saved in listed if not bundle.is_taken(Path(path), self._writer.may_adopt)}
        self._preserved = [path for path in state.preserved if self._has_own_name(path)]
        self._last_preserved = state.last_preserved_timestamp

    @property
    def _writer(self) -> bundle.WriterIdentity:
        return self.checkpoint._writer.identity

    def _has_own_name(self, path: str) -> bool:
        return os.path.basename(path).removeprefix(f"{self._name}-").isdecimal()

    def _listed(self) -> dict[str, float]:
        """The checkpoints in the folder with names that this manager gives, those of other programs too, oldest first."""
        found = bundle.known_checkpoints(self.directory)
        return {path: saved for path, saved in found.items() if self._has_own_name(path)}

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the checkpoints that are kept for now, oldest first, without those that are kept for good."""
        return list(self._known)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the newest checkpoint, or None."""
        return next(reversed(self._known), None)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Write the next checkpoint, then delete the ones that are too many.

        Args:
            checkpoint_number: the number in the name; the number of saves by default.
            check_interval: whether to keep to `checkpoint_interval`.
            options: see `CheckpointOptions`.

        Returns:
            Its path, or None if the interval is not over. Errors are those of `Checkpoint.save`.
        """
        last, interval = self._last_step, self.checkpoint_interval
        if check_interval and interval is not None and last is not None and (self._step() or 0) - last < interval:
            return None
        number = None if checkpoint_number is None else int(checkpoint_number)
        path = self.checkpoint._save_numbered(os.path.join(self.directory, self._name), number, options, self._saved)
        self._last_step = self._step()
        return path

    def _step(self) -> int | None:
        return None if self._counter is None else int(self._counter.numpy())

    def _saved(self, path: str) -> None:
        """Enter a checkpoint that is complete, and let go of the oldest; none is dropped that other programs wrote."""
        known = {old: saved for old, saved in self._known.items() if old != path}
        known[path] = float(bundle.read_index(Path(path))["saved"])
        dropped = []
        while self._limit is not None and len(known) > self._limit:
            oldest = next(iter(known))
            saved = known.pop(oldest)
            if self._hours is not None and saved - self._hours * 3600.0 >= self._last_preserved:
                self._last_preserved = saved
                self._preserved.append(oldest)
            elif bundle.may_be_of(Path(oldest), saved):
                dropped.append(oldest)
        bundle.write_list(Path(self.directory), known, self._has_own_name, dropped, self._preserved, self._last_preserved)
        self._known = known
        for old in dropped:
            try:
                bundle.delete(Path(old))
            except OSError as error:
                logger.warning("checkpoint '%s' could not be deleted: %s", old, error)

    def sync(self) -> None:
        """Wait until an asynchronous save is complete; raises what went wrong in it."""
        self.checkpoint.sync()

    def restore_or_initialize(self) -> str | None:
        """Restore the newest complete checkpoint and give its path; without any, call `init_fn` and give None.

        Raises:
            LoadError: if there are checkpoints, but none is complete.
        """
        paths = [*bundle.damaged(self.directory, self._has_own_name), *self._listed()]
        if paths:
            path = bundle.newest_complete(paths)
            if path is None:
                raise LoadError(
                    f"{self.directory}: none of the {len(paths)} checkpoints is complete (the log says why for each). "
                    "Move them away to start anew."
                )
            self.checkpoint.restore(path)
            self._last_step = self._step()
            return path
        if self._init is not None:
            self._init()
        return None
