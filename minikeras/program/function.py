"""`tf.function`: a function that Python runs once for each signature, and that is replayed from then on.

Key idea: the first call with a signature is a real run that is watched; the program it leaves serves all later calls. Where a
program would not be faithful - Python asks for a value that only the call can know, somebody listens outside, an argument is
more than its values - the function simply runs, and says so once. Read `recorder.py` next.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import nest
from ..arrays import is_array
from ..core import Tensor
from ..core.dispatch import BOTTOM, current
from ..core.notices import logger
from .executors import replay
from .improve import improved
from .program import Program
from .recorder import Recorder
from .replay import Replay
from .signature import Unrecordable, fitted, key_of, substituted

CAPACITY = 64
"""So many signatures of a function are kept, those that were used last."""

_eagerly = False


class Eager:
    """Stands in the place of a program where there is none.

    Attributes:
        reason: why the function runs eagerly for this signature; None if its first run made Variables and the next is recorded.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str | None) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return f"no program: {self.reason or 'the run made Variables; the next one is recorded'}"


class Known(NamedTuple):
    """What a function knows about a signature.

    Attributes:
        program: ready to run, or why there is none.
        others: the arguments that the signature tells by identity, which must not be freed meanwhile.
        packed: gives the leaves of a result their structure.
    """

    program: Replay | Eager
    others: list[Any]
    packed: Callable[[list[Any]], Any]


class Function:
    """A function made by `tf.function`.

    Attributes:
        python_function: the function that was decorated.
        input_signature: as it was given.
        recordings: how many programs were made.
        replays: how many calls were carried out by a program.
        eager_calls: how many calls Python carried out, recordings not counted.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Any = None,
        name: str | None = None,
        jit_compile: bool | None = None,
    ) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = input_signature
        self.jit_compile = jit_compile
        self.name = str(name or getattr(python_function, "__name__", "function"))
        self.recordings = self.replays = self.eager_calls = 0
        self._known: OrderedDict[Any, Known] = OrderedDict()
        self._told = False
        self._fast = bool(jit_compile)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _eagerly or current() is not BOTTOM:
            return self._run(args, kwargs)
        values, tensors, key = self._signature(args, kwargs)
        if key is None:
            return self._run(args, kwargs)
        found = self._known.get(key)
        if found is None:
            return self._record(key, values, tensors, again=False)
        program, _, packed = found
        if isinstance(program, Eager):
            return self._run(args, kwargs) if program.reason else self._record(key, values, tensors, again=True)
        if not program.program.holds:
            return self._record(key, values, tensors, again=True)
        self.replays += 1
        return packed(program([tensor._array for tensor in tensors]))

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        self.eager_calls += 1
        return self.python_function(*args, **kwargs)

    def _signature(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], list[Tensor], Any]:
        """All arguments by position (keywords in a dict at the end), their tensors, and what identifies the program."""
        if self.input_signature is not None:
            bound = [*args, *kwargs.values()]
            own = len(bound) - len(self.input_signature)  # `self` of a method is no part of it
            args, kwargs = [*bound[:own], *fitted(self.input_signature, bound[max(own, 0) :], self.name)], {}
        elif kwargs:
            given = inspect.signature(self.python_function).bind(*args, **kwargs)
            args, kwargs = given.args, given.kwargs
        values = (*args, kwargs)
        tensors: list[Tensor] = []
        try:
            return values, tensors, key_of(values, tensors)
        except Unrecordable as error:
            self._tell(f"an argument is {error}")
            return values, tensors, None

    def _record(self, key: Any, values: Sequence[Any], tensors: list[Tensor], again: bool) -> Any:
        """Run the function and keep what it does."""
        # A tensor that is given twice, or that the function knows from elsewhere, must not be taken for one argument.
        fresh = [Tensor(tensor._array) for tensor in tensors]
        given = iter(fresh)
        *args, kwargs = [substituted(value, given) for value in values]
        with Recorder(fresh, bool(self.jit_compile)) as recorder:
            result = self.python_function(*args, **kwargs)
            leaves = nest.flatten(result)
            results = [] if recorder.refusal or recorder.born else [recorder.result(leaf) for leaf in leaves]
        if recorder.born and again and recorder.refusal is None:
            recorder.refusal = "it makes Variables in each call; make them once, outside"
        structure = None
        if recorder.refusal is not None:
            self.eager_calls += 1
            self._tell(recorder.refusal)
            kept: Replay | Eager = Eager(recorder.refusal)
        elif recorder.born:
            self.eager_calls += 1
            kept = Eager(None)
        else:
            self.recordings += 1
            structure = nest.map_structure(lambda leaf: None, result)
            kept = replay(improved(Program(recorder.arguments, recorder.records, results, structure)), self._fast)
        others = [leaf for leaf in nest.flatten(list(values)) if not isinstance(leaf, Tensor) and not is_array(leaf)]
        self._known[key] = Known(kept, others, _packing(structure))
        if len(self._known) > CAPACITY:
            self._known.popitem(last=False)
            self._tell(f"there were more than {CAPACITY} signatures; give tensors in place of Python numbers", "records often")
        return result

    def _tell(self, reason: str, what: str = "runs eagerly") -> None:
        if not self._told:
            self._told = True
            logger.warning("tf.function %s %s: %s.", self.name, what, reason)

    def program(self, *args: Any, **kwargs: Any) -> Program | Eager:
        """The program for such arguments, or the reason why there is none. It prints as its instructions.

        Raises:
            LookupError: if the function was not called with such arguments yet.

        >>> import minikeras as tf
        >>> @tf.function
        ... def positive(x):
        ...     return x if x > 0.0 else -x
        >>> _ = positive(tf.constant(1.0))
        >>> print(str(positive.program(tf.constant(1.0)))[:31])
        no program: bool() of a tensor,
        """
        known = self._known.get(self._signature(args, kwargs)[2])
        if known is None:
            raise LookupError(f"{self.name} was not called with such arguments yet; call it once, then ask for its program.")
        return known.program.program if isinstance(known.program, Replay) else known.program

    def accelerate(self) -> None:
        """Have the machine carry out all programs from now on, those that are known included."""
        self._fast = True
        for key, known in list(self._known.items()):
            if isinstance(known.program, Replay):
                self._known[key] = known._replace(program=replay(known.program.program, True))

    @property
    def _replays(self) -> list[Replay]:
        return [known.program for known in self._known.values() if isinstance(known.program, Replay)]

    @property
    def seconds(self) -> float:
        """What a run of the longest program takes NumPy, roughly; 0 if there is none."""
        return max((one.seconds for one in self._replays), default=0.0)

    @property
    def kernels(self) -> int:
        """Calls from Python in one run of each program that is known, together."""
        return sum(one.kernels for one in self._replays)

    @property
    def buffers(self) -> int:
        """Pieces of memory that the programs keep from run to run."""
        return sum(one.buffers for one in self._replays)

    @property
    def bytes(self) -> int:
        """The memory that these take."""
        return sum(one.bytes for one in self._replays)

    def forget(self) -> None:
        """Let go of all programs; the next call is recorded."""
        self._known.clear()

    def experimental_get_tracing_count(self) -> int:
        """How many programs were made, by TensorFlow's name."""
        return self.recordings

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        counts = f"{self.recordings} recordings, {self.replays} replays, {self.eager_calls} eager calls"
        return f"<tf.function {self.name}: {counts}>"


