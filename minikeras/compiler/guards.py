"""The guards of a recording: the values that it read of Python's state, found by a walk and compared before each replay.

Values are compared by identity first, in one pass in C. Attributes of the package's own objects are compared only if a clock
says that any was set. Generators of random numbers must have the same state after a run.

The walk leads from the function through the names in its code:

1. Functions of the user, from the recorded one on: code, defaults, attributes, variables around them, and the globals that
   their code names. Functions, methods, partials, callable objects and classes found there are followed.
2. Values found there: plain values by value; lists, dicts, sets and deques by their elements; arrays by content; objects,
   classes and modules of the user by their attributes.
3. Attributes of the package's own objects, such as layers and optimizers.

An attribute counts if its name occurs in the code of a function that was followed, or of the object's class. If such code uses
`getattr` or the like, it may compose names: then all attributes of the user's objects count.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dis
import functools
import inspect
import io
import operator
import re
import sys
import sysconfig
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence, Sized
from itertools import chain, zip_longest
from operator import attrgetter, call, is_, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..core import Variable, clock, is_array, is_watched

MOST_FACTS = 1_000
"""Values that are compared before a replay, in 80 us; an eager step takes longer than that."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice)
END = (object(),)
"""A sentinel after the elements of a container without length, so that a different number of elements is a difference."""

REMEDY = "draw with tf.random, keep in a tf.Variable what changes from call to call, or give it as an argument"

_GENERATORS = ("random", "numpy.random.mtrand", "numpy.random._generator")


class Unguarded(Exception):
    """Raised where a function reaches a value that cannot be compared before each replay; the message names it."""


def same(one: Any, other: Any) -> bool:
    """True if two values are one object, or equal, of one type and immutable."""
    if one is other or type(one) is not type(other):
        return one is other
    if type(one) in (float, complex):
        return repr(one) == repr(other)  # tells -0.0 from 0.0, and a NaN is itself
    if type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return type(one) in PLAIN and bool(one == other)


