"""`tf.function`: a function that Python runs twice for each signature and that is replayed after that.

Both runs are recorded. If they are not the same, or nothing can be recorded, the function simply runs, and says so once.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import nest
from ..core import BOTTOM, Outdated, Tensor, Variable, cached_property, convert_to_tensor, current, is_array, is_told, logger
from ..errors import CompileError
from ..types import TensorSpec
from . import executors
from .executors import Executable, llvm
from .guards import REMEDY, Guards, Unguarded, draws, guards_of
from .ir import Program
from .passes import optimized, simplified
from .passes.forward_state import asks_user
from .recorder import ProgramComparison, Recorder
from .signature import Unrecordable, bound, key_of, substituted, written_back

if TYPE_CHECKING:
    from ..data.table import RowBatches

CAPACITY = 64
"""The most signatures that a function keeps, those used last."""
FREE = 8
"""The number of recordings of a function that need not pay before there are more."""
REPLAYS = 16
"""The number of replays that pay for one more recording, which takes up to ten times as long as an eager run."""

_eagerly = False


class NoProgram(NamedTuple):
    """Takes the place of a program where there is none.

    Attributes:
        reason: for running eagerly with this signature; None if the next run is recorded: this one made Variables, or called a
            user's code in a step.
    """

    reason: str | None

    def __str__(self) -> str:
        return f"no program: {self.reason or 'the next run is recorded'}"


BUILT = NoProgram(None)


class CacheEntry(NamedTuple):
    """The entry of a function for a signature.

    Attributes:
        program: ready to run, or the reason why there is none.
        guards: the facts that it depends on beside the signature; None if there is no program.
        others: the arguments that the signature holds by identity, kept alive.
        packed: gives the leaves of a result their structure.
        state: reads the state that a replay changes, if a replay may turn out to be outdated midway; as `Recorder.state`.
        first: the program of the first of two runs, until the second is compared with it.
    """

    program: Any
    guards: Guards | None
    others: list[Any]
    packed: Callable[[list[Any]], Any]
    state: Callable[[], Callable[[], None]] | None = None
    first: Program | None = None


class CompiledFunction:
    """A function made by `tf.function`.

    Attributes:
        python_function: the function that was decorated.
        input_signature: as it was given.
        recordings: the number of programs made.
        replays: the number of calls carried out by a program.
        eager_calls: the number of calls that Python carried out, recordings not counted.
        planned: the number of calls to come, as far as is known: it decides whether LLVM is worth it.
        whole: whether a replay may happen whole or not at all by itself.
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
        self._cache: OrderedDict[Any, CacheEntry] = OrderedDict()
        self.planned, self.whole = 0, False
        self._warned: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _eagerly or current() is not BOTTOM:
            return self._run(*self._bound(args, kwargs))
        values, tensors, key = self._signature(args, kwargs)
        if key is None:
            return self._run(values[:-1], values[-1])
        found = self._cache.get(key)
        if found is None:
            return self._recorded(key, values, tensors, "the arguments have another shape, dtype or value")
        program, guards, _, packed, state, first = found
        if guards is None:
            if program.reason is not None:
                return self._run(values[:-1], values[-1])
            return self._record(key, values, tensors, found)
        changed = guards.changed()
        if changed is not None:
            return self._recorded(key, values, tensors, f"{changed} has changed")
        if first is not None:
            return self._record(key, values, tensors, found)
        put_back = state and state()
        self.replays += 1
        try:
            return packed(program([tensor.array for tensor in tensors]))
        except Outdated as error:
            self.replays -= 1
            assert put_back is not None
            put_back()
            return self._recorded(key, values, tensors, str(error))

    def replay_many(
        self, batches: RowBatches, args: Sequence[Any], keep_state: Callable[[], None], stacked: bool = False
    ) -> tuple[Any] | None:
        """Replay the function for one batch after another.

        Args:
            batches: rows that take the place of the tensors of `args`.
            args: the arguments of the first call.
            keep_state, stacked: as for `Executable.run_many`.

        Returns:
            The result in a tuple; None, and nothing was done, where a call would not be a replay.
        """
        found, tensors = self._replayed(args)
        if found is None or len(tensors) != len(batches.columns):
            return None
        leaves = found.program.run_many(batches, keep_state, stacked)
        self.replays += len(batches)
        return (found.packed(leaves),)

    def replay_whole(self, args: Sequence[Any]) -> tuple[Any] | None:
        """The result of a replay in a tuple, if it happens whole or not at all by itself; else None, and nothing was done."""
        found, tensors = self._replayed(args)
        if found is None or not found.program.whole:
            return None
        leaves = found.program([tensor.array for tensor in tensors])
        self.replays += 1
        return (found.packed(leaves),)

    def _replayed(self, args: Sequence[Any]) -> tuple[CacheEntry | None, list[Tensor]]:
        """The entry that a call would replay, None if it would record or run eagerly; and the tensors among its arguments."""
        if _eagerly or current() is not BOTTOM:
            return None, []
        _, tensors, key = self._signature(args, {})
        found = self._cache.get(key)
        alone = found is None or found.state is not None or found.first is not None
        if found is None or alone or found.guards is None or found.guards.changed() is not None:
            return None, tensors
        return found, tensors

    @cached_property
    def _parameters(self) -> inspect.Signature:
        return inspect.signature(self.python_function)

    def _recorded(self, key: Any, values: Sequence[Any], tensors: list[Tensor], why: str) -> Any:
        """A recorded run, unless recordings have not paid so far: each takes as long as some ten eager runs."""
        if self.recordings < FREE + self.replays // REPLAYS:
            return self._record(key, values, tensors)
        reason = f"there are {self.recordings} programs for {self.replays} replays, and in one call after the other {why}"
        self._warn_once(f"goes on eagerly where it has no program: {reason}", "many programs")
        *args, kwargs = values
        return self._run(args, kwargs)

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        self.eager_calls += 1
        return _in_tensors(self.python_function(*args, **kwargs))

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments converted to the `input_signature`, if there is one."""
        if self.input_signature is None:
            return args, kwargs
        return bound(self._parameters, self.input_signature, args, kwargs, self.name)

    def _signature(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], list[Tensor], Any]:
        """All arguments by position (keywords in a dict at the end), their tensors, and the key of the program."""
        if self.input_signature is not None:
            args, kwargs = self._bound(args, kwargs)
        elif kwargs:
            given = self._parameters.bind(*args, **kwargs)
            args, kwargs = given.args, given.kwargs
        values = (*args, kwargs)
        tensors: list[Tensor] = []
        try:
            return values, tensors, key_of(values, tensors)
        except Unrecordable as error:
            self._warn_once(f"runs eagerly: an argument is {error}")
            return values, tensors, None

    def _record(self, key: Any, values: Sequence[Any], tensors: list[Tensor], before: CacheEntry | None = None) -> Any:
        """Run the function and keep its program; `before` is the entry of the run before this one."""
        # A tensor that is given twice, or that the function also has from elsewhere, must not be taken for one argument.
        fresh = [Tensor(tensor.array) for tensor in tensors]
        given = iter(fresh)
        *args, kwargs = [substituted(value, given) for value in values]
        others = [leaf for leaf in nest.flatten(list(values)) if not isinstance(leaf, Tensor) and not is_array(leaf)]
        first = before.first if before else None
        others = before.others if before and first else others  # of which the guards tell
        states = draws(before.guards.generators) if before and before.guards else None
        recorder = Recorder(fresh, bool(self.jit_compile), first=first)
        try:
            with recorder:
                result = _in_tensors(self.python_function(*args, **kwargs))
                results = [] if recorder.refusal else [recorder.result(leaf) for leaf in nest.flatten(result)]
            originals = {id(one): tensor for one, tensor in zip(fresh, tensors, strict=True)}
            wrote = [written_back(*pair, originals) for pair in zip(values, (*args, kwargs), strict=True)]
            program = Program(recorder.arguments, recorder.records, results, nest.map_structure(lambda leaf: None, result))
            drawn = states.changed() if states else None
            guards = None if recorder.refusal else self._guards(recorder, program, before, others, drawn, any(wrote))
        except CompileError:
            recorder.put_back()
            if before is not None and first is not None:  # the next call is to say so again
                with contextlib.suppress(Unguarded):
                    self._cache[key] = before._replace(guards=guards_of(self.python_function, others))
            raise
        packed = _packing(program.structure)
        if recorder.refusal is not None:
            self._warn_once(f"runs eagerly: {recorder.refusal}")
            self.recordings -= first is not None  # the run before counts as an eager one after all
            self.eager_calls += 2 if first else 1
            entry = CacheEntry(NoProgram(recorder.refusal), None, others, packed)
        else:
            decided = any(getattr(record.params.get("step"), "decided", False) for record in program.records)
            asks = any(map(asks_user, program.records))
            replay: Any = before.program if before and first and not decided else BUILT
            if replay is BUILT and (first or not asks):  # what a user's code changes is known before the compiler calls it
                replay = self._ready(program, once=guards is None)
            state = recorder.state() if decided else None
            told = asks or any(is_told(record.primitive) for record in program.records)
            # If its bits differ it also carries out this run, unless another thread has used the state that the run left.
            if replay is not None and not (told or replay.exact) and recorder.put_back():
                result = packed(replay([tensor.array for tensor in tensors]))
            if guards is None:
                entry = CacheEntry(BUILT, None, others, packed)
            else:
                assert replay is not None
                guards.options = () if replay is BUILT else replay.program.guards
                entry = CacheEntry(replay, guards, others, packed, state, None if first else program)
            self.eager_calls += guards is None
            self.recordings += guards is not None and not first
            self.replays += first is not None
        self._cache[key] = entry
        if len(self._cache) > CAPACITY:
            self._cache.popitem(last=False)
        return result

    def _guards(
        self, recorder: Recorder, program: Program, before: CacheEntry | None, others: list[Any], drawn: str | None, wrote: bool
    ) -> Guards | None:
        """The guards of a program. None if the run made Variables, or if it cannot be guarded, as the recorder then knows."""
        first, guards = (before.first, before.guards) if before else (None, None)
        try:
            if wrote:
                raise Unguarded("it changes an argument")
            if recorder.born and before is not None:
                raise Unguarded("it makes Variables in each call; make them once, outside")
            if first is None or guards is None:
                return None if recorder.born else guards_of(self.python_function, others)
            if (changed := guards.changed(thorough=True)) is not None:
                kept = "keep in a tf.Variable what changes from call to call, or change it outside"
                raise Unguarded(f"it changes {changed}; {kept}")
            departure = recorder.departure(program)
            if drawn is not None:
                raise Unguarded(f"it draws from {drawn}{f': {departure}' if departure else ''}; {REMEDY}")
            # Recordings may differ in constants that no instruction uses.
            if departure is not None and not ProgramComparison(simplified(first)).gives(simplified(program)):
                raise Unguarded(f"two runs of it gave two programs: {departure}; {REMEDY}")
            return guards
        except Unguarded as error:
            recorder.refuse(str(error), located=False)
            return None

    def _ready(self, program: Program, once: bool) -> Executable | None:
        """A program, ready to run, by LLVM if it is asked for or the planned calls are worth it.

        Args:
            once: True if it is to take the place of the recorded run, once; the result is None if NumPy's bits do as well.
        """
        if once and not self.jit_compile and not (self.planned and llvm.installed()):
            return None
        if self.jit_compile is not False and (on_device := executors.on_device(program)) is not None:
            self.whole = True
            return on_device
        if not self.jit_compile:
            by_numpy = executors.by_numpy(optimized(program))
            if not executors.is_worth_compiling(self.planned * by_numpy.seconds):
                return by_numpy
        return executors.natively(program)

    def _warn_once(self, message: str, about: str | None = None) -> None:
        """Log a message, unless it, or one with the same `about`, was logged for this function."""
        if (about or message) not in self._warned:
            self._warned.add(about or message)
            logger.warning("tf.function %s %s.", self.name, message)

    def program(self, *args: Any, **kwargs: Any) -> Program | NoProgram:
        """The program for such arguments, or the reason why there is none. It prints as its instructions.

        Raises:
            LookupError: if the function was not called with such arguments yet.

        >>> @tf.function
        ... def positive(x):
        ...     return x if x > 0.0 else -x
        >>> _ = positive(tf.constant(1.0))
        >>> print(str(positive.program(tf.constant(1.0)))[:31])
        no program: bool() of a tensor,
        """
        entry = self._cache.get(self._signature(args, kwargs)[2])
        if entry is None:
            raise LookupError(f"{self.name} was not called with such arguments yet; call it once, then ask for its program.")
        return entry.program if isinstance(entry.program, NoProgram) else entry.program.program

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> CompiledFunction:
        """The function for one signature alone: it refuses other shapes and dtypes. Its first two calls are recorded.

        Args:
            args, kwargs: a `tf.TensorSpec` or a tensor for each argument that calls give; all others are fixed to their values.

        Raises:
            TypeError: if they are no arguments of the function; at a call that does not fit the signature.

        >>> double = tf.function(lambda x, n: x * n).get_concrete_function(tf.TensorSpec([None]), 2.0)
        >>> print(double(tf.constant([1.0, 3.0])).numpy())
        [2. 6.]
        """
        if self.input_signature is not None and not (args or kwargs):
            return self
        given = self._parameters.bind(*args, **kwargs)
        names = list(itertools.islice(_names(self._parameters), len(given.args)))
        named = dict(zip(names, given.args, strict=True)) | given.kwargs
        specs = {
            name: nest.map_structure(_spec, value) for name, value in named.items() if any(map(_has_shape, nest.flatten(value)))
        }

        def concrete(*tensors: Any) -> Any:
            values = named | dict(zip(specs, tensors, strict=True))
            return self.python_function(*[values.pop(name) for name in names], **values)

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in specs]
        described: Any = concrete
        described.__signature__ = inspect.Signature(parameters)
        return CompiledFunction(described, list(specs.values()), self.name, self.jit_compile)

    def plan(self, calls: int) -> None:
        """Set the number of calls to come, so that LLVM carries out programs that are worth it, known ones included."""
        if calls == self.planned:
            return
        self.planned = calls
        for key, entry in list(self._cache.items()):
            if isinstance(entry.program, NoProgram) or not entry.program.exact:
                continue
            if executors.is_worth_compiling(calls * entry.program.seconds):
                self._cache[key] = entry._replace(program=executors.natively(entry.program.program))

    @property
    def _replays(self) -> list[Executable]:
        return [entry.program for entry in self._cache.values() if not isinstance(entry.program, NoProgram)]

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
        """The size of these buffers in bytes."""
        return sum(one.bytes for one in self._replays)

    def forget(self) -> None:
        """Let go of all programs; the next call is recorded."""
        self._cache.clear()

    def experimental_get_tracing_count(self) -> int:
        """The number of programs made, by TensorFlow's name."""
        return self.recordings

    def scan(self, *data: Any) -> Any:
        """Call the function for one element of the data after another; the results, stacked along a new first axis.

        It does what a loop over the data does, with little overhead: a program carries out many calls in a row, about 20 ms of
        them at a time, and reads the rows of a batch in place.

        Args:
            data: a Dataset or another iterable, whose elements are the arguments (of a tuple several, as for `Dataset.map`). Or
                for each argument an array, or a tuple or dict of arrays, with a row along the first axis for each call.

        Raises:
            ShapeError: if arrays have no rows or different numbers of them, or the results of calls different shapes.
            TypeError: if there is no data, or text.
            ValueError: if the data has no elements, or no end.

        If a call raises, the effects of the calls before it stay.

        >>> total = tf.Variable(0.0)
        >>> @tf.function
        ... def add(x):
        ...     return total.assign_add(x) + 0.0
        >>> add.scan([1.0, 2.0, 3.0]).numpy().tolist()
        [1.0, 3.0, 6.0]
        >>> add.scan(tf.data.Dataset.from_tensor_slices([4.0, 5.0])).numpy().tolist()
        [10.0, 15.0]
        """
        from .scan import scan

        return scan(self, (), data)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Method(self, instance)

    def __repr__(self) -> str:
        counts = f"{self.recordings} recordings, {self.replays} replays, {self.eager_calls} eager calls"
        return f"<tf.function {self.name}: {counts}>"


