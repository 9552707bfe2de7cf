"""Which Python state a run reads, and whether it writes any.

Python's profiling says which functions are called, their bytecode which names they read (`reads.py`), and walks from there
(`reach.py`), before and after, find the values: those that differ were written by the run, the others are its facts.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ... import nest
from ...core import Variable
from ...core.arrays import is_array
from ...core.effects import is_watched, live_code
from ...core.forks import ForkSafeLock
from ...core.tensor import Operand
from .facts import ABSENT, SCALARS, Facts, NoProgram, ObjectFacts, alike, content_of, is_generator, same
from .reach import ANY, Findings, Walk, attributes_of, shown
from .reads import is_library, is_library_class, is_library_module, is_own, nested, reads

_OUTSIDE = {
    **{("time", name): f"time.{name}()" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter")},
    **{("time", name): f"time.{name}()" for name in ("perf_counter_ns", "process_time", "process_time_ns", "thread_time")},
    **{("time", name): f"time.{name}()" for name in ("localtime", "gmtime", "ctime", "strftime", "thread_time_ns")},
    **{(module, "urandom"): "os.urandom()" for module in ("posix", "nt")},
    **{(module, "open"): "open()" for module in ("io", "_io")},
    ("builtins", "input"): "input()",
}
"""Functions whose results are not the program's own, by module and name."""
_ROUTES = ("uuid", "secrets", "random", "tempfile")
"""Modules of Python through which these are asked."""
_SILENT = ("importlib", "_frozen_importlib", "zipimport", "logging", "warnings", "linecache", "traceback", "inspect")
"""Modules of Python that read files without any consequence for numbers."""
_MOMENTS = ("now", "utcnow", "today")
_ASKED = frozenset([name for _, name in _OUTSIDE] + list(_MOMENTS))


class CodePolicy(NamedTuple):
    """What a watch does about a piece of code.

    Attributes:
        code: kept alive, since it is found by its identity; it takes a microsecond to hash.
        note: called where the code is called, if there is anything to note.
        names: in the code, if it is the package's.
    """

    code: types.CodeType
    note: Callable[[Watch, types.FrameType, types.CodeType], None] | None
    names: tuple[str, ...] = ()


_POLICIES: dict[int, CodePolicy] = {}
"""Of the package's code, by its identity."""


