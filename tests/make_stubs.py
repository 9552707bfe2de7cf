"""Writes the stubs (.pyi) of the modules that only hold names of functions, from the functions themselves.

    python tests/make_stubs.py

Many of these functions are rows of tables, whose signatures type checkers cannot read. `test_stubs.py` compares.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import pathlib
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import minikeras

ROOT = pathlib.Path(minikeras.__file__).parent
MODULES = ["_names", "math", "nn", "image", "linalg", "random", "signal", "bitwise"]
MODULES += [f"keras.ops{part}" for part in ("", ".image", ".linalg", ".math", ".nn", ".numpy")]
HEAD = "# Made by tests/make_stubs.py from the functions themselves.\n"


def stub_of(name: str) -> str:
    """The text of the stub of a module, by its dotted name below `minikeras`."""
    module = importlib.import_module(f"minikeras.{name}")
    public = sorted({one for one in dir(module) if not one.startswith("_")})
    inner = {one: value for one in public if isinstance(value := getattr(module, one), types.ModuleType)}
    shared = [one for one in inner if name == "keras.ops" and one != "image"]
    done = {one for part in shared for one in declared(inner[part]) if getattr(module, one, None) is getattr(inner[part], one)}
    imports, lines = set(), []
    for one in public:
        value = getattr(module, one)
        if one in inner:
            imports.add(f"from {value.__name__.rpartition('.')[0]} import {one} as {one}")
        elif one not in done:
            found, needed = entry(one, value, set(public))
            lines += found
            imports |= needed
    imports -= {one.partition(" as ")[0] for one in imports if " as " in one}
    whole = [f"from {inner[one].__name__} import *" for one in shared]
    listed = ["__all__ = [", *(f'    "{one}",' for one in public), "]"]
    return HEAD + "\n".join([*sorted(imports), *whole, "", *lines, "", *listed]) + "\n"


def declared(module: types.ModuleType) -> list[str]:
    return [one for one in dir(module) if not one.startswith("_")]


def entry(name: str, value: Any, taken: set[str]) -> tuple[list[str], set[str]]:
    """The lines of a name, and the imports that they need."""
    if isinstance(value, type) or (isinstance(value, types.FunctionType) and is_written(value)):
        source = inspect.unwrap(value)
        home, own = home_of(source)
        return [], {f"from {home} import {own} as {name}"}
    if isinstance(value, types.FunctionType):
        return definition(name, value, taken)
    kind = type(value)
    text = "None" if value is None else kind.__name__
    return [f"{name}: {text}"], set() if value is None else {f"from {kind.__module__} import {kind.__name__}"}


def is_written(function: Callable[..., Any]) -> bool:
    """Whether a function is a `def` of a module, whose signature type checkers read, and not made by another function."""
    source = inspect.unwrap(function)
    return source.__code__.co_qualname in written_in(source.__code__.co_filename)


@functools.cache
def written_in(file: str) -> set[str]:
    return {
        one.name for one in ast.parse(pathlib.Path(file).read_text(encoding="utf-8")).body if isinstance(one, ast.FunctionDef)
    }


def home_of(source: Any) -> tuple[str, str]:
    """The module that defines a class or a function, and its name there."""
    if isinstance(source, type):
        held = vars(importlib.import_module(source.__module__))
        return source.__module__, next(one for one, value in held.items() if value is source)
    file = pathlib.Path(source.__code__.co_filename).relative_to(ROOT.parent)
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__"), source.__code__.co_name


def definition(name: str, function: Callable[..., Any], taken: set[str]) -> tuple[list[str], set[str]]:
    signature = inspect.signature(function)
    places = inspect.unwrap(function).__globals__
    imports: set[str] = set()

    def text(annotation: Any) -> str:
        written = annotation if isinstance(annotation, str) else "Any"
        tree = ast.parse(written, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                if hasattr(builtins, node.id):
                    if node.id in taken:
                        node.id = f"builtins.{node.id}"
                        imports.add("import builtins")
                else:
                    imports.add(import_of(node.id, places))
        return ast.unparse(tree)

    parameters = []
    for one in signature.parameters.values():
        default = "" if one.default is one.empty else " = ..."
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        parameters.append(f"{star}{one.name}: {text(one.annotation)}{default}")
    return [f"def {name}({', '.join(parameters)}) -> {text(signature.return_annotation)}: ..."], imports


def import_of(name: str, places: dict[str, Any]) -> str:
    """What makes a name of an annotation known."""
    if name in ("Axis", "DTypeLike", "ShapeLike", "TensorLike"):
        return f"from minikeras.types import {name}"
    if name in places and hasattr(places[name], "__module__") and name not in ("Any", "Callable", "Sequence", "Iterable"):
        return f"from {places[name].__module__} import {name}"
    return f"from {'typing' if name in ('Any', 'Literal') else 'collections.abc'} import {name}"


def stubs(names: Iterable[str] = MODULES) -> Iterator[tuple[pathlib.Path, str]]:
    """The file of each stub and its text."""
    for name in names:
        path = ROOT.joinpath(*name.split("."))
        yield (path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")), stub_of(name)


if __name__ == "__main__":
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT.parent), len(text.splitlines()))
