"""The tasks of `derivative_tasks.py` in every library, each as its own documentation would have it.

Where a library differentiates with respect to one array, the parameters are one vector, cut into kernels and biases
within the loss.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .candidates import Step
from .derivative_tasks import Numbers, Task
from .executors import NATIVE, NUMPY, OWN, Executor, compiled
from .peers import threaded_torch
from .settings import Settings

GRADIENT = f"{OWN}, one gradient"

Steps = dict[str, Step]


# This project and TensorFlow, which share their words ---------------------------------------------------------------------


def _layers(tf: Any, given: Numbers) -> list[Any]:
    layers = [tf.keras.layers.Dense(kernel.shape[1], activation="tanh") for kernel, _ in given.weights]
    for layer, (kernel, bias) in zip(layers, given.weights, strict=True):
        layer.build((None, kernel.shape[0]))
        layer.set_weights([kernel, bias])
    return layers


def _outputs(layers: list[Any], x: Any) -> Any:
    for layer in layers:
        x = layer(x)
    return x


def _jacobian(tf: Any, task: Task, given: Numbers) -> Step:
    layers, x = _layers(tf, given), tf.constant(given.x)
    source = x if task.kind == "input" else layers[0].kernel

    def step() -> Any:
        with tf.GradientTape(watch_accessed_variables=source is not x) as tape:
            tape.watch(x if source is x else [])
            y = _outputs(layers, x)
        return tape.jacobian(y, source)

    return step


def minikeras(task: Task, given: Numbers) -> Steps:
    """One call each."""
    import minikeras as tf

    if task.kind in ("kernel", "input"):
        return {OWN: _jacobian(tf, task, given)}
    layers, x, targets, vector = _layers(tf, given), tf.constant(given.x), tf.constant(given.targets), tf.constant(given.vector)
    variables = [weight for layer in layers for weight in layer.trainable_variables]

    def loss(x: Any = x, targets: Any = targets) -> Any:
        return tf.reduce_mean((_outputs(layers, x) - targets) ** 2)

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            value = loss()
        return tape.gradient(value, variables)

    def row_loss(row: Any, target: Any) -> Any:
        return loss(row[None], target[None])

    steps: dict[str, Steps] = {
        "hessian": {OWN: lambda: tf.autodiff.hessian(loss, variables, chunk_size=task.chunk)},
        "product": {OWN: lambda: tf.autodiff.hvp(loss, variables, vector), GRADIENT: gradient},
        "examples": {OWN: lambda: tf.autodiff.per_example_gradients(row_loss, variables, x, targets)},
    }
    return steps[task.kind]


def tensorflow(task: Task, given: Numbers) -> Steps:
    """Eager, and compiled by `tf.function`."""
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")  # it warns that a Jacobian in eager mode is compiled anew each time
    if task.kind in ("kernel", "input"):
        step = _jacobian(tf, task, given)
        return {"TensorFlow eager": step, "tf.function": tf.function(step)}
    layers, x, targets = _layers(tf, given), tf.constant(given.x), tf.constant(given.targets)
    variables = [weight for layer in layers for weight in layer.trainable_variables]
    tangents, start = [], 0
    for variable in variables:
        size = int(np.prod(variable.shape))
        tangents.append(tf.constant(given.vector[start : start + size].reshape(variable.shape)))
        start += size

    def row_losses() -> Any:
        return tf.reduce_mean((_outputs(layers, x) - targets) ** 2, axis=1)

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(row_losses())
        return tf.concat([tf.reshape(part, [-1]) for part in tape.gradient(value, variables)], 0)

    def hessian() -> Any:
        with tf.GradientTape() as tape:
            flat = gradient()
        return tf.concat([tf.reshape(rows, [len(given.vector), -1]) for rows in tape.jacobian(flat, variables)], 1)

    def product() -> Any:
        with tf.autodiff.ForwardAccumulator([v.value for v in variables], tangents) as accumulator:
            flat = gradient()
        return accumulator.jvp(flat)

    def examples() -> Any:
        with tf.GradientTape() as tape:
            losses = row_losses()
        return tape.jacobian(losses, variables)

    step = {"hessian": hessian, "product": product, "examples": examples}[task.kind]
    return {"TensorFlow eager": step, "tf.function": tf.function(step)}


# Libraries that transform functions of arrays -----------------------------------------------------------------------------


def _cut(vector: Any, given: Numbers) -> list[tuple[Any, Any]]:
    """Kernels and biases, as parts of a vector of any library."""
    pairs, start = [], 0
    for kernel, bias in given.weights:
        middle, stop = start + kernel.size, start + kernel.size + bias.size
        pairs.append((vector[start:middle].reshape(kernel.shape), vector[middle:stop]))
        start = stop
    return pairs


def _network(tanh: Any, weights: Any, x: Any) -> Any:
    for kernel, bias in weights:
        x = tanh(x @ kernel + bias)
    return x


def _functions(tanh: Any, given: Numbers, array: Any) -> tuple[Any, ...]:
    """The first kernel, the flat parameters, rows, targets, vector; outputs by kernel and by input; the loss of some rows."""
    weights = [(array(kernel), array(bias)) for kernel, bias in given.weights]
    flat = array(np.concatenate([part.ravel() for pair in given.weights for part in pair]))

    def by_kernel(kernel: Any, x: Any) -> Any:
        return _network(tanh, [(kernel, weights[0][1]), *weights[1:]], x)

    def by_input(x: Any) -> Any:
        return _network(tanh, weights, x)

    def loss(flat: Any, x: Any, targets: Any) -> Any:
        return ((_network(tanh, _cut(flat, given), x) - targets) ** 2).mean()

    return weights[0][0], flat, array(given.x), array(given.targets), array(given.vector), by_kernel, by_input, loss


def torch(task: Task, given: Numbers) -> Steps:
    """`torch.func`; the Hessian is reverse over reverse."""
    pytorch = threaded_torch()
    func = pytorch.func
    kernel, flat, x, targets, vector, by_kernel, by_input, loss = _functions(pytorch.tanh, given, pytorch.from_numpy)
    gradient = func.grad(loss)
    hessian = func.jacrev(gradient, chunk_size=task.chunk)
    steps: dict[str, Step] = {
        "kernel": lambda: func.jacrev(by_kernel)(kernel, x),
        "input": lambda: func.jacrev(by_input)(x),
        "hessian": lambda: hessian(flat, x, targets),
        "product": lambda: func.jvp(lambda flat: gradient(flat, x, targets), (flat,), (vector,))[1],
        "examples": lambda: func.vmap(gradient, (None, 0, 0))(flat, x, targets),
    }
    return {"torch.func": steps[task.kind]}


def jax(task: Task, given: Numbers) -> Steps:
    """Compiled as a whole; the Hessian is reverse over reverse."""
    import jax
    import jax.numpy as jnp

    kernel, flat, x, targets, vector, by_kernel, by_input, loss = _functions(jnp.tanh, given, jnp.asarray)
    gradient = jax.grad(loss)

    def product(flat: Any, x: Any, targets: Any) -> Any:
        return jax.jvp(lambda flat: gradient(flat, x, targets), (flat,), (vector,))[1]

    function, inputs = {
        "kernel": (jax.jacrev(by_kernel), (kernel, x)),
        "input": (jax.jacrev(by_input), (x,)),
        "hessian": (jax.jacrev(gradient), (flat, x, targets)),
        "product": (product, (flat, x, targets)),
        "examples": (jax.vmap(gradient, (None, 0, 0)), (flat, x, targets)),
    }[task.kind]
    compiled = jax.jit(function)
    return {"JAX jit": lambda: compiled(*inputs)}


def autograd(task: Task, given: Numbers) -> Steps:
    """Row by row."""
    import autograd
    import autograd.numpy as anp

    kernel, flat, x, targets, vector, by_kernel, by_input, loss = _functions(anp.tanh, given, np.asarray)

    def row_losses(flat: Any) -> Any:
        return ((_network(anp.tanh, _cut(flat, given), x) - targets) ** 2).mean(axis=1)

    function, inputs = {
        "kernel": (autograd.jacobian(by_kernel), (kernel, x)),
        "input": (autograd.jacobian(by_input), (x,)),
        "hessian": (autograd.hessian(loss), (flat, x, targets)),
        "product": (autograd.hessian_vector_product(lambda flat: loss(flat, x, targets)), (flat, vector)),
        "examples": (autograd.jacobian(row_losses), (flat,)),
    }[task.kind]
    return {"HIPS autograd": lambda: function(*inputs)}


def _compiled(executor: Executor) -> Callable[[Task, Numbers], Steps]:
    """This project's steps, recorded."""
    return lambda task, given: {executor.title: compiled(minikeras(task, given)[OWN], executor)}


SETUPS: dict[str, tuple[tuple[str, ...], Callable[[Task, Numbers], Steps]]] = {
    OWN: ((OWN,), minikeras),
    GRADIENT: ((OWN,), minikeras),
    NUMPY.title: (NUMPY.needs, _compiled(NUMPY)),
    NATIVE.title: (NATIVE.needs, _compiled(NATIVE)),
    "torch.func": (("torch",), torch),
    "JAX jit": (("jax",), jax),
    "TensorFlow eager": (("tensorflow",), tensorflow),
    "tf.function": (("tensorflow",), tensorflow),
    "HIPS autograd": (("autograd",), autograd),
}
"""The modules that a candidate needs, and the function that sets up its steps."""


def taking_part(task: Task, settings: Settings) -> list[str]:
    """Candidates that are installed and know this task; autograd takes minutes for the largest Hessian."""
    found = [name for name, (needs, _) in SETUPS.items() if settings.has(*needs)]
    left_out = [*([GRADIENT] if task.kind != "product" else []), *(["HIPS autograd"] if task.chunk else [])]
    return [name for name in found if name not in left_out]
