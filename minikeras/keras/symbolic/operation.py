"""Functions as steps of a functional model. An Operation is a named function without weights; its class has the name that Keras
gives it in files, so that models with calls of `keras.ops` go both ways.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, overload

from ...core.registry import hook
from ...facades import home_of
from ...functions.catalogue import takes_symbols
from ...functions.creation import zeros
from ...module import snake_case
from ...types import ShapeLike, as_dtype
from ..names import auto_name
from ..saving import objects
from . import holds_symbol
from .trial import call_symbolically, output_shapes, output_specs

F = TypeVar("F", bound=Callable[..., Any])
Cost = Callable[[list[tuple[int, ...]], Any], tuple[int, int]]
Settle = Callable[[dict[str, Any]], dict[str, Any]]


class Operation:
    """A function of tensors without weights that may be a step of a functional model; subclasses define `call`.

    Args:
        name: made up from the class name if None.

    Raises:
        ValueError: for a name that is no string, or has a '/'.

    >>> class Cube(tf.keras.Operation):
    ...     def call(self, x):
    ...         return x**3
    >>> Cube()(tf.keras.Input((2,))).shape
    (None, 2)
    """

    built, trainable, is_described = True, False, True
    measures = False
    """True if its result depends on the sizes of its operands alone."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        made = super().__new__(cls)
        objects.record(made, Operation, arguments, options)
        return made

    def __init__(self, name: str | None = None) -> None:
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(f"{type(self).__name__}: name must be a string without '/', found {name!r}.")
        self.name = name or auto_name(snake_case(type(self).__name__))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if holds_symbol((args, kwargs)):
            return call_symbolically(self, args, kwargs)
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Override it."""
        raise NotImplementedError(f"Operation {type(self).__name__} does not have a `call()` method implemented.")

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """KerasTensors of the shapes and dtypes that a call with these KerasTensors gives."""
        return output_specs(self, args, kwargs)

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The shape of the output for an input of a shape; nests of shapes for several."""
        return output_shapes(self, input_shape)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values: those of a user's class as they were given.

        Raises:
            NotImplementedError: if an argument is no plain value and no attribute of its name.
        """
        return {"name": self.name} | objects.options(self, Operation)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Operation:
        """An operation from `get_config`."""
        return objects.made_of(cls, Operation, config)

    def __repr__(self) -> str:
        return f"<Operation {type(self).__name__} name={self.name}>"


class FunctionOperation(Operation):
    """A call of a function of `keras.ops` with the options that it is given; `operation` makes a subclass for each.

    Attributes:
        function: what is called.
        operands: names of the function's parameters that are tensors.
        variadic: whether the last one stands for any number of them, `*operands`.
        options: names of the function's parameters that are no tensors, which are the configuration of the step.
        cost: bounds of what a call costs, for files; None where the result has the shape that broadcasting gives, or fewer
            elements.
        example: makes operands of a shape and dtype, to find out what the function gives.
        counts: whether values of operands may decide on the sizes of the results: those are tried with several fillings.
    """

    function: ClassVar[Callable[..., Any]]
    operands: ClassVar[tuple[str, ...]]
    variadic: ClassVar[bool]
    options: ClassVar[tuple[str, ...]]
    cost: ClassVar[Any] = None
    example: ClassVar[Callable[..., Any]] = staticmethod(zeros)
    counts: ClassVar[bool]

    def __init__(self, *values: Any, name: str | None = None, **config: Any) -> None:
        super().__init__(name)
        config = dict(**self._by_name(self.options, values), **config)
        if unknown := sorted(config.keys() - set(self.options)):
            raise TypeError(f"{type(self).__name__} has the options {list(self.options)}, found {unknown}.")
        if config.get("dtype") is not None:
            config["dtype"] = as_dtype(config["dtype"]).name
        self.config = config

    def call(self, *args: Any, **kwargs: Any) -> Any:
        if self.variadic:
            return type(self).function(*args, **kwargs, **self.config)
        return type(self).function(**self._by_name(self.operands, args), **kwargs, **self.config)

    def _by_name(self, names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {list(names)} in this order, found {len(values)} arguments.")
        return dict(zip(names, values, strict=False))

    def get_config(self) -> dict[str, Any]:
        """The name and the options."""
        return {"name": self.name, **self.config}

    def __reduce__(self) -> tuple[Any, ...]:
        """By the places of the class: a module holds the function under its name, not the class."""
        name = type(self).__name__
        module = next(module for module, classes in CLASSES.items() if classes.get(name) is type(self))
        return _unpickled, (module, name, vars(self))


def _unpickled(module: str, name: str, state: dict[str, Any]) -> Operation:
    made = object.__new__(hook("_operations")(module)[name])
    vars(made).update(state)
    return made


CLASSES: dict[str, dict[str, type[Operation]]] = {}
"""The classes of steps by the module of `keras.ops` that defines the function, and Keras's name of the class."""
SAME: dict[Callable[..., Any], Callable[..., Any]] = {}
"""The functions of `keras.ops` by those of `functions/` that take the same arguments in the same order."""


