"""Members: an interpreter under which one model stands for many of its kind, whose weights lie stacked along a first axis.

The members' numbers are float64 among themselves, as Python's floats are for one member; only beside an element they take the
element's dtype. So each member has the bits that it has alone.

The model computes for all members at once: reading a Variable gives the stack of the members' values, assigning it writes the
stack, and a random layer draws for each member from the member's own stream.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.loops import Body, Code, Step
from ..core import Batch, BatchedTensor, Frame, Primitive, Tensor, Variable, convert_to_tensor, namespace, on_top, read_variable
from ..core.effects import Write, clock, drawn_key
from ..data.table import numbered
from ..errors import InvalidArgumentError, ShapeError, kind_of
from ..functions import concat, gather
from ..keras.batches import Source, of_arrays
from ..keras.models import Model
from ..keras.random import SeedState, derived_seed
from ..keras.symbolic.trial import Trial
from ..keras.weight import HostVariable, KerasVariable
from ..nn_ops import streams
from ..parallel import in_parallel
from ..types import Array, DType, TensorLike
from .grid import built_with, fresh_session


class EnsembleMember:
    """A model that was built after `set_random_seed(seed)`, as in a script that trains it alone.

    Attributes:
        model: an ordinary model.
        seed: the seed of its random streams.
        streams: their state, so that orders of batches are those of a single run.
        ready: whether all weights are made and the streams of all layers settled.
    """

    def __init__(self, model: Model, seed: int, states: Any) -> None:
        self.model, self.seed, self.streams = model, seed, states
        self.ready = False

    @property
    def layer_streams(self) -> list[Variable]:
        """The random streams of the model's layers, which a `.keras` file does not hold."""
        return [variable for variable in self.model.collect_contents().variables if isinstance(variable, SeedState)]

    def make_ready(self, x: Any) -> None:
        """Have the model make its weights, and settle the streams of layers that were not called yet, by a trial on inputs."""
        layers = (self.model, *self.model.collect_contents().sublayers)
        if not self.ready and x is not None and any(not one.built or one._layer_place.stream is None for one in layers):
            with self.drawing():
                Trial(self.model).run(functools.partial(self.model, x, training=False))
        self.ready = self.ready or x is not None

    @classmethod
    def built(cls, build: Callable[..., Any], seed: int) -> EnsembleMember:
        """Call `build` as in a new process after `set_random_seed(seed)`; the caller's streams and names go on as they were.

        The seed is its argument if it has a parameter without default.
        """
        with fresh_session(seed):
            model = built_with(build, seed)
            if not isinstance(model, Model):
                raise TypeError(f"build: a keras.Model is needed, found {kind_of(model)}.")
            return cls(model, seed, streams.states())

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Within the block random streams of this thread are the member's own."""
        with streams.own_streams():
            streams.set_states(self.streams)
            try:
                yield
            finally:
                self.streams = streams.states()


def check_apart(members: Sequence[EnsembleMember]) -> None:
    """Refuse members that share Variables: training one of them would change another.

    Raises:
        ValueError: with the name of such a Variable.
    """
    owners: dict[int, int] = {}
    for place, member in enumerate(members):
        for variable in member.model.collect_contents().variables:
            owner = owners.setdefault(variable.key, place)
            if owner != place:
                raise ValueError(
                    f"the members {owner} and {place} of an ensemble share the variable '{variable.name}'. `build` must make "
                    "a new model with new layers each time it is called."
                )


class MemberBody(NamedTuple):
    """A loop's body for the elements of all members.

    Attributes:
        single: the body for the elements of one, with Python numbers.
        arrays: the number of inputs that are elements; the rest are numbers.
        coefficients: the values made of its numbers that elements are combined with, as registers, and the dtypes they take.
        body: the same steps, with an input for each coefficient after the elements.
    """

    single: Body
    arrays: int
    coefficients: tuple[tuple[int, Any], ...]
    body: Body

    def values(self, numbers: Sequence[Array]) -> list[Array]:
        """The coefficients for the numbers that the body takes, given as float64 arrays with an element for each member."""
        registers = dict(enumerate(numbers, self.arrays)) | dict(self.single.literals)
        for step in self.single.numbers:
            registers[step.register] = getattr(operator, step.function)(*[registers[one] for one in step.operands])
        return [np.asarray(registers[register], dtype) for register, dtype in self.coefficients]


