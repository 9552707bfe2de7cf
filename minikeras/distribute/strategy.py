"""DataParallel: models that are made in its scope are trained by all ranks, each on its rows of every batch."""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor
from ..core.arrays import device
from ..errors import InvalidArgumentError
from ..nn_ops import streams
from .functions import all_reduce, hash_of
from .replica import BatchPart, adding_up
from .world import rows_of, world


class BatchSplit(NamedTuple):
    """The part of a batch that this rank computes.

    Attributes:
        parts: rows of the whole batch, which are computed one after another.
        pairs: whether sums over parts are taken in pairs.
    """

    parts: tuple[BatchPart, ...]
    pairs: bool

    @property
    def rows(self) -> slice:
        """The slice of the whole batch that all these parts cover."""
        return slice(self.parts[0].first, self.parts[-1].first + self.parts[-1].rows)

    @property
    def shares(self) -> list[float]:
        """The share of each part in the rows of the whole batch."""
        return [part.share for part in self.parts]


class Resolver(NamedTuple):
    """The number of this rank, by TensorFlow's names."""

    task_id: int
    task_type: str = "worker"


class ReduceOp(enum.Enum):
    """The operations of `reduce`, by TensorFlow's names.

    >>> tf.distribute.MultiWorkerMirroredStrategy().reduce(tf.distribute.ReduceOp.SUM, 2.0, axis=None).numpy()
    np.float32(2.0)
    """

    SUM = "SUM"
    MEAN = "MEAN"


class InputContext(NamedTuple):
    """The rank that a Dataset is made for: it takes part `input_pipeline_id` of `num_input_pipelines`, by `Dataset.shard`.

    >>> tf.distribute.InputContext(4, 0, 4).get_per_replica_batch_size(32)
    8
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of each rank.

        Raises:
            ValueError: if they do not divide evenly.
        """
        rows, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            raise ValueError(
                f"get_per_replica_batch_size: {global_batch_size} rows do not divide among {self.num_replicas_in_sync} ranks."
            )
        return rows