class Watch:
    """Watches the calls of one run: a context.

    Args:
        function: what is run.
        arguments: what it is given.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._function = function
        self._arguments = [one for one in nest.flatten(list(arguments)) if _is_object(one)]
        self._before = Findings()
        self._inside = Walk(self._before)
        """Walks through what objects of the package hold."""
        self._objects: dict[int, tuple[Any, dict[str, Any]]] = {}
        """Objects of the package, and their attributes when they were first seen."""
        self._created: dict[int, Any] = {}
        self._given: dict[int, tuple[Any, bool]] = {}
        """Objects that functions of the user's were given, and whether these take all their attributes."""
        self._seen: set[Any] = set()
        self._policies: dict[int, CodePolicy] = {}
        self._ignored: set[int] = set()
        """Code of which there is nothing to note."""
        self._user_code: dict[types.CodeType, dict[str, Any]] = {}
        """The user's code that ran, with its globals."""
        self._outside: str | None = None
        self._live: Any = None
        self._generators: list[tuple[str, Any, Any]] = []
        self._previous: Any = None

    def __enter__(self) -> Watch:
        self._generators = [(name, one, content_of(one)) for name, one in _global_generators()]
        Walk(self._before).walk(self._function, "the function", ())
        self._previous = sys.getprofile()
        if hasattr(self._previous, "disable"):  # cProfile, which cannot be set again by `setprofile`
            self._previous.disable()
        _set_profile(self._event)
        return self

    def __exit__(self, *exception: object) -> None:
        if hasattr(self._previous, "enable"):
            _set_profile(None)
            self._previous.enable()
        else:
            _set_profile(self._previous)

    # While it runs -------------------------------------------------------------------------------------------------------

    def _event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        """Called some 10,000 times in a small step, so the commonest events end at the first question."""
        try:
            if event == "call":
                if id(frame.f_code) not in self._ignored and self._live is None:
                    self._call(frame)
            elif event == "c_call":
                if argument.__name__ in _ASKED and self._live is None and self._outside is None:
                    self._ask(frame, argument)
            elif frame is self._live and event == "return":
                self._live = None
        except Exception as error:  # which would be raised in the midst of the user's code
            self._outside = f"it cannot be watched ({type(error).__name__}: {error})"

    def _call(self, frame: types.FrameType) -> None:
        code = frame.f_code
        policy = self._policies.get(id(code))
        if policy is None:
            policy = self._policies[id(code)] = _POLICIES.get(id(code)) or _policy_of(code, frame.f_globals.get("__name__", ""))
            if policy.note is Watch._own_call and not _may_be_watched(frame.f_globals.get(code.co_qualname.partition(".")[0])):
                self._ignored.add(id(code))
                return
        if policy.note is None:
            self._ignored.add(id(code))
        else:
            policy.note(self, frame, code)

    def _live_call(self, frame: types.FrameType, code: types.CodeType) -> None:
        """A function that each replay calls again."""
        self._live = frame

    def _own_call(self, frame: types.FrameType, code: types.CodeType) -> None:
        """A method of one of the package's own objects."""
        owner = frame.f_locals.get("self")
        if is_watched(owner) and id(owner) not in self._objects:
            self._note_object(owner, code.co_name == "__init__")

    def _foreign_call(self, frame: types.FrameType, code: types.CodeType) -> None:
        """A function of the user's: take note of all that it can read, as it is now."""
        self._user_code[code] = frame.f_globals
        given = {name: value for name, value in frame.f_locals.items() if _is_object(value)}
        if code.co_name == "__init__" and code.co_argcount:
            self._note_created(frame.f_locals.get(code.co_varnames[0]))
        key = code, tuple(map(id, given.values()))
        if key in self._seen:
            return
        self._seen.add(key)
        found = reads(code)
        texts = found.texts if found.looks_up else frozenset()
        attributes, lacking = found.attributes | texts, found.stored | texts
        walk = Walk(self._before)
        for where, value in _roots(code, frame.f_globals, self._before):
            walk.walk(value, where, attributes, lacking)
        for name, value in given.items():
            if id(value) not in self._created:
                self._given[id(value)] = value, found.any or self._given.get(id(value), (0, False))[1]
                walk.walk(value, f"'{name}'", ANY if found.any else attributes, lacking)
        for owner in list(self._before.watched.values()):
            self._note_object(owner)

    def _note_created(self, owner: Any) -> None:
        """An object is made in this run, unless it was there before."""
        if id(owner) not in self._objects and id(owner) not in self._given:
            self._created[id(owner)] = owner

    def _note_object(self, owner: Any, begins: bool = False) -> None:
        """Note the attributes of an object of the package, and of those that it holds."""
        if id(owner) in self._objects:
            return
        if begins:
            self._note_created(owner)
        held = dict(vars(owner))
        self._objects[id(owner)] = owner, held
        about, met = shown(owner), len(self._before.watched)
        for name, value in held.items():
            if is_watched(value):
                self._note_object(value)
            elif type(value) not in SCALARS and not isinstance(value, Operand):
                self._inside.walk(value, f"attribute '{name}' of {about}", ())
        for inner in list(itertools.islice(self._before.watched.values(), met, None)):
            self._note_object(inner)

    def _ask(self, frame: types.FrameType, function: Any) -> None:
        """Notice calls whose results come from outside the program."""
        name, owner = function.__name__, getattr(function, "__self__", None)
        what = _OUTSIDE.get((function.__module__ or "", name))
        if isinstance(owner, type) and owner.__module__ == "datetime" and name in _MOMENTS:
            what = f"{owner.__name__}.{name}()"
        if what is not None and _asked_by_user(frame, what == "open()"):
            self._outside = f"it asks {what}, whose answer would be the same in each call"

    # When it is done -----------------------------------------------------------------------------------------------------

    def facts(self) -> Facts | NoProgram:
        """What the run has read, or why a program would not be faithful."""
        if self._outside is not None:
            return NoProgram(self._outside, True)
        for name, generator, state in self._generators:
            if content_of(generator) != state:
                return NoProgram(f"it draws from {name}, {_DRAWN}", True)
        names = Vocabulary(self._user_code, frozenset().union(*[policy.names for policy in self._policies.values()]))
        found = self._reached(names)
        if not found.spelled <= names.read:
            names.read |= found.spelled
            found = self._reached(names)
        if (drawn := self._drawn_from(found)) is not None:
            return NoProgram(f"it draws from {drawn}, {_DRAWN}", True)
        if written := list(itertools.islice(self._written(found, names), 3)):
            return NoProgram(_CHANGED.format(" and ".join(written)), False)
        return NoProgram(found.trouble[0], True) if found.trouble else _facts(found, names, self._created, self._ran())

    def _ran(self) -> set[types.CodeType]:
        """The user's code that ran, with the functions within it."""
        return {one for code in self._user_code for one in nested(code)}

    def _reached(self, names: Vocabulary) -> Findings:
        """All that the code which ran can reach, as it is now, without what was made in the run."""
        found, ran = Findings(), self._ran()
        walk, done = Walk(found, ran), set(self._created)
        walk.walk(self._function, "the function", names.read, names.lacking)
        for argument in self._arguments:
            walk.walk(argument, "an argument", names.read, names.lacking)
        for code, namespace in self._user_code.items():
            for where, value in _roots(code, namespace, found):
                walk.walk(value, where, names.read, names.lacking)
        self._walk_objects(walk, names, done)
        for function in self._lost_functions(found):
            walk.walk(function, "the function", names.read, names.lacking)
        for value, takes_all in self._given.values():
            if walk.has_met(value) or self._outlives(value):
                Walk(found, ran).walk(value, shown(value), ANY if takes_all else names.read, names.lacking)
        self._walk_objects(walk, names, done)
        return found

    def _walk_objects(self, walk: Walk, names: Vocabulary, done: set[int]) -> None:
        """Walk through the package's objects whose methods were called, and those that they lead to, unless it is done."""
        # What the package holds for itself it never changes in place, but there are objects within.
        within, watched = Walk(Findings(), ran=()), walk.found.watched
        waiting = [*watched.values(), *(owner for owner, _ in self._objects.values())]
        while waiting:
            owner = waiting.pop()
            if id(owner) in done:
                continue
            done.add(id(owner))
            watched[id(owner)] = owner
            about = shown(owner)
            for name, value in list(vars(owner).items()):
                if type(value) in SCALARS or name in owner._unwatched:
                    continue
                if names.counts(name):
                    walk.walk(value, f"attribute '{name}' of {about}", names.read, names.stored)
                elif not isinstance(value, Operand):
                    within.walk(value, name, ())
            watched.update(within.found.watched)
            waiting += [one for one in watched.values() if id(one) not in done]

    def _lost_functions(self, found: Findings) -> list[Any]:
        """Functions that ran, have variables around them, and were neither met nor made in the run: looked for in memory."""
        inner = {one for code in self._user_code for one in nested(code) if one is not code}
        lost = {code for code in self._user_code if code.co_freevars} - {code for _, code in found.functions.values()} - inner
        holders = gc.get_referrers(*lost) if lost else []
        return [one for one in holders if isinstance(one, types.FunctionType) and one.__code__ in lost]

    def _outlives(self, value: Any) -> bool:
        """Whether anything but this watch, and objects made in the run, holds an object that a function was given."""
        if id(value) in self._created or isinstance(value, types.FunctionType):
            return False
        own: list[Any] = [self._given.values(), self._objects.values(), self._seen]
        for other, _ in self._given.values():
            held = attributes_of(other) or {}
            own += [held, *held.values()]
        own += self._before.references()
        strange = [one for one in gc.get_referrers(value) if not any(one is mine for mine in own)]
        return any(not isinstance(one, types.FrameType) for one in strange)

    def _drawn_from(self, found: Findings) -> str | None:
        """A generator of random numbers whose state is not as it was; one that was not met before may have been drawn from."""
        for identity, held in found.contents.items():
            earlier = self._before.contents.get(identity)
            if isinstance(held.content, str) and (earlier is None or earlier.content != held.content):
                return held.where
        return None

    def _written(self, found: Findings, names: Vocabulary) -> Iterator[str]:
        """What is not as it was when the run came to it."""
        for key, name in found.names.items():
            before = self._before.names.get(key)
            new = isinstance(name.subject, str) and name.subject in names.stored and name.value is not ABSENT
            if new if before is None else not same(before.value, name.value):
                yield name.where
        for identity, held in found.contents.items():
            earlier = self._before.contents.get(identity)
            if earlier is not None and not alike(earlier.content, held.content):
                yield f"the elements of {held.where}"
        for owner, before_ in self._objects.values():
            for attribute in sorted(names.stored - set(owner._unwatched)) if id(owner) not in self._created else ():
                if not same(before_.get(attribute, ABSENT), vars(owner).get(attribute, ABSENT)):
                    yield _attribute(attribute, owner)