class Method(functools.partial[Any]):
    """A function as the method of an object."""

    __slots__ = ()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """As `CompiledFunction.get_concrete_function`."""
        function: Any = self.func
        if function.input_signature is not None and not (args or kwargs):
            return self
        return function.get_concrete_function(*self.args, *args, **kwargs)

    def scan(self, *data: Any) -> Any:
        """As `CompiledFunction.scan`."""
        from .scan import scan

        return scan(self.func, self.args, data)


def _names(parameters: inspect.Signature) -> Iterator[str]:
    """The names of arguments by position; those that '*args' takes are args_0, args_1, ..."""
    for name, parameter in parameters.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from (f"{name}_{number}" for number in itertools.count())
        yield name


def _has_shape(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _spec(leaf: Any) -> Any:
    """The specification of a leaf of an argument: shape and dtype of a tensor, any other leaf itself."""
    is_spec = hasattr(leaf, "is_compatible_with")
    return TensorSpec.from_tensor(convert_to_tensor(leaf)) if _has_shape(leaf) and not is_spec else leaf


def _in_tensors(result: Any) -> Any:
    """A result with Tensors in place of Variables and of numbers of Python and NumPy, as in a call of TensorFlow's function."""
    if type(result) is Tensor or result is None:
        return result
    if nest.is_nested(result):
        return nest.map_structure(_in_tensors, result) if any(map(_is_value, nest.flatten(result))) else result
    return convert_to_tensor(result) if _is_value(result) else result


def _is_value(value: object) -> bool:
    """True if a value is a Variable, a number or an array of numbers, but no Tensor."""
    is_array = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc"
    return is_array or isinstance(value, (bool, int, float, complex, Variable))


def _packing(structure: Any) -> Callable[[list[Any]], Any]:
    """A function that packs leaves into a structure; logs, a flat dict, need no walk."""
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

    Python runs twice for each signature: structure of the arguments, shapes and dtypes of tensors and arrays, other arguments
    by value or identity. If both runs are the same, later calls replay their operations: Variables, random streams, optimizers
    and metrics are state that is read and changed at each call. What else the function names, such as globals and attributes,
    is compared at each call, and if it has changed the call is recorded anew; what is printed is printed twice.

    Args:
        func: the function. A function that turns a tensor into a Python value, makes Variables in each call, does not do the
            same in both runs, draws from `np.random` or returns other things than tensors, Variables and plain values runs
            eagerly; that is logged once, and `program` says why. Variables, numbers and arrays that it returns become tensors.
        input_signature: a `TensorSpec` for each argument, None sizes fit any. Arguments are converted and checked.
        jit_compile: True to raise where the function would run eagerly, and to have programs carried out by LLVM,
            if it is installed: `pip install 'minikeras[jit]'`. Results then are the same up to rounding.
        options: `autograph`, `reduce_retracing` and `experimental_*` are accepted and have no effect.

    Raises:
        TypeError: for other options, and at a call that does not fit the signature.
        CompileError: at a call, with `jit_compile=True`; a TypeError too.

    >>> @tf.function
    ... def square(x):
    ...     print("recorded")
    ...     return x * x
    >>> print([float(square(tf.constant(x))) for x in (3.0, 4.0, 5.0)])
    recorded
    recorded
    [9.0, 16.0, 25.0]
    >>> square.recordings, square.replays
    (1, 2)
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
    return CompiledFunction(func, input_signature, jit_compile=jit_compile)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Set whether functions run as plain Python at each call, for debugging. False is the default.

    Raises:
        TypeError: if the argument is no bool.

    >>> run_functions_eagerly(False)
    """
    global _eagerly
    if not isinstance(run_eagerly, bool):
        raise TypeError(f"run_functions_eagerly: expected True or False, found {run_eagerly!r}.")
    _eagerly = run_eagerly


def functions_run_eagerly() -> bool:
    """The setting of `run_functions_eagerly`.

    >>> functions_run_eagerly()
    False
    """
    return _eagerly
