"""Ensembles in one file: a ZIP of a `.keras` file of each member, and what `ensemble.json` says of their random streams."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import archive, durable, strict_json
from ..files.reading import read_file, refused
from ..keras.saving.keras_file import decoded, encoded
from ..keras.saving.weights import may_write
from .member import Member

FORMAT = 1


def save_ensemble(members: Sequence[Member], filepath: str | os.PathLike[str], overwrite: bool) -> None:
    """See `Ensemble.save`."""
    path = Path(filepath)
    if path.suffix != ".zip":
        raise ValueError(f"save: an ensemble needs a name that ends in '.zip', found '{filepath}'.")
    may_write(path, overwrite)
    described = [{"seed": member.seed, "streams": member.streams} for member in members]
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
    members = []
    for place, one in enumerate(described):
        seed, streams = _checked(one, path)
        model = decoded(found[_name(place)], path, custom_objects, True, max_bytes)
        members.append(Member(model, seed, streams))
    return members


def _name(place: int) -> str:
    return f"members/{place}.keras"


def _checked(described: Any, path: Path) -> tuple[int, dict[str, tuple[int, int]]]:
    """The seed and the random streams of a member."""
    try:
        streams = {str(name): (int(seed), int(position)) for name, (seed, position) in described["streams"].items()}
        return int(described["seed"]), streams
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise refused(path, "ensemble.json", f"the random streams of a member are damaged ({error})") from None
