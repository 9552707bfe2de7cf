"""What code can reach: a walk from a value through attributes, elements and variables of functions.

An attribute is followed only if its name is in code that ran. `watch.py` walks before and after a run and compares.
"""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import io
import operator
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, MappingView
from typing import Any

import numpy as np

from ...core import Variable
from ...core.arrays import is_array
from ...core.effects import is_watched
from ...core.tensor import Operand
from .facts import ABSENT, BYTES, SCALARS, Contents, NamedValue, content_of, is_generator
from .reads import is_library, is_library_class, is_library_module

LARGEST = 1 << 22
"""Bytes of an array that is compared as a whole, in 0.3 ms; an eager step takes longer than that."""
MOST = 10_000
"""Elements of containers that are compared one by one, in 0.2 ms."""

_QUEUES = ("queue", "_queue", "multiprocessing.queues")
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)


@dataclasses.dataclass
class Findings:
    """What walks have met.

    Attributes:
        names: values found by name, by what holds them and their name.
        holders: what these are found in, kept alive.
        contents: of containers, arrays and generators, by identity.
        watched: objects of the package, by identity.
        variables: Variables, by identity.
        functions: functions with their code, by identity.
        spelled: names of attributes that were met as data, in an `attrgetter`.
        trouble: why something cannot be compared at all.
    """

    names: dict[tuple[int, str], NamedValue] = dataclasses.field(default_factory=dict)
    holders: list[Any] = dataclasses.field(default_factory=list)
    contents: dict[int, Contents] = dataclasses.field(default_factory=dict)
    watched: dict[int, Any] = dataclasses.field(default_factory=dict)
    variables: dict[int, Variable] = dataclasses.field(default_factory=dict)
    functions: dict[int, tuple[Any, types.CodeType]] = dataclasses.field(default_factory=dict)
    spelled: set[str] = dataclasses.field(default_factory=set)
    trouble: list[str] = dataclasses.field(default_factory=list)

    def references(self) -> list[Any]:
        """What of this object itself refers to things met."""
        contents = self.contents.values()
        return [*self.names.values(), *contents, *(one.content for one in contents), self.holders, self.watched]

    def name(self, get: Callable[..., Any], holder: Any, name: str, where: str) -> Any:
        """Note a value found by name, with `get(name, default)`."""
        value = get(name, ABSENT)
        if (id(holder), name) not in self.names:
            self.names[id(holder), name] = NamedValue(get, name, ABSENT, value, where)
            self.holders.append(holder)
        return value

    def attribute(self, holder: Any, name: str, where: str) -> Any:
        """Note an attribute of an object of Python's own, which always has it."""
        value = getattr(holder, name)
        self.names.setdefault((id(holder), name), NamedValue(getattr, holder, name, value, where))
        return value


