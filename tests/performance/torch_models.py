"""The models of section `models` in PyTorch, eager, with the first weights of the Keras models.

Images come with their channels last, as for Keras, and are turned once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .keras_models import (
    BLOCKS,
    CATEGORIES,
    COLUMNS,
    DEPTH,
    FEATURES,
    HEADS,
    LENGTH,
    MODELS,
    NUMBERS,
    PATCHES,
    SERIES,
    TOKENS,
    UNITS,
    WIDTH,
    first_arrays,
)  # fmt: skip
from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, MOMENTUM, VARIANCE_EPSILON, Array
from .training import keras_of


def _turned(x: Any) -> Any:
    return x.permute(0, 3, 1, 2)


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3), nn.Linear(1600, 10)

    def forward(self, x: Any) -> Any:
        h = F.max_pool2d(F.relu(self.first(_turned(x))), 2)
        h = F.max_pool2d(F.relu(self.second(h)), 2)
        return self.last(h.permute(0, 2, 3, 1).flatten(1))


class Normalized(nn.Module):
    """A convolution that pads as Keras's 'same' does, at the end where the padding is odd, and BatchNormalization."""

    def __init__(self, inputs: int, filters: int, size: int, strides: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, filters, size, strides, size // 2 if strides == 1 else 0, bias=False)
        self.normalization = nn.BatchNorm2d(filters, VARIANCE_EPSILON, 1.0 - MOMENTUM)
        self.padded = size == 3 and strides == 2

    def forward(self, x: Any) -> Any:
        return self.normalization(self.convolution(F.pad(x, (0, 1, 0, 1)) if self.padded else x))


class Residual(nn.Module):
    def __init__(self, inputs: int, filters: int, strides: int) -> None:
        super().__init__()
        self.first, self.second = Normalized(inputs, filters, 3, strides), Normalized(filters, filters, 3)
        self.kept = Normalized(inputs, filters, 1, strides) if strides > 1 else nn.Identity()

    def forward(self, x: Any) -> Any:
        return F.relu(self.second(F.relu(self.first(x))) + self.kept(x))


class Resnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = Normalized(3, 16, 3)
        self.blocks = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.last = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        return self.last(self.blocks(F.relu(self.stem(_turned(x)))).mean((2, 3)))


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1)),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(_turned(x)).permute(0, 2, 3, 1)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, FEATURES)
        self.query, self.key, self.value, self.output = (nn.Linear(FEATURES, FEATURES) for _ in range(4))
        self.normal = nn.ModuleList(nn.LayerNorm(FEATURES, VARIANCE_EPSILON) for _ in range(2))
        self.wide, self.narrow = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES)
        self.last = nn.Linear(FEATURES, 10)

    def forward(self, x: Any) -> Any:
        h = self.tokens(x)
        heads = [
            one(h).view(-1, LENGTH, HEADS, FEATURES // HEADS).transpose(1, 2) for one in (self.query, self.key, self.value)
        ]
        attended = F.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(-1, LENGTH, FEATURES)
        h = self.normal[0](h + self.output(attended))
        return self.last(self.normal[1](h + self.narrow(F.relu(self.wide(h)))).mean(1))


class MixerBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normal = nn.ModuleList(nn.LayerNorm(WIDTH, VARIANCE_EPSILON) for _ in range(2))
        self.patches = nn.Sequential(nn.Linear(PATCHES, PATCHES), nn.GELU(), nn.Linear(PATCHES, PATCHES))
        self.features = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, h: Any) -> Any:
        h = h + self.patches(self.normal[0](h).transpose(1, 2)).transpose(1, 2)
        return h + self.features(self.normal[1](h))


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, WIDTH, 4, 4)
        self.blocks = nn.Sequential(*(MixerBlock() for _ in range(BLOCKS)))
        self.normal, self.last = nn.LayerNorm(WIDTH, VARIANCE_EPSILON), nn.Linear(WIDTH, 10)

    def forward(self, x: Any) -> Any:
        h = self.blocks(self.cut(_turned(x)).flatten(2).transpose(1, 2))
        return self.last(self.normal(h).mean(1))


class WideAndDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codes, self.wide = nn.Embedding(COLUMNS * CATEGORIES, 16), nn.Embedding(COLUMNS * CATEGORIES, 1)
        self.first, self.second = nn.Linear(16 * COLUMNS + NUMBERS, 128), nn.Linear(128, 64)
        self.last = nn.Linear(COLUMNS + 64, 1)

    def forward(self, codes: Any, numbers: Any) -> Any:
        h = F.relu(self.first(torch.cat([self.codes(codes).flatten(1), numbers], 1)))
        return self.last(torch.cat([self.wide(codes).flatten(1), F.relu(self.second(h))], 1))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = [(nn.Linear(64, 64), nn.LayerNorm(64, VARIANCE_EPSILON), nn.GELU()) for _ in range(DEPTH)]
        self.layers = nn.Sequential(*(layer for block in blocks for layer in block), nn.Linear(64, 10))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class Recurrent(nn.Module):
    """Two biases are added up in PyTorch; one stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(SERIES, UNITS, batch_first=True), nn.Linear(UNITS, 10)
        self.lstm.bias_hh_l0.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


MODULES: dict[str, type[nn.Module]] = {
    "convnet": Convnet,
    "resnet": Resnet,
    "autoencoder": Autoencoder,
    "transformer": Transformer,
    "mixer": Mixer,
    "wide and deep": WideAndDeep,
    "deep": Deep,
    "lstm": Recurrent,
}


def _as_torch(array: Array, module: nn.Module) -> Any:
    """A kernel of Keras as that module has it."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        array = array.transpose(3, 2, 0, 1)
    elif isinstance(module, nn.Linear):
        array = array.reshape(module.in_features, module.out_features).T
    return torch.from_numpy(np.ascontiguousarray(array))


def _give(lstm: nn.LSTM, kernel: Array, recurrent: Array) -> None:
    """Weights of Keras's LSTM, whose gates have the same order, and its first bias: 1 for the gate that forgets."""
    lstm.weight_ih_l0.copy_(torch.from_numpy(np.ascontiguousarray(kernel.T)))
    lstm.weight_hh_l0.copy_(torch.from_numpy(np.ascontiguousarray(recurrent.T)))
    lstm.bias_hh_l0.zero_()
    lstm.bias_ih_l0.zero_()
    lstm.bias_ih_l0[UNITS : 2 * UNITS] = 1.0


def torch_model(label: str) -> nn.Module:
    """The model with the first weights of its Keras model of this project, kernels in the order of the layers."""
    module, kernels = MODULES[label](), first_arrays(MODELS[label].build(keras_of("minikeras")))
    kinds = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.Embedding, nn.LSTM)
    given = iter(kernels)
    with torch.no_grad():
        for holder in [one for one in module.modules() if isinstance(one, kinds)]:
            if isinstance(holder, nn.LSTM):
                _give(holder, next(given), next(given))
                continue
            holder.weight.copy_(_as_torch(next(given), holder))
            if getattr(holder, "bias", None) is not None:
                holder.bias.zero_()
    assert next(given, None) is None, "a kernel is left over"
    return module


def torch_trainer(label: str, rows: int | None) -> Callable[[], float]:
    """One epoch of the ordinary loop; its mean loss."""
    model, module = MODELS[label], torch_model(label)
    module.train()
    losses = {"labels": F.cross_entropy, "binary": F.binary_cross_entropy_with_logits, "rows": F.mse_loss}
    loss_of, optimizer = losses[model.loss], torch.optim.Adam(module.parameters(), LEARNING_RATE, (BETA_1, BETA_2), EPSILON)
    x, y = model.data(rows)
    inputs, labels = [torch.from_numpy(one) for one in x], torch.from_numpy(y)

    def epoch() -> float:
        total = torch.zeros(())
        for start in range(0, len(labels), model.batch):
            rows = slice(start, start + model.batch)
            optimizer.zero_grad()
            loss = loss_of(module(*(one[rows] for one in inputs)), labels[rows])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(labels[rows])
        return float(total) / len(labels)

    return epoch


def torch_predictor(label: str, x: list[Array]) -> Callable[[], Array]:
    """The outputs for these rows, batch by batch."""
    model, module = MODELS[label], torch_model(label)
    module.eval()
    inputs = [torch.from_numpy(one) for one in x]

    def predict() -> Array:
        with torch.no_grad():
            starts = range(0, len(x[0]), model.batch)
            return torch.cat([module(*(one[start : start + model.batch] for one in inputs)) for start in starts]).numpy()

    return predict