def with_member_numbers(single: Body) -> MemberBody | None:
    """The body in which each number may differ from member to member; None where the bits would change: NumPy computes a power
    with one exponent differently from one with many.
    """
    arrays = sum(dtype is not float for dtype in single.inputs)
    numbers = {*range(arrays, len(single.inputs)), *(step.register for step in single.numbers)}
    meets = [_dtypes_of_operands(single, step) for step in single.steps]
    found = {
        (register, dtype): None
        for step, dtypes in zip(single.steps, meets, strict=True)
        for register, dtype in zip(step.operands, dtypes, strict=True)
        if register in numbers
    }
    if any(step.function == "power" and not numbers.isdisjoint(step.operands) for step in single.steps):
        return None
    coefficients = tuple(found)
    code = Code([*single.inputs[:arrays], *(dtype for _, dtype in coefficients)])
    elements = code.elements()
    values: dict[int, Any] = dict(enumerate(elements[:arrays])) | dict(single.literals)
    known = dict(zip(coefficients, elements[arrays:], strict=True))
    for step, dtypes in zip(single.steps, meets, strict=True):
        operands = [known[pair] if pair in known else values[pair[0]] for pair in zip(step.operands, dtypes, strict=True)]
        values[step.register] = code.step(step.function, operands, step.dtype)
    return MemberBody(single, arrays, coefficients, code.body([values[register] for register in single.outputs]))


def _dtypes_of_operands(body: Body, step: Step) -> list[Any]:
    """The dtypes that NumPy gives the operands of a step, so that numbers are rounded as it rounds them."""
    if step.function in ("where", "astype"):
        return [step.dtype] * len(step.operands)
    known, literals = body.dtypes, dict(body.literals)
    kinds = [known.get(one, type(literals.get(one, 0.0))) for one in step.operands]
    return list(getattr(np, step.function).resolve_dtypes((*kinds, None)))[: len(kinds)]


# Numbers of layers that differ from member to member, such as a dropout rate -----------------------------------------------


