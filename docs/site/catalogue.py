"""What is public, by its names: which page documents it, and what a name in a docstring refers to."""

from __future__ import annotations

import collections
import importlib
import inspect
import posixpath
import re
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import docstrings
import sources

NAMES = sources.ROOT / "tests" / "public_names.txt"
FOLDER = "api/"
SECOND_HOMES = ("tf.autodiff", "tf.keras.backend", "tf.keras.symbolic", "tf.math")
"""Modules that repeat names: a page bears the name that its object has elsewhere, if it has one."""


@dataclass
class Entry:
    """A public function or class, all its names, of which the first is that of its page, and the path of the page."""

    value: Any
    names: list[str]
    path: str = ""

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]


class Catalogue:
    """All public names, sorted by what they stand for."""

    def __init__(self) -> None:
        names = ["tf" + name.removeprefix("minikeras") for name in NAMES.read_text(encoding="utf-8").split()]
        values = {name: looked_up(name) for name in names}
        self.modules = {"tf": looked_up("tf")} | {name: value for name, value in values.items() if inspect.ismodule(value)}
        self.members: dict[str, list[str]] = collections.defaultdict(list)
        for name in names:
            self.members[name.rpartition(".")[0]].append(name)
        self.entries = entries({name: value for name, value in values.items() if is_documented(value)})
        self.constants = {n: value for n, value in values.items() if n not in self.entries and n not in self.modules}
        self.identities = {identity(entry.value) for entry in self.entries.values()}
        self.classes = unique_classes(self.entries.values())

    def is_public(self, kind: type) -> bool:
        return id(kind) in self.identities

    def address(self, name: str) -> str | None:
        """The path, with an anchor where need be, at which a public name is documented."""
        if name in self.entries:
            return self.entries[name].path
        if name in self.modules:
            return module_path(name)
        return f"{module_path(name.rpartition('.')[0])}#{anchor(name)}" if name in self.constants else None

    def link(self, here: str, module: str) -> docstrings.Link:
        """For the text of a page at `here`, about something in that module: where a name in it leads."""

        def target(written: str) -> str | None:
            name = re.sub(r"\(.*\)$", "", written)
            name = f"tf.{name}" if name.startswith("keras.") else name
            found = self.address(name) or self.address(f"{module}.{name}") or self.classes.get(name)
            return None if found is None or found == here else posixpath.relpath(found, posixpath.dirname(here))

        return target


def looked_up(name: str) -> Any:
    value: Any = importlib.import_module("minikeras")
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def is_documented(value: Any) -> bool:
    """Functions and classes have a page; of a constant, the page of its module tells the value."""
    return isinstance(value, type | types.MethodType) or inspect.isroutine(value)


def entries(values: dict[str, Any]) -> dict[str, Entry]:
    found: dict[Any, Entry] = {}
    for name, value in values.items():
        found.setdefault(identity(value), Entry(value, [])).names.append(name)
    taken: set[str] = set()
    for entry in found.values():
        entry.names.sort(key=lambda name: (*distance(entry.value, name), name))
        entry.path = free_path(entry.name, taken)
    return {name: entry for entry in found.values() for name in entry.names}


def identity(value: Any) -> Any:
    """Bound methods are made anew each time they are looked up."""
    return (id(value.__self__), value.__func__) if inspect.ismethod(value) else id(value)


def distance(value: Any, name: str) -> tuple[bool, bool, int, int]:
    """From the name that a page is to bear: the object's own, outside modules that repeat names, and short."""
    module, _, last = name.rpartition(".")
    return last != getattr(value, "__name__", last), module in SECOND_HOMES, name.count("."), len(name)


def free_path(name: str, taken: set[str]) -> str:
    """Where two names differ in case only, as `Huber` and `huber`, not every file system tells their pages apart."""
    path = FOLDER + name.removeprefix("tf.").replace(".", "/")
    while path.lower() in taken:
        path += "_"
    taken.add(path.lower())
    return path + ".md"


def module_path(name: str) -> str:
    return FOLDER + posixpath.join(*name.split(".")[1:], "index.md")


def anchor(name: str) -> str:
    return name.replace(".", "-")


def unique_classes(known: Iterable[Entry]) -> dict[str, str]:
    """`SecondOrder` in a docstring means the only class of that name."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for entry in known:
        if isinstance(entry.value, type):
            found[entry.name.rpartition(".")[2]].add(entry.path)
    return {name: paths.pop() for name, paths in found.items() if len(paths) == 1}
