"""Ensemble: many models of one structure, trained together at the price of a few."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import nest
from ..boundary import explaining, shown
from ..errors import kind_of
from ..files import archive, durable, read_file, refused, strict_json
from ..keras import batches
from ..keras.arguments import plain, takes_numpy, whole
from ..keras.batches import Feed
from ..keras.callbacks import BackupAndRestore, CallbackList
from ..keras.models import Model
from ..keras.random import default_seed
from ..keras.saving.model_files import decoded, encoded, may_write
from ..keras.training import trainer
from ..types import Array
from .grid import checked_seeds
from .members import EnsembleMember, MemberSource, check_apart, folds_of, resampled
from .training import EnsembleHistory, KeptStacks, MemberHooks

FORMAT, _INDEX = 1, "ensemble.json"


class Ensemble:
    """Models of one structure that differ in seed, first weights and, where wanted, numbers such as the learning rate. They
    are trained together: weights lie stacked along a new first axis, and one compiled step serves all.

    A member equals a model that a script trains by itself after `keras.utils.set_random_seed(seed)`: in its first weights,
    its random masks and the order of its batches.

    Args:
        build: gives a model; called once for each member, with its seed if it has a parameter for it.
        size: the number of members; 16, or as many as there are seeds.
        seeds: one for each member; drawn from the global stream by default.

    Raises:
        ValueError: if members share weights, or seeds are no different integers of at least 0.
        TypeError: if `build` gives no model.

    >>> def build():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile(optimizer="sgd", loss="mse")
    ...     return model
    >>> ensemble = tf.experiments.Ensemble(build, size=4, seeds=[1, 2, 3, 4])
    >>> history = ensemble.fit([[0.0], [1.0]], [[0.0], [1.0]], epochs=3, verbose=0)
    >>> history.history["loss"].shape, ensemble.predict([[0.5]], verbose=0).shape
    ((3, 4), (4, 1, 1))
    """

    def __init__(self, build: Callable[..., Any], size: int | None = None, seeds: Iterable[int] | None = None) -> None:
        whole("Ensemble: size", size, 1, optional=True)
        if not callable(build) or isinstance(build, Model):
            raise TypeError(f"Ensemble: build must be a function that returns a new model, found {kind_of(build)}.")
        chosen = [default_seed() for _ in range(size or 16)] if seeds is None else checked_seeds("Ensemble", seeds)
        if len(chosen) != (size or len(chosen)):
            raise ValueError(f"Ensemble: size={size} needs as many seeds, found {shown(seeds)}.")
        self._members, self._stacks = [EnsembleMember.built(build, seed) for seed in chosen], KeptStacks()
        check_apart(self._members)

    @classmethod
    def of(cls, members: Sequence[EnsembleMember]) -> Ensemble:
        """An ensemble of members that were built elsewhere."""
        made = cls.__new__(cls)
        made._members, made._stacks = list(members), KeptStacks()
        return made

    # Members ---------------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, place: Any) -> Any:
        """A member: an ordinary model, with its weights and the state of its optimizer. What is done to it is done to the
        ensemble. A slice gives a list of them.
        """
        return list(self)[place]

    def __iter__(self) -> Iterator[Model]:
        return iter([member.model for member in self._members])

    @property
    def seeds(self) -> list[int]:
        """The seed of each member."""
        return [member.seed for member in self._members]

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None, metrics: Any = None, **options: Any
    ) -> None:
        """Compile all members, as `Model.compile`.

        Args:
            optimizer: as there, or a function of a member's place that returns one: `lambda i: Adam(rates[i])`.
            loss, loss_weights, metrics: as there; each member gets a copy.
            options: the others of `Model.compile`.
        """
        per_member = callable(optimizer) and not isinstance(optimizer, type) and not hasattr(optimizer, "apply_gradients")
        optimizers = [optimizer(place) if per_member else copy.deepcopy(optimizer) for place in range(len(self))]
        options |= {"loss": loss, "loss_weights": loss_weights, "metrics": metrics}
        for model, own in zip(self, optimizers, strict=True):
            model.compile(optimizer=own, **copy.deepcopy(options))

    def summary(self, **options: Any) -> None:
        """Print the summary of a member and how many there are; options as in `Model.summary`."""
        self[0].summary(**options)
        (options.get("print_fn") or print)(f" Members: {len(self)}")

    def __repr__(self) -> str:
        return f"<Ensemble of {len(self)} x '{self[0].name}'>"

    # Training --------------------------------------------------------------------------------------------------------------

    @explaining
    @takes_numpy
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        bootstrap: bool = False,
        folds: int | None = None,
    ) -> EnsembleHistory:
        """Train all members.

        Args:
            callbacks: a list, of which each member gets a copy, or a function of a member's place that returns one. The
                callbacks see the member's own model and logs; one that stops training stops this member alone.
            shuffle: as in `Model.fit`; each member goes through the rows of arrays in its own order. Batches of a Dataset or
                generator are the same for all.
            bootstrap: train each member on rows drawn with replacement, as many as there are, by its seed.
            folds: train member i on all rows but those of part i modulo `folds`, and validate it on these.
            others: as in `Model.fit`.

        Returns:
            An `EnsembleHistory`: arrays of shape (epochs, members).

        Raises:
            ValueError: as `Model.fit`; for folds that do not fit, or together with other validation data.

        A member whose loss is no longer finite ends, with a warning, and the others go on.
        """
        for member in self._members:
            member.model.training_loops.need_compile("fit")
            if member.model.optimizer is None:
                raise ValueError("fit: a member was compiled without an optimizer; give one: compile(optimizer='adam').")
        batched = batches.is_iterable_of_batches(x)
        if not isinstance(bootstrap, bool):
            raise TypeError(f"fit: bootstrap must be True or False, found {shown(bootstrap)}.")
        if folds is not None and (bootstrap or validation_split or validation_data is not None):
            raise ValueError("fit: folds say what members train and are validated on; leave out bootstrap and validation data.")
        if (bootstrap or folds is not None) and batched:
            raise ValueError("fit: bootstrap and folds choose rows of arrays; found batches. Give x and y as arrays.")
        plan = trainer.FitPlan.of(self[0], locals() | {"shuffle": shuffle and batched})
        source, chosen = plan.feed.source, None
        self._build(source.first())
        if folds is not None:
            chosen, held_out = folds_of(source, folds, len(self))
            held = MemberSource(source, self._members, held_out, validation_batch_size or batch_size, False)
            plan = plan._replace(validation=Feed(held, validation_steps))
        elif bootstrap:
            chosen = resampled(source, self._members)
        if chosen is not None or (shuffle and not batched):
            own_rows = MemberSource(source, self._members, chosen, batch_size, shuffle)
            plan = plan._replace(feed=Feed(own_rows, plan.feed.wanted))
        several = callable(callbacks)
        given = [callbacks(place) if several else copy.deepcopy(callbacks) for place in range(len(self))]
        _check_callbacks(given, shared=not several and len(self) > 1)
        params: dict[str, Any] = {"epochs": plan.epochs.stop, "steps": plan.feed.steps, "verbose": 0}
        own = [CallbackList(one, True, False, model, **params) for one, model in zip(given, self, strict=True)]
        bar = trainer.hooks_of(self[0], None, False, verbose, plan.epochs.stop, plan.feed.steps)
        with self._stacks.taken(self._members, trains=True) as loops:
            history: EnsembleHistory = loops.fit(loops.stack, plan, MemberHooks(own, bar, plan, loops))
        return history

    def _build(self, batch: Any) -> None:
        """Make the weights of members that have none yet."""
        for member in self._members:
            member.make_ready(batches.unpack_x_y_sample_weight(batch)[0])
        self._stacks.look([member.model for member in self._members])

    # Using -----------------------------------------------------------------------------------------------------------------

    @explaining
    @takes_numpy
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics of each member: arrays with one number for each, in the forms that `Model.evaluate` has."""
        for member in self._members:
            member.model.training_loops.need_compile("evaluate")
        feed = trainer.feed_of(self[0], "evaluate", x, y, sample_weight, batch_size, steps)
        self._build(feed.source.first())
        with trainer.hooks_of(self[0], None, False, verbose, 1, feed.steps) as bar, self._stacks.taken(self._members) as loops:
            values = loops.evaluate(loops.stack, bar, feed)
        return dict(sorted(values.items())) if return_dict else trainer.listed(values)

    @explaining
    @takes_numpy
    def predict(
        self, x: Any, batch_size: int | None = None, verbose: int | str = "auto", steps: int | None = None, reduce: Any = None
    ) -> Any:
        """The outputs of all members for all rows, as NumPy arrays of shape (members, rows, ...).

        Args:
            reduce: 'mean' or 'std' over the members (the spread, with n in the denominator), a quantile such as 0.5, or a list
                of these, whose results then stand along the first axis in place of the members.
        """
        reduce = plain(list(reduce) if isinstance(reduce, np.ndarray) and reduce.ndim else reduce)
        reduced = _reduction(reduce)
        feed = trainer.feed_of(self[0], "predict", x, None, None, batch_size, steps)
        self._build(feed.source.first())
        bar = trainer.hooks_of(self[0], None, False, verbose, 1, feed.steps)
        axis = 0 if reduce is not None and not isinstance(reduce, (list, tuple)) else 1
        with self._stacks.taken(self._members) as loops:
            return loops.predict(loops.stack, bar, feed, reduced, axis)

    # Saving ----------------------------------------------------------------------------------------------------------------

    def save(self, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write all members to one file: a ZIP of a '.keras' file of each, with its seed and random streams.

        Args:
            filepath: a name that ends in '.zip'.
            overwrite: whether an existing file may be replaced. It is replaced in one step, when the new one is complete.

        Raises:
            ValueError: for another name.
            FileExistsError: with overwrite=False.
        """
        path = Path(filepath)
        if path.suffix != ".zip":
            raise ValueError(f"save: an ensemble needs a name that ends in '.zip', found '{filepath}'.")
        may_write(path, overwrite)
        described = [
            {"seed": one.seed, "streams": one.streams, "layers": [state.numpy().tolist() for state in one.layer_streams]}
            for one in self._members
        ]
        content = {_INDEX: strict_json.dumps({"format": FORMAT, "members": described})}
        content |= {f"members/{place}.keras": encoded(model) for place, model in enumerate(self)}
        durable.write_file(path, archive.encode(content))

    @classmethod
    def load(
        cls, filepath: str | os.PathLike[str], custom_objects: Mapping[str, Any] | None = None, max_bytes: int | None = None
    ) -> Ensemble:
        """An ensemble that `save` wrote; training goes on as it would have. Arguments and errors as in `load_model`."""
        path = Path(filepath)
        content = read_file(path)
        most = max(64 << 20, 8 * len(content)) if max_bytes is None else max_bytes
        found = archive.read(content, path, {_INDEX}, {"members/"}, most)
        config = strict_json.loads(found.pop(_INDEX), path, _INDEX)
        described = config.get("members") if isinstance(config, dict) and config.get("format") == FORMAT else None
        names = [f"members/{place}.keras" for place in range(len(described))] if isinstance(described, list) else []
        if not names or set(found) != set(names):
            raise refused(path, _INDEX, f"must have format {FORMAT} and describe each of the members")
        members: list[EnsembleMember] = []
        for name, one in zip(names, described or (), strict=True):
            members.append(EnsembleMember(decoded(bytearray(found[name]), path, custom_objects, True, most), 0, {}))
            _put_streams_back(members[-1], one, path)
            most -= sum(math.prod(one.shape) * one.dtype.size for one in members[-1].model.variables)  # of all together
        return cls.of(members)


def _put_streams_back(member: EnsembleMember, described: Any, path: Path) -> None:
    """Let a member have seed and random streams as they were."""
    try:
        member.seed = _count(described["seed"])
        streams = described["streams"].items()
        member.streams = {str(name): (_count(seed), _count(position)) for name, (seed, position) in streams}
        if "" not in member.streams:
            raise ValueError("there is none")
        for state, value in zip(member.layer_streams, described["layers"], strict=True):
            state.assign(np.array([_count(one) for one in value], np.uint32))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refused(path, _INDEX, f"the random streams of a member are damaged ({error})") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError(f"expected a whole number from 0, found {value!r:.40}")
    return value


def _check_callbacks(callbacks: Any, shared: bool) -> None:
    """Refuse callbacks that need a whole `fit` of one model, or whose copies would write to one file."""
    for one in nest.flatten(callbacks):
        if isinstance(one, BackupAndRestore):
            raise ValueError(
                "fit: BackupAndRestore keeps the state of one model's `fit`. For many runs use Sweep with a directory."
            )
        written = [name for name in ("filepath", "filename", "log_dir") if hasattr(one, name)]
        if shared and written:
            raise ValueError(
                f"fit: {type(one).__name__} would write the files of all members to one {written[0]}. Give callbacks as a "
                f"function of a member's place: callbacks=lambda i: [{type(one).__name__}(f'member_{{i}}...')]."
            )


def _reduction(reduce: Any) -> Callable[[Array], Array]:
    """A function of outputs with members first."""
    if isinstance(reduce, (list, tuple)) and reduce and not any(isinstance(one, (list, tuple)) for one in reduce):
        several = [_reduction(one) for one in reduce]
        return lambda outputs: np.stack([one(outputs) for one in several])
    if reduce is None:
        return lambda outputs: outputs
    if isinstance(reduce, float) and 0.0 <= reduce <= 1.0:
        return lambda outputs: np.quantile(outputs, reduce, axis=0).astype(outputs.dtype)
    if reduce == "mean":
        return lambda outputs: outputs.mean(axis=0)
    if reduce == "std":
        return lambda outputs: outputs.std(axis=0)
    raise ValueError(f"predict: reduce must be 'mean', 'std', a quantile in [0, 1] or a list of them, found {shown(reduce)}.")