@overload
def operation(function: F) -> F: ...
@overload
def operation(**options: Any) -> Callable[[F], F]: ...
def operation(function: Any = None, **options: Any) -> Any:
    """A decorator: a function of `keras.ops`, which on KerasTensors becomes a step of a functional model.

    Parameters that are annotated as TensorLike, alone or in a Sequence, are operands of the step; the others are its
    configuration, as they are in Keras's class of that name.

    Args:
        name: Keras's name of the class; that of the function in camel case if None.
        cost: bounds of what a call costs, as `rules.cost_of_anything` has them, if the result may have more elements than
            the operands.
        given: further parameters that Keras does not configure but passes, separated by blanks.
        named: operands that Keras passes by name.
        settle: what Keras writes in the configuration for the options of a call, if that is not what was given.
        example: makes operands of a shape and dtype to try the function on.
        counts: whether values of operands may decide on the sizes of the results.
        same: the function of `functions/` that takes the same arguments in the same order, so that a call of it on KerasTensors
            is this step.
    """
    return functools.partial(_operation, **options) if function is None else _operation(function)


def _operation(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    cost: Cost | None = None,
    given: str = "",
    named: str = "",
    settle: Settle = dict,
    example: Callable[..., Any] = zeros,
    counts: bool = False,
    same: Callable[..., Any] | None = None,
) -> Any:
    """The function with the class of its steps, which is kept."""
    signature = inspect.signature(function)
    parameters = signature.parameters
    passed = {key for key, one in parameters.items() if "TensorLike" in str(one.annotation) or one.kind is one.VAR_KEYWORD}
    options = tuple([key for key in parameters if key not in passed.union(given.split())])
    module = home_of(function.__module__.partition(".")[2])
    rest = [key for key, one in parameters.items() if one.kind is one.VAR_KEYWORD]
    class_name = name or "".join(part[:1].upper() + part[1:] for part in function.__name__.split("_"))
    operands = tuple([key for key in parameters if key not in (*options, *named.split(), *rest)])
    variadic = any(one.kind is one.VAR_POSITIONAL for one in parameters.values())
    members = {"function": function, "example": example} | ({"cost": cost} if cost else {})
    statics = {key: staticmethod(value) for key, value in members.items()}
    kind: Any = type(class_name, (FunctionOperation,), {**statics, "__module__": function.__module__})
    kind.operands, kind.options, kind.variadic = (*operands, *named.split()), options, variadic
    kind.counts = counts
    CLASSES.setdefault(module, {})[class_name] = kind

    def step(*args: Any, **named_ones: Any) -> Any:
        bound = signature.bind(*args, **named_ones)
        bound.apply_defaults()
        config = {key: bound.arguments[key] for key in options}
        keywords = {key: config.pop(key) for key in options if holds_symbol(config[key])}
        keywords |= {key: bound.arguments[key] for key in named.split()}
        keywords |= {key: value for name in rest for key, value in bound.arguments[name].items()}
        values = [bound.arguments[key] for key in operands]
        values += values.pop() if kind.variadic else ()
        return kind(**settle(config))(*values, **keywords)

    made = takes_symbols(function, step)
    if same is not None:
        SAME[inspect.unwrap(same)] = made
    return made