def _packing(structure: Any) -> Callable[[list[Any]], Any]:
    """What gives leaves a structure; logs, a flat dict, need no walk."""
    if structure is None:
        return operator.itemgetter(0)
    if type(structure) is dict and not any(map(nest.is_nested, structure.values())):
        order = nest.keys(structure)
        places = [(name, order.index(name)) for name in structure]
        return lambda leaves: {name: leaves[place] for name, place in places}
    return functools.partial(nest.pack, structure)


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, jit_compile: bool | None = None, **options: Any
) -> Any:
    """A decorator, with or without arguments, as TensorFlow's.

    Python runs once for each signature: structure of the arguments, shapes and dtypes of tensors and arrays, other arguments
    by value or identity. Later calls replay the operations of that run: Variables, random streams, optimizers and metrics are
    state that is read and changed at each call; what Python computes or prints beside them happens once.

    Args:
        func: the function. A function that turns a tensor into a Python value, makes Variables in each call or returns other
            things than tensors, Variables and plain values runs eagerly; that is logged once, and `program` says why.
        input_signature: a `TensorSpec` for each argument, None sizes fit any. Arguments are converted and checked.
        jit_compile: True to raise where the function would run eagerly, and to have programs carried out by the machine that
            Numba compiles, if it is installed: `pip install 'minikeras[jit]'`. Results then are the same up to rounding.
        options: `autograph`, `reduce_retracing` and `experimental_*` are accepted and have no effect.

    Raises:
        TypeError: for other options, and at a call that does not fit the signature.
        CompileError: at a call, with `jit_compile=True`; a TypeError too.

    >>> import minikeras as tf
    >>> @tf.function
    ... def square(x):
    ...     print("recorded")
    ...     return x * x
    >>> print(square(tf.constant(3.0)).numpy(), square(tf.constant(4.0)).numpy())
    recorded
    9.0 16.0
    >>> square.recordings, square.replays
    (1, 1)
    """
    unknown = {key for key in options if key not in {"autograph", "reduce_retracing"} and not key.startswith("experimental_")}
    if unknown:
        raise TypeError(f"function: unknown options {sorted(unknown)}.")
    if func is None:
        return functools.partial(function, input_signature=input_signature, jit_compile=jit_compile, **options)
    if not callable(func):
        raise TypeError(
            f"function: expected a function, found {func!r:.200}. Options are given by name: tf.function(jit_compile=True)."
        )
    return Function(func, input_signature, jit_compile=jit_compile)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether functions run as plain Python at each call, for looking into them. False is the usual state.

    Raises:
        TypeError: if the argument is no bool.

    >>> run_functions_eagerly(False)
    """
    global _eagerly
    if not isinstance(run_eagerly, bool):
        raise TypeError(f"run_functions_eagerly: expected True or False, found {run_eagerly!r}.")
    _eagerly = run_eagerly


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` was set to.

    >>> functions_run_eagerly()
    False
    """
    return _eagerly