_CHANGED = "it changes {}; keep in a tf.Variable what changes from call to call, or change it outside"
_DRAWN = "whose numbers would be the same in each call; use tf.random"


class Vocabulary:
    """The names in the code that ran.

    Attributes:
        read: names of attributes in the user's code.
        stored: names of attributes and globals that it assigns, other than those of objects that it makes.
        lacking: names of which it counts as well that there is none.
    """

    def __init__(self, codes: Iterable[types.CodeType], own: frozenset[str]) -> None:
        found = {code: reads(code) for code in codes}
        looked_up = [one.texts for one in found.values()] if any(one.looks_up for one in found.values()) else []
        self.read = frozenset().union(*[one.attributes for one in found.values()], *looked_up)
        self.stored = frozenset().union(*[one.stored for code, one in found.items() if code.co_name != "__init__"])
        self.lacking = self.stored.union(*looked_up)
        self._own = own
        self._of: dict[type, frozenset[str]] = {}

    def counts(self, name: str) -> bool:
        """Whether the elements of what an object of the package holds under a name were read as well."""
        return name in self.read or (not name.startswith("_") and name in self._own)

    def of(self, kind: type) -> frozenset[str]:
        """The names that count as attributes of objects of a class; in the package's code, those that the class is about."""
        if kind not in self._of:
            about = [_names_in(one) for one in kind.__mro__ if is_library_class(one)]
            self._of[kind] = self.read | self.lacking | (self._own & frozenset().union(*about))
        return self._of[kind]


