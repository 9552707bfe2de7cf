"""KFAC: Gauss-Newton for dense layers, each block a Kronecker product of two small matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core import Record, State, Tensor, Variable, namespace, operations
from ....derivatives.flat import unflatten
from ....derivatives.output_curvature import OutputCurvature
from ....files import limits
from ....functions import cast, concat, matmul, ones, reshape
from ....nn_ops import streams
from ....types import Array
from ..state import Change
from .base import SecondOrder
from .problem import LossProblem, number


class Factors(NamedTuple):
    """The Kronecker factors of a dense layer's block A (x) G, for one batch."""

    kernel: int
    """The position among the problem's variables; `bias` is another."""
    bias: int | None
    inputs: Array
    """A, the mean of a a^T over rows, with a = (x, 1) if there is a bias."""
    outputs: Array
    """G, the mean of g g^T, with g the derivatives with respect to x K + b."""


class KFAC(SecondOrder):
    """For a dense layer y = x K + b, the Gauss-Newton block is taken as A (x) G, and the step for (K; b) is

        -(A + p sqrt(damping) I)^-1  g  (G + sqrt(damping) / p I)^-1,    p**2 = (tr A / dim A) / (tr G / dim G)

    A and G are running means over batches. G comes from the model's own distribution: cotangents H**(1/2) e with random e at
    the outputs, so that A (x) G approximates J^T H J whatever the labels are. The whole step is then scaled by the minimum of
    the quadratic model along it, with one exact product. Variables that belong to no dense layer (statistics, embeddings) go
    along their negative gradient, divided by `damping` plus one.

    Args, beside those of `SecondOrder`:
        damping: lambda; the trust in the factors.
        decay: of the running means; min(1 - 1/t, decay) in step t.

    `minikeras` finds the layers on the tape: a kernel that was multiplied from the right to a matrix of rows. `minimize` needs
    an `Objective` with outputs of shape (rows, columns); `fit` makes one.

    Logs:
        scale: the minimum along the step.

    Source: Martens and Grosse, Optimizing neural networks with Kronecker-factored approximate curvature (2015), sections 3, 5,
    6.3 and 6.4.

    >>> tf.keras.utils.set_random_seed(1)
    >>> (x, y), _ = tf.keras.datasets.iris.load_data()
    >>> model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(3)])
    >>> loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    >>> fit = tf.keras.optimizers.Objective(lambda: model(x), lambda z: loss_of(y, z))
    >>> optimizer = tf.keras.optimizers.KFAC()
    >>> losses = [float(optimizer.minimize(fit, model.trainable_variables)) for _ in range(30)]
    >>> print(losses[-1] < 0.1)
    True
    """

    slot_groups = (("inputs", "outputs"),)
    sweeps = ("record", "factors", "product")

    def __init__(
        self, learning_rate: float | Callable[..., Any] = 1.0, damping: float = 1e-2, decay: float = 0.95, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if damping <= 0 or not 0 <= decay < 1:
            raise ValueError(f"KFAC: damping must be above 0 and decay in [0, 1), found {damping} and {decay}.")
        self.damping, self.decay = float(damping), float(decay)
        self.add_number("scale", 0.0)

    def initial_slot(self, name: str, value: Array) -> Array:
        """The running mean of a kernel's factor; empty for other variables."""
        shape = value.shape
        size = 0 if len(shape) != 2 else shape[0] + 1 if name == "inputs" else shape[1]
        limits.spend_state((size, size), value.dtype.itemsize, "a factor of the curvature")
        return namespace(value).zeros((size, size), dtype=value.dtype)

    def record(self, problem: LossProblem) -> None:
        """Run the loss in its two stages, and take its gradient."""
        problem.record_stages(lambda curvature: [curvature.row_hessians(), *curvature.prepare()])

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        keep = min(1.0 - 1.0 / (int(self.iterations.array) + 1), self.decay)
        gradients = [part.array for part in unflatten(Tensor(problem.gradient), problem.variables)]
        steps = [-gradient / (1.0 + self.damping) for gradient in gradients]
        changes: list[Change] = []
        for found in layer_factors(problem):
            kernel = problem.variables[found.kernel]
            slot_a, slot_g = self.slot(kernel, "inputs"), self.slot(kernel, "outputs")
            size = len(found.inputs)
            a = slot_a.array.copy()
            a[:size, :size] = slot_a.array[:size, :size] * keep + found.inputs * (1.0 - keep)
            g = slot_g.array * keep + found.outputs * (1.0 - keep)
            changes += [(slot_a, a), (slot_g, g)]
            bias = None if found.bias is None else gradients[found.bias]
            kernel_step, bias_step = preconditioned(gradients[found.kernel], bias, a[:size, :size], g, self.damping)
            steps[found.kernel] = kernel_step
            if found.bias is not None:
                steps[found.bias] = bias_step
        step = namespace(problem.gradient).concatenate([one.reshape(-1) for one in steps])
        bend = number(step @ problem.product(step)) + self.damping * number(step @ step)
        slope = number(problem.gradient @ step)
        scale = -slope / bend if bend > 0 and slope < 0 else 0.0
        return step * scale, [*changes, *self.change(scale=scale)]


def preconditioned(kernel: Array, bias: Array | None, a: Array, g: Array, damping: float) -> tuple[Array, Array]:
    xp = namespace(kernel)
    whole = kernel if bias is None else xp.concatenate([kernel, bias[None, :]])
    trace_a, trace_g = (number(xp.einsum("ii->", factor)) / len(factor) for factor in (a, g))
    balance = math.sqrt(trace_a / trace_g) if trace_a > 0 and trace_g > 0 else 1.0
    root = math.sqrt(damping)
    left = xp.linalg.solve(a + xp.eye(len(a), dtype=a.dtype) * (root * balance), whole)
    turned = xp.linalg.solve(g + xp.eye(len(g), dtype=g.dtype) * (root / balance), left.swapaxes(0, 1))
    step = -turned.swapaxes(0, 1)
    return (step, step) if bias is None else (step[:-1], step[-1])


def layer_factors(problem: LossProblem) -> list[Factors]:
    """The factors of every dense layer on the record, from one sweep with random cotangents."""
    found = problem.answers[0]
    if found is None:
        raise ValueError("KFAC: the loss must be a sum or mean over rows of the outputs; here rows meet in it. Use NewtonCG.")
    blocks = found.array
    xp, hessians = namespace(blocks), blocks * len(blocks)  # of each row's own loss: the batch's loss is their mean
    noise = operations.random_normal(streams.global_stream().key(), shape=hessians.shape[:2], dtype=hessians.dtype, xp=xp)
    values, vectors = xp.linalg.eigh((hessians + hessians.swapaxes(1, 2)) * 0.5)
    cotangent = xp.einsum("nij,nj->ni", vectors * xp.sqrt(xp.maximum(values, 0))[:, None, :], noise)
    found = problem.sweep("factors", lambda given: _means_of_squares(problem.curvature, given), cotangent)
    return [
        Factors(kernel, bias, a.array, g.array) for kernel, bias, a, g in zip(*[found[i::4] for i in range(4)], strict=True)
    ]


def _means_of_squares(curvature: OutputCurvature, cotangent: Tensor) -> list[Any]:
    """Kernel, bias, A and G of every dense layer, in turn."""
    z, tape, dtype = curvature.outputs, curvature.tape, curvature.variables[0].dtype
    uses = dense_uses(tape.tape.records, curvature.variables)
    seed = reshape(cotangent, z.shape)
    gradients = tape.gradient(z, [y for _, _, _, y in uses], seed, unconnected_gradients="zero")
    found: list[Any] = []
    for (kernel, bias, x, _), gradient in zip(uses, gradients, strict=True):
        a, g, count = cast(x, dtype), cast(gradient, dtype), x.shape[0]
        if bias is not None:
            a = concat([a, ones([count, 1], dtype)], axis=1)
        found += [kernel, bias, *[matmul(part, part, transpose_a=True) / count for part in (a, g)]]
    return found


def dense_uses(records: Sequence[Record], variables: list[Variable]) -> list[tuple[int, int | None, Tensor, Tensor]]:
    """Products of a matrix of rows with a kernel that was read: kernel, bias, rows and result. A shared layer counts once."""
    positions = {variable.key: i for i, variable in enumerate(variables)}
    reads: dict[int, int] = {}
    uses: dict[int, tuple[int, int | None, Tensor, Tensor]] = {}
    for record in records:
        primitive, inputs, weight = record.primitive, record.inputs, record.primitive.weight
        if primitive is operations.cast and inputs[0].key in reads:  # a mixed policy computes in another dtype
            reads[record.outputs.key] = reads[inputs[0].key]
        elif State.OPERANDS in primitive.reads and inputs[0].key in positions:
            reads[record.outputs.key] = positions[inputs[0].key]
        elif weight is not None and inputs[weight].key in reads and inputs[0].ndim == 2:
            kernel, biases = reads[inputs[weight].key], [reads.get(x.key) for x in inputs[weight + 1 :]]
            uses[kernel] = kernel, biases[0] if biases else None, inputs[0], record.outputs
    return list(uses.values())