def kept(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same reader, but it returns one object for equal values, so that the comparison by identity in C holds."""
    last = None

    def found(holder: Any) -> Any:
        nonlocal last
        now = read(holder)
        last = last if now == last else now
        return last

    return found


def length_of(held: Sized) -> Callable[[Any], Any]:
    """A reader of the length: Python makes a new object for each int above 256."""
    return len if len(held) <= 256 else kept(len)


class Fact(NamedTuple):
    """The value of `read(holder)`, or its values by name.

    Attributes:
        read, holder: the function that reads, and its argument.
        names: of the values that are read; none for the elements of a container.
        where: its name in a message, with `{}` for the name of a value.
        counts: for the number of names in a namespace: true for added names that matter, as they may hide others.
    """

    read: Callable[[Any], Any]
    holder: Any
    names: Sequence[Any]
    where: str
    counts: Callable[[str], bool] | None = None

    @property
    def is_single(self) -> bool:
        """True if it is read as one value."""
        return self.counts is not None or len(self.names) == 1

    def now(self) -> list[Any]:
        """The present values; none if a name is gone."""
        try:
            return [self.read(self.holder)] if self.is_single else list(self.read(self.holder))
        except Exception:
            return []

    def difference(self, then: Sequence[Any]) -> str | None:
        """The name, for a message, of the first value that differs; None if all are the same."""
        now = self.now()
        if len(now) == len(then) and all(map(same, now, then)):
            return None
        if self.counts is not None and now:
            held = self.holder if isinstance(self.holder, Mapping) else vars(self.holder())
            added = (name for name in held if name not in self.names and self.counts(name))
            return next((self.where.replace("{}", f"'{name}'") for name in added), None)
        changed = [name for name, one, other in zip(self.names, then, now, strict=False) if not same(one, other)]
        return self.where.replace("{}", f"'{[*changed, *self.names, ''][0]}'")


class FactGroup:
    """Facts that are compared together: by identity in one pass in C, and one by one only where that differs."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = sorted(facts, key=lambda fact: not fact.is_single)
        count = sum(fact.is_single for fact in facts)
        reads, holders = [fact.read for fact in self._facts], [fact.holder for fact in self._facts]
        self._single, self._single_of = reads[:count], holders[:count]
        self._several, self._several_of = reads[count:], holders[count:]
        self._refresh()

    def _refresh(self) -> None:  # equal values may be new objects
        self._then = [fact.now() for fact in self._facts]
        self.expected = list(chain(*self._then))

    def changed(self) -> str | None:
        """The name, for a message, of the first fact that no longer holds; None if all hold."""
        found: Iterable[Any] = map(call, self._single, self._single_of)
        if self._several:
            found = chain(found, chain.from_iterable(map(call, self._several, self._several_of)))
        try:
            if all(map(is_, found, self.expected)):
                return None
        except Exception:
            pass
        for fact, then in zip(self._facts, self._then, strict=True):
            if (difference := fact.difference(then)) is not None:
                return difference
        self._refresh()
        return None


class Guards:
    """The facts of one recording.

    Args:
        plain: facts that are compared before each replay.
        tracked: facts about the package's own objects; compared if the clock has moved.
        generators: the states of the generators found; a run must not change them.

    Attributes:
        options: of the program; each says whether it still holds, and depends on attributes of the package's objects alone.
    """

    def __init__(self, plain: Sequence[Fact], tracked: Sequence[Fact], generators: Sequence[Fact]) -> None:
        self.options: Sequence[Callable[[], bool]] = ()
        self.generators = generators
        self._plain, self._tracked = FactGroup(plain), FactGroup(tracked)
        self._version, self._setting = clock.now, clock.setting
        if (count := len(self._plain.expected)) > MOST_FACTS:
            raise Unguarded(f"it reads {count} values in Python, too many to compare at each call")

    def changed(self, thorough: bool = False) -> str | None:
        """The name, for a message, of the first fact that no longer holds; None if all hold. `thorough` ignores the clock."""
        if self._version != clock.now or thorough:
            now = clock.now
            if self._setting != clock.setting:
                return "a setting of the package"
            if not all([holds() for holds in self.options]):
                return "an option of an optimizer"
            if (found := self._tracked.changed()) is not None:
                return found
            self._version = now
        return self._plain.changed()


def is_generator(value: object) -> bool:
    """True if a value has a state that decides what it returns: a generator of random numbers, or a file to read from."""
    if isinstance(value, io.IOBase):
        return not value.closed and value.readable()
    return any(base.__module__ in _GENERATORS for base in type(value).__mro__)


def draws(others: Iterable[Fact] = ()) -> FactGroup:
    """The states of generators: of those of `np.random` and `random`, if these are loaded, and of others."""
    numpys: Any = getattr(sys.modules.get("numpy.random"), "mtrand", None)
    shared = (
        ("np.random", getattr(numpys, "_rand", None)),
        ("Python's random", getattr(sys.modules.get("random"), "_inst", None)),
    )
    return FactGroup([*[Fact(state_of, one, ("",), name) for name, one in shared if one is not None], *others])


def state_of(generator: Any) -> Any:
    """The state of a generator or the position in a file; a new object each time where it cannot be read."""
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    try:
        if isinstance(generator, io.IOBase):
            return generator.tell() - len(getattr(generator, "getvalue", str)())  # text that is appended in memory is not read
        kind, key, *rest = generator.get_state() if hasattr(generator, "get_state") else generator.getstate()
        return kind, bytes(key) if isinstance(key, np.ndarray) else key, *rest
    except (NotImplementedError, OSError, ValueError):
        return object()


# The walk -------------------------------------------------------------------------------------------------------------

LARGEST_ARRAY = 1 << 22
"""Bytes of an array that is compared as a whole, in 0.3 ms; an eager step takes longer than that."""

_BYTES = (bytearray, memoryview, array.array)
_CONTAINERS = (Mapping, MappingView, list, set, collections.deque, collections.UserList, weakref.WeakSet)
_QUEUES = ("queue", "_queue", "multiprocessing.queues")
_OUTSIDE = r"time\.(?!sleep|struct_time).*|(posix|nt)\.(urandom|getrandom|times)|uuid\.uuid[14678]|secrets\..*|random\.Sys.*"
"""Functions, by module and name, whose state cannot be compared: two runs may get the same result by chance."""
_NOT_CALLED = "__(module|dict|weakref|doc|qualname|slots|slotnames|init|new|firstlineno|annot.*)__"
"""Names in a class that Python sets by itself, and those that are called where an object is made."""
_WRAPPERS: tuple[Any, ...] = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, BaseException)
_WRAPPERS += (functools.partial, functools.partialmethod, functools.cached_property, functools.singledispatchmethod)
_WRAPPERS += (staticmethod, classmethod, property, type(functools.cache(len)))
_WRAPPED = ("__func__", "__self__", "__wrapped__", "func", "args", "keywords", "dispatcher", "fget", "fset")
"""Attributes of functions and wrappers that hold other functions and values."""