class DataParallel:
    """All ranks hold the same model, compute on their rows of each batch and take the same step: that of one process with the
    same batches. `tf.distribute.MultiWorkerMirroredStrategy` is another name.

    Make and compile the model within `scope()`, or after `keras.distribution.set_distribution`. `fit`, `evaluate`, `predict`
    and the methods for one batch are then called by all ranks, with the same data; `batch_size` counts the rows of all of them.

    Args:
        device_mesh, devices: accepted for Keras's sake: each rank computes where it is.
        auto_shard_dataset: whether data are the same on all ranks, each of which takes its rows of each batch. If not, the
            batches of a rank are rows of its own, and the batch of a step is all of them together.
        virtual_shards: a power of two, a multiple of the number of ranks. Batches are computed in so many parts and sums taken
            in pairs, so training gives the same bits with 1, 2, 4, ... ranks. None for one part a rank.

    Raises:
        ValueError: for options that do not fit; for seeds that differ among the ranks.
        MissingExtraError: if there are several ranks and no mpi4py.

    >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
    >>> with strategy.scope():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile("sgd", "mse")
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(
        self,
        device_mesh: Any = None,
        devices: Any = None,
        auto_shard_dataset: bool = True,
        virtual_shards: int | None = None,
        **options: Any,
    ) -> None:
        if unknown := set(options) - {"cluster_resolver", "communication_options"}:
            raise TypeError(f"DataParallel: unknown options {sorted(unknown)}.")
        self.auto_shard_dataset = bool(auto_shard_dataset)
        self.virtual_shards = virtual_shards
        size = world().size
        if virtual_shards is not None:
            whole = isinstance(virtual_shards, (int, np.integer)) and virtual_shards > 0 and virtual_shards is not True
            if not whole or virtual_shards & (virtual_shards - 1) or virtual_shards % size:
                raise InvalidArgumentError(
                    f"DataParallel: virtual_shards must be a power of two and a multiple of the {size} ranks, found "
                    f"{virtual_shards!r}."
                )
            if not auto_shard_dataset:
                raise InvalidArgumentError(
                    "DataParallel: virtual_shards cuts batches that all ranks know; it cannot be had with "
                    "auto_shard_dataset=False."
                )
        agree_on_seeds()

    # Ranks ---------------------------------------------------------------------------------------------------------------

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of ranks."""
        return world().size

    num_processes = num_model_replicas = num_replicas_in_sync

    @property
    def data_shard_id(self) -> int:
        """The number of this rank."""
        return world().rank

    @property
    def cluster_resolver(self) -> Resolver:
        """`task_id` is the number of this rank, `task_type` 'worker'."""
        return Resolver(world().rank)

    @property
    def is_active(self) -> bool:
        """True if steps differ from those of a single process."""
        return world().size > 1 or self.virtual_shards is not None

    @contextlib.contextmanager
    def scope(self) -> Iterator[DataParallel]:
        """Within the block models are made for all ranks."""
        before, _here.strategy = _here.strategy, self
        try:
            yield self
        finally:
            _here.strategy = before

    def split(self, total: int) -> BatchSplit | None:
        """The part of a batch of `total` rows that this rank computes; None for all of it, also for fewer rows than parts."""
        if not self.is_active or total < (self.virtual_shards or world().size):
            return None
        return self.split_of(world().rank, total)

    def split_of(self, rank: int, total: int) -> BatchSplit:
        """The part of a batch of `total` rows, at least one for each part, that a rank computes."""
        shards = self.virtual_shards or world().size
        each = shards // world().size
        found = [rows_of(total, number, shards) for number in range(rank * each, (rank + 1) * each)]
        parts = tuple([BatchPart(rows.start, len(rows), total, each) for rows in found])
        return BatchSplit(parts, self.virtual_shards is not None)

    # Custom loops --------------------------------------------------------------------------------------------------------

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call `fn` on this rank. As in TensorFlow its optimizers step by the sum of the gradients of all ranks: the loss
        is to be divided by the rows of all of them. Metrics are of the rows of this rank.

        >>> tf.distribute.MultiWorkerMirroredStrategy().run(lambda x: x + 1, args=(1,))
        2
        """
        with adding_up() if world().size > 1 else contextlib.nullcontext():
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Tensor:
        """The sum or mean over all ranks; with `axis` also over that axis, whose length may differ among them.

        Args:
            reduce_op: 'SUM' or 'MEAN', in any case, or what prints so.
            value: a tensor of this rank.
            axis: None to keep the shape.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> print(strategy.reduce("MEAN", [1.0, 3.0], axis=0).numpy())
        2.0
        """
        operation = str(reduce_op).rpartition(".")[2].lower()
        if operation not in ("sum", "mean"):
            raise InvalidArgumentError(f"reduce: expected 'SUM' or 'MEAN', found {reduce_op!r}.")
        tensor = convert_to_tensor(value)
        if axis is None:
            return all_reduce(tensor, operation)
        from ..functions.reductions import reduce_sum

        total = all_reduce(reduce_sum(tensor, axis))
        return total if operation == "sum" else total / all_reduce(np.asarray(tensor.shape[axis], total.dtype.numpy))

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The Dataset of this rank's rows of each batch; the dataset itself if `auto_shard_dataset` is False.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
        >>> [batch.numpy().tolist() for batch in data]
        [[0, 1], [2, 3]]
        """
        ranks = world()
        if not self.auto_shard_dataset or ranks.size == 1:
            return dataset

        def own(*batch: Any) -> Any:
            cut = lambda leaf: leaf[rows_of(int(leaf.shape[0])).start : rows_of(int(leaf.shape[0])).stop]
            found = nest.map_structure(cut, batch)
            return found if len(found) > 1 else found[0]

        return dataset.map(own)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """The Dataset that a function makes for this rank, whose batches are its own; `options` are TensorFlow's alone.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> make = lambda context: tf.data.Dataset.range(4).shard(context.num_input_pipelines, context.input_pipeline_id)
        >>> len(strategy.distribute_datasets_from_function(make))
        4
        """
        size = world().size
        return dataset_fn(InputContext(size, world().rank, size))

    def __repr__(self) -> str:
        return f"<DataParallel over {world().size} ranks>"


