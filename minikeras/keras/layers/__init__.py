"""Layers. May import the rest of the package below `keras` and keras's tables of activations, initializers and the like."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import late as _late
from ..arguments import made_with_numpy as _made_with_numpy
from .activations import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .batch_normalization import BatchNormalization
from .convolution import Conv1D, Conv2D
from .core import Dense, Identity, Lambda, Masking
from .embedding import Embedding
from .input_layer import Input, InputLayer
from .inputs import InputSpec
from .layer import Layer
from .merging import FUNCTIONS as _FUNCTIONS
from .merging import Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract
from .normalization import GroupNormalization, LayerNormalization, Normalization, Rescaling, RMSNormalization, UnitNormalization
from .pooling import (
    AveragePooling1D,
    AveragePooling2D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    MaxPooling1D,
    MaxPooling2D,
)
from .regularization import ActivityRegularization, Dropout, GaussianDropout, GaussianNoise, SpatialDropout1D
from .reshaping import Flatten, Permute, RepeatVector, Reshape

add, average, concatenate, dot, maximum, minimum, multiply, subtract = _FUNCTIONS
AvgPool1D, AvgPool2D, MaxPool1D, MaxPool2D = AveragePooling1D, AveragePooling2D, MaxPooling1D, MaxPooling2D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D
Convolution1D, Convolution2D = Conv1D, Conv2D

for _kind in [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, Layer)]:
    _made_with_numpy(_kind)
for _kind in (
    *(Activation, ActivityRegularization, AveragePooling1D, AveragePooling2D, Dropout, ELU, Flatten, GaussianDropout),
    *(GaussianNoise, GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalMaxPooling1D, GlobalMaxPooling2D, Identity),
    *(LeakyReLU, Masking, MaxPooling1D, MaxPooling2D, Permute, ReLU, RepeatVector, Rescaling, Reshape, Softmax),
    *(SpatialDropout1D, UnitNormalization),
):
    _kind._makes_nothing = True

if _TYPE_CHECKING:
    from .preprocessing.encoding import CategoryEncoding

_LATE = {"CategoryEncoding": "preprocessing.encoding"}

__all__ = [
    "ELU",
    "Activation",
    "ActivityRegularization",
    "Add",
    "Average",
    "AveragePooling1D",
    "AveragePooling2D",
    "AvgPool1D",
    "AvgPool2D",
    "BatchNormalization",
    "CategoryEncoding",
    "Concatenate",
    "Conv1D",
    "Conv2D",
    "Convolution1D",
    "Convolution2D",
    "Dense",
    "Dot",
    "Dropout",
    "Embedding",
    "Flatten",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GroupNormalization",
    "Identity",
    "Input",
    "InputLayer",
    "InputSpec",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPooling1D",
    "MaxPooling2D",
    "Maximum",
    "Minimum",
    "Multiply",
    "Normalization",
    "PReLU",
    "Permute",
    "RMSNormalization",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "Softmax",
    "SpatialDropout1D",
    "Subtract",
    "UnitNormalization",
    "add",
    "average",
    "concatenate",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
]

__getattr__, __dir__ = _late(__name__, _LATE)
