"""How a function or class is called, and where its source stands."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import pathlib
import re
import sys
import types
from functools import cache
from typing import Any

import sources

from minikeras.facades import FACADES

WIDTH = 88


def call(name: str, value: Any) -> str:
    """The name with its arguments and their defaults, on one line or with one argument a line."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return name
    written = [argument(parameter) for parameter in parameters if parameter.name != "self"]
    written = with_markers([parameter for parameter in parameters if parameter.name != "self"], written)
    line = f"{name}({', '.join(written)})"
    return line if len(line) <= WIDTH else f"{name}(\n    " + ",\n    ".join(written) + ",\n)"


def arguments(value: Any) -> set[str]:
    """Their names; of a class also those of its bases, to which it hands what it does not take itself."""
    found: set[str] = set()
    for one in value.__mro__ if isinstance(value, type) else [value]:
        with contextlib.suppress(TypeError, ValueError):
            found |= set(inspect.signature(one).parameters)
    return found


def argument(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={shown(parameter.default)}"
    return stars + parameter.name + default


def with_markers(parameters: list[inspect.Parameter], written: list[str]) -> list[str]:
    """`/` after those taken by position only, `*` before those taken by name only."""
    kinds = [parameter.kind for parameter in parameters]
    marked = list(written)
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        marked.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        marked.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    return marked


def shown(default: Any) -> str:
    """As it would be written; of what has no literal, the name."""
    text = getattr(default, "__name__", None) or repr(default)
    return "..." if " at 0x" in text or "\n" in text else text


def place(value: Any) -> tuple[pathlib.Path, int] | None:
    """File and line of the definition. Of a function made from a row of a table, the row's."""
    function = inspect.unwrap(value) if not isinstance(value, type) else value
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType) and code.co_name == value.__name__ and is_ours(code.co_filename):
        return pathlib.Path(code.co_filename), code.co_firstlineno
    name = getattr(function, "__module__", None) or ""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    if file.endswith(".pyi"):  # a module of names alone: the file that a row of it names
        rows = [f"minikeras.{row}" for row, _ in FACADES[name.partition(".")[2]]]
        file = next(str(sys.modules[row].__file__) for row in rows if hasattr(sys.modules.get(row), value.__name__))
    return (pathlib.Path(file), line_of(pathlib.Path(file), value.__name__)) if is_ours(file) else None


def is_ours(file: str) -> bool:
    return file.startswith(str(sources.ROOT / "minikeras"))


@cache
def line_of(file: pathlib.Path, name: str) -> int:
    """Where a class, an assignment or a row of that name begins; else the top of the file."""
    begins = re.compile(rf'class {name}\b|def {name}\b|{name} = |.*["\']{name}["\']|.*\b{name}\b')
    lines = linecache.getlines(str(file))
    matches = [(length(found), number) for number, line in enumerate(lines, 1) if (found := begins.match(line))]
    return min(matches)[1] if matches else 1


def length(match: re.Match[str]) -> tuple[bool, int]:
    """Definitions come before rows and mentions."""
    return not match[0].startswith(("class ", "def ")) and " = " not in match[0], match.start()
