"""Writes the stubs (.pyi) of the modules that only hold names of functions, from the functions themselves.

    python tests/make_stubs.py

Many of these functions are rows of tables, whose signatures type checkers cannot read. `test_stubs.py` compares.
"""

import ast
import builtins
import functools
import importlib
import inspect
import itertools
import math
import operator
import pathlib
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import minikeras

ROOT = pathlib.Path(minikeras.__file__).parent
MODULES = ["", "math", "nn", "image", "linalg", "random", "signal", "bitwise", "dtypes", "distribute", "data", "train"]
MODULES += [
    *(f"keras.ops{part}" for part in (".image", ".linalg", ".math", ".nn", ".numpy", "")),
    *(f"keras.{name}" for name in ("activations", "backend", "callbacks", "layers", "models", "saving", "utils", "wrappers")),
    *("keras.optimizers.legacy", "autodiff", "config.threading", "keras.mixed_precision", "experiments", "keras.distribution"),
    *("config", "config.experimental"),
    *("keras.preprocessing.image", "keras.preprocessing.sequence"),
]
"""The modules with stubs, by their dotted names below `minikeras`; a later one imports what an earlier one defines."""
HEAD = "# Made by tests/make_stubs.py from the functions themselves.\n"
WIDTH = 128
Imports = set[tuple[str, str]]
"""Pairs of a module and of what is imported from it: 'name', or 'name as name' where others may import it from the stub."""


@functools.cache
def stub_of(name: str) -> str:
    """The text of the stub of a module."""
    module, public = module_of(name), names_in(name)
    inner = {one: value for one in public if isinstance(value := getattr(module, one), types.ModuleType)}
    shared = [one for one in inner if name == "keras.ops" and one != "image"]
    held = vars(module)
    done = {one for part in shared for one in names_in(f"{name}.{part}") if held.get(one) is getattr(inner[part], one)}
    imports: Imports = {(value.__name__.rpartition(".")[0], f"{one} as {one}") for one, value in inner.items()}
    imports |= {(inner[one].__name__, "*") for one in shared}
    lines = []
    for one in public:
        if one not in inner and one not in done:
            found, needed = entry(name, one, getattr(module, one), set(public))
            lines += found
            imports |= needed
    imports -= {(home, one.partition(" as ")[0]) for home, one in imports if " as " in one}
    return HEAD + "\n".join([*written(imports), "", *lines]).rstrip() + "\n"


def module_of(name: str) -> types.ModuleType:
    return importlib.import_module(f"minikeras.{name}".rstrip("."))


def names_in(name: str) -> list[str]:
    """The public names of a module; those of `minikeras` without its floors, and with those that it makes when asked."""
    if name:
        return sorted(module_of(name).__all__)
    own = [*module_of("_names").__all__, "bfloat16", "__version__"]
    return sorted({*own, *minikeras._LATE})


def written(imports: Imports) -> Iterator[str]:
    """Import statements, as many names in a line as it holds."""
    for home, pairs in itertools.groupby(sorted(imports), operator.itemgetter(0)):
        names = [one for _, one in pairs]
        if not home:
            yield from (f"import {one}" for one in names)
        else:
            begin, whole = f"from {home} import ", ", ".join(one.replace(" ", "\xa0") for one in names)
            for line in textwrap.wrap(whole, WIDTH - len(begin)):
                yield begin + line.replace("\xa0", " ").rstrip(",")


def entry(module: str, name: str, value: Any, taken: set[str]) -> tuple[list[str], Imports]:
    """The lines of a name of a module, and the imports that they need. An import under another name is not for others."""
    if isinstance(value, type):
        home, own = home_of(value)
        return ([], {(home, f"{own} as {own}")}) if own == name else ([f"{name} = {own}"], {(home, own)})
    if isinstance(value, types.FunctionType):
        home, own = home_of(inspect.unwrap(value)) if is_written(value) else ("", "")
        if own != name or home == module_of(module).__name__:
            home = next(one for one in MODULES if getattr(module_of(one), name, None) is value)
            if home == module:  # it is defined here, or by a row
                return definition(name, value, taken)
            home = module_of(home).__name__
        return [], {(home, f"{name} as {name}")}
    kind = type(value)
    if value is not None and vars(sys.modules[kind.__module__]).get(name) is value:
        return [], {(kind.__module__, f"{name} as {name}")}
    text = "None" if value is None else "Counter[str]" if kind.__name__ == "Counter" else kind.__name__
    return [f"{name}: {text}"], set() if kind in (str, type(None)) else {(kind.__module__, kind.__name__)}


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


def definition(name: str, function: Callable[..., Any], taken: set[str]) -> tuple[list[str], Imports]:
    signature = inspect.signature(function)
    places = inspect.unwrap(function).__globals__
    imports: Imports = set()

    def text(annotation: Any) -> str:
        written = annotation if isinstance(annotation, str) else "Any"
        tree = ast.parse(written, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                if hasattr(builtins, node.id):
                    if node.id in taken:
                        node.id = f"builtins.{node.id}"
                        imports.add(("", "builtins"))
                else:
                    imports.add(import_of(node.id, places))
        return ast.unparse(tree)

    parameters = []
    for one in signature.parameters.values():
        known = one.default is None or (
            type(one.default) in (bool, int, float, str) and one.default not in (math.inf, -math.inf)
        )
        default = "" if one.default is one.empty else f" = {one.default!r}" if known else " = ..."
        if one.kind is one.KEYWORD_ONLY and not any(earlier.startswith("*") for earlier in parameters):
            parameters.append("*")
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        parameters.append(f"{star}{one.name}: {text(one.annotation)}{default}")
    return [f"def {name}({', '.join(parameters)}) -> {text(signature.return_annotation)}: ..."], imports


def import_of(name: str, places: dict[str, Any]) -> tuple[str, str]:
    """What makes a name of an annotation known."""
    if name in ("Axis", "DTypeLike", "ShapeLike", "TensorLike"):
        return "minikeras.types", name
    if name in places and hasattr(places[name], "__module__") and name not in ("Any", "Callable", "Sequence", "Iterable"):
        return places[name].__module__ if isinstance(places[name], type) else places["__name__"], name
    return "typing" if name in ("Any", "Literal") else "collections.abc", name


def stubs(names: Iterable[str] = MODULES) -> Iterator[tuple[pathlib.Path, str]]:
    """The file of each stub and its text."""
    for name in names:
        path = ROOT.joinpath(*filter(None, name.split(".")))
        yield (path / "__init__.pyi" if (path / "__init__.py").is_file() else path.with_suffix(".pyi")), stub_of(name)


if __name__ == "__main__":
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT.parent), len(text.splitlines()))
