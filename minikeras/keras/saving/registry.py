"""The closed registry of classes and functions that a configuration may name, and the scopes that add to it.

Names are looked up in three tables: scopes given by the caller, what was registered by decorator, and the package's own classes
under Keras's module names. Nothing is imported or evaluated, whatever a file says.
"""

from __future__ import annotations

import contextvars
import difflib
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from ...absent import hide_imports
from ...errors import UnknownObjectError

_registered: dict[str, Any] = {}
_scoped: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("custom_objects", default={})  # noqa: B039
_sources: list[tuple[str, Any, tuple[str, ...] | None]] = []
LONGEST_NAME = 200
"""Names in configurations that are longer are refused, before any are compared with them."""
_NO_ENTRIES = {"Input", "deserialize", "get", "serialize"}


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """A decorator that makes a class or function known to configurations as 'package>name'.

    Args:
        package: a name of the project it belongs to.
        name: the name of the class or function if None.

    Raises:
        ValueError: for a class without `get_config`.

    >>> @tf.keras.saving.register_keras_serializable("Shop")
    ... class Scale(tf.keras.layers.Layer):
    ...     def call(self, x):
    ...         return 2.0 * x
    >>> tf.keras.saving.get_registered_name(Scale)
    'Shop>Scale'
    """

    def register(thing: Any) -> Any:
        if inspect.isclass(thing) and not hasattr(thing, "get_config"):
            raise ValueError(f"Cannot register a class that does not have a get_config() method: {thing.__name__}.")
        for known in [key for key, value in _registered.items() if value is thing]:
            del _registered[known]
        _registered[f"{package}>{name or thing.__name__}"] = thing
        return thing

    return register


def get_custom_objects() -> dict[str, Any]:
    """The table of what was registered, by name; changing it changes what is known.

    >>> sorted(name for name in get_custom_objects() if name.startswith("Nowhere>"))
    []
    """
    return _registered


def get_registered_name(obj: Any) -> str:
    """'package>name' of a class or function that was registered, else its own name.

    >>> get_registered_name(len)
    'len'
    """
    return next((name for name, known in _registered.items() if known is obj), obj.__name__)


def get_registered_object(name: str, custom_objects: Mapping[str, Any] | None = None, module_objects: Any = None) -> Any:
    """The class or function of a name, or None: looked up in the scopes, what was registered, and the two tables given.

    >>> get_registered_object("Scale", custom_objects={"Scale": dict})
    <class 'dict'>
    """
    for table in (_scoped.get(), _registered, custom_objects or {}, module_objects or {}):
        if name in table:
            return table[name]
    return None


class CustomObjectScope:
    """A context in which further names are known to configurations.

    Args:
        custom_objects: classes and functions by name.

    >>> class Scale(tf.keras.layers.Layer):
    ...     pass
    >>> with tf.keras.saving.CustomObjectScope({"Scale": Scale}):
    ...     tf.keras.saving.get_registered_object("Scale").__name__
    'Scale'
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        self.custom_objects = dict(custom_objects or {})
        self._tokens: list[contextvars.Token[dict[str, Any]]] = []

    def __enter__(self) -> CustomObjectScope:
        self._tokens.append(_scoped.set({**_scoped.get(), **self.custom_objects}))
        return self

    def __exit__(self, *error: Any) -> None:
        _scoped.reset(self._tokens.pop())


custom_object_scope = CustomObjectScope


# The package's own classes --------------------------------------------------------------------------------------------


def know(module: str, source: Any, names: tuple[str, ...] | None = None) -> None:
    """Let configurations name what a module or mapping holds, as Keras's name of the module and their own.

    Args:
        source: a module or mapping, or a function that gives one of classes when a configuration first asks for it.
        names: only these; all that is public and written in this package if None.
    """
    _sources.append((module, source, names))
    _table.cache_clear()
    _place_of_own.cache_clear()


def _entry(source: Any, names: tuple[str, ...] | None, name: str) -> Any:
    """The entry of a source under a name, or None; nothing else of it is loaded."""
    if name.startswith("_") or name in _NO_ENTRIES or (names is not None and name not in names):
        return None
    source = source() if callable(source) else source
    thing = source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
    entry = hasattr(thing, "from_config") if isinstance(thing, type) else isinstance(thing, types.FunctionType)
    return thing if entry and _is_own(thing) else None


def _is_own(thing: Any) -> bool:
    # A file may name what is written here, not what a module holds because it imports it; a thing cannot claim this of itself.
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]


@functools.cache
def _table() -> dict[tuple[str, str], Any]:
    """Everything of the package that a configuration may name, by Keras's module and name. It loads all of it."""
    found: dict[tuple[str, str], Any] = {}
    for module, source, names in _sources:
        held = source() if callable(source) else source
        for name in held if isinstance(held, Mapping) else dir(held):
            if (thing := _entry(held, names, name)) is not None:
                found.setdefault((module, name), thing)
                found.setdefault((module, thing.__name__), thing)
    return found


