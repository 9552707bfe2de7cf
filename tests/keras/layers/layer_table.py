"""One row for each layer: how it is made, what goes in, and what the laws cannot know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minikeras as tf

L = tf.keras.layers


@dataclass(frozen=True, eq=False)
class Row:
    """A layer and its input.

    Attributes:
        make: makes the layer with further options, such as a name.
        shapes: of the inputs; one that is not in a list goes in as it is.
        low, high: limits of the input, away from kinks; integers if `low` is an int.
        smooth: whether gradients are checked.
        passes_mask: whether a mask of the input is on the output: True, False, or None if the layer warns.
        dtype_kept: whether the output has the input's dtype instead of the layer's.
    """

    make: Callable[..., Any]
    shapes: Any
    low: float = -2.0
    high: float = 2.0
    smooth: bool = True
    passes_mask: bool | None = True
    dtype_kept: bool = False
    call: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return type(self.make()).__name__

    def inputs(self, dtype: str = "float64") -> Any:
        """The inputs, distinct numbers so that maxima have no ties."""
        generator = np.random.default_rng(7)
        made = [
            self._one(generator, shape, dtype) for shape in (self.shapes if isinstance(self.shapes, list) else [self.shapes])
        ]
        return made if isinstance(self.shapes, list) else made[0]

    def _one(self, generator: np.random.Generator, shape: Any, dtype: str) -> Any:
        if isinstance(self.low, int):
            return tf.constant(generator.integers(self.low, self.high, shape), "int32")
        size = int(np.prod(shape))
        values = np.linspace(self.low, self.high, size + 1)[:-1] + (self.high - self.low) * 0.3 / size
        return tf.constant(generator.permutation(values).reshape(shape), dtype)


def within(cls: Callable[..., Any], options: dict[str, Any], *arguments: Any) -> Any:
    """A layer within another one that has these options."""
    return cls(*arguments, name="inner", dtype=options.get("dtype"))


ROWS = [
    Row(lambda **o: L.Dense(3, activation="tanh", kernel_regularizer="l2", **o), (4, 2, 5)),
    Row(lambda **o: L.Activation("gelu", **o), (4, 3)),
    Row(lambda **o: L.ReLU(max_value=1.0, negative_slope=0.1, threshold=0.25, **o), (4, 3)),
    Row(lambda **o: L.LeakyReLU(0.2, **o), (4, 3)),
    Row(lambda **o: L.PReLU("uniform", shared_axes=[1], **o), (4, 2, 3)),
    Row(lambda **o: L.ELU(0.5, **o), (4, 3)),
    Row(lambda **o: L.Softmax(axis=(1, 2), **o), (4, 2, 3)),
    Row(lambda **o: L.Softmax(axis=1, **o), (4, 2, 3)),
    Row(lambda **o: L.Embedding(5, 3, **o), (4, 2), low=0, high=5, passes_mask=None),
    Row(lambda **o: L.Flatten(**o), (4, 2, 3), passes_mask=None, dtype_kept=True),
    Row(lambda **o: L.Flatten("channels_first", **o), (4, 2, 3), passes_mask=None),
    Row(lambda **o: L.Reshape((3, -1), **o), (4, 2, 3), passes_mask=None),
    Row(lambda **o: L.Permute((2, 1), **o), (4, 2, 3), passes_mask=None),
    Row(lambda **o: L.RepeatVector(3, **o), (4, 2), passes_mask=None),
    Row(lambda **o: L.Concatenate(axis=1, **o), [(4, 2, 3), (4, 1, 3)]),
    *(
        Row(lambda cls=cls, **o: cls(**o), [(4, 2, 3), (4, 3)])
        for cls in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum)
    ),
    Row(lambda **o: L.Dot(axes=(1, -1), **o), [(4, 2, 3), (4, 5, 2)], passes_mask=False),
    Row(lambda **o: L.Dot(axes=1, normalize=True, **o), [(4, 3), (4, 3)], passes_mask=False),
    Row(lambda **o: L.Rescaling(0.5, offset=[1.0, 2.0, 3.0], **o), (4, 3)),
    Row(lambda **o: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0], **o), (4, 3)),
    Row(lambda **o: L.Normalization(axis=None, mean=1.0, variance=4.0, invert=True, **o), (4, 3)),
    Row(lambda **o: L.BatchNormalization(gamma_initializer="uniform", **o), (4, 3)),
    Row(lambda **o: L.BatchNormalization(axis=1, renorm=True, renorm_clipping={"rmax": 3.0}, **o), (4, 2, 3)),
    Row(lambda **o: L.LayerNormalization(axis=[1, -1], gamma_initializer="uniform", **o), (4, 2, 3)),
    Row(lambda **o: L.LayerNormalization(rms_scaling=True, **o), (4, 2, 3)),
    Row(lambda **o: L.RMSNormalization(**o), (4, 3)),
    Row(lambda **o: L.GroupNormalization(2, axis=1, gamma_initializer="uniform", **o), (4, 6, 3)),
    Row(lambda **o: L.GroupNormalization(-1, **o), (4, 3, 6)),
    Row(lambda **o: L.UnitNormalization(axis=(1, 2), **o), (4, 2, 3)),
    Row(lambda **o: L.Dropout(0.5, noise_shape=(None, 1), seed=3, **o), (4, 3)),
    Row(lambda **o: L.SpatialDropout1D(0.5, seed=3, **o), (4, 2, 3)),
    Row(lambda **o: L.SpatialDropout2D(0.5, seed=3, **o), (4, 2, 2, 3)),
    Row(lambda **o: L.SpatialDropout3D(0.5, "channels_first", seed=3, **o), (4, 3, 2, 1, 2)),
    Row(lambda **o: L.GaussianNoise(0.5, **o), (4, 3)),
    Row(lambda **o: L.GaussianDropout(0.5, **o), (4, 3)),
    Row(lambda **o: L.ActivityRegularization(0.5, 0.25, **o), (4, 3)),
    Row(lambda **o: L.Identity(**o), (4, 3), dtype_kept=True),
    Row(lambda **o: L.Masking(0.0, **o), (4, 2, 3)),
    Row(lambda **o: L.Conv1D(4, 3, padding="causal", dilation_rate=2, activation="tanh", **o), (2, 7, 3), passes_mask=None),
    Row(lambda **o: L.Conv1D(4, 2, strides=2, groups=2, data_format="channels_first", **o), (2, 4, 5), passes_mask=None),
    Row(lambda **o: L.Conv2D(3, (2, 3), strides=(2, 1), padding="same", use_bias=False, **o), (2, 5, 4, 2), passes_mask=None),
    Row(lambda **o: L.Conv3D(2, 2, strides=(1, 2, 1), groups=2, **o), (2, 3, 4, 2, 4), passes_mask=None),
    Row(lambda **o: L.Conv1DTranspose(3, 3, strides=2, padding="same", **o), (2, 4, 2), passes_mask=None),
    Row(
        lambda **o: L.Conv2DTranspose(2, (2, 3), strides=(2, 3), output_padding=(1, 0), data_format="channels_first", **o),
        *((2, 3, 2, 3),),
        passes_mask=None,
    ),
    Row(lambda **o: L.Conv3DTranspose(2, 2, dilation_rate=(1, 2, 1), **o), (1, 2, 2, 2, 2), passes_mask=None),
    Row(lambda **o: L.DepthwiseConv1D(3, depth_multiplier=2, activation="tanh", **o), (2, 5, 3), passes_mask=None),
    Row(
        lambda **o: L.DepthwiseConv2D(2, strides=2, padding="same", data_format="channels_first", **o),
        *((2, 3, 5, 4),),
        passes_mask=None,
    ),
    Row(lambda **o: L.SeparableConv1D(4, 3, dilation_rate=2, **o), (2, 6, 3), passes_mask=None),
    Row(lambda **o: L.SeparableConv2D(4, 2, padding="same", depth_multiplier=2, **o), (2, 3, 4, 2), passes_mask=None),
    Row(lambda **o: L.MaxPooling1D(2, padding="same", **o), (2, 5, 3), passes_mask=None),
    Row(lambda **o: L.MaxPooling2D((2, 3), strides=1, **o), (2, 4, 5, 3), passes_mask=None),
    Row(lambda **o: L.AveragePooling1D(3, strides=2, padding="same", **o), (2, 6, 3), passes_mask=None),
    Row(lambda **o: L.AveragePooling2D(2, data_format="channels_first", **o), (2, 3, 4, 5), passes_mask=None),
    Row(lambda **o: L.GlobalAveragePooling1D(keepdims=True, **o), (2, 5, 3), passes_mask=False),
    Row(lambda **o: L.GlobalAveragePooling2D(**o), (2, 4, 5, 3), passes_mask=None),
    Row(lambda **o: L.GlobalMaxPooling1D("channels_first", **o), (2, 3, 5), passes_mask=None),
    Row(lambda **o: L.GlobalMaxPooling2D(keepdims=True, **o), (2, 4, 5, 3), passes_mask=None),
    Row(lambda **o: L.MaxPooling3D(2, padding="same", **o), (2, 3, 4, 2, 2), passes_mask=None),
    Row(lambda **o: L.AveragePooling3D((1, 2, 2), **o), (2, 2, 4, 3, 2), passes_mask=None),
    Row(lambda **o: L.GlobalAveragePooling3D("channels_first", **o), (2, 2, 3, 2, 2), passes_mask=None),
    Row(lambda **o: L.GlobalMaxPooling3D(**o), (2, 2, 3, 2, 2), passes_mask=None),
    *(
        Row(lambda cls=cls, size=size, **o: cls(size, **o), (2, *sizes, 2), passes_mask=None)
        for cls, size, sizes in (
            (L.AdaptiveAveragePooling1D, 3, (5,)),
            (L.AdaptiveAveragePooling2D, (2, 3), (4, 5)),
            (L.AdaptiveAveragePooling3D, 2, (4, 3, 1)),
            (L.AdaptiveMaxPooling1D, 3, (5,)),
            (L.AdaptiveMaxPooling2D, (2, 3), (4, 5)),
            (L.AdaptiveMaxPooling3D, 2, (4, 3, 1)),
            (L.ZeroPadding1D, (1, 2), (3,)),
            (L.ZeroPadding2D, ((1, 0), 2), (3, 2)),
            (L.ZeroPadding3D, 1, (1, 3, 2)),
            (L.Cropping1D, (1, 0), (3,)),
            (L.Cropping2D, ((1, 0), 1), (3, 4)),
            (L.Cropping3D, (1, 0, 1), (3, 2, 4)),
            (L.UpSampling1D, 3, (2,)),
            (L.UpSampling2D, (2, 3), (2, 3)),
            (L.UpSampling3D, 2, (1, 2, 3)),
        )
    ),
    Row(lambda **o: L.UpSampling2D(2, "channels_first", "bicubic", **o), (2, 2, 3, 4), passes_mask=None),
    Row(lambda **o: L.EinsumDense("abc,cde->abed", (None, 3, 2), "tanh", bias_axes="ed", **o), (4, 2, 5), passes_mask=None),
    Row(lambda **o: L.ReversibleEmbedding(5, 3, mask_zero=True, **o), (4, 2), low=0, high=5),
    Row(lambda **o: L.Resizing(3, 2, "bicubic", crop_to_aspect_ratio=True, **o), (2, 4, 5, 3), passes_mask=None),
    Row(lambda **o: L.RandomFlip(seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.RandomRotation(0.2, seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.RandomTranslation(0.3, (0.1, 0.4), "wrap", seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(
        lambda **o: L.RandomZoom(0.3, 0.2, "constant", seed=3, data_format="channels_first", **o),
        (4, 2, 3, 5),
        passes_mask=None,
    ),
    Row(lambda **o: L.RandomContrast(0.4, (-9, 9), seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.RandomBrightness(0.4, (-9, 9), seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.RandomCrop(2, 3, seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.RandomErasing((0.5, 1.0), fill_value=0.5, seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.MixUp(0.4, seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.CutMix(seed=3, **o), (4, 3, 5, 2), passes_mask=None),
    Row(lambda **o: L.CenterCrop(2, 3, "channels_first", **o), (2, 3, 5, 4), passes_mask=None),
    Row(lambda **o: L.AlphaDropout(0.5, seed=3, **o), (4, 3)),
    Row(lambda **o: L.Attention(use_scale=True, **o), [(4, 2, 3), (4, 5, 3)]),
    Row(lambda **o: L.Attention(score_mode="concat", dropout=0.1, **o), [(4, 2, 3), (4, 5, 2), (4, 5, 3)]),
    Row(lambda **o: L.AdditiveAttention(**o), [(4, 2, 3), (4, 5, 3)]),
    Row(lambda **o: L.TimeDistributed(within(L.Dense, o, 3), **o), (4, 2, 5)),
    Row(lambda **o: L.TimeDistributed(within(L.BatchNormalization, o), **o), (4, 2, 5)),
    Row(lambda **o: L.SimpleRNN(3, activation="relu", recurrent_regularizer="l2", **o), (4, 2, 5), passes_mask=False),
    Row(lambda **o: L.GRU(3, return_sequences=True, **o), (4, 2, 5)),
    Row(lambda **o: L.GRU(3, reset_after=False, go_backwards=True, **o), (4, 3, 2), passes_mask=False),
    Row(lambda **o: L.LSTM(3, return_sequences=True, zero_output_for_mask=True, **o), (4, 3, 2)),
    Row(lambda **o: L.LSTM(2, unit_forget_bias=False, bias_initializer="uniform", **o), (4, 3, 2), passes_mask=False),
    Row(lambda **o: L.RNN(within(L.GRUCell, o, 3), **o), (4, 3, 2), passes_mask=False),
    Row(lambda **o: L.Bidirectional(within(L.LSTM, o, 2), merge_mode="mul", **o), (4, 3, 2), passes_mask=False),
    Row(lambda **o: L.ConvLSTM1D(2, 2, return_sequences=True, **o), (4, 2, 5, 1)),
    Row(lambda **o: L.ConvLSTM2D(2, 2, padding="same", use_bias=False, **o), (2, 3, 3, 2, 2), passes_mask=False),
    Row(lambda **o: L.ConvLSTM3D(1, 2, **o), (2, 2, 3, 2, 2, 1), passes_mask=False),
    Row(lambda **o: L.SpectralNormalization(within(L.Dense, o, 3), **o), (4, 5)),
]
