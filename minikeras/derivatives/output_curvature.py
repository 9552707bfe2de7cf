"""OutputCurvature: J^T H J, the curvature that a loss of a model's outputs has in the model's variables.

In most losses the rows of z do not meet, and H is one small block for each row; products with random vectors show whether
that is so.
Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3; Townsend, A new trick for calculating Jacobian
vector products (2017), for J v by two backward sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import GradientTape, Record, Tape, Tensor, cached_property, convert_to_tensor, operations, sweep
from ..core.arrays import namespace, to_device, to_numpy
from ..core.batch import Batch, BatchedTensor
from ..core.effects import Outdated, State, effect
from ..core.stack import BOTTOM, current, perform
from ..types import Array, ShapeLike, TensorLike
from .first_order import scalar, unconnected
from .flat import flatten, matrix_of, size_of, symmetric, unflatten
from .hessian import RecordedGradient


def _differ_by_rounding(grounds: Array) -> bool:
    """True if the largest difference of two results is rounding beside the largest value; NaN counts as no difference."""
    difference, size = map(float, to_numpy(grounds))
    return not difference > 100.0 * float(np.finfo(grounds.dtype).eps) * size


def _check_rows(grounds: Array, *, apart: bool) -> tuple[()]:
    if _differ_by_rounding(grounds) != apart:
        raise Outdated("rows of a batch meet where they did not, or the other way round")
    return ()


rows_decided = effect("rows_decided", _check_rows)
"""A decision whether rows are independent, on the grounds of two results that only such rows have both: a program that repeats
the run tests its own.
"""


class OutputCurvature:
    """One run of a model, of the loss of its outputs and of a penalty, and what follows from it: J^T H J, with the Hessian of
    the penalty, as a matrix or as a product.

    Args:
        tape: what recorded the run.
        stage: the number of its Records that compute the outputs.
        outputs: z; the tape tracks it from there on.
        bare: the loss of the outputs, a scalar.
        variables: with respect to which; P parameters.
        penalty: a scalar, or None.
        loss: both together.
        decides: whether to read from numbers how rows depend on each other where an interpreter listens, too.
        strict: the tape around that tape, if it is to raise for a variable that z does not depend on.
    """

    def __init__(
        self,
        tape: Tape,
        stage: int,
        outputs: Tensor,
        bare: Tensor,
        variables: Sequence[Any],
        penalty: Tensor | None = None,
        loss: Tensor | None = None,
        decides: bool = False,
        strict: GradientTape | None = None,
    ) -> None:
        self.records, self.tracked, self.stage = tape.records, tape.tracked, stage
        self.outputs, self.bare, self.variables = outputs, bare, list(variables)
        self.penalty, self.loss, self._decides = penalty, bare if loss is None else loss, decides
        self._strict, self._fill = strict, unconnected(strict is not None)

    @classmethod
    def run(
        cls,
        output_fn: Callable[[], Any],
        loss_of_output: Callable[[Any], Any],
        variables: Sequence[Any],
        penalty_fn: Callable[[], Any] | None = None,
        strict: bool = False,
        decides: bool = False,
    ) -> OutputCurvature:
        """Run a model.

        Args:
            output_fn: without arguments; returns the outputs z.
            loss_of_output: from z to a scalar.
            variables, decides: as above.
            penalty_fn: without arguments; returns a scalar, or None for none.
            strict: raise UnconnectedGradientError for a variable that z does not depend on, instead of giving zeros.
        """
        around = GradientTape(persistent=True, watch_accessed_variables=False, strict=True) if strict else None
        tape = Tape(watch_accessed=False) if around is None else around.tape
        with tape if around is None else around:
            if around is None:
                tape.tracked.update([variable.key for variable in variables])
            else:
                around.watch(list(variables))
            outputs = convert_to_tensor(output_fn())
            stage = len(tape.records)
            if outputs.dtype.is_differentiable:
                tape.tracked.add(outputs.key)
            bare = loss = scalar(loss_of_output(outputs))
            penalty = None if penalty_fn is None else penalty_fn()
            if penalty is not None:
                penalty = scalar(penalty)
                loss = bare + penalty
        return cls(tape, stage, outputs, bare, variables, penalty, loss, decides, around)

    def gradient(self) -> tuple[Tensor, bool]:
        """The flat gradient of the loss; True if the loss depends on any of the variables."""
        tape = self._tape_of(self.records)
        return flatten(tape.gradient(self.loss, self.variables, unconnected_gradients="zero")), tape.found_any

    def prepare(self) -> list[Tensor]:
        """Compute what all products share."""
        return [*self._turned[2], *self._bending.parts, *(self._penalty.parts if self._penalty else ())]

    @cached_property
    def tape(self) -> GradientTape:
        """The record of z."""
        return self._tape_of(self.records[: self.stage]) if self._strict is None else self._strict

    def _tape_of(self, records: Sequence[Record]) -> GradientTape:
        """A persistent tape that has recorded this."""
        tape = GradientTape(persistent=True, watch_accessed_variables=False)
        with tape:
            tape.tape.records, tape.tape.tracked = list(records), set(self.tracked)
        return tape

    @cached_property
    def _bending(self) -> RecordedGradient:
        """The gradient of the loss in z."""
        return RecordedGradient(self._tape_of(self.records[self.stage :]), self.bare, [self.outputs])

    @cached_property
    def _penalty(self) -> RecordedGradient | None:
        """The gradient of the penalty."""
        return None if self.penalty is None else RecordedGradient(self._tape_of(self.records), self.penalty, self.variables)

    @cached_property
    def _turned(self) -> tuple[GradientTape, Tensor, list[Tensor]]:
        """J^T times a seed as a record, the seed, and the result, which is linear in it."""
        turned = GradientTape(persistent=True, watch_accessed_variables=False)
        with turned:
            seed = operations.zeros_like(self.outputs)
            turned.watch(seed)
            return turned, seed, self.back(seed)

    # Products ------------------------------------------------------------------------------------------------------------

    def product(self, parts: Sequence[Any]) -> list[Tensor]:
        """The curvature times a direction among the variables: forward to the outputs, through the loss's Hessian, and back."""
        turned, seed, result = self._turned
        found = self.back(self.bent(turned.gradient(result, seed, list(parts), "zero")))
        return found if self._penalty is None else [x + y for x, y in zip(found, self._penalty.product(parts), strict=True)]

    def flat_product(self, vector: Tensor) -> Tensor:
        """The curvature times a flat vector."""
        return flatten(self.product(unflatten(vector, self.variables)))

    def bent(self, direction: Tensor) -> Tensor:
        """H times a direction among the outputs."""
        return _reshaped(self._bent_rows(_reshaped(direction, self._shape)), tuple(self.outputs.shape))

    def _bent_rows(self, rows: Tensor) -> Tensor:
        (found,) = self._bending.product([_reshaped(rows, tuple(self.outputs.shape))])
        return _reshaped(found, self._shape)

    def back(self, cotangent: Tensor) -> list[Tensor]:
        """J^T times a tensor like the outputs, one part for each variable."""
        found = self.tape.gradient(self.outputs, self.variables, cotangent, self._fill)
        return [convert_to_tensor(part) for part in found]

    @property
    def _shape(self) -> tuple[int, int]:
        """Rows of z, and elements in each."""
        rows = self.outputs.shape[0] if self.outputs.shape else 1
        return rows, size_of(self.outputs) // max(rows, 1)

    # Matrices ------------------------------------------------------------------------------------------------------------

    def matrix(self, places: Sequence[int] | None = None, chunk_size: int | None = None) -> Tensor:
        """The block of some of the variables, by their places, symmetric; the whole matrix without."""
        rows = self.jacobian(self.variables if places is None else [self.variables[place] for place in places], chunk_size)
        hessians = self.row_hessians()
        if hessians is None:
            bent = self._bending.matrix(None, chunk_size) @ rows
        else:
            stacked = operations.reshape(rows, shape=(*self._shape, rows.shape[-1]), rank=2)
            bent = operations.reshape(hessians @ stacked, shape=tuple(rows.shape), rank=3)
        block = symmetric(operations.transpose(rows, perm=(-1, -2)) @ bent)
        return block if self._penalty is None else block + self._penalty.matrix(places, chunk_size)

    def jacobian(self, chosen: Sequence[Any], chunk_size: int | None = None) -> Tensor:
        """J, shape (elements of z, parameters of the chosen variables)."""
        found = self._jacobian_by_rows(chosen)
        if found is not None:
            return found
        count = size_of(self.outputs)
        blocks = self.tape.jacobian(self.outputs, list(chosen), self._fill, chunk_size=chunk_size)
        return operations.reshape(matrix_of(blocks, count), shape=(count, sum(map(size_of, chosen))), rank=2)

    def _jacobian_by_rows(self, chosen: Sequence[Any]) -> Tensor | None:
        """J at the cost of one sweep for each column of z, if a row of z depends on no other row of what it is made of.

        The record is read as if it were one row's, for all rows at once. Whether that is true, a product of the result with a
        random vector shows; None if it is not.
        """
        z, (rows, columns) = self.outputs, self._shape
        if not self._may_decide() or rows < 2 or not columns or self._fill == "none":
            return None
        batch = Batch(rows)
        records = rows_apart(self.tape.tape.records, batch)
        xp, array, keys = namespace(z.array), z.array, [variable.key for variable in chosen]
        found = []
        try:
            with batch:
                units = xp.eye(columns, dtype=array.dtype)
                for column in range(columns):
                    unit = units[column].reshape((1, 1, *array.shape[1:]))
                    seed = xp.broadcast_to(unit, (rows, 1, *array.shape[1:]))
                    parts = sweep(records, {z.key: BatchedTensor(Tensor(seed), batch)}, keys, bare=False)
                    found.append({key: batch.stack_of(part) for key, part in parts.items()})
        except (ValueError, TypeError, IndexError):  # a rule that wants all rows
            return None
        whole = []
        for variable in chosen:
            if any(variable.key in one and one[variable.key].shape[1:] != variable.shape for one in found):
                return None
            zeros = Tensor(xp.zeros((rows, size_of(variable)), dtype=array.dtype))
            flat = [zeros if variable.key not in one else matrix_of([one[variable.key]], rows) for one in found]
            whole.append(operations.stack(flat, axis=-2) if columns > 1 else flat[0])
        side_by_side = operations.concat(*whole, axis=-1) if len(whole) > 1 else whole[0]
        result = _reshaped(side_by_side, (rows * columns, sum(map(size_of, chosen))))
        probe = self._random(array.shape)
        expected = flatten(self.tape.gradient(z, list(chosen), probe, "zero"))
        guess = operations.reshape(probe, shape=(1, rows * columns), rank=len(array.shape)) @ result
        grounds = _largest(operations.reshape(guess, shape=tuple(expected.shape), rank=2), expected)
        return result if _decided(grounds) else None

    def _random(self, shape: ShapeLike) -> Tensor:
        """Normal numbers, the same ones at every call."""
        array = self.outputs.array
        key = np.array([array.size, 0], np.uint64)
        return Tensor(operations.random_normal(key, shape=tuple(shape), dtype=array.dtype, xp=namespace(array)))

    def row_hessians(self) -> Tensor | None:
        """H as a block for each row of z, shape (rows, c, c) with c elements in a row; None where rows meet in the loss.

        Where an interpreter is on the stack it may be None although they do not: whether rows meet is read from numbers.
        """
        if not self._may_decide() or not self.outputs.shape or not size_of(self.outputs):
            return None
        rows, columns = self._shape
        blocks, probe = _reshaped(self._bending.blocks_of_rows(), (rows, columns, columns)), self._random(self._shape)
        apart = operations.einsum(blocks, probe, terms=("nij", "nj"), result="ni")
        grounds = _largest(apart, self._bent_rows(probe))
        if not _differ_by_rounding(grounds.array):
            others = self._others_of_loss(probe)
            if not _differ_by_rounding(others.array):
                _decided(grounds)
            grounds = others  # the first comparison may come out either way
        return blocks if _decided(grounds) else None

    def _others_of_loss(self, probe: Tensor) -> Tensor:
        """The grounds of H times some rows of a direction in all others, for choices of rows that tell any two apart: both 0.

        Where H is almost 0, as that of a saturated softmax, it is rounding errors alone, which no comparison tells from more.
        """
        rows, array = self._shape[0], probe.array
        numbers, found = np.arange(rows)[:, None], [operations.zeros_like(probe)]
        for bit in range((rows - 1).bit_length()):
            chosen = to_device(((numbers >> bit) & 1).astype(array.dtype), namespace(array))
            found.append(self._bent_rows(probe * chosen) * (1 - chosen))
        stacked = operations.stack(found)
        return _largest(stacked, operations.zeros_like(stacked))

    def _may_decide(self) -> bool:
        return self._decides or current() is BOTTOM


