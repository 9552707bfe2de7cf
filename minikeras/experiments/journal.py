"""The folder of a sweep: its plan, and a file for each run that has ended, written whole or not at all.

sweep.json              runs, groups, and what tells this sweep from another
runs/00007.json         history of run 7, or its error
runs/00007.weights.h5   its weights, which `Model.load_weights` reads, in Keras too

The JSON files hold a digest of themselves, and that of the weights. Files without them, of versions before, are read too.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from ..core import array_of, is_array, to_numpy
from ..errors import LoadError, NotFoundError
from ..files import durable, excerpt, read_file, refuse_if, refused, strict_json
from .grid import Failure, Run, as_text, decoded, encoded
from .runs import Outcome

FORMAT = "minikeras sweep 1"
MODEL = "the model of run"
"""Prefix of the names, in the identity, of the texts that tell models apart."""
MOST_RUNS = 1_000_000
DIGEST, WEIGHTS = "sha256", "sha256 of weights"
_OF_RUN = {field.name for field in fields(Outcome)} - {"weights"}


class SweepPlan(NamedTuple):
    """The plan of a sweep.

    Attributes:
        name, objective, mode: as they were given; the objective is that of the latest `fit`.
        runs: all of them, in their order.
        groups: numbers of the runs that are trained together.
        identity: texts by which one sweep is told from another: its data, the arguments of `fit`, the models.
    """

    name: str
    objective: str
    mode: str
    runs: list[Run]
    groups: list[list[int]]
    identity: dict[str, str]


class Journal:
    """The record of a sweep, in a folder."""

    def __init__(self, directory: Any) -> None:
        self.directory = Path(directory)
        self._runs = self.directory / "runs"

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Be the only process that writes here."""
        durable.make_directory(self._runs)
        with durable.writer_lock(self.directory, patience=1.0):
            yield

    def begin(self, plan: SweepPlan) -> SweepPlan:
        """Write the plan, or find the one that is there, whose groups then hold.

        Raises:
            ValueError: if the folder holds another sweep.
        """
        if not self._plan_path.exists():
            durable.write_file(self._plan_path, _plan_text(plan))
            return plan
        found = self.plan()
        differences = _differences(found, plan)
        if differences:
            raise ValueError(
                f"Sweep: {self.directory} holds another sweep: {'; '.join(differences)}. Give another directory, or delete it."
            )
        going_on = plan._replace(groups=found.groups)
        if (found.objective, found.mode) != (plan.objective, plan.mode):
            durable.write_file(self._plan_path, _plan_text(going_on))
        return going_on

    def plan(self) -> SweepPlan:
        """The plan of the folder; a NotFoundError if there is none, a LoadError if it is damaged."""
        if not self._plan_path.exists():
            raise NotFoundError(f"{self.directory} holds no sweep: there is no {self._plan_path.name} in it.")
        return _read_plan(self._plan_path)

    def write(self, outcomes: Mapping[int, Outcome]) -> None:
        """Keep the outcomes of some runs; the weights of each first, so that a run in the folder has its weights."""
        files: dict[str, bytes] = {}
        for number, outcome in outcomes.items():
            if outcome.weights is not None:
                files[self._path(number, "weights.h5").name] = outcome.weights
            files[self._path(number).name] = _text(_record(outcome))
        durable.write_files(self._runs, files)

    def read(self, number: int) -> Outcome | None:
        """The outcome of a run, without its weights; None if it has not ended."""
        path = self._path(number)
        return _read_record(path) if path.exists() else None

    def weights(self, number: int) -> bytes | None:
        """The bytes of the weights of a run, if they were kept."""
        path = self._path(number, "weights.h5")
        if not path.exists():
            return None
        content = bytes(read_file(path))
        stated = _mapping(self._path(number), _OF_RUN, {WEIGHTS}).get(WEIGHTS)
        refuse_if(stated not in (None, hashlib.sha256(content).hexdigest()), path, "", "is damaged: its SHA-256 is another one")
        return content

    @property
    def _plan_path(self) -> Path:
        return self.directory / "sweep.json"

    def _path(self, number: int, kind: str = "json") -> Path:
        return self._runs / f"{number:05d}.{kind}"


