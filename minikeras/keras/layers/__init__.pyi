# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.layers.activations import Activation as Activation, ELU as ELU, LeakyReLU as LeakyReLU, PReLU as PReLU
from minikeras.keras.layers.activations import ReLU as ReLU, Softmax as Softmax
from minikeras.keras.layers.attention import AdditiveAttention as AdditiveAttention, Attention as Attention
from minikeras.keras.layers.attention import GroupedQueryAttention, MultiHeadAttention as MultiHeadAttention
from minikeras.keras.layers.augmentation import RandomBrightness as RandomBrightness, RandomContrast as RandomContrast
from minikeras.keras.layers.augmentation import RandomCrop as RandomCrop, RandomFlip as RandomFlip
from minikeras.keras.layers.augmentation import RandomRotation as RandomRotation, RandomTranslation as RandomTranslation
from minikeras.keras.layers.augmentation import RandomZoom as RandomZoom
from minikeras.keras.layers.batch_normalization import BatchNormalization as BatchNormalization
from minikeras.keras.layers.convolution import Conv1D as Conv1D, Conv1DTranspose as Conv1DTranspose, Conv2D as Conv2D
from minikeras.keras.layers.convolution import Conv2DTranspose as Conv2DTranspose, Conv3D as Conv3D
from minikeras.keras.layers.convolution import Conv3DTranspose as Conv3DTranspose, DepthwiseConv1D as DepthwiseConv1D
from minikeras.keras.layers.convolution import DepthwiseConv2D as DepthwiseConv2D, SeparableConv1D as SeparableConv1D
from minikeras.keras.layers.convolution import SeparableConv2D as SeparableConv2D
from minikeras.keras.layers.core import Dense as Dense, EinsumDense as EinsumDense, Embedding as Embedding
from minikeras.keras.layers.core import Identity as Identity, Input as Input, InputLayer as InputLayer, Masking as Masking
from minikeras.keras.layers.core import ReversibleEmbedding as ReversibleEmbedding
from minikeras.keras.layers.encoding import CategoryEncoding as CategoryEncoding, Discretization as Discretization
from minikeras.keras.layers.hashing import HashedCrossing as HashedCrossing, Hashing as Hashing
from minikeras.keras.layers.inputs import InputSpec as InputSpec
from minikeras.keras.layers.layer import Layer as Layer
from minikeras.keras.layers.lookup import IntegerLookup as IntegerLookup, StringLookup as StringLookup
from minikeras.keras.layers.merging import Add as Add, Average as Average, Concatenate as Concatenate, Dot as Dot
from minikeras.keras.layers.merging import Maximum as Maximum, Minimum as Minimum, Multiply as Multiply, Subtract as Subtract
from minikeras.keras.layers.mixtures import CutMix as CutMix, MixUp as MixUp, RandomErasing as RandomErasing
from minikeras.keras.layers.normalization import GroupNormalization as GroupNormalization
from minikeras.keras.layers.normalization import LayerNormalization as LayerNormalization, Normalization as Normalization
from minikeras.keras.layers.normalization import RMSNormalization as RMSNormalization, Rescaling as Rescaling
from minikeras.keras.layers.normalization import UnitNormalization as UnitNormalization
from minikeras.keras.layers.recurrent import Bidirectional as Bidirectional, RNN as RNN, StackedRNNCells as StackedRNNCells
from minikeras.keras.layers.recurrent_cells import ConvLSTM1D as ConvLSTM1D, ConvLSTM2D as ConvLSTM2D, ConvLSTM3D as ConvLSTM3D
from minikeras.keras.layers.recurrent_cells import GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell
from minikeras.keras.layers.recurrent_cells import SimpleRNN as SimpleRNN, SimpleRNNCell as SimpleRNNCell
from minikeras.keras.layers.regularization import ActivityRegularization as ActivityRegularization
from minikeras.keras.layers.regularization import AlphaDropout as AlphaDropout, Dropout as Dropout
from minikeras.keras.layers.regularization import GaussianDropout as GaussianDropout, GaussianNoise as GaussianNoise
from minikeras.keras.layers.regularization import SpatialDropout1D as SpatialDropout1D, SpatialDropout2D as SpatialDropout2D
from minikeras.keras.layers.regularization import SpatialDropout3D as SpatialDropout3D
from minikeras.keras.layers.reshaping import CenterCrop as CenterCrop, Cropping1D as Cropping1D, Cropping2D as Cropping2D
from minikeras.keras.layers.reshaping import Cropping3D as Cropping3D, Flatten as Flatten, Permute as Permute
from minikeras.keras.layers.reshaping import RepeatVector as RepeatVector, Reshape as Reshape, Resizing as Resizing
from minikeras.keras.layers.reshaping import UpSampling1D as UpSampling1D, UpSampling2D as UpSampling2D
from minikeras.keras.layers.reshaping import UpSampling3D as UpSampling3D, ZeroPadding1D as ZeroPadding1D
from minikeras.keras.layers.reshaping import ZeroPadding2D as ZeroPadding2D, ZeroPadding3D as ZeroPadding3D
from minikeras.keras.layers.text_vectorization import TextVectorization as TextVectorization
from minikeras.keras.layers.windows import AdaptiveAveragePooling1D as AdaptiveAveragePooling1D
from minikeras.keras.layers.windows import AdaptiveAveragePooling2D as AdaptiveAveragePooling2D
from minikeras.keras.layers.windows import AdaptiveAveragePooling3D as AdaptiveAveragePooling3D
from minikeras.keras.layers.windows import AdaptiveMaxPooling1D as AdaptiveMaxPooling1D
from minikeras.keras.layers.windows import AdaptiveMaxPooling2D as AdaptiveMaxPooling2D
from minikeras.keras.layers.windows import AdaptiveMaxPooling3D as AdaptiveMaxPooling3D, AveragePooling1D as AveragePooling1D
from minikeras.keras.layers.windows import AveragePooling2D as AveragePooling2D, AveragePooling3D as AveragePooling3D
from minikeras.keras.layers.windows import GlobalAveragePooling1D as GlobalAveragePooling1D
from minikeras.keras.layers.windows import GlobalAveragePooling2D as GlobalAveragePooling2D
from minikeras.keras.layers.windows import GlobalAveragePooling3D as GlobalAveragePooling3D
from minikeras.keras.layers.windows import GlobalMaxPooling1D as GlobalMaxPooling1D, GlobalMaxPooling2D as GlobalMaxPooling2D
from minikeras.keras.layers.windows import GlobalMaxPooling3D as GlobalMaxPooling3D, MaxPooling1D as MaxPooling1D
from minikeras.keras.layers.windows import MaxPooling2D as MaxPooling2D, MaxPooling3D as MaxPooling3D
from minikeras.keras.layers.wrappers import Lambda as Lambda, Pipeline as Pipeline
from minikeras.keras.layers.wrappers import SpectralNormalization as SpectralNormalization, TimeDistributed as TimeDistributed
from minikeras.keras.layers.wrappers import Wrapper as Wrapper
from minikeras.keras.saving.objects import deserialize as deserialize, serialize as serialize
from minikeras.types import TensorLike
from typing import Any

AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
Convolution1D = Conv1D
Convolution1DTranspose = Conv1DTranspose
Convolution2D = Conv2D
Convolution2DTranspose = Conv2DTranspose
Convolution3D = Conv3D
Convolution3DTranspose = Conv3DTranspose
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
GroupQueryAttention = GroupedQueryAttention
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
def add(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def average(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def concatenate(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def dot(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def maximum(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def minimum(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def multiply(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
def subtract(inputs: TensorLike, *arguments: Any, **options: Any) -> Any: ...
