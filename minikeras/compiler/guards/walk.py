"""What a function depends on beside its arguments: a walk from the function through what its code names.

1. Functions of the user, from the recorded one on: code, defaults, attributes, variables around them, and the globals that
   their code names. Functions, methods, partials, callable objects and classes found there are followed.
2. Values found there: plain values by value; lists, dicts, sets and deques by their elements; arrays by content; objects,
   classes and modules of the user by their attributes.
3. Attributes of the package's own objects, such as layers and optimizers.

An attribute counts if its name occurs in the code of a function that was followed, or in that of the object's class. If such
code uses `getattr` or the like, names may be put together: then all attributes of the user's objects count.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import operator
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from ...core import Variable
from ...core.arrays import is_array
from ...core.effects import is_watched
from .facts import END, MOST_FACTS, PLAIN, Fact, Guards, Unguarded
from .names import MADE_UP, globals_in, is_library, is_own, is_user_class, names_in, names_in_class, shown
from .purity import REMEDY, is_generator

LARGEST_ARRAY = 1 << 22
"""Bytes of an array that is compared as a whole, in 0.3 ms; an eager step takes longer than that."""

_BYTES = (bytearray, memoryview, array.array)
_CONTAINERS = (Mapping, MappingView, list, set, collections.deque, collections.UserList, weakref.WeakSet)
_QUEUES = ("queue", "_queue", "multiprocessing.queues")
_OUTSIDE = {
    *{("time", name + unit) for name in ("time", "monotonic", "perf_counter", "process_time") for unit in ("", "_ns")},
    *{(module, "urandom") for module in ("posix", "nt")},
    *{("uuid", name) for name in ("uuid1", "uuid4")},
    *{("secrets", name) for name in ("randbelow", "token_bytes", "token_hex", "token_urlsafe")},
}
"""Functions of no state that can be compared, by module and name: two runs may get the same by chance."""
_NOT_CALLED = {
    *{f"__{name}__" for name in ("module", "dict", "weakref", "doc", "qualname", "slots", "slotnames", "init", "new")},
    *{f"__{name}__" for name in ("annotations", "annotations_cache", "annotate", "annotate_func", "firstlineno")},
}
"""Names in a class that Python sets by itself, and those that are called where an object is made."""
_LEADS_TO: dict[Any, Sequence[str]] = {
    types.MethodType: ("__func__", "__self__"),
    types.BuiltinFunctionType: ("__self__",),
    types.MethodWrapperType: ("__self__",),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    property: ("fget", "fset"),
    **dict.fromkeys((weakref.ProxyType, weakref.CallableProxyType), ("__repr__",)),
    **dict.fromkeys((staticmethod, classmethod, type(functools.cache(len))), ("__wrapped__",)),
}


class Walk:
    """Visits all that a function can reach, once. Attributes count if the code met by the walk before this one names them."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names, self.found_names = names, set[str]()
        self.counts: Callable[[str], bool] = (lambda name: True) if names & MADE_UP else names.__contains__
        self.facts, self.tracked = list[Fact](), list[Fact]()
        self.arrays, self.generators = list[tuple[Any, bytes, str]](), list[tuple[str, Any]]()
        self._globals = dict[int, tuple[dict[str, Any], set[str]]]()
        self._met, self._waiting = dict[int, Any](), list[tuple[Any, str]]()

    def walk(self, values: Iterable[Any]) -> Walk:
        """Note all facts that can be reached from values."""
        self._follow(values, "the function")
        while self._waiting:
            one, place = self._waiting.pop()
            if type(one) not in PLAIN and id(one) not in self._met and not isinstance(one, np.generic):
                self._met[id(one)] = one
                self._visit(one, place)
            if len(self.facts) > MOST_FACTS:
                raise Unguarded("it reads more values in Python than can be compared at each call, such as a library's own")
        for held, names in self._globals.values():
            self._namespace(held, names.__contains__, "global variable {}")
        return self

    def _follow(self, values: Iterable[Any], where: str) -> None:
        self._waiting += [(value, where) for value in values]

    def _note(self, read: Callable[[Any], Any], holder: Any, names: Sequence[Any] | None, where: str) -> None:
        """Note a fact, and follow the values that it reads."""
        fact = Fact(read, holder, names, where)
        self.facts.append(fact)
        values = fact.now()
        if names is None:
            self._follow(values, where)
        else:
            self._waiting += [(one, where.format(f"'{name}'")) for name, one in zip(names, values, strict=False)]

    def _namespace(self, held: Mapping[str, Any], counts: Callable[[str], bool], where: str) -> None:
        """Note the names of a module, a class, a function or an object that count, and that there may be more."""
        if present := sorted(filter(counts, list(held))):
            self._note(itemgetter(*present), held, present, where)
        self.facts.append(Fact(len, held, tuple(held), where, counts))

    def _visit(self, value: Any, where: str) -> None:
        kind = type(value)
        if kind in (types.FunctionType, types.BuiltinFunctionType, type):
            self.found_names |= MADE_UP & {value.__name__}  # by another name
            if (value.__module__, value.__name__) in _OUTSIDE:
                raise Unguarded(f"it asks {value.__name__}(), whose answer would be the same in each call; {REMEDY}")
        if isinstance(value, Variable):  # its value is state, and no fact
            about = f"{{}} of variable '{value.name}'"
            self.tracked.append(Fact(attrgetter("_trainable"), value, ("trainable",), about))
            self.tracked.append(Fact(attrgetter("_constraint"), value, ("constraint",), about))
            if hasattr(value, "__dict__"):
                self._namespace(vars(value), self.names.__contains__, about)
        elif is_watched(value):
            self._tracked_object(value)
        elif is_generator(value):
            self.generators.append((where, value))
        elif isinstance(value, (np.ndarray, *_BYTES)) or is_array(value):
            self._array(value, where)
        elif isinstance(value, (tuple, frozenset)) and not is_own(kind.__module__):
            self._follow(value, f"an element of {where}")
            self._object(value)  # of a named tuple the class
        elif isinstance(value, _CONTAINERS):
            self._container(value, where)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value, {"__init__", "__new__"})
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, contextvars.ContextVar):
            self._note(lambda variable: variable.get(END), value, (value.name,), "context variable {}")
        elif isinstance(value, threading.local):
            self._note(lambda local: [*vars(local), *vars(local).values(), END], value, None, f"the attributes of {where}")
        elif isinstance(value, weakref.ref):
            self.facts.append(Fact(lambda reference: reference() is None, value, ("object",), f"the {{}} of {where}"))
            self._follow([value()], where)
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.found_names |= {part for path in value.__reduce__()[1] if type(path) is str for part in path.split(".")}
        elif isinstance(value, tuple(_LEADS_TO)):
            parts = next(parts for known, parts in _LEADS_TO.items() if isinstance(value, known))
            self._follow([getattr(value, name) for name in parts], where)
            self._object(value)
        elif (hasattr(kind, "__next__") and not hasattr(value, "readline")) or kind.__module__ in _QUEUES:
            raise Unguarded(f"it reads {where}, a {kind.__name__}, which may give something else each time")
        elif hasattr(kind, "experimental_get_tracing_count"):  # which only a tf.function has
            self._follow([value.python_function], where)
        else:
            self._object(value)

    def _function(self, function: types.FunctionType) -> None:
        about, code, space = f"function {function.__name__}", function.__code__, function.__globals__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._follow([vars(function).get("__wrapped__")], about)
        if is_library(space.get("__name__")):
            held = objects_in([cell.cell_contents for cell in cells.values() if cell != types.CellType()])
            return self._follow([one() if type(one) is weakref.ref else one for one in held], about)
        names = names_in(code)
        self.found_names |= names
        parts = [part for part in ("__code__", "__defaults__", "__kwdefaults__") if getattr(function, part)]
        self._note(attrgetter(*parts), function, parts, f"{{}} of {about}")
        for name, cell in cells.items():
            self._note(attrgetter("cell_contents"), cell, (name,), f"variable {{}} around {about}")
        _, known = self._globals.setdefault(id(space), (space, set()))
        known |= names if names & {"globals", "eval", "exec"} else globals_in(code)
        known |= _data_in(space) if "globals" in names else set()
        self._waiting += [(space[name], f"global variable '{name}'") for name in known if name in space]
        imports = names if names & {"modules", "import_module", "__import__"} else globals_in(code) - space.keys()
        modules = [sys.modules.get(name) for name in imports]
        self._follow([one for one in modules if isinstance(one, types.ModuleType)], "a module")
        if vars(function) or self.names & MADE_UP:
            self._namespace(vars(function), self.counts, f"attribute {{}} of {about}")

    def _module(self, module: types.ModuleType) -> None:
        held, about = vars(module), f"{{}} of module '{module.__name__}'"
        if not is_library(module.__name__):
            data = _data_in(held) if self.names & MADE_UP else set()
            self._namespace(held, (self.names | data | {"__getattr__"}).__contains__, about)
        elif module.__name__.partition(".")[0] in sys.stdlib_module_names:  # os.environ, sys.path, os.urandom
            for name in self.names & held.keys() - {module.__name__}:  # `time` is the module itself, and may be time.time
                one, asks = held[name], (getattr(held[name], "__module__", ""), name) in _OUTSIDE
                if asks or isinstance(one, (Mapping, list, set)) or module.__name__ == "secrets":
                    self._follow([one], f"{module.__name__}.{name}")

    def _class(self, kind: Any, others: Iterable[str] = ()) -> None:
        """What is named, and what Python and the package call by names of their own, such as `__call__` and `call`."""
        own, by_users = names_in_class(kind).union(others), self.counts

        def counts(name: str) -> bool:
            return by_users(name) or name in own or (name.startswith("__") and name not in _NOT_CALLED)

        for base in filter(is_user_class, kind.__mro__):
            self._namespace(vars(base), counts, f"{{}} of class {base.__name__}")

    def _tracked_object(self, value: Any) -> None:
        """One of the package's objects, held weakly: a model holds its recordings. Its class may be the user's."""
        kind: Any = type(value)
        own, ignored, owner = names_in_class(kind), frozenset(value._unwatched), weakref.ref(value)
        about, by_users = f"attribute {{}} of {shown(value)}", self.counts

        def counts(name: str) -> bool:
            return name not in ignored and (name in own or by_users(name))

        if names := list(filter(counts, vars(value))):
            read = itemgetter(*names)
            self.tracked.append(Fact(lambda owner: read(vars(owner())), owner, names, about))
        self.tracked.append(Fact(lambda owner: len(vars(owner())), owner, tuple(vars(value)), about, counts))
        for name, one in list(vars(value).items()):
            if name not in ignored:  # private containers of the package's are its own business, but there are objects within
                open_to_all = name in self.names or (name in own and not name.startswith("_"))
                self._follow((one,) if open_to_all else objects_in([one]), about.format(f"'{name}'"))
        if isinstance(getattr(kind, "metrics", None), property):  # of a model, some of them in its trainer
            self._follow(value.metrics, about.format("'metrics'"))
        self._class(kind)

    def _object(self, value: Any) -> None:
        kind, held = type(value), getattr(value, "__dict__", None)
        about = f"attribute {{}} of {shown(value)}"
        if is_own(kind.__module__):  # an Objective holds functions of the user
            return self._follow(objects_in([list(value) if isinstance(value, tuple) else held or {}]), about)
        if isinstance(held, dict):  # the methods of a library are not followed, which may read what the user does not name
            plain = {name for name, one in held.items() if type(one) in PLAIN or isinstance(one, np.ndarray)} | self.names
            self._namespace(held, self.counts if is_user_class(kind) else plain.__contains__, about)
        if not is_user_class(kind):
            return
        for name, one in [pair for base in kind.__mro__ for pair in vars(base).items()]:
            if type(one) is types.MemberDescriptorType:  # of `__slots__`
                self._note(attrgetter(name), value, (name,), about)
        self._class(kind)

    def _container(self, value: Any, where: str) -> None:
        if len(value) > MOST_FACTS:
            raise Unguarded(f"it reads {where}, which holds {len(value)} elements, too many to compare at each call")
        for read in (iter, type(value).values) if isinstance(value, Mapping) else (iter,):
            self._note(read, value, None, f"the elements of {where}")
            self.facts.append(Fact(iter, END, None, f"the number of elements of {where}"))
        self._object(value)

    def _array(self, value: Any, where: str) -> None:
        if isinstance(value, np.ndarray) and value.dtype == object:
            return self._note(lambda one: [*one.flat, END], value, None, f"the elements of {where}")
        if not isinstance(value, (np.ndarray, *_BYTES)):
            raise Unguarded(f"it reads {where}, an array on the GPU that may change unseen; make it a tensor once, outside")
        size = memoryview(value).nbytes if isinstance(value, _BYTES) else value.nbytes
        if size > LARGEST_ARRAY:
            what = f"an array of {size / 1e6:.0f} MB, too large to compare at each call"
            raise Unguarded(f"it reads {where}, {what}; make a tensor of it once, outside, or give it as an argument")
        read = getattr(value, "tobytes", None) or functools.partial(bytes, value)
        self.arrays.append((read, read(), where))
        self._object(value)


def _data_in(held: Mapping[str, Any]) -> set[str]:
    """The names of a module that stand for data, not for functions, classes and modules."""
    return {name for name, one in held.items() if type(one) in (*PLAIN, list, tuple, dict, set) and not name.startswith("__")}


def objects_in(container: Any, depth: int = 3) -> Iterator[Any]:
    """The objects in nested containers."""
    for one in list(container.values() if isinstance(container, dict) else container):
        if type(one) in (list, tuple, set, dict):
            yield from objects_in(one, depth - 1) if depth else ()
        elif type(one) not in PLAIN:
            yield one


def guards_of(function: Any, args: Sequence[Any] = ()) -> Guards:
    """The facts that a call of the function depends on, as they are now.

    Raises:
        Unguarded: if they cannot be compared.
    """
    names: frozenset[str] = frozenset()
    try:
        while not names >= (walk := Walk(names).walk((function, *args))).found_names:
            names |= walk.found_names
        return Guards(walk.facts, walk.tracked, walk.arrays, walk.generators)
    except Unguarded:
        raise
    except Exception as error:  # such as a proxy that stands for nothing
        raise Unguarded(f"it reads an object that cannot be looked at ({type(error).__name__}: {error})") from error