class MirroredStrategy(DataParallel):
    """`DataParallel` in one process, with one device, for programs that name it: TensorFlow's has several devices.

    Args:
        devices: one, as for `tf.device`, on which the block of `scope` makes arrays; by default the current one.
        cross_device_ops: accepted for TensorFlow's sake: there is nothing to add up.

    Raises:
        InvalidArgumentError: for several devices, and among several ranks.

    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        listed = [devices] if isinstance(devices, str) else list(devices or [])
        if len(listed) > 1 or world().size > 1:
            raise InvalidArgumentError(
                f"{type(self).__name__}: one process uses one device, found {listed} and {world().size} ranks. "
                "MultiWorkerMirroredStrategy trains in several processes."
            )
        self.device: str | None = listed[0] if listed else None

    @contextlib.contextmanager
    def scope(self) -> Iterator[DataParallel]:
        """Within the block models are made for this device."""
        with contextlib.nullcontext() if self.device is None else device(self.device), super().scope():
            yield self


class OneDeviceStrategy(MirroredStrategy):
    """`MirroredStrategy` by the name that it has for one device.

    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope() as strategy:
    ...     tf.distribute.get_strategy() is strategy
    True
    """

    def __init__(self, device: str) -> None:
        super().__init__(device)


class _Here(threading.local):
    strategy: DataParallel | None = None


_here = _Here()
_of_process: DataParallel | None = None


def set_distribution(value: DataParallel | None) -> None:
    """Set the strategy of models that are made from now on, outside of any scope; None for a single process.

    >>> tf.keras.distribution.set_distribution(tf.keras.distribution.DataParallel())
    >>> tf.keras.distribution.distribution()
    <DataParallel over 1 ranks>
    >>> tf.keras.distribution.set_distribution(None)
    """
    global _of_process
    if value is not None and not isinstance(value, DataParallel):
        raise TypeError(f"set_distribution: expected a DataParallel or None, found {value!r:.100}.")
    _of_process = value


def distribution() -> DataParallel | None:
    """The strategy of the block around, or else the one that `set_distribution` was given.

    >>> tf.keras.distribution.distribution()
    """
    return _here.strategy or _of_process


def has_strategy() -> bool:
    """True if a strategy is active.

    >>> tf.distribute.has_strategy()
    False
    """
    return distribution() is not None


def get_strategy() -> DataParallel:
    """The strategy of the block around; outside of any, one of its own.

    >>> tf.distribute.get_strategy().num_replicas_in_sync
    1
    """
    return distribution() or DataParallel()


def agree_on_seeds() -> None:
    """Let all ranks draw the same random numbers: seeds that were set must be the same, others are those of rank 0.

    Raises:
        ValueError: on every rank, for seeds or streams that differ.
    """
    ranks = world()
    if ranks.size == 1:
        return
    own = streams.states()
    marks = ranks.all_gather(np.array([streams.is_seeded(), own[""][0] & (2**62 - 1), hash_of(str(sorted(own.items())))]))
    if (marks[:, 2] == marks[0, 2]).all():
        return
    if not marks[:, 0].any():
        seed = int(ranks.broadcast(np.array(own[""], np.int64), 0)[0])
        streams.set_states({"": (seed, 0)})
        return
    said = [f"{'set to ' if given else 'not set, '}{seed}" for given, seed, _ in marks.tolist()]
    if len(set(said)) > 1:
        shown = ", ".join(f"rank {number}: {text if text[0] == 's' else 'not set'}" for number, text in enumerate(said))
        raise InvalidArgumentError(
            f"the random seeds of the ranks differ ({shown}). Call keras.utils.set_random_seed with one seed on all of them."
        )
    others = [number for number in range(ranks.size) if marks[number, 2] != marks[ranks.rank, 2]]
    raise InvalidArgumentError(
        f"rank {ranks.rank} has drawn other random numbers than the ranks {others}. Have all ranks make the same layers and "
        "draw the same, or call keras.utils.set_random_seed again on all of them."
    )


MultiWorkerMirroredStrategy = DataParallel