# The plan ----------------------------------------------------------------------------------------------------------------


def _plan_text(plan: SweepPlan) -> bytes:
    runs = [[{name: encoded(value) for name, value in run.parameters.items()}, run.seed] for run in plan.runs]
    return _text({"format": FORMAT, **plan._asdict(), "runs": runs})


def _read_plan(path: Path) -> SweepPlan:
    content = _mapping(path, SweepPlan._fields)
    texts = [content["name"], content["objective"], content["mode"], *_as(dict, content["identity"]).values()]
    refuse_if(not all(type(text) is str for text in texts), path, "", "name, objective, mode and identity should be texts")
    refuse_if(content["mode"] not in ("auto", "min", "max"), path, "mode", "should be 'auto', 'min' or 'max'")
    runs, groups = content.pop("runs"), content["groups"]
    refuse_if(type(runs) is not list or len(runs) > MOST_RUNS, path, "runs", "should be a list")
    found = [_read_run(path, number, one) for number, one in enumerate(runs)]
    numbers = [number for group in _as(list, groups) for number in _as(list, group)]
    whole = all(type(number) is int for number in numbers) and sorted(numbers) == list(range(len(found)))
    refuse_if(not whole, path, "groups", "should hold each run once")
    return SweepPlan(runs=found, **content)


def _read_run(path: Path, number: int, content: Any) -> Run:
    place = f"runs: {number}"
    good = (
        type(content) is list and len(content) == 2 and type(content[0]) is dict and type(content[1]) is int and content[1] >= 0
    )
    refuse_if(not good, path, place, "should be parameters and a seed")
    try:
        return Run(number, {name: decoded(value) for name, value in content[0].items()}, content[1])
    except ValueError as error:
        raise refused(path, place, str(error)) from None


def _differences(found: SweepPlan, wanted: SweepPlan) -> list[str]:
    """The differences of the sweep that was found from the one that is wanted, as texts."""
    told = []
    if len(found.runs) != len(wanted.runs):
        told.append(f"it has {len(found.runs)} runs, this one {len(wanted.runs)}")
    for one, other in zip(found.runs, wanted.runs, strict=False):
        if _shown(one) != _shown(other):
            told.append(f"its run {one.number} has {_shown(one)}, this one {_shown(other)}")
            break
    for name in sorted({*found.identity, *wanted.identity}):
        old, new = found.identity.get(name, "not given"), wanted.identity.get(name, "not given")
        told_by_both = name in found.identity and name in wanted.identity
        if old != new and (told_by_both or not name.startswith(MODEL)):
            told.append(f"{name} differs ({excerpt(old, 24)} there, {excerpt(new, 24)} here)")
    return told[:5]


def _shown(run: Run) -> str:
    parameters = ", ".join(f"{name}={encoded(value)!r}" for name, value in run.parameters.items())
    return f"({parameters}{', ' if parameters else ''}seed {run.seed})".replace("{'named': ", "").replace("'}", "'")


# A run -------------------------------------------------------------------------------------------------------------------


def _record(outcome: Outcome) -> dict[str, Any]:
    failure, weights = outcome.failure, outcome.weights
    record = {name: value for name, value in vars(outcome).items() if name in _OF_RUN}
    record["history"] = {name: nest.map_structure(_number, values) for name, values in outcome.history.items()}
    record["failure"] = None if failure is None else [failure.message, failure.traceback]
    return {"format": FORMAT, **record, WEIGHTS: None if weights is None else hashlib.sha256(weights).hexdigest()}


