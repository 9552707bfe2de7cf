"""The peers of `gpu_check.py`: the same network, loss, Adam and float32 in PyTorch and in JAX, single steps and whole epochs.

PyTorch's steps are captured as CUDA graphs where there is a GPU. What is not installed raises ImportError.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the memory from the others

Run = tuple[Callable[[], Any], Callable[[Any], Any]]
"""A step, and what waits for the loss that it gives."""


def batch(sizes: tuple[int, ...], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows and their classes."""
    random = np.random.default_rng(0)
    return random.standard_normal((rows, sizes[0]), "float32"), random.integers(0, sizes[-1], rows)


# PyTorch -------------------------------------------------------------------------------------------------------------------


def torch_place(device: str) -> str:
    """Its name of a device."""
    return "cuda" if device.startswith("GPU") else "cpu"


def torch_step(sizes: tuple[int, ...], device: str) -> Callable[[Any, Any], Any]:
    """A training step of a batch, which gives the loss."""
    import torch

    place, on_gpu = torch_place(device), device.startswith("GPU")
    torch.set_float32_matmul_precision("highest")
    layers = [part for a, b in zip(sizes, sizes[1:], strict=False) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers[:-1]).to(place)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, capturable=on_gpu, fused=on_gpu)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def torch_captured(step: Callable[[], Any], device: str) -> Callable[[], Any]:
    """A step whose operands stay where they are, as a CUDA graph; itself on the CPU."""
    import torch

    if not device.startswith("GPU"):
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    return lambda: graph.replay() or loss


def torch_graph(sizes: tuple[int, ...], rows: int, device: str) -> Run:
    """PyTorch's step."""
    import torch

    step = torch_step(sizes, device)
    x, y = [torch.from_numpy(one).to(torch_place(device)) for one in batch(sizes, rows)]
    return torch_captured(lambda: step(x, y), device), lambda loss: loss.item()


def torch_epochs(sizes: tuple[int, ...], rows: int, device: str, x: Any, y: Any, epochs: int) -> list[float]:
    """When each epoch ended: data on the device, a new order each time, batches gathered within the graph."""
    import torch

    place, step, ends = torch_place(device), torch_step(sizes, device), []
    x, y = torch.from_numpy(x).to(place), torch.from_numpy(y).to(place)
    chosen = torch.zeros(rows, dtype=torch.int64, device=place)
    run = torch_captured(lambda: step(x.index_select(0, chosen), y.index_select(0, chosen)), device)
    for _ in range(epochs):
        order = torch.randperm(len(x), device=place)
        for at in range(0, len(x) - rows + 1, rows):
            chosen.copy_(order[at : at + rows])
            loss = run()
        loss.item()
        ends.append(time.perf_counter())
    return ends


# JAX -----------------------------------------------------------------------------------------------------------------------


def jax_step(sizes: tuple[int, ...], device: str) -> tuple[Any, Callable[..., Any], Any]:
    """The state of training, a step (state, x, y) -> (state, loss) with Adam written out, and JAX's device."""
    import jax
    import jax.numpy as jnp

    place, random = jax.devices("gpu" if device.startswith("GPU") else "cpu")[0], np.random.default_rng(0)
    pairs = zip(sizes, sizes[1:], strict=False)
    weights = [(random.normal(size=(a, b)).astype("float32") * a**-0.5, np.zeros(b, "float32")) for a, b in pairs]
    zeros = jax.tree.map(np.zeros_like, weights)

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        for kernel, bias in weights[:-1]:
            x = jax.nn.relu(jnp.dot(x, kernel, precision="highest") + bias)
        logits = jnp.dot(x, weights[-1][0], precision="highest") + weights[-1][1]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, first, second, count = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        new = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-7), weights, first, second)
        return (new, first, second, count), loss

    return jax.device_put((weights, zeros, zeros, np.float32(0)), place), step, place


def jax_jit(sizes: tuple[int, ...], rows: int, device: str) -> Run:
    """JAX's step, compiled."""
    import jax

    state, step, place = jax_step(sizes, device)
    compiled, held = jax.jit(step, donate_argnums=0), [state]
    x, y = jax.device_put(batch(sizes, rows), place)

    def run() -> Any:
        held[0], loss = compiled(held[0], x, y)
        return loss

    return run, lambda loss: loss.block_until_ready()


def jax_epochs(sizes: tuple[int, ...], rows: int, device: str, x: Any, y: Any, epochs: int) -> list[float]:
    """When each epoch ended: data on the device, a compiled step gathers its batch and is called for each."""

    def run(step: Any, state: Any, data: Any, order: Any) -> Any:
        for chosen in order:
            state, loss = step(state, data, chosen)
        return state, loss

    return _jax_epochs(sizes, rows, device, (x, y), epochs, lambda compiled, step: functools.partial(run, compiled(step)))


def jax_scanned_epochs(sizes: tuple[int, ...], rows: int, device: str, x: Any, y: Any, epochs: int) -> list[float]:
    """When each epoch ended, each of which is one compiled loop."""
    import jax

    def loop(step: Any, state: Any, data: Any, order: Any) -> Any:
        return jax.lax.scan(lambda state, chosen: step(state, data, chosen), state, order)

    return _jax_epochs(sizes, rows, device, (x, y), epochs, lambda compiled, step: compiled(functools.partial(loop, step)))


def _jax_epochs(sizes: Any, rows: int, device: str, data: Any, epochs: int, make: Any) -> list[float]:
    """`make(compiled, step)` gives a function of the state, the data and the rows of all batches of an epoch."""
    import jax

    state, step, place = jax_step(sizes, device)
    data, random, ends = jax.device_put(data, place), np.random.default_rng(1), []
    of_rows = lambda state, data, chosen: step(state, data[0][chosen], data[1][chosen])
    run = make(functools.partial(jax.jit, donate_argnums=0), of_rows)
    for _ in range(epochs):
        order = random.permutation(len(data[0]))[: len(data[0]) // rows * rows].reshape(-1, rows)
        state, losses = run(state, data, jax.device_put(order, place))
        losses.block_until_ready()
        ends.append(time.perf_counter())
    return ends


STEPS = {"PyTorch graph": torch_graph, "JAX jit": jax_jit}
EPOCHS = {"PyTorch graph": torch_epochs, "JAX jit": jax_epochs, "JAX scan": jax_scanned_epochs}
