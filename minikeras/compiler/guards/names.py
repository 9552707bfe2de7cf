"""The names in code, and which of them are global variables; whose code and classes are the user's."""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
import sysconfig
import types
from typing import Any

from ...core.effects import is_watched

LIBRARIES = frozenset({"numpy", "scipy", "cupy", "cupy_backends", "cupyx", "llvmlite", "ml_dtypes", "tqdm", "h5py", "_pytest"})
MADE_UP = frozenset({"getattr", "setattr", "delattr", "hasattr", "vars", "dir", "__dict__", "__getattribute__", "__getstate__"})
MADE_UP |= {"attrgetter", "methodcaller", "asdict", "astuple", "fields", "getmembers"}
"""Names in code that may put the names of attributes together, so that any of the user's objects' may be meant."""

_STANDARD = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


@functools.cache
def _is_standard(root: str) -> bool:
    """Whether a module with a name of Python's is Python's, not one of the user's in its place."""
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is None or (file.startswith(_STANDARD) and "-packages" not in file)


def is_library(name: Any) -> bool:
    """Whether the module of this name is part of Python, of this package or of a library below it."""
    root = name.partition(".")[0] if isinstance(name, str) else ""
    return root in LIBRARIES or is_own(name) or (root in sys.stdlib_module_names and _is_standard(root))


def is_own(name: Any) -> bool:
    """Whether the module of this name is part of this package."""
    return isinstance(name, str) and name.partition(".")[0] == __package__.partition(".")[0]


def is_user_class(kind: type) -> bool:
    """Whether a class is the user's: made by a class statement (also by `exec`, in builtins), and not in a library."""
    module = kind.__module__ if kind.__flags__ & 1 << 9 else None  # Py_TPFLAGS_HEAPTYPE
    return module == "builtins" or (isinstance(module, str) and not is_library(module))


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Names, and strings that could be names, in a piece of code and in functions written within it."""
    found, waiting = set(code.co_names), list(code.co_consts)
    while waiting:
        constant = waiting.pop()
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
        elif isinstance(constant, (tuple, frozenset)):
            waiting += constant
        elif isinstance(constant, str) and (constant.replace(".", "").isidentifier() or found & {"eval", "exec"}):
            found |= {constant, *re.findall(r"[^\W\d]\w*", constant)}
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def globals_in(code: types.CodeType) -> frozenset[str]:
    """Names of global variables in the same."""
    own = [one.argval for one in dis.get_instructions(code) if one.opname.endswith(("_GLOBAL", "_GLOBALS", "_NAME"))]
    return frozenset(own).union(*[globals_in(one) for one in code.co_consts if isinstance(one, types.CodeType)])


@functools.lru_cache(maxsize=256)  # it holds classes
def names_in_class(kind: type) -> frozenset[str]:
    """Names in the methods of the classes of this package, of Python and of libraries among a class and its bases."""
    bases = [base for base in kind.__mro__ if is_library(base.__module__)]
    held = [getattr(one, "fget", None) or one for base in bases for one in vars(base).values() if not isinstance(one, type)]
    found = [inspect.unwrap(one) for one in held if callable(one)]
    return frozenset().union(*[names_in(one.__code__) for one in found if isinstance(one, types.FunctionType)])


def shown(value: Any) -> str:
    """An object by its class and, if it has one, its name."""
    name = getattr(value, "name", None) if is_watched(value) else None
    return f"{type(value).__name__} '{name}'" if isinstance(name, str) else type(value).__name__
