"""CheckpointManager: a numbered sequence of checkpoints in a folder, of which the last few are kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core import Variable
from ..core.warnings import logger
from ..errors import LoadError
from . import bundle, pointer
from .checkpoint import Checkpoint, CheckpointOptions


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
        self._checkpoint, self._directory, self._name = checkpoint, os.fspath(directory), checkpoint_name
        self._limit, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._counter, self._interval, self._init = step_counter, checkpoint_interval, init_fn
        self._last_step: int | None = None
        state = pointer.get_checkpoint_state(directory) or pointer.CheckpointState()
        listed = self._listed().items()
        self._known = {path: saved for path, saved in listed if not bundle.is_taken(Path(path), self._writer.may_adopt)}
        self._preserved = [path for path in state.preserved if self._has_own_name(path)]
        self._last_preserved = state.last_preserved_timestamp

    @property
    def _writer(self) -> bundle.WriterIdentity:
        return self._checkpoint._writer.identity

    def _has_own_name(self, path: str) -> bool:
        return os.path.basename(path).removeprefix(f"{self._name}-").isdecimal()

    def _listed(self) -> dict[str, float]:
        """The checkpoints in the folder with names that this manager gives, those of other programs too, oldest first."""
        found = pointer.known_checkpoints(self._directory)
        return {path: saved for path, saved in found.items() if self._has_own_name(path)}

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The `Checkpoint` that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The number of steps between two saves, or None."""
        return self._interval

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
        last, interval = self._last_step, self._interval
        if check_interval and interval is not None and last is not None and self._step() - last < interval:
            return None
        number = None if checkpoint_number is None else int(checkpoint_number)
        path = self._checkpoint._save_numbered(os.path.join(self._directory, self._name), number, options, self._saved)
        self._last_step = None if self._counter is None else self._step()
        return path

    def _step(self) -> int:
        assert self._counter is not None
        return int(self._counter.numpy())

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
        pointer.write(Path(self._directory), known, self._has_own_name, dropped, self._preserved, self._last_preserved)
        self._known = known
        for old in dropped:
            try:
                bundle.delete(Path(old))
            except OSError as error:
                logger.warning("checkpoint '%s' could not be deleted: %s", old, error)

    def sync(self) -> None:
        """Wait until an asynchronous save is complete; raises what went wrong in it."""
        self._checkpoint.sync()

    def restore_or_initialize(self) -> str | None:
        """Restore the newest complete checkpoint and give its path; without any, call `init_fn` and give None.

        Raises:
            LoadError: if there are checkpoints, but none is complete.
        """
        paths = [*pointer.damaged(self._directory, self._has_own_name), *self._listed()]
        if paths:
            path = pointer.newest_complete(paths)
            if path is None:
                raise LoadError(
                    f"{self._directory}: none of the {len(paths)} checkpoints is complete (the log says why for each). "
                    "Move them away to start anew."
                )
            self._checkpoint.restore(path)
            self._last_step = None if self._counter is None else self._step()
            return path
        if self._init is not None:
            self._init()
        return None