LIBRARIES = frozenset({"numpy", "scipy", "cupy", "cupy_backends", "cupyx", "llvmlite", "ml_dtypes", "tqdm", "h5py", "_pytest"})
MADE_UP = frozenset({"getattr", "setattr", "delattr", "hasattr", "vars", "dir", "__dict__", "__getattribute__", "__getstate__"})
MADE_UP |= {"attrgetter", "methodcaller", "asdict", "astuple", "fields", "getmembers"}
"""Names in code that may put the names of attributes together, so that any of the user's objects' may be meant."""

_STANDARD = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


def is_own(name: Any) -> bool:
    """True if the module of this name is part of this package."""
    return isinstance(name, str) and name.partition(".")[0] == __package__.partition(".")[0]


def is_library(name: Any) -> bool:
    """True if the module of this name is part of Python, of this package or of a library below it."""
    root = name.partition(".")[0] if isinstance(name, str) else ""
    if root in LIBRARIES or is_own(name) or root not in sys.stdlib_module_names:
        return root in LIBRARIES or is_own(name)
    file = getattr(sys.modules.get(root), "__file__", None)  # a user's module may hide Python's
    return file is None or (file.startswith(_STANDARD) and "-packages" not in file)


def is_user_class(kind: type) -> bool:
    """True if a class is the user's: made by a class statement (also by `exec`, in builtins), and not in a library."""
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
    """Names of global variables in a piece of code and in functions written within it."""
    own = [one.argval for one in dis.get_instructions(code) if one.opname.endswith(("_GLOBAL", "_GLOBALS", "_NAME"))]
    return frozenset(own).union(*[globals_in(one) for one in code.co_consts if isinstance(one, types.CodeType)])


@functools.lru_cache(maxsize=256)  # it holds classes
def names_in_class(kind: type) -> frozenset[str]:
    """Names in the methods that a class has from this package, from Python and from libraries, itself or by its bases."""
    bases = [base for base in kind.__mro__ if is_library(base.__module__)]
    held = [getattr(one, "fget", None) or one for base in bases for one in vars(base).values() if not isinstance(one, type)]
    found = [inspect.unwrap(one) for one in held if callable(one)]
    return frozenset().union(*[names_in(one.__code__) for one in found if isinstance(one, types.FunctionType)])


def shown(value: Any) -> str:
    """An object by its class and, if it has one, its name."""
    name = getattr(value, "name", None) if is_watched(value) else None
    return f"{type(value).__name__} '{name}'" if isinstance(name, str) else type(value).__name__