def _largest(found: Tensor, expected: Tensor) -> Tensor:
    """The grounds of a decision: the largest difference, and the largest value."""
    axes = tuple(range(-len(expected.shape), 0))
    largest = [operations.reduce_max(abs(x), axes=axes, keepdims=False) for x in (found - expected, expected)]
    stacked: Tensor = operations.stack(largest)
    return stacked


def _decided(grounds: Tensor) -> bool:
    """True if rows are independent on these grounds."""
    apart = _differ_by_rounding(grounds.array)
    perform(rows_decided, (grounds,), {"apart": apart})
    return apart


def _reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    found: Tensor = x if tuple(x.shape) == shape else operations.reshape(x, shape=shape, rank=len(x.shape))
    return found


def rows_apart(records: Sequence[Record], batch: Batch) -> list[Record]:
    """Records with every value that has one row for each of the batch, or k rows, as a stack of values of shape (k, ...).

    What is read from a Variable stays whole.
    """
    reads = [record for record in records if State.OPERANDS in record.primitive.reads]
    whole = {x.key for record in reads for x in (*record.inputs, record.outputs)}

    def apart(value: TensorLike) -> Any:
        if type(value) is tuple:
            return tuple([apart(part) for part in value])
        if not isinstance(value, Tensor) or value.key in whole or not value.shape or value.shape[0] % batch.size:
            return value
        shape = (batch.size, value.shape[0] // batch.size, *value.shape[1:])
        stack = BatchedTensor(operations.reshape(value, shape=shape, rank=len(value.shape)), batch)
        stack.key = value.key
        return stack

    return [Record(r.primitive, [apart(x) for x in r.inputs], r.params, apart(r.outputs)) for r in records]