class MemberNumber:
    """A number that has a value of its own for each member; it stands where a float stood.

    Among themselves and with Python's numbers they are floats; beside a Tensor each takes its dtype, as a Python number does.
    So each member has the bits that it has alone.

    >>> number = MemberNumber([0.25, 0.5], Batch(2))
    >>> 1.0 / (1.0 - number)
    MemberNumber(1.3333333333333333, 2.0)
    """

    __slots__ = ("batch", "values")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Sequence[float], batch: Batch | weakref.ref[Batch]) -> None:
        self.values = tuple(values)
        self.batch = batch if isinstance(batch, weakref.ref) else weakref.ref(batch)  # its Variables may hold this number

    def beside(self, dtype: DType, like: Array) -> Tensor:
        """The numbers beside a Tensor of a dtype, on the device of an array."""
        batch = self.batch()
        assert batch is not None, "the model of the stack is run without its members"
        return BatchedTensor(Tensor(namespace(like).asarray(np.array(self.values, np.float64).astype(dtype.numpy))), batch)

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, MemberNumber):
            return MemberNumber(list(map(function, self.values, other.values)), self.batch)
        if type(other) in (int, float):
            return MemberNumber([function(value, other) for value in self.values], self.batch)
        return NotImplemented

    def _holds(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """The one answer for all members; NotImplemented beside a Tensor."""
        found = self._with(other, function)
        if not isinstance(found, MemberNumber):
            return found
        if len(set(found.values)) > 1:
            raise InvalidArgumentError(
                f"the number {self!r} of an ensemble decides otherwise for some members than for others: compared to {other!r} "
                "it has several answers. Train such members with Sweep, which makes groups."
            )
        return found.values[0]

    def __neg__(self) -> MemberNumber:
        return MemberNumber([-value for value in self.values], self.batch)

    def __bool__(self) -> bool:
        """True unless all members have 0: a 0.0 is a number like others where another member has more."""
        return any(self.values)

    def _refuse(self) -> Any:
        raise InvalidArgumentError(
            f"{self!r} is another number for each member of an ensemble, and what it is used for takes one Python number. "
            "Train such members with Sweep, which makes groups."
        )

    __float__ = __int__ = __index__ = _refuse

    def __repr__(self) -> str:
        return f"MemberNumber({', '.join(map(repr, self.values))})"

    def __deepcopy__(self, memo: dict[int, Any]) -> MemberNumber:
        return self


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _f = getattr(operator, _name)
    setattr(MemberNumber, f"__{_name}__", lambda self, other, f=_f: self._with(other, f))
    setattr(MemberNumber, f"__r{_name}__", lambda self, other, f=_f: self._with(other, lambda a, b: f(b, a)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _f = getattr(operator, _name)
    setattr(MemberNumber, f"__{_name}__", lambda self, other, f=_f: self._holds(other, f))


Row = tuple[Variable, int, Variable]
"""A Variable that holds a stack, a place in it, and the member's own Variable, whose value is that row."""


def with_rows(whole: Array, rows: Mapping[int, Array]) -> Array:
    """A stack with other rows at some places."""
    if len(rows) == whole.shape[0]:
        ordered = [rows[place] for place in range(whole.shape[0])]
        return namespace(*ordered).stack(ordered).astype(whole.dtype, copy=False)
    changed = whole.copy()
    for place, row in rows.items():
        changed[place] = row
    return changed


_NOTHING = bytes(16)


def without_memory(array: Array) -> Array:
    """Zeros of the shape and dtype of an array, which take no memory: for a Variable whose value lies in a stack."""
    return np.ndarray(array.shape, array.dtype, _NOTHING, strides=(0,) * array.ndim)


class Members(Batch):
    """The interpreter for `size` members.

    Attributes:
        stacks: for the key of a Variable of the model, that Variable and the one that holds all members' values. Never changed
            in place. A Variable without an entry holds one value for all.
        rows: for the key of a Variable that holds a stack, that Variable and the members' own, whose values are its rows.
        streams: the global random streams of the members: rows of seed and position.
        ended: the places of members that step no more; their rows mean nothing.
    """

    __slots__ = ("__dict__", "ended", "rows", "stacks", "streams")

    def __init__(self, states: Sequence[tuple[int, int]]) -> None:
        super().__init__(len(states))
        self.stacks: dict[int, tuple[Variable, Variable]] = {}
        self.rows: dict[int, tuple[Variable, Sequence[Variable]]] = {}
        self.ended: set[int] = set()
        self.streams = HostVariable(np.array(states, np.uint64), trainable=False, name="streams")

    @property
    def active(self) -> list[int]:
        """The places of members that have not ended."""
        return [place for place in range(self.size) if place not in self.ended]

    def stack(self, variable: Variable, values: Any) -> Variable:
        """Let a Variable of the model represent these values, one for each member along the first axis."""
        whole = KerasVariable(Tensor(values), trainable=variable.trainable, name=variable.name)
        self.stacks = self.stacks | {variable.key: (variable, whole)}
        clock.tick()
        return whole

    def whole_of(self, variable: Variable) -> Variable:
        """The Variable that holds the values of all members; made if there was only one value so far."""
        if variable.key in self.stacks:
            return self.stacks[variable.key][1]
        value = variable.array
        return self.stack(variable, namespace(value).broadcast_to(value, (self.size, *value.shape)).copy())

    # Reading and assigning -----------------------------------------------------------------------------------------------

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Send the operation on whole stacks below."""
        if primitive is read_variable:
            found = self.stacks.get(inputs[0].key)
            if found is not None:
                return BatchedTensor(below.process(read_variable, (found[1],), {}), self)
        elif primitive is drawn_key:
            keys = functools.partial(self._global_keys, params["source"])
            return BatchedTensor(below.process(drawn_key, (), {"source": keys}), self)
        if any(type(value) is MemberNumber for value in params.values()):
            return self._by_number(primitive, inputs, params, below)
        return super().process(primitive, inputs, params, below)

    def _by_number(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Run an operation whose parameters hold numbers that differ, once for each set of members with the same ones."""
        own = {name: value.values for name, value in params.items() if type(value) is MemberNumber}
        places: dict[tuple[float, ...], list[int]] = {}
        for place, values in enumerate(zip(*own.values(), strict=True)):
            places.setdefault(values, []).append(place)
        parts = []
        with on_top(below):
            for values, chosen in places.items():
                batch = Batch(len(chosen))
                rows = [BatchedTensor(gather(self.stack_of(x), chosen), batch) if isinstance(x, Tensor) else x for x in inputs]
                found = batch.process(primitive, rows, params | dict(zip(own, values, strict=True)), below)
                parts.append(batch.stack_of(found))
            order = np.argsort([place for chosen in places.values() for place in chosen])
            return BatchedTensor(gather(concat(parts, 0), order), self)

    def assign(self, variable: Variable, value: TensorLike, how: Write, below: Frame) -> bool:
        """Write the stack; one value for all stays one value."""
        if how is Write.SCATTER:
            if variable.key in self.stacks:
                raise InvalidArgumentError(
                    f"members of an ensemble assign whole Variables, and a part of '{variable.name}' is to be written. Use "
                    "assign with tf.tensor_scatter_nd_update, tf.where or a sum of one-hot rows."
                )
            return False
        value = convert_to_tensor(value() if callable(value) and not hasattr(value, "key") else value, variable.dtype)
        if variable.key not in self.stacks and not self.holds(value):
            return False
        if tuple(value.shape) != tuple(variable.shape):
            raise ShapeError(
                f"{how}: variable '{variable.name}' has shape {variable.shape}, the value has shape {tuple(value.shape)}."
            )
        whole = self.whole_of(variable)
        with on_top(below):
            getattr(whole, how)(self.stack_of(value))
        return True

    def _global_keys(self, source: Callable[[], Any]) -> Array:
        """Keys of all members for a draw from the global stream: `source` is called with each member's stream in its place."""
        stream, found, rows = streams.global_stream(), [], self.streams.array.tolist()
        outer = stream.state
        try:
            for place, state in enumerate(rows):
                stream.state = tuple(state)
                found.append(source())
                rows[place] = stream.state
        finally:
            stream.state = outer
        self.streams.assign(Tensor(np.array(rows, np.uint64)))
        return np.stack(found)

    # The members' own Variables, whose values are rows of stacks --------------------------------------------------------------

    def hold(self, whole: Variable, own: Sequence[Variable]) -> None:
        """Let members' Variables be the rows of one that holds a stack; `take` and `give` carry their values over."""
        self.rows[whole.key] = whole, own

    def own(self, whole: Variable) -> Sequence[Variable]:
        """The members' Variables that are rows of a stack."""
        return self.rows[whole.key][1]

    def rows_at(self, places: Iterable[int]) -> list[Row]:
        """The rows of some members."""
        return [(whole, place, own[place]) for place in places for whole, own in self.rows.values()]

    def take(self, places: Iterable[int]) -> None:
        """Let stacks hold the values of some members' Variables, which hold none from then on; all or nothing."""
        self._take(self.rows_at(places))

    def _take(self, rows: Iterable[Row]) -> None:
        taken: list[Row] = []
        stacks: dict[int, list[Row]] = {}
        for row in rows:
            stacks.setdefault(row[0].key, []).append(row)
        try:
            for found in stacks.values():
                whole = found[0][0]
                whole.array = with_rows(whole.array, {place: own.array for _, place, own in found})
                taken += found
                for _, _, own in found:
                    own.array = without_memory(own.array)
        except BaseException:  # such as a lack of memory
            self._give(taken)
            raise

    def give(self, places: Iterable[int]) -> None:
        """Let some members' Variables hold their values by themselves."""
        self._give(self.rows_at(places))

    def _give(self, rows: Iterable[Row]) -> None:
        for whole, place, own in rows:
            own.array = whole.array[place, ...].copy()

    def rest(self) -> None:
        """Let stacks hold no memory, once all rows are given."""
        for whole, _ in self.rows.values():
            whole.array = without_memory(whole.array)

    @contextlib.contextmanager
    def shown(self, places: Iterable[int]) -> Iterator[list[Row]]:
        """Within the block some members' Variables hold their rows; values assigned to them there are kept."""
        given = [(row, row[2].array, row[0].array[row[1], ...]) for row in self.rows_at(places)]
        for (_, _, own), _, value in given:
            own.array = value
        try:
            yield [row for row, _, _ in given]
        finally:
            self._take([row for row, _, value in given if row[2].array is not value])
            for (_, _, own), nothing, _ in given:
                own.array = nothing


class MemberSource(Source):
    """Row numbers of shape (members, rows of a batch): `batch` gives arrays of shape (members, rows of a batch, ...).

    Args:
        whole: the rows, as a source.
        members: their random streams draw the orders, as a single `fit` of each would.
        rows: for each member the numbers of its rows, as many for each; None for all rows.
        batch_size, shuffle: as in `fit`.

    Attributes:
        chosen: the places of the members that batches are given to.
        ended: those of members whose random streams stay as they are, whatever is still drawn for their rows.
    """

    checked = True

    def __init__(
        self,
        whole: Source,
        members: Sequence[EnsembleMember],
        rows: Sequence[Array] | None,
        batch_size: int | None,
        shuffle: bool | str,
    ) -> None:
        assert whole.table is not None
        self.table, self._members, self._rows = whole.table, members, rows
        self._count = count = self.table.length if rows is None else len(rows[0])
        size = 32 if batch_size is None else batch_size
        self._size, numbers, drawn = min(size, max(count, 1)), np.arange(count), size if shuffle == "batch" else count
        self._orders = []
        for member in members:
            with member.drawing():
                self._orders.append(of_arrays(numbers, None, None, count, drawn, shuffle))
        super().__init__(-(-count // self._size))
        self.chosen = list(range(len(members)))
        self.ended: set[int] = set()

    def from_position(self, start: int) -> Iterator[Any]:
        members, size, (full, rest) = len(self._members), self._size, divmod(self._count, self._size)
        whole, last = np.empty((full, members, size), np.int64), np.empty((members, rest), np.int64)

        def draw(first: int, stop: int) -> None:
            for place in range(first, stop):
                member, before = self._members[place], self._members[place].streams
                with member.drawing():
                    order = np.concatenate([numbered(part) for part in self._orders[place].from_position(0)])
                if place in self.ended:
                    member.streams = before
                order = order if self._rows is None else self._rows[place][order]
                whole[:, place], last[place] = order[: full * size].reshape(full, size), order[full * size :]

        in_parallel(draw, members, least=1, align=1)
        for batch in [*whole, last][start : full + bool(rest)]:
            yield batch if len(self.chosen) == members else batch[self.chosen]


def _length(source: Source) -> int:
    assert source.table is not None, "arrays have a table"
    return source.table.length


def resampled(source: Source, members: Sequence[EnsembleMember]) -> list[Array]:
    """For each member as many rows as there are, drawn with replacement by its seed.

    Source: Breiman, Bagging predictors (1996), section 2.
    """
    count = _length(source)
    return [streams.generator_at(derived_seed(member.seed, "bootstrap"), 0).integers(count, size=count) for member in members]


def folds_of(source: Source, folds: int, members: int) -> tuple[list[Array], list[Array]]:
    """Rows to train on and rows to validate on: member i leaves out part i modulo `folds` of the rows.

    Raises:
        ValueError: if there are fewer members than folds, or the rows do not divide into as many parts of one size.
    """
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= members:
        raise ValueError(f"fit: folds must be a number from 2 to that of the members, {members}; found {folds!r}.")
    count = _length(source)
    size, rest = divmod(count, folds)
    if not size or rest:
        raise ValueError(
            f"fit: {count} rows do not divide into {folds} folds of one size, so members would train on different numbers of "
            f"rows. Leave out {rest}, such as the last: x[:{count - rest}]."
        )
    parts = np.arange(count).reshape(folds, size)
    held_out = [parts[member % folds] for member in range(members)]
    return [np.delete(parts, member % folds, axis=0).reshape(-1) for member in range(members)], held_out