@functools.cache
def _names_in(kind: type) -> frozenset[str]:
    """The names in the methods of one class of the package."""
    methods = [getattr(one, "fget", None) or getattr(one, "__func__", one) for one in vars(kind).values()]
    codes = [inspect.unwrap(one).__code__ for one in methods if isinstance(one, types.FunctionType)]
    return frozenset().union(*[one.co_names for code in codes for one in nested(code)])


def _facts(found: Findings, names: Vocabulary, created: dict[int, Any], ran: set[types.CodeType]) -> Facts:
    """What was met, ready to be compared."""
    functions = [one for one, code in found.functions.values() if code in ran and not is_library(code)]
    for function in functions:
        found.attribute(function, "__code__", f"function {function.__name__}")
        if function.__defaults__:
            found.attribute(function, "__defaults__", f"a default of function {function.__name__}")
    contents = [one for one in found.contents.values() if not isinstance(one.content, str)]  # no generators
    owned = [ObjectFacts(one, names.of(type(one)), shown(one)) for one in found.watched.values() if id(one) not in created]
    held = [value for one in found.watched.values() for value in vars(one).values() if isinstance(value, Variable)]
    variables = {id(one): one for one in (*found.variables.values(), *held)}
    return Facts(list(found.names.values()), contents, owned, list(variables.values()))