class Walk:
    """Walks that meet each object once.

    Args:
        found: where to note what is met.
        ran: the code that ran, nested functions included: variables around other functions do not count. None for any code.
    """

    def __init__(self, found: Findings, ran: Collection[types.CodeType] | None = None) -> None:
        self.found, self.ran = found, ran
        self._seen: dict[int, Any] = {}
        self._waiting: list[tuple[Any, str]] = []
        self._count = 0

    def has_met(self, value: Any) -> bool:
        """Whether a walk came to this object."""
        return id(value) in self._seen

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
            found, place = self._waiting.pop()
            try:
                self._visit(found, place)
            except Exception as error:  # such as a proxy whose object is not there
                self.found.trouble.append(f"it reads {place}, which cannot be looked at ({type(error).__name__}: {error})")

    def _visit(self, value: Any, where: str) -> None:
        kind = type(value)
        if kind in SCALARS or value is ABSENT or id(value) in self._seen or isinstance(value, (enum.Enum, np.generic)):
            return
        self._seen[id(value)] = value
        if isinstance(value, Operand):
            if isinstance(value, Variable):
                self.found.variables[id(value)] = value
        elif isinstance(value, (Mapping, *_SEQUENCES)):
            self._container(value, where)
        elif isinstance(value, (np.ndarray, *BYTES)) or is_array(value):
            self._array(value, where)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value)
        elif is_generator(value):
            self._contents(value, content_of(value), where)
        elif not self._callable(value, where):
            self._object(value, where)

    def _contents(self, value: Any, content: Any, where: str) -> None:
        self.found.contents.setdefault(id(value), Contents(value, content, where))

    def _follow(self, value: Any, where: str) -> None:
        self._waiting.append((value, where))

    # Kinds of values -----------------------------------------------------------------------------------------------------

    def _container(self, value: Any, where: str) -> None:
        self._count += len(value)
        if self._count > MOST:
            self.found.trouble.append(f"it reads {where}, which holds {len(value)} elements, too many to compare at each call")
            return
        held = tuple(content_of(value))
        if not isinstance(value, (tuple, frozenset)):
            self._contents(value, held, where)
        if isinstance(value, Mapping):
            for key, one in value.items():
                self._follow(one, f"{where}[{key!r:.40}]")
        else:
            for one in held:
                self._follow(one, f"an element of {where}")
        if attributes_of(value) is not None:
            self._object(value, where)

    def _array(self, value: Any, where: str) -> None:
        if isinstance(value, np.ndarray) and value.dtype == object:
            self._contents(value, tuple(content_of(value)), where)
            for one in value.flat:
                self._follow(one, f"an element of {where}")
        elif not isinstance(value, (np.ndarray, *BYTES)):
            self.found.trouble.append(
                f"it reads {where}, an array on the GPU that may change unseen; make it a tensor once, outside"
            )
        elif (size := memoryview(value).nbytes if isinstance(value, BYTES) else value.nbytes) > LARGEST:
            what = f"an array of {size / 1e6:.0f} MB, too large to compare at each call"
            self.found.trouble.append(f"it reads {where}, {what}; make a tensor of it once, outside, or give it as an argument")
        else:
            self._contents(value, content_of(value), where)

    def _namespace(self, holder: Any, namespace: Mapping[str, Any], where: str, lacking: Iterable[str] = ()) -> None:
        """The names of a module, a function or an object that count."""
        for name in _both(self._attributes, namespace):
            found = self.found.name(namespace.get, holder, name, where.format(f"'{name}'"))
            self._follow(found, where.format(f"'{name}'"))
        for name in lacking:
            if name not in namespace:
                self.found.name(namespace.get, holder, name, where.format(f"'{name}'"))

    def _module(self, module: types.ModuleType) -> None:
        held = vars(module)
        if not is_library_module(module.__name__):
            self._namespace(module, held, f"{{}} of module '{module.__name__}'", self._lacking)
        elif module.__name__.partition(".")[0] in sys.stdlib_module_names:  # os.environ, sys.path
            for name in _both(self._attributes, held):
                if isinstance(held[name], (Mapping, list, set)):
                    self._follow(held[name], f"{module.__name__}.{name}")

    def _class(self, kind: type) -> None:
        """What a class holds, and those that it derives from, unless they are a library's."""
        for one in kind.__mro__:
            if not is_library_class(one):
                held = vars(one)
                for name in _both(self._attributes, held):
                    where = f"'{name}' of class {one.__name__}"
                    found = self.found.name(held.get, one, name, where)
                    if is_data(found):
                        self._follow(found, where)

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
        elif isinstance(value, operator.attrgetter):
            self.found.spelled.update(name for path in value.__reduce__()[1] for name in path.split("."))
        elif isinstance(value, contextvars.ContextVar):
            self._follow(self.found.name(lambda _, default: value.get(default), value, "value", where), where)
        elif isinstance(value, MappingView):
            self._follow(value.mapping, where)  # type: ignore[attr-defined]
        elif hasattr(type(value), "experimental_get_tracing_count"):  # `Function`, which is defined further up
            self._follow(value.python_function, where)
        else:
            return isinstance(value, (types.BuiltinFunctionType, property, staticmethod, classmethod))
        return True

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        self.found.functions.setdefault(id(function), (function, code))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            where = f"variable '{name}' around function {function.__name__}"
            counts = not is_library(code) and (self.ran is None or code in self.ran)
            try:
                self._follow(self.found.attribute(cell, "cell_contents", where) if counts else cell.cell_contents, where)
            except ValueError:  # nothing is assigned to it yet
                continue
        for default in (*(function.__defaults__ or ()), function.__kwdefaults__):
            self._follow(default, f"a default of function {function.__name__}")
        if "__wrapped__" in vars(function):
            self._follow(vars(function)["__wrapped__"], "the wrapped function")
        if not is_library(code):
            held = vars(function)
            self._namespace(held, held, f"attribute {{}} of function {function.__name__}", self._lacking)

    def _object(self, value: Any, where: str) -> None:
        kind = type(value)
        if is_watched(value):
            self.found.watched[id(value)] = value
            for name in _both(self._attributes, vars(value)):
                if name in value._unwatched:
                    continue
                self._follow(vars(value)[name], f"attribute '{name}' of {shown(value)}")
        elif isinstance(value, collections.UserList):
            self._follow(value.data, where)
        elif kind.__module__.partition(".")[0] == __package__.partition(".")[0]:
            return
        elif (hasattr(kind, "__next__") and not isinstance(value, io.IOBase)) or kind.__module__ in _QUEUES:
            self.found.trouble.append(f"it reads {where}, a {kind.__name__}, which may give something else each time")
            return
        elif (held := attributes_of(value)) is not None:
            shadowing = [name for name in self._attributes if hasattr(kind, name) and not is_library_class(kind)]
            self._namespace(held, held, f"attribute {{}} of {shown(value)}", (*self._lacking, *shadowing))
        for name in self._attributes:
            slot = getattr(kind, name, None)
            if isinstance(slot, types.MemberDescriptorType) and not is_library_class(kind):
                where = f"attribute '{name}' of {shown(value)}"
                self._follow(self.found.name(functools.partial(_in_slot, value), value, name, where), where)
        self._class(kind)


def _both(names: Collection[str], held: Mapping[str, Any]) -> list[str]:
    """The names that are asked for and there."""
    return list(held) if names is ANY else [name for name in names if name in held]


ANY: Any = frozenset({"any attribute"})
"""In place of names of attributes: all."""


def is_data(value: Any) -> bool:
    """Whether what a class holds under a name is a value for its objects, and no method or the like."""
    return value is not ABSENT and not hasattr(type(value), "__get__")


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes that an object holds itself, without asking a `__getattr__` of its own; None if it cannot hold any."""
    ask: Any = type(value).__getattribute__
    try:
        held = (object.__getattribute__ if isinstance(ask, types.FunctionType) else ask)(value, "__dict__")
    except AttributeError:
        return None
    return held if isinstance(held, dict) else None


def _in_slot(value: Any, name: str, default: Any) -> Any:
    try:
        return getattr(type(value), name).__get__(value)
    except AttributeError:  # nothing is assigned to it yet
        return default


def shown(value: Any) -> str:
    """An object by its class and, if it has one, its name."""
    held = attributes_of(value) or {}
    name = held.get("_name", held.get("name"))
    return f"{type(value).__name__} '{name}'" if isinstance(name, str) else type(value).__name__
