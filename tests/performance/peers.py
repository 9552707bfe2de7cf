"""The training step in PyTorch, JAX, HIPS autograd and MyGrad, each as its own documentation would have it."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from .by_hand import Adam
from .candidates import Step, candidate
from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Data, Weights


def threaded_torch() -> Any:
    """PyTorch with this run's threads. Imported when it is used: it would count in the others' peak memory."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return torch


def torch_model(sizes: tuple[int, ...], weights: Weights) -> Any:
    """The network as a `torch.nn.Sequential`."""
    torch = threaded_torch()
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    with torch.no_grad():
        for layer, (kernel, bias) in zip(layers[::2], weights, strict=True):
            layer.weight.copy_(torch.from_numpy(kernel.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias))
    return torch.nn.Sequential(*layers[:-1])


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


def _torch(sizes: tuple[int, ...], weights: Weights, data: Data, fused: bool) -> Step:
    torch = threaded_torch()
    step = torch_step(torch_model(sizes, weights), fused)
    x, y = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    return lambda: step(x, y)


@candidate("PyTorch eager", needs="torch")
def torch_eager(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    return _torch(sizes, weights, data, fused=False)


@candidate("PyTorch eager, fused Adam", needs="torch")
def torch_fused(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    return _torch(sizes, weights, data, fused=True)


@candidate("JAX jit", needs="jax")
def jax_jit(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    import jax
    import jax.numpy as jnp

    def loss_of(parameters: Any, x: Any, labels: Any) -> Any:
        h = x
        for kernel, bias in parameters[:-1]:
            h = jax.nn.relu(h @ kernel + bias)
        logits = h @ parameters[-1][0] + parameters[-1][1]
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -chosen.mean()

    def update(state: Any, x: Any, labels: Any) -> Any:
        parameters, momenta, velocities, t = state
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, labels)
        t = t + 1.0
        rate = LEARNING_RATE * jnp.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
        momenta = jax.tree.map(lambda m, g: m + (g - m) * (1.0 - BETA_1), momenta, gradients)
        velocities = jax.tree.map(lambda v, g: v + (g * g - v) * (1.0 - BETA_2), velocities, gradients)
        moved = jax.tree.map(lambda w, m, v: w - m * rate / (jnp.sqrt(v) + EPSILON), parameters, momenta, velocities)
        return (moved, momenta, velocities, t), loss

    compiled = jax.jit(update, donate_argnums=0)
    x, y = jnp.asarray(data[0]), jnp.asarray(data[1], jnp.int32)
    zeros = [[(jnp.zeros_like(kernel), jnp.zeros_like(bias)) for kernel, bias in weights] for _ in range(2)]
    state = [(jnp.array(kernel), jnp.array(bias)) for kernel, bias in weights], *zeros, jnp.float32(0)

    def step() -> Any:
        nonlocal state
        state, loss = compiled(state, x, y)
        return loss

    return step


@candidate("HIPS autograd", needs="autograd")
def hips_autograd(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
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


@candidate("MyGrad", needs="mygrad")
def mygrad(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
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