def _read_record(path: Path) -> Outcome:
    content = _mapping(path, _OF_RUN, {WEIGHTS})
    history, logged_at = _as(dict, content["history"]), _as(dict, content["logged_at"])
    fits = history.keys() == logged_at.keys() and all(
        type(history[name]) is list
        and type(logged_at[name]) is list
        and len(history[name]) == len(logged_at[name])
        and all(type(epoch) is int for epoch in logged_at[name])
        for name in history
    )
    refuse_if(not fits, path, "history", "should have a value for each epoch at which it was logged")
    directions, failure = _as(dict, content["directions"]), content["failure"]
    refuse_if(any(one not in ("min", "max") for one in directions.values()), path, "directions", "should be 'min' or 'max'")
    texts = failure is None or (type(failure) is list and [type(text) for text in failure] == [str, str])
    refuse_if(not texts, path, "failure", "should be a message and a traceback")
    refuse_if(type(content["seconds"]) not in (int, float), path, "seconds", "should be a number")
    try:
        values = {name: _values(found) for name, found in history.items()}
    except ValueError:
        raise refused(path, "history", "should hold numbers") from None
    told = None if failure is None else Failure(*failure)
    given = {name: content[name] for name in _OF_RUN}
    return Outcome(**given | {"history": values, "seconds": float(content["seconds"]), "failure": told})


def _number(value: Any) -> Any:
    """A logged number as JSON, which has no NaN and no infinity."""
    return value if not isinstance(value, float) or math.isfinite(value) else repr(value)


def _values(value: Any) -> Any:
    """The inverse of `_number`, in lists."""
    if isinstance(value, list):
        return [_values(one) for one in value]
    if type(value) in (bool, int, float):
        return value
    if value in ("nan", "inf", "-inf"):
        return float(value)
    raise ValueError("expected a number")


def _text(content: dict[str, Any]) -> bytes:
    """The content of a file: some values, and the digest of their text."""
    return strict_json.dumps_in_order({**content, DIGEST: _digest(content)})


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(strict_json.dumps_in_order(content)).hexdigest()


def _mapping(path: Path, names: Collection[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    content = strict_json.loads(read_file(path, strict_json.LARGEST), path)
    stated = content.pop(DIGEST, None) if type(content) is dict else None
    refuse_if(stated is not None and stated != _digest(content), path, "", "is damaged: its SHA-256 is another one")
    if type(content) is not dict or content.keys() - optional != {"format", *names}:
        raise refused(path, "", f"is damaged, or no file of a sweep: it should hold {', '.join(sorted(names))}")
    refuse_if(content.pop("format") != FORMAT, path, "format", f"expected {FORMAT!r}")
    return content


def _as(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        asked = "a list" if kind is list else "an object"
        raise LoadError(f"expected {asked} in a file of a sweep, found {excerpt(value)}")
    return value


# What tells one sweep from another ---------------------------------------------------------------------------------------


def fingerprint(value: Any) -> str:
    """A text that is the same for the same data in every process: of arrays every byte counts, of others what is accessible.

    >>> fingerprint([1, 2]) == fingerprint([1, 2]) != fingerprint([1, 3])
    True
    """
    digest = hashlib.sha256()
    _update(digest, value)
    return digest.hexdigest()[:32]


def _update(digest: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for name in value:
            digest.update(f"key {name!r}".encode())
            _update(digest, value[name])
    elif isinstance(value, (list, tuple)):
        digest.update(f"{type(value).__name__} of {len(value)}".encode())
        for one in value:
            _update(digest, one)
    elif value is None or isinstance(value, (bool, int, float, str)):
        digest.update(repr(value).encode())
    elif hasattr(value, "element_spec"):
        digest.update(f"batches {as_text(value.element_spec)}".encode())
    elif (array := _array(value)) is not None:
        digest.update(f"{array.dtype} {array.shape} {list(getattr(value, 'columns', ()))}".encode())
        as_bytes = array.dtype.kind not in "OT"  # elements that are not addresses
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8) if as_bytes else repr(array.tolist()).encode())
    else:
        digest.update(f"{type(value).__qualname__} {len(value) if hasattr(value, '__len__') else ''}".encode())


def _array(value: Any) -> Any:
    """An array, Tensor or data frame as an array of NumPy; None for anything else."""
    inner = array_of(value)
    if is_array(inner):
        return to_numpy(inner)
    return np.asarray(value) if hasattr(value, "__array__") else None