def _policy_of(code: types.CodeType, module: str) -> CodePolicy:
    """What a watch does where a piece of code is called."""
    if code in live_code:
        return CodePolicy(code, Watch._live_call)
    if is_own(code):
        policy = CodePolicy(code, Watch._own_call if code.co_varnames[:1] == ("self",) else None, code.co_names)
        return _POLICIES.setdefault(id(code), policy)
    return CodePolicy(code, None if is_library(code) or module.startswith("namedtuple_") else Watch._foreign_call)


def _may_be_watched(kind: Any) -> bool:
    """Whether there is a class of watched objects among a class and its subclasses; what is no class may be one."""
    return not isinstance(kind, type) or hasattr(kind, "_unwatched") or any(map(_may_be_watched, type.__subclasses__(kind)))


def _roots(code: types.CodeType, namespace: dict[str, Any], found: Findings) -> Iterator[tuple[str, Any]]:
    """The global variables and modules that code begins at; also noted themselves."""
    read = reads(code)
    for name in read.globals:
        one = namespace.get(name)
        if isinstance(one, types.ModuleType) and is_library_module(one.__name__) and name not in read.stored:
            yield f"module '{name}'", one  # that `np` is NumPy is not asked again
        elif name in namespace or name in read.stored:
            where = f"global variable '{name}'"
            yield where, found.name(namespace.get, namespace, name, where)
    for name in read.imported:
        if name in sys.modules:
            yield f"module '{name}'", sys.modules[name]


def _global_generators() -> Iterator[tuple[str, Any]]:
    """The generators of random numbers that functions of `np.random` and `random` draw from."""
    numpys: Any = sys.modules.get("numpy.random")
    pythons: Any = sys.modules.get("random")
    if hasattr(numpys, "RandomState"):  # else another thread is importing it
        yield "np.random", numpys.mtrand._rand
    if hasattr(pythons, "_inst"):
        yield "Python's random", pythons._inst


def _asked_by_user(frame: types.FrameType | None, through_any: bool) -> bool:
    """Whether a call was made by the user's code, through modules of Python that hand it on, or through any that read files."""
    while frame is not None and is_library(frame.f_code):
        module = frame.f_globals.get("__name__", "")
        if is_own(frame.f_code) or module.startswith(_SILENT) or not (through_any or module in _ROUTES):
            return False
        frame = frame.f_back
    return frame is not None


def _set_profile(function: Any) -> None:
    """`sys.setprofile`, which raises while another thread is in it: an audit hook lets others run meanwhile."""
    with _setting_profile:
        sys.setprofile(function)


_setting_profile = ForkSafeLock()


def unwatched(function: Unwatched) -> Unwatched:
    """Have a function of the package that calls none of the user's run as fast as it does without a watch."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        watching = sys.getprofile()
        if not isinstance(getattr(watching, "__self__", None), Watch):
            return function(*args)
        _set_profile(None)
        try:
            return function(*args)
        finally:
            _set_profile(watching)

    return run  # type: ignore[return-value]


Unwatched = TypeVar("Unwatched", bound=Callable[..., Any])


def _is_object(value: Any) -> bool:
    """Whether a value has attributes of its own that code may read."""
    kind = type(value)
    if kind in SCALARS or isinstance(value, (Operand, types.ModuleType, type, np.generic)):
        return False
    if nest.is_nested(value) or is_array(value):
        return False
    return is_watched(value) or not is_library_class(kind) or kind in _OPEN or is_generator(value)


_OPEN = (types.SimpleNamespace, types.FunctionType, types.MethodType, functools.partial)
"""Kinds of objects of Python's own that hold what is the user's."""


def _attribute(name: str, owner: Any) -> str:
    return f"attribute '{name}' of {shown(owner)}"
