"""What code with given names can reach: a walk from a value through attributes, elements and variables of functions.

Key idea: a value counts only if code that ran could have read it, so an attribute is followed only if its name stands in that
code. The walk notes what it meets as it is at this moment; `watch.py` walks before and after a run and compares.
"""

from __future__ import annotations

import array
import collections
import enum
import functools
import io
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..arrays import is_array
from ..core import Variable
from ..core.changes import Watched
from ..core.operand import Operand
from .facts import ABSENT, SCALARS, elements
from .reads import is_library, is_library_class, is_library_module

LARGEST = 1 << 22
"""Bytes of an array that is compared as a whole, in 0.3 ms; an eager step takes longer than that."""
MOST = 10_000
"""Elements of containers that are compared one by one, in 0.2 ms."""

_SEQUENCES = (list, tuple, set, frozenset, collections.deque)


class Name(NamedTuple):
    """A value found by name.

    Attributes:
        get: `get(key, default)`.
        holder: what `get` looks in, kept alive.
    """

    get: Callable[..., Any]
    holder: Any
    key: Any
    value: Any
    where: str


class Bulk(NamedTuple):
    """What a container or an array holds.

    Attributes:
        content: elements as a tuple, or bytes; for a generator of random numbers its state in words.
    """

    holder: Any
    content: Any
    where: str


