"""What a piece of Python code may read and write beside its own locals, from its bytecode."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_STANDARD = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<frozen ")
_LIBRARIES = frozenset({"numpy", "cupy", "cupy_backends", "cupyx", "llvmlite", "scipy", "ml_dtypes", "tqdm", "h5py", "_pytest"})
_LOOKUPS = frozenset({"getattr", "setattr", "delattr", "hasattr", "attrgetter", "vars", "__dict__"})
_IMPORTERS = frozenset({"import_module", "__import__"})
_BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr"})


class Reads(NamedTuple):
    """What a piece of code and the functions written within it may read.

    Attributes:
        globals: names of global variables, those that are assigned included.
        imported: modules imported by the code itself.
        attributes: names that follow a dot.
        stored: those of `globals` and `attributes` that are assigned or deleted.
        texts: strings in the code that could be names of attributes.
        looks_up: whether it uses `getattr` and its kin, so that such strings may be meant.
        any: whether it makes up names of attributes or takes all, so that any may be meant.
    """

    globals: frozenset[str]
    imported: frozenset[str]
    attributes: frozenset[str]
    stored: frozenset[str]
    texts: frozenset[str]
    looks_up: bool
    any: bool


@functools.lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """What a piece of code reads; kept, since each recording asks again."""
    found: dict[str, set[str]] = {kind: set() for kind in ("global", "import", "attribute", "stored", "text")}
    made_up = False
    for one in nested(code):
        found["text"].update(_identifiers(one.co_consts))
        instructions = list(dis.get_instructions(one))
        for place, instruction in enumerate(instructions):
            _sort_in(instruction, found)
            made_up = made_up or (instruction.argval in _BY_NAME and not _names_one(instructions[place + 1 :]))
    names = found["global"] | found["attribute"]
    looks_up = not _LOOKUPS.isdisjoint(names)
    found["global"] |= found["text"] if "globals" in names else set()
    if not _IMPORTERS.isdisjoint(names):
        found["import"].update(text for one in nested(code) for text in one.co_consts if isinstance(text, str))
    return Reads(
        globals=frozenset(found["global"]),
        imported=frozenset(found["import"]),
        attributes=frozenset(found["attribute"]),
        stored=frozenset(found["stored"] | (found["text"] if not {"setattr", "delattr"}.isdisjoint(names) else set())),
        texts=frozenset(found["text"]),
        looks_up=looks_up,
        any=made_up or not {"vars", "__dict__"}.isdisjoint(names),
    )


def _identifiers(constants: Iterable[Any]) -> Iterator[str]:
    """Strings among constants, and in tuples of them, that could be names."""
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, tuple):
            yield from _identifiers(constant)


def _sort_in(instruction: dis.Instruction, found: dict[str, set[str]]) -> None:
    """Note the name that an instruction is about. Argument values are the same in all versions of Python; opcodes are not."""
    operation, name = instruction.opname, instruction.argval
    if not isinstance(name, str):
        return
    if operation.startswith("IMPORT_NAME"):
        found["import"].add(name)
    elif operation.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM")):
        found["attribute"].add(name)
    elif operation.startswith(("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")):
        found["global"].add(name)
    if operation.startswith(("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL")):
        found["stored"].add(name)


def _names_one(following: Sequence[dis.Instruction]) -> bool:
    """Whether a call of `getattr` or the like, of which this follows, has for its second argument a string in the code."""
    loads = [one for one in following[:12] if one.opname not in ("PUSH_NULL", "PRECALL", "CACHE", "NOT_TAKEN", "RESUME")]
    after = 1
    while after < len(loads) and loads[after].opname.startswith("LOAD_ATTR"):
        after += 1
    return after < len(loads) and loads[after].opname.startswith("LOAD_CONST") and isinstance(loads[after].argval, str)


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of functions written within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


@functools.lru_cache(maxsize=4096)
def is_own(code: CodeType) -> bool:
    """Whether code belongs to this package."""
    return code.co_filename.startswith(_PACKAGE)


@functools.lru_cache(maxsize=4096)
def is_library(code: CodeType) -> bool:
    """Whether code belongs to this package, to Python or to the libraries below, whose state is not the user's."""
    name = code.co_filename
    if is_own(code):
        return True
    parts = name.split(os.sep)
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return parts[parts.index(folder) + 1].removesuffix(".py") in _LIBRARIES
    return name.startswith(_STANDARD)


def is_library_class(kind: type) -> bool:
    """Whether a class is one of theirs. What is executed without a module's name has 'builtins' for its module."""
    made = bool(kind.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE: by a class statement
    return is_library_module(kind.__module__) and not (made and kind.__module__ == "builtins")


def is_library_module(name: str) -> bool:
    """Whether a module is this package's, Python's or one of the libraries."""
    root = name.partition(".")[0]
    return root in _LIBRARIES or root == __package__.partition(".")[0] or root in sys.stdlib_module_names
