"""The agreement of ranks before and while they train a model: on seeds, structure and weights."""

from __future__ import annotations

import hashlib
import re
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import nest
from ..core import Variable, restore, snapshot, to_numpy
from ..data.pipeline import preserved_streams
from ..errors import InvalidArgumentError
from ..keras.optimizers.gradients import is_distributed
from ..keras.random import SeedState
from ..keras.training.state import ModelLike, named_variables
from ..nn_ops import streams
from ..ranks import world
from .functions import broadcast_variables, first_difference, hash_of

_COUNTED = re.compile(r"_\d+(?=[/_'\"]|$)")


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


def check_optimizer(optimizer: Any, name: str) -> None:
    """Refuse, on every rank, optimizers that ask for the loss or exchange gradients themselves."""
    if getattr(optimizer, "needs_loss", False):
        raise InvalidArgumentError(
            f"{name}: {type(optimizer).__name__} asks for the loss of all rows several times in a step, which no rank "
            "knows. Use an optimizer of gradients, such as Adam, or train in one process."
        )
    if is_distributed(optimizer):
        raise InvalidArgumentError(
            f"{name}: the strategy has the ranks exchange gradients, and so has DistributedOptimizer. Give the optimizer "
            "itself, or make the model outside of the scope."
        )


def agree(model: ModelLike, data: Any, predicts: bool) -> None:
    """Build the model on this rank's rows of the first batch, and give all ranks the seeds and Variables of rank 0.

    Args:
        data: these rows; None if there are none.
        predicts: whether the data need not hold labels.

    Raises:
        ValueError: on every rank, if models or seeds differ.
    """
    agree_on_seeds()
    _build(model, data, predicts)
    _check_structure(model)
    broadcast_variables(_variables(model))


def _build(model: ModelLike, data: Any, predicts: bool) -> None:
    """Make all Variables and change none; random streams change only as far as initial values need."""
    lacks_targets = not predicts and model.training_loops.targets is None
    if data is not None and not model.is_overridden("train_step") and (lacks_targets or not model.built):
        before, step = snapshot(_variables(model)), model.predict_step if predicts else model.test_step
        try:
            with preserved_streams(()) if model.built else nullcontext(), np.errstate(all="ignore"):
                step(data)
        finally:
            for variable, array in before:  # the stream of a layer keeps its seed, which the first call may have told it
                is_stream = isinstance(variable, SeedState)
                array = np.array([variable.array[0], array[1]], array.dtype) if is_stream else array
                restore([(variable, array)])
            model.reset_metrics()
    if model.optimizer is not None and model.trainable_variables:
        model.optimizer.prepare(model.learning_variables())


def _variables(model: ModelLike) -> list[Variable]:
    return list({variable.key: variable for variable in named_variables(model).values()}.values())


def _check_structure(model: ModelLike) -> None:
    """Refuse models that do not compute the same; each rank says where they differ."""
    ranks = world()
    if ranks.size == 1:
        return
    loops = model.training_loops
    compiled = loops.need_compile("fit") if loops.compiled else None
    told = () if compiled is None else (*nest.flatten(compiled.loss), compiled.loss_weights)
    parts = (*model.collect_contents().sublayers, model.optimizer, *told)
    described = [_described(part) for part in parts if part is not None]
    if (found := first_difference(described)) is not None:
        place, others = found
        own = described[place] if place < len(described) else "nothing"
        raise InvalidArgumentError(
            f"on rank {ranks.rank} part {place} of model '{model.name}' is {own:.300}, on the ranks {others} it is "
            "another. All ranks must make and compile the same model."
        )


def _described(part: Any) -> str:
    """Class and options of a layer, an optimizer or a loss, or a plain value, without the numbers that a process counts up."""
    import json

    try:
        config = part.get_config() if hasattr(part, "get_config") else part
        config = json.dumps(config, sort_keys=True, default=lambda value: type(value).__name__)
    except (NotImplementedError, TypeError, ValueError):
        config = ""
    return _COUNTED.sub("", f"{type(part).__name__} {config}")


def stops(model: ModelLike) -> bool:
    """True if `fit` was told to stop on any rank. Weights are to be the same on all of them.

    Raises:
        InvalidArgumentError: on every rank, with those that differ.
    """
    ranks, digest = world(), hashlib.blake2b(digest_size=8)
    for variable in model.collect_contents().variables:
        digest.update(np.ascontiguousarray(to_numpy(variable.array)).reshape(-1).view(np.uint8).data)
    if (found := first_difference([digest.hexdigest()])) is not None:
        raise InvalidArgumentError(
            f"the weights of model '{model.name}' on rank {ranks.rank} are not those of the ranks {found[1]}. Change weights "
            "on all ranks alike, in callbacks too; go on from the last checkpoint."
        )
    return bool(ranks.all_reduce(np.array([model.stop_training], np.int64), "max")[0])