class Reach:
    """What was met in walks.

    Args:
        ran: the code that ran, nested functions included: variables around other functions do not count. None for any code.

    Attributes:
        names: by holder and key.
        bulks: containers, arrays and generators, by identity.
        watched: objects of the package, by identity.
        variables: Variables, by identity.
        codes: of the functions that were met.
        trouble: why something cannot be compared at all.
    """

    def __init__(self, ran: Collection[types.CodeType] | None = None) -> None:
        self.names: dict[tuple[int, Any], Name] = {}
        self.bulks: dict[int, Bulk] = {}
        self.watched: dict[int, Any] = {}
        self.variables: dict[int, Variable] = {}
        self.codes: set[types.CodeType] = set()
        self.trouble: list[str] = []
        self._ran = ran
        self._seen: dict[int, Any] = {}
        self._waiting: list[tuple[Any, str]] = []
        self._count = 0

    def anew(self) -> Reach:
        """One that notes in the same place, and has met nothing yet."""
        other = Reach(self._ran)
        for name in ("names", "bulks", "watched", "variables", "codes", "trouble"):
            setattr(other, name, getattr(self, name))
        return other

    def has_met(self, value: Any) -> bool:
        """Whether a walk came to this object."""
        return id(value) in self._seen

    def holders(self) -> list[Any]:
        """What of this object itself refers to things met."""
        return [*self.names.values(), *self.bulks.values(), *(bulk.content for bulk in self.bulks.values()), self.watched]

    def walk(self, value: Any, where: str, attributes: Collection[str], lacking: Collection[str] = ()) -> None:
        """Note what can be reached from a value.

        Args:
            value, where: where to begin, and how to call it in a message.
            attributes: the names to follow.
            lacking: those of which it counts as well that an object has none.
        """
        self._attributes, self._lacking = attributes, lacking
        self._waiting.append((value, where))
        while self._waiting:
            self._visit(*self._waiting.pop())

    def name(self, get: Callable[..., Any], holder: Any, key: Any, where: str) -> Any:
        """Note a value found by name."""
        value = get(key, ABSENT)
        self.names.setdefault((id(holder), key if isinstance(key, str) else id(key)), Name(get, holder, key, value, where))
        return value

    def _visit(self, value: Any, where: str) -> None:
        kind = type(value)
        if kind in SCALARS or value is ABSENT or id(value) in self._seen or isinstance(value, (enum.Enum, np.generic)):
            return
        self._seen[id(value)] = value
        if isinstance(value, Operand):
            if isinstance(value, Variable):
                self.variables[id(value)] = value
        elif isinstance(value, (Mapping, *_SEQUENCES)):
            self._container(value, where)
        elif isinstance(value, (np.ndarray, bytearray, array.array)) or is_array(value):
            self._array(value, where)
        elif isinstance(value, types.ModuleType):
            if not is_library_module(value.__name__):
                self._namespace(value, vars(value), f"{{}} of module '{value.__name__}'", self._lacking)
        elif isinstance(value, type):
            self._class(value)
        elif is_generator(value):
            self._bulk(value, _state(value), where)
        elif not self._callable(value, where):
            self._object(value, where)

    def _bulk(self, value: Any, content: Any, where: str) -> None:
        self.bulks.setdefault(id(value), Bulk(value, content, where))

    def _follow(self, value: Any, where: str) -> None:
        self._waiting.append((value, where))

    # Kinds of values -----------------------------------------------------------------------------------------------------

    def _container(self, value: Any, where: str) -> None:
        self._count += len(value)
        if self._count > MOST:
            self.trouble.append(f"it reads {where}, which holds {len(value)} elements, too many to compare at each call")
            return
        held = tuple(elements(value))
        if not isinstance(value, (tuple, frozenset)):
            self._bulk(value, held, where)
        if isinstance(value, Mapping):
            for key, one in value.items():
                self._follow(one, f"{where}[{key!r:.40}]")
        else:
            for one in held:
                self._follow(one, f"an element of {where}")
        if hasattr(value, "__dict__"):
            self._object(value, where)

    def _array(self, value: Any, where: str) -> None:
        if isinstance(value, np.ndarray) and value.dtype == object:
            self._bulk(value, tuple(elements(value)), where)
            for one in value.flat:
                self._follow(one, f"an element of {where}")
        elif not isinstance(value, (np.ndarray, bytearray, array.array)):
            self.trouble.append(f"it reads {where}, an array on the GPU that may change unseen; make it a tensor once, outside")
        elif (size := memoryview(value).nbytes if isinstance(value, bytearray) else value_bytes(value)) > LARGEST:
            what = f"an array of {size / 1e6:.0f} MB, too large to compare at each call"
            self.trouble.append(f"it reads {where}, {what}; make a tensor of it once, outside, or give it as an argument")
        else:
            self._bulk(value, content_of(value), where)

    def _namespace(self, holder: Any, namespace: Mapping[str, Any], where: str, lacking: Iterable[str] = ()) -> None:
        """The names of a module, a function or an object that count."""
        for name in _both(self._attributes, namespace):
            found = self.name(namespace.get, holder, name, where.format(f"'{name}'"))
            self._follow(found, where.format(f"'{name}'"))
        for name in lacking:
            if name not in namespace:
                self.name(namespace.get, holder, name, where.format(f"'{name}'"))

    def _class(self, kind: type) -> None:
        """The data of a class and of those that it derives from, unless they are a library's."""
        for one in kind.__mro__:
            if not is_library_class(one):
                held = vars(one)
                for name in _both(self._attributes, held):
                    if is_data(held[name]) and not name.startswith("__"):
                        where = f"'{name}' of class {one.__name__}"
                        self._follow(self.name(held.get, one, name, where), where)

    def _callable(self, value: Any, where: str) -> bool:
        """Follow functions to the variables of the functions around them. False if the value is none of these."""
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._follow(value.__func__, where)
            self._follow(value.__self__, where)
        elif isinstance(value, functools.partial):
            for one in (value.func, *value.args, *value.keywords.values()):
                self._follow(one, f"an argument of {where}")
        elif isinstance(value, weakref.ref):
            self._follow(value(), where)
        elif hasattr(value, "python_function"):
            self._follow(value.python_function, where)
        else:
            return isinstance(value, (types.BuiltinFunctionType, property, staticmethod, classmethod))
        return True

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        self.codes.add(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            where = f"variable '{name}' around function {function.__name__}"
            counts = not is_library(code) and (self._ran is None or code in self._ran)
            found = self.name(_in_cell, cell, cell, where) if counts else _in_cell(cell, ABSENT)
            self._follow(found, where)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._follow(default, f"a default of function {function.__name__}")
        if "__wrapped__" in vars(function):
            self._follow(vars(function)["__wrapped__"], "the wrapped function")
        if not is_library(code):
            held = vars(function)
            self._namespace(held, held, f"attribute {{}} of function {function.__name__}", self._lacking)

    def _object(self, value: Any, where: str) -> None:
        kind = type(value)
        if isinstance(value, Watched):
            self.watched[id(value)] = value
            for name in _both(self._attributes, vars(value)):
                if name in value._passing:
                    continue
                self._follow(vars(value)[name], f"attribute '{name}' of {shown(value)}")
        elif isinstance(value, collections.UserList):
            self._follow(value.data, where)
        elif kind.__module__.partition(".")[0] == __package__.partition(".")[0]:
            return
        elif hasattr(kind, "__next__") and not isinstance(value, io.IOBase):
            self.trouble.append(f"it reads {where}, a {kind.__name__}, which may give something else each time")
            return
        elif (held := getattr(value, "__dict__", None)) is not None:
            shadowing = [name for name in self._attributes if is_data(getattr(kind, name, ABSENT))]
            self._namespace(held, held, f"attribute {{}} of {shown(value)}", (*self._lacking, *shadowing))
        for name in self._attributes:
            if isinstance(getattr(kind, name, None), types.MemberDescriptorType) and not is_library_class(kind):
                where = f"attribute '{name}' of {shown(value)}"
                self._follow(self.name(functools.partial(getattr, value), value, name, where), where)
        self._class(kind)


def _both(names: Collection[str], held: Mapping[str, Any]) -> list[str]:
    """The names that are asked for and there."""
    return list(held) if names is ANY else [name for name in names if name in held]


ANY: Any = frozenset({"any attribute"})
"""In place of names of attributes: all."""


def is_data(value: Any) -> bool:
    """Whether what a class holds under a name is a value for its objects, and no method or the like."""
    return value is not ABSENT and not hasattr(type(value), "__get__")


def _in_cell(cell: types.CellType, default: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is assigned to it yet
        return default


def value_bytes(value: Any) -> int:
    """The size of an array in bytes."""
    return int(value.nbytes) if isinstance(value, np.ndarray) else len(value) * int(value.itemsize)


def content_of(value: Any) -> Any:
    """What is compared of an array or a generator of random numbers."""
    if is_generator(value):
        return _state(value)
    return bytes(value) if isinstance(value, bytearray) else value.tobytes()


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, of NumPy or of Python. Neither module is loaded for the question."""
    numpys, pythons = sys.modules.get("numpy.random"), sys.modules.get("random")
    if numpys is not None and isinstance(value, (numpys.Generator, numpys.RandomState)):
        return True
    return pythons is not None and isinstance(value, pythons.Random)


def _state(generator: Any) -> str:
    """The state of a generator of random numbers, in words."""
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    if hasattr(generator, "get_state"):
        kind, words, *position = generator.get_state()
        return repr((kind, words.tobytes(), position))
    try:
        return repr(generator.getstate())
    except NotImplementedError:  # the system's: always another number
        return str(id(object()))


def shown(value: Any) -> str:
    """An object by its class and, if it has one, its name."""
    name = vars(value).get("_name", vars(value).get("name")) if hasattr(value, "__dict__") else None
    return f"{type(value).__name__} '{name}'" if isinstance(name, str) else type(value).__name__
