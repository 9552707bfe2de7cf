# mypy: implicit-reexport
"""Layers. May import the rest of the package below `keras` and keras's tables of activations, initializers and the like."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import facade as _facade
from .activations import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .batch_normalization import BatchNormalization
from .convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Convolution1DTranspose,
    Convolution2DTranspose,
    Convolution3DTranspose,
    DepthwiseConv1D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
    SeparableConvolution1D,
    SeparableConvolution2D,
)
from .core import Dense, EinsumDense, Embedding, Identity, Input, InputLayer, Masking, ReversibleEmbedding
from .inputs import InputSpec
from .layer import Layer
from .merging import FUNCTIONS as _FUNCTIONS
from .merging import Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract
from .normalization import GroupNormalization, LayerNormalization, Normalization, Rescaling, RMSNormalization, UnitNormalization
from .regularization import (
    ActivityRegularization,
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from .reshaping import (
    CenterCrop,
    Cropping1D,
    Cropping2D,
    Cropping3D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    Resizing,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
from .windows import (
    AdaptiveAveragePooling1D,
    AdaptiveAveragePooling2D,
    AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D,
    AdaptiveMaxPooling2D,
    AdaptiveMaxPooling3D,
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)

add, average, concatenate, dot, maximum, minimum, multiply, subtract = _FUNCTIONS
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D

if _TYPE_CHECKING:
    from ..saving.objects import deserialize, serialize
    from .attention import AdditiveAttention, Attention, GroupQueryAttention, MultiHeadAttention
    from .augmentation import (
        RandomBrightness,
        RandomContrast,
        RandomCrop,
        RandomFlip,
        RandomRotation,
        RandomTranslation,
        RandomZoom,
    )
    from .mixtures import CutMix, MixUp, RandomErasing
    from .preprocessing.encoding import CategoryEncoding, Discretization
    from .preprocessing.hashing import HashedCrossing, Hashing
    from .preprocessing.lookup import IntegerLookup, StringLookup
    from .preprocessing.text_vectorization import TextVectorization
    from .recurrent import RNN, Bidirectional, StackedRNNCells
    from .recurrent_cells import GRU, LSTM, ConvLSTM1D, ConvLSTM2D, ConvLSTM3D, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell
    from .wrappers import Lambda, Pipeline, SpectralNormalization, TimeDistributed, Wrapper

_LATE = {
    name: module
    for module, names in {
        "attention": "AdditiveAttention Attention GroupQueryAttention MultiHeadAttention",
        "augmentation": "RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation RandomZoom",
        "mixtures": "CutMix MixUp RandomErasing",
        ".saving.objects": "deserialize serialize",
        "preprocessing.encoding": "CategoryEncoding Discretization",
        "preprocessing.hashing": "HashedCrossing Hashing",
        "preprocessing.lookup": "IntegerLookup StringLookup",
        "preprocessing.text_vectorization": "TextVectorization",
        "recurrent": "Bidirectional RNN StackedRNNCells",
        "recurrent_cells": "ConvLSTM1D ConvLSTM2D ConvLSTM3D GRU GRUCell LSTM LSTMCell SimpleRNN SimpleRNNCell",
        "wrappers": "Lambda Pipeline SpectralNormalization TimeDistributed Wrapper",
    }.items()
    for name in names.split()
}

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
