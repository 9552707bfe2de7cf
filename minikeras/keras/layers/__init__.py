# mypy: implicit-reexport
"""Layers. May import the rest of the package below `keras` and keras's tables of activations, initializers and the like."""

from ...absent import facade as _facade
from .activations import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .batch_normalization import BatchNormalization
from .convolution import *  # noqa: F403
from .core import Dense, EinsumDense, Embedding, Identity, Input, InputLayer, Masking, ReversibleEmbedding
from .inputs import InputSpec
from .layer import Layer
from .merging import FUNCTIONS as _FUNCTIONS
from .merging import Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract
from .normalization import GroupNormalization, LayerNormalization, Normalization, Rescaling, RMSNormalization, UnitNormalization
from .regularization import *  # noqa: F403
from .reshaping import *  # noqa: F403
from .windows import *  # noqa: F403

add, average, concatenate, dot, maximum, minimum, multiply, subtract = _FUNCTIONS

_LATE = {
    name: module
    for module, names in {
        "attention": "AdditiveAttention Attention GroupQueryAttention MultiHeadAttention",
        "augmentation": "RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation RandomZoom",
        "mixtures": "CutMix MixUp RandomErasing",
        ".saving.objects": "deserialize serialize",
        "encoding": "CategoryEncoding Discretization",
        "hashing": "HashedCrossing Hashing",
        "lookup": "IntegerLookup StringLookup",
        "text_vectorization": "TextVectorization",
        "recurrent": "Bidirectional RNN StackedRNNCells",
        "recurrent_cells": "ConvLSTM1D ConvLSTM2D ConvLSTM3D GRU GRUCell LSTM LSTMCell SimpleRNN SimpleRNNCell",
        "wrappers": "Lambda Pipeline SpectralNormalization TimeDistributed Wrapper",
    }.items()
    for name in names.split()
}

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
