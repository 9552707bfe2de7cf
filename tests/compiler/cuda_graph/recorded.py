"""Every instruction that operations, layers, losses and optimizers record, with what it is given and what NumPy makes of it."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from layer_table import ROWS
from loss_table import LOGITS, LOSSES, loss_of
from optimizer_cases import FORMULAS, OPTIONS, SHAPES
from side_by_side import with_gradient
from specimens import SPECIMENS

import minikeras as tf
from minikeras import nest
from minikeras.compiler.executors.cuda_graph.nodes import TARGET, CudaKernel, Emitter
from minikeras.compiler.executors.numpy.lowering import kernel_of
from minikeras.compiler.ir import Program, Slot, outputs_of
from minikeras.compiler.loop_ir.expression import DTYPES
from minikeras.compiler.loop_ir.fusion import fuse_groups
from minikeras.compiler.passes import optimized
from minikeras.compiler.passes.device import lower_convolutions
from minikeras.core import Record
from minikeras.nn_ops import streams

Passes = Callable[[Program], Program]
L, losses = tf.keras.layers, tf.keras.losses


@dataclass(frozen=True)
class Case:
    """An instruction of a program.

    Attributes:
        name: of what was recorded.
        record: the instruction.
        given: values of its operands.
        expected: its results.
        kernels: what carries it out; None if there is no kernel for it.
    """

    name: str
    record: Record
    given: list[Any]
    expected: list[Any]
    kernels: list[CudaKernel] | None


def replayed(name: str, program: Program, arguments: list[Any]) -> Iterator[Case]:
    """The instructions of a program, carried out in turn by their own kernels."""
    values = {slot.key: array for slot, array in zip(program.arguments, arguments, strict=True)}
    values |= {slot.key: slot.array for slot in program.slots() if slot.array is not None}
    emitter = Emitter(itertools.count(1 << 20))
    for record in program.records:
        given = [values[x.key] if isinstance(x, Slot) else x for x in record.inputs]
        kept = [np.array(x) if isinstance(x, np.ndarray) else x for x in given]
        with np.errstate(all="ignore"):
            results = kernel_of(record, np)(*given)
        results = list(results) if type(record.outputs) is tuple else [results]
        values |= {slot.key: array for slot, array in zip(outputs_of(record), results, strict=True)}
        if outputs_of(record):
            yield Case(name, record, kept, [np.array(y) for y in results], emitter.kernels(record))


def plain(program: Program) -> Program:
    """The program after the passes that all executors have."""
    return optimized(program)


def in_groups(program: Program) -> Program:
    """The program after all passes, those for a device too."""
    return fuse_groups(lower_convolutions(for_graphs(program)), TARGET)


def for_graphs(program: Program) -> Program:
    """The program after the passes that all executors have, with those steps of optimizers that are instructions for graphs."""
    return optimized(program, kinds=DTYPES, graphs=True)


def cases(name: str, function: Any, *inputs: Any, passes: Passes = plain) -> list[Case]:
    """The instructions of a function for these inputs; none if it cannot be recorded."""
    compiled = tf.function(function)
    compiled(*inputs)
    program = compiled.program(*inputs)
    if not isinstance(program, Program):
        return []
    return list(replayed(name, passes(program), [x.array for x in nest.flatten(inputs)]))


def of_operations(passes: Passes = plain, every: int = 1) -> Iterator[Case]:
    """Every operation and its gradient, or a part of them."""
    for specimen in SPECIMENS[::every]:
        if specimen.reference is not None:
            step, inputs = with_gradient(specimen)
            yield from cases(specimen.name, step, *inputs, passes=passes)


def of_layers(dtype: str = "float32", passes: Passes = plain, every: int = 1) -> Iterator[Case]:
    """Every layer in training, with the gradients of inputs and weights, or a part of them."""
    for row in ROWS[::every]:
        streams.set_global_seed(3)
        layer = row.make(dtype=dtype)
        inputs = row.inputs("float32" if dtype.startswith("mixed") else dtype)
        layer(inputs)

        def step(*inputs: Any, layer: Any = layer, row: Any = row) -> Any:
            xs = list(inputs) if isinstance(row.shapes, list) else inputs[0]
            with tf.GradientTape() as tape:
                smooth = [x for x in inputs if x.dtype.is_differentiable]
                tape.watch(smooth)
                y = layer(xs, training=True)
                loss = tf.add_n([tf.reduce_sum(tf.cast(one, "float32") ** 2) for one in nest.flatten(y)])
            return loss, [g for g in tape.gradient(loss, [*smooth, *layer.trainable_variables]) if g is not None]

        yield from cases(row.name, step, *(inputs if isinstance(inputs, list) else [inputs]), passes=passes)


def of_losses(passes: Passes = plain, every: int = 1) -> Iterator[Case]:
    """Every loss and its gradient, of probabilities and, where it takes them, of logits, or a part of them."""
    for name in list(LOSSES)[::every]:
        if not isinstance(getattr(losses, name), type):
            continue  # what the class of its name calls
        found, y, predictions = loss_of(name)
        both = [(found, predictions)]
        if "from_logits" in found.get_config():
            both.append((type(found)(from_logits=True), LOGITS))
        for loss, predictions in both:

            def step(y: Any, x: Any, loss: Any = loss) -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    value = loss(y, x)
                return value, tape.gradient(value, x)

            yield from cases(name, step, tf.constant(y), tf.constant(predictions), passes=passes)


def of_optimizers(every: int = 1) -> Iterator[Case]:
    """Every optimizer with every option, or a part of these pairs."""
    for name, options in itertools.islice(itertools.product(FORMULAS, OPTIONS), 0, None, every):
        generator = np.random.default_rng(5)
        weights = [tf.Variable(generator.normal(size=shape), dtype="float32", name=key) for key, shape in SHAPES.items()]
        optimizer = FORMULAS[name](**OPTIONS[options])
        optimizer.build(weights)

        def step(*gradients: Any, optimizer: Any = optimizer, weights: Any = weights) -> Any:
            optimizer.apply(list(gradients), weights)
            return weights[0] + 0.0

        gradients = [tf.constant(generator.normal(size=shape), "float32") for shape in SHAPES.values()]
        yield from cases(f"{name} {options}", step, *gradients, passes=for_graphs)