class Walk:
    """Visits all that a function can reach, once. Attributes count if the code that the previous walk met names them."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names, self.found_names = names, set[str]()
        self.counts: Callable[[str], bool] = (lambda name: True) if names & MADE_UP else names.__contains__
        self.facts, self.tracked, self.generators = list[Fact](), list[Fact](), list[Fact]()
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

    def _note(self, read: Callable[[Any], Any], holder: Any, names: Sequence[Any], where: str) -> None:
        """Note a fact, and follow the values that it reads."""
        fact = Fact(read, holder, names, where)
        self.facts.append(fact)
        self._waiting += [(one, where.replace("{}", f"'{name}'")) for one, name in zip_longest(fact.now(), names)]

    def _namespace(self, held: Mapping[str, Any], counts: Callable[[str], bool], where: str) -> None:
        """Note the names that count of a module, a class, a function or an object, and their number."""
        if present := sorted(filter(counts, list(held))):
            self._note(itemgetter(*present), held, present, where)
        self.facts.append(Fact(length_of(held), held, tuple(held), where, counts))

    def _visit(self, value: Any, where: str) -> None:
        kind = type(value)
        if kind in (types.FunctionType, types.BuiltinFunctionType, type):
            self.found_names |= MADE_UP & {value.__name__}  # by another name
            if self._asks(value):
                raise Unguarded(f"it asks {value.__name__}(), whose answer would be the same in each call; {REMEDY}")
        if isinstance(value, Variable):  # its value is state, not a fact
            about = f"{{}} of variable '{value.name}'"
            self.tracked.append(Fact(attrgetter("_trainable", "_constraint"), value, ("trainable", "constraint"), about))
            if hasattr(value, "__dict__"):
                self._namespace(vars(value), self.names.__contains__, about)
        elif is_watched(value):
            self._tracked_object(value)
        elif is_generator(value):
            self.generators.append(Fact(state_of, value, ("",), where))
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
            self._note(lambda local: [*vars(local), *vars(local).values(), END], value, (), f"the attributes of {where}")
        elif isinstance(value, weakref.ref):
            self.facts.append(Fact(lambda reference: reference() is None, value, ("object",), f"the {{}} of {where}"))
            self._follow([value()], where)
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.found_names |= {part for path in value.__reduce__()[1] if type(path) is str for part in path.split(".")}
        elif kind in weakref.ProxyTypes:
            self._follow([value.__repr__], where)
        elif isinstance(value, _WRAPPERS):
            self._follow([getattr(value, name, None) for name in _WRAPPED], where)
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
        known = ("__code__", "__defaults__", "__kwdefaults__", *{"__name__", "__doc__"} & self.names)
        parts = [part for part in known if getattr(function, part)]
        self._note(attrgetter(*parts), function, parts, f"{{}} of {about}")
        for name, cell in cells.items():
            self._note(attrgetter("cell_contents"), cell, (name,), f"variable {{}} around {about}")
        _, used = self._globals.setdefault(id(space), (space, set()))
        used |= names | _data_in(space) if names & {"globals", "eval", "exec"} else globals_in(code)
        self._waiting += [(space[name], f"global variable '{name}'") for name in used if name in space]
        imports = names if names & {"modules", "import_module", "__import__"} else globals_in(code) - space.keys()
        modules = [sys.modules.get(name) for name in imports]
        self._follow([one for one in modules if isinstance(one, types.ModuleType)], "a module")
        if vars(function) or self.names & MADE_UP:
            self._namespace(vars(function), self.counts, f"attribute {{}} of {about}")

    def _module(self, module: types.ModuleType) -> None:
        held, about = vars(module), f"{{}} of module '{module.__name__}'"
        self._class(type(module))
        if not is_library(module.__name__):
            data = _data_in(held) if self.names & MADE_UP else set()
            self._namespace(held, (self.names | data | {"__getattr__"}).__contains__, about)
        elif module.__name__.partition(".")[0] in sys.stdlib_module_names:  # os.environ, sys.path, os.urandom
            for name in self.names & held.keys():
                one, itself = held[name], name == module.__name__ == "time"  # `time` is the module, and may be time.time
                if (self._asks(one) and not itself) or isinstance(one, (Mapping, list, set)) or module.__name__ == "secrets":
                    self._follow([one], f"{module.__name__}.{name}")

    def _class(self, kind: Any, others: Iterable[str] = ()) -> None:
        """Note the attributes of a class that the code names, and those that Python and the package call, such as `call`."""
        own, by_users = names_in_class(kind).union(others), self.counts

        def counts(name: str) -> bool:
            return by_users(name) or name in own or (name.startswith("__") and not re.fullmatch(_NOT_CALLED, name))

        for base in filter(is_user_class, (*kind.__mro__, *type(kind).__mro__)):
            self._namespace(vars(base), counts, f"{{}} of class {base.__name__}")

    def _tracked_object(self, value: Any) -> None:
        """Note one of the package's objects, held weakly: a model holds its recordings. Its class may be the user's."""
        kind: Any = type(value)
        own, ignored, owner = names_in_class(kind), frozenset(value._unwatched), weakref.ref(value)
        about, by_users = f"attribute {{}} of {shown(value)}", self.counts

        def counts(name: str) -> bool:
            return name not in ignored and (name in own or by_users(name))

        if names := list(filter(counts, vars(value))):
            read = itemgetter(*names)
            self.tracked.append(Fact(lambda owner: read(vars(owner())), owner, names, about))
        self.tracked.append(Fact(lambda owner: len(vars(owner())), owner, tuple(vars(value)), about, counts))
        self.tracked.append(Fact(lambda owner: type(owner()), owner, ("__class__",), about))
        for name, one in list(vars(value).items()):
            if name not in ignored:  # private containers of the package are no facts, but the objects in them may hold some
                open_to_all = name in self.names or (name in own and not name.startswith("_"))
                self._follow((one,) if open_to_all else objects_in([one]), about.replace("{}", f"'{name}'"))
        if isinstance(getattr(kind, "metrics", None), property):  # of a model, some of them in its trainer
            self._follow(value.metrics, about.replace("{}", "'metrics'"))
        self._class(kind)

    def _object(self, value: Any) -> None:
        kind: Any = type(value)
        held, about = getattr(value, "__dict__", None), f"attribute {{}} of {shown(value)}"
        if is_own(kind.__module__):  # an Objective holds functions of the user
            return self._follow(objects_in([list(value) if isinstance(value, tuple) else held or {}]), about)
        if not is_user_class(kind):  # library methods are not followed, and may read attributes that the user does not name
            plain = {name for name, one in (held or {}).items() if type(one) in PLAIN or isinstance(one, np.ndarray)}
            return self._namespace(held, (plain | self.names).__contains__, about) if isinstance(held, dict) else None
        parts = ("__class__", "__dict__") if isinstance(held, dict) else ("__class__",)
        holder = weakref.proxy(value) if kind.__weakrefoffset__ else value  # the object may be about to be freed
        self.facts.append(Fact(attrgetter(*parts), holder, parts, about))
        if isinstance(held, dict):
            own, by_users = names_in_class(kind), self.counts
            self._namespace(held, lambda name: by_users(name) or name in own, about)
        for name, one in [pair for base in kind.__mro__ for pair in vars(base).items()]:
            if type(one) is types.MemberDescriptorType:  # of `__slots__`
                self._note(attrgetter(name), holder, (name,), about)
        self._class(kind)

    def _container(self, value: Any, where: str) -> None:
        if len(value) > MOST_FACTS:
            raise Unguarded(f"it reads {where}, which holds {len(value)} elements, too many to compare at each call")
        for read in (iter, type(value).values) if isinstance(value, Mapping) else (iter,):
            self._note(read, value, (), f"the elements of {where}")
        self.facts.append(Fact(length_of(value), value, ("",), f"the elements of {where}"))
        self._follow([getattr(value, "default_factory", None)], where)
        self._object(value)

    def _array(self, value: Any, where: str) -> None:
        if isinstance(value, np.ndarray) and value.dtype == object:
            return self._note(lambda one: [*one.flat, END], value, (), f"the elements of {where}")
        if not isinstance(value, (np.ndarray, *_BYTES)):
            raise Unguarded(f"it reads {where}, an array on the GPU that may change unseen; make it a tensor once, outside")
        size = memoryview(value).nbytes if isinstance(value, _BYTES) else value.nbytes
        if size > LARGEST_ARRAY:
            what = f"an array of {size / 1e6:.0f} MB, too large to compare at each call"
            raise Unguarded(f"it reads {where}, {what}; make a tensor of it once, outside, or give it as an argument")
        of_array = lambda array: (array.tobytes(), array.shape, array.dtype.str, array.flags.writeable)
        read = of_array if isinstance(value, np.ndarray) else bytes
        self.facts.append(Fact(kept(read), value, ("values",), f"the {{}} of {where}"))
        self._object(value)

    def _asks(self, value: Any) -> bool:
        """True if a function is a clock or draws without a readable state, or a class is one and the code names its method."""
        place = f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
        by_class = place in ("datetime.datetime", "datetime.date") and self.names & {"now", "today", "utcnow"}
        return bool(by_class or re.fullmatch(_OUTSIDE, place))


def _data_in(held: Mapping[str, Any]) -> set[str]:
    """The names of a module that refer to data, not to functions, classes and modules."""
    return {name for name, one in held.items() if type(one) in (*PLAIN, list, tuple, dict, set) and not name.startswith("__")}


def objects_in(container: Any, depth: int = 3) -> Iterator[Any]:
    """The objects in nested containers."""
    for one in list(container.values() if isinstance(container, dict) else container):
        if type(one) in (list, tuple, set, dict):
            yield from objects_in(one, depth - 1) if depth else ()
        elif type(one) not in PLAIN:
            yield one


def guards_of(function: Callable[..., Any], args: Sequence[Any] = ()) -> Guards:
    """The facts that a call of the function depends on, as they are now.

    Raises:
        Unguarded: if they cannot be compared.
    """
    names: frozenset[str] = frozenset()
    try:
        while not names >= (walk := Walk(names).walk((function, *args))).found_names:
            names |= walk.found_names
        return Guards(walk.facts, walk.tracked, walk.generators)
    except Unguarded:
        raise
    except Exception as error:  # such as a proxy of a dead object
        raise Unguarded(f"it reads an object that cannot be looked at ({type(error).__name__}: {error})") from error
