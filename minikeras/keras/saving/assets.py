"""Files that objects of a model save beside its weights: vocabularies and the like, in the folder `assets` of a `.keras` file.

`save_assets(folder)` and `load_assets(folder)` are called with a folder in a temporary place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...files.reading import excerpt, refused
from .places import places

FOLDER = "assets/"


def encode(model: Any) -> dict[str, bytes]:
    """What the objects of a model save, by name in the archive."""
    found: dict[str, bytes] = {}
    for place in places(model):
        if not hasattr(place.owner, "save_assets"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            place.owner.save_assets(folder)
            start = f"{FOLDER}{place.path}/" if place.path else FOLDER
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    found[start + path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def load(model: Any, members: Mapping[str, bytes], file: Path) -> None:
    """Let the objects of a model have what they saved; a LoadError if an object cannot use it, or no folder hold the name."""
    saved = {name: content for name, content in members.items() if name.startswith(FOLDER) and not name.endswith("/")}
    for place in places(model):
        if not hasattr(place.owner, "load_assets"):
            continue
        start = f"{FOLDER}{place.path}/" if place.path else FOLDER
        with tempfile.TemporaryDirectory() as folder:
            for name in (name for name in saved if name.startswith(start)):
                _write(Path(folder), name.removeprefix(start), saved[name], file)
            try:
                place.owner.load_assets(folder)
            except (LookupError, TypeError, ValueError, OSError) as error:
                raise refused(file, start, f"load_assets raised {type(error).__name__}: {excerpt(error, 120)}") from error


def _write(folder: Path, name: str, content: bytes, file: Path) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") or ":" in part or "\\" in part or "\0" in part for part in parts) or len(parts) > 32:
        raise refused(file, f"{FOLDER}{excerpt(name)}", "a name that could leave its folder")
    try:
        path = folder.joinpath(*parts)
        os.makedirs(path.parent, exist_ok=True)
        with open(path, "xb") as stream:
            stream.write(content)
    except OSError as error:
        raise refused(file, f"{FOLDER}{excerpt(name)}", f"cannot be unpacked ({error.strerror})") from None