def place_of(thing: Any) -> tuple[str, str] | None:
    """Keras's module and name of a class or function of the package; None for any other. A thing with several names is found
    under its own, if that is one of them.
    """
    return _place_of_own(thing) if isinstance(thing, (type, types.FunctionType)) and _is_own(thing) else None


@functools.cache
def _place_of_own(thing: Any) -> tuple[str, str] | None:
    is_class = isinstance(thing, type)
    for module, source, names in _sources:
        if (is_class or not callable(source)) and _entry(source, names, thing.__name__) is thing:
            return module, thing.__name__
    return next((place for place, known in _table().items() if known is thing), None) if is_class else None


def find(name: str, module: str | None = None, registered_name: str | None = None, kind: str = "class") -> Any:
    """The class or function that a configuration names; an UnknownObjectError if it is in none of the tables.

    Args:
        module: as the configuration says; only compared, never imported.
        registered_name: 'package>name', or None.
        kind: 'class' or 'function'; Keras up to 3.6 wrote functions without the package that they were registered with.
    """
    for text in (name, module, registered_name):
        if text is not None and (not isinstance(text, str) or len(text) > LONGEST_NAME):
            said = f"Could not locate {kind} {text!r:.80}: a name of at most {LONGEST_NAME} characters is needed."
            raise UnknownObjectError(said)
    for key in (registered_name, name):
        thing = get_registered_object(key) if key else None
        if thing is not None:
            return thing
    ours = ("keras", "builtins", "tensorflow", __name__.partition(".")[0])
    if registered_name in (None, name) and (module is None or module.partition(".")[0] in ours):
        for place, source, names in sorted(_sources, key=lambda row: row[0] != module):  # its own module first
            thing = _entry(source, names, name)
            if thing is not None and (place == module or isinstance(thing, type) == (kind == "class")):
                return thing
        for (_, known), thing in _table().items():  # the class's own name, where Keras's module has it under another
            if known == name and isinstance(thing, type) == (kind == "class"):
                return thing
    alike = [thing for known, thing in _registered.items() if kind == "function" and known.partition(">")[2] == name]
    if len(alike) == 1 and registered_name in (None, name):
        return alike[0]
    raise UnknownObjectError(unknown(name, module, registered_name, kind))


def unknown(name: str, module: str | None, registered_name: str | None = None, kind: str = "class") -> str:
    """The message about a class or function that is in none of the tables."""
    what = f"Could not locate {kind} '{name}'" + (f" of module '{module}'" if module else "")
    what += f" (registered as '{registered_name}')" if registered_name not in (None, name) else ""
    if name in ("Lambda", "__lambda__", "TFOpLambda", "SlicingOpLambda"):
        return (
            f"{what}: it holds Python code, and nothing in a configuration is ever run. Write the function as a layer of your "
            "own (a subclass of keras.layers.Layer with `call`) and register it, or give custom_objects={'__lambda__': "
            "function}."
        )
    near = difflib.get_close_matches(name, {known for _, known in _table()} | set(_registered), n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return (
        f"{what}.{hint} Nothing that a configuration names is imported. Make sure custom classes and functions are decorated "
        f"with `@keras.saving.register_keras_serializable()` and their module is imported, or pass "
        f"custom_objects={{{name!r}: ...}}."
    )


hide_imports(globals(), "LONGEST_NAME", "find", "know", "place_of", "unknown")
