"""The training step in PyTorch, JAX, HIPS autograd and MyGrad, each as its own documentation would have it."""

import itertools
import os
from typing import Any

import numpy as np

from .adam import Adam
from .candidates import Step, candidate
from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, MOMENTUM, VARIANCE_EPSILON, Data, Problem, Weights


def threaded_torch() -> Any:
    """PyTorch with this run's threads. Imported when it is used: it would count in the others' peak memory."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return torch


def torch_model(sizes: tuple[int, ...], weights: Weights, normalized: bool = False) -> Any:
    """The network as a `torch.nn.Sequential`."""
    torch = threaded_torch()
    layers: list[Any] = []
    for (inputs, outputs), (kernel, bias) in zip(itertools.pairwise(sizes), weights, strict=True):
        layer = torch.nn.Linear(inputs, outputs)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(kernel.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, torch.nn.ReLU()]
        if normalized:
            layers.append(torch.nn.BatchNorm1d(outputs, VARIANCE_EPSILON, 1.0 - MOMENTUM))
    return torch.nn.Sequential(*layers[: -2 if normalized else -1])


def torch_step(model: Any, fused: bool) -> Any:
    """A training step of (x, labels)."""
    torch = threaded_torch()
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE, (BETA_1, BETA_2), EPSILON, fused=fused)

    def step(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _torch(problem: Problem, weights: Weights, data: Data, fused: bool) -> Step:
    torch = threaded_torch()
    step = torch_step(torch_model(problem.sizes, weights, problem.normalized), fused)
    x, y = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    return lambda: step(x, y)


@candidate("PyTorch eager", "torch", normalizes=True)
def torch_eager(problem: Problem, weights: Weights, data: Data) -> Step:
    return _torch(problem, weights, data, fused=False)


@candidate("PyTorch eager, fused Adam", "torch", normalizes=True)
def torch_fused(problem: Problem, weights: Weights, data: Data) -> Step:
    return _torch(problem, weights, data, fused=True)


def jax_adam(state: Any, gradients: Any) -> Any:
    """The next (parameters, momenta, velocities, t); the first three are trees of arrays."""
    import jax
    import jax.numpy as jnp

    parameters, momenta, velocities, t = state
    t = t + 1.0
    rate = LEARNING_RATE * jnp.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
    momenta = jax.tree.map(lambda m, g: m + (g - m) * (1.0 - BETA_1), momenta, gradients)
    velocities = jax.tree.map(lambda v, g: v + (g * g - v) * (1.0 - BETA_2), velocities, gradients)
    moved = jax.tree.map(lambda w, m, v: w - m * rate / (jnp.sqrt(v) + EPSILON), parameters, momenta, velocities)
    return moved, momenta, velocities, t


def _jax_loss(parameters: Any, averages: Any, x: Any, labels: Any) -> Any:
    """The loss, and the new moving averages of every BatchNormalization."""
    import jax
    import jax.numpy as jnp

    h, moved = x, []
    for layer, (kernel, bias, *scales) in enumerate(parameters[:-1]):
        h = jax.nn.relu(h @ kernel + bias)
        if scales:
            found = h.mean(axis=0), h.var(axis=0)
            h = (h - found[0]) * jax.lax.rsqrt(found[1] + VARIANCE_EPSILON) * scales[0] + scales[1]
            pairs = zip(averages[layer], found, strict=True)
            moved.append(tuple(old * MOMENTUM + new * (1.0 - MOMENTUM) for old, new in pairs))
    logits = h @ parameters[-1][0] + parameters[-1][1]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -chosen.mean(), moved


@candidate("JAX jit", "jax", normalizes=True)
def jax_jit(problem: Problem, weights: Weights, data: Data) -> Step:
    import jax
    import jax.numpy as jnp

    def update(state: Any, averages: Any, x: Any, labels: Any) -> Any:
        differentiated = jax.value_and_grad(_jax_loss, has_aux=True)
        (loss, averages), gradients = differentiated(state[0], averages, x, labels)
        return jax_adam(state, gradients), averages, loss

    compiled = jax.jit(update, donate_argnums=(0, 1))
    x, y = jnp.asarray(data[0]), jnp.asarray(data[1], jnp.int32)
    parameters = [tuple(map(jnp.array, pair)) for pair in weights]
    averages: Any = []
    if problem.normalized:
        units = [jnp.zeros_like(bias) for _, bias in weights[:-1]]
        parameters = [(*pair, unit + 1.0, unit + 0.0) for pair, unit in zip(parameters, units, strict=False)] + parameters[-1:]
        averages = [(unit + 0.0, unit + 1.0) for unit in units]
    state = parameters, *(jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)), jnp.float32(0)

    def step() -> Any:
        nonlocal state, averages
        state, averages, loss = compiled(state, averages, x, y)
        return loss

    return step


@candidate("HIPS autograd", "autograd")
def hips_autograd(problem: Problem, weights: Weights, data: Data) -> Step:
    import autograd.numpy as anp
    from autograd import value_and_grad
    from autograd.scipy.special import logsumexp

    x, labels = data
    rows = np.arange(len(x))

    def loss_of(parameters: Any) -> Any:
        h = x
        for i in range(0, len(parameters) - 2, 2):
            h = anp.maximum(anp.dot(h, parameters[i]) + parameters[i + 1], 0)
        logits = anp.dot(h, parameters[-2]) + parameters[-1]
        return anp.mean(logsumexp(logits, axis=1) - logits[rows, labels])

    parameters = [array.copy() for pair in weights for array in pair]
    adam = Adam(parameters)
    differentiated = value_and_grad(loss_of)

    def step() -> Any:
        nonlocal parameters
        loss, gradients = differentiated(parameters)
        parameters = adam.step(parameters, gradients)
        return loss

    return step


@candidate("MyGrad", "mygrad")
def mygrad(problem: Problem, weights: Weights, data: Data) -> Step:
    import mygrad as mg
    from mygrad.nnet.activations import relu
    from mygrad.nnet.losses import softmax_crossentropy

    mg.turn_memory_guarding_off()  # its documentation's advice for speed
    x, labels = data
    parameters = [mg.tensor(array.copy()) for pair in weights for array in pair]
    adam = Adam([parameter.data for parameter in parameters])

    def step() -> Any:
        h: Any = x
        for i in range(0, len(parameters) - 2, 2):
            h = relu(mg.matmul(h, parameters[i]) + parameters[i + 1])
        loss = softmax_crossentropy(mg.matmul(h, parameters[-2]) + parameters[-1], labels)
        loss.backward()
        new = adam.step([parameter.data for parameter in parameters], [parameter.grad for parameter in parameters])
        for parameter, array in zip(parameters, new, strict=True):
            parameter.data = array
            parameter.null_grad()
        return loss.data

    return step
