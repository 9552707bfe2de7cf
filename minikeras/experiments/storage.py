"""Ensembles in one file: a ZIP of a `.keras` file of each member, and what `ensemble.json` says of their random streams."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Variable
from ..files import archive, durable, strict_json
from ..files.reading import read_file, refused
from ..keras.models import Model
from ..keras.saving.keras_file import decoded, encoded
from ..keras.saving.weights import may_write
from ..keras.seeds import SeedState
from .members import Member

FORMAT = 1


def save_ensemble(members: Sequence[Member], filepath: str | os.PathLike[str], overwrite: bool) -> None:
    """See `Ensemble.save`."""
    path = Path(filepath)
    if path.suffix != ".zip":
        raise ValueError(f"save: an ensemble needs a name that ends in '.zip', found '{filepath}'.")
    may_write(path, overwrite)
    described = [
        {"seed": member.seed, "streams": member.streams, "layers": [state.numpy().tolist() for state in _states(member.model)]}
        for member in members
    ]
    content = {"ensemble.json": strict_json.dumps({"format": FORMAT, "members": described})}
    content |= {_name(place): encoded(member.model) for place, member in enumerate(members)}
    durable.write_file(path, archive.encode(content))


def load_ensemble(
    filepath: str | os.PathLike[str], custom_objects: Mapping[str, Any] | None, max_bytes: int | None
) -> list[Member]:
    """See `Ensemble.load`."""
    path = Path(filepath)
    content = read_file(path)
    most = max(64 << 20, 8 * len(content)) if max_bytes is None else max_bytes
    found = archive.read(content, path, {"ensemble.json"}, {"members/"}, most)
    config = strict_json.loads(found["ensemble.json"], path, "ensemble.json")
    described = config.get("members") if isinstance(config, dict) and config.get("format") == FORMAT else None
    if not isinstance(described, list) or not described or set(found) != {"ensemble.json", *map(_name, range(len(described)))}:
        raise refused(path, "ensemble.json", f"must have format {FORMAT} and describe each of the members")
    members: list[Member] = []
    for place, one in enumerate(described):
        model = decoded(bytearray(found[_name(place)]), path, custom_objects, True, most)
        members.append(_member(model, one, path))
        most -= sum(math.prod(variable.shape) * variable.dtype.size for variable in model.variables)  # of all together
    return members


def _states(model: Model) -> list[Variable]:
    """The random streams of a model's layers, which a `.keras` file does not hold."""
    return [variable for variable in model._collect().variables if isinstance(variable, SeedState)]


def _name(place: int) -> str:
    return f"members/{place}.keras"


def _member(model: Model, described: Any, path: Path) -> Member:
    """A member with its random streams as they were."""
    try:
        streams = {str(name): (_count(seed), _count(position)) for name, (seed, position) in described["streams"].items()}
        if "" not in streams:
            raise ValueError("there is none")
        for state, value in zip(_states(model), described["layers"], strict=True):
            state.assign(np.array([_count(one) for one in value], np.uint32))
        return Member(model, _count(described["seed"]), streams)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refused(path, "ensemble.json", f"the random streams of a member are damaged ({error})") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError(f"expected a whole number from 0, found {value!r:.40}")
    return value
