"""FeatureSpace: the columns of a table, each by a layer of its own, as one row of numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..core import Tensor
from ..data import Dataset
from ..functions import cast, expand_dims, reshape, squeeze
from ..types import as_dtype
from . import layers
from .arguments import Configured
from .layers.encoding import as_column
from .names import auto_name
from .saving import deserialize_keras_object, save_model, serialize_keras_object
from .symbolic import KerasTensor

Real: TypeAlias = float
"""The class has a method of that name."""


class Cross(Configured):
    """Features that are hashed together. Made by `FeatureSpace.cross`.

    Args:
        feature_names: of two or more features with integers as their preprocessed values.
        crossing_dim: the number of bins.
        output_mode: 'one_hot' or 'int'.
    """

    _configured = ("feature_names", "crossing_dim", "output_mode")

    def __init__(self, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot") -> None:
        _one_of("output_mode", output_mode, ("int", "one_hot"))
        self.feature_names, self.crossing_dim, self.output_mode = tuple(feature_names), crossing_dim, output_mode

    @property
    def name(self) -> str:
        """The names of the features, joined by '_X_'."""
        return "_X_".join(self.feature_names)


class Feature(Configured):
    """A column and the layer for it. Made by `FeatureSpace.feature` and its kin.

    Args:
        dtype: of the column.
        preprocessor: the layer, or its configuration.
        output_mode: 'float' for what the layer gives, 'int' for its integers, 'one_hot' for rows of them.
    """

    _configured = ("dtype", "preprocessor", "output_mode")

    def __init__(self, dtype: str, preprocessor: Any, output_mode: str) -> None:
        _one_of("output_mode", output_mode, ("int", "one_hot", "float"))
        self.dtype, self.output_mode = as_dtype(dtype).name, output_mode
        self.preprocessor = deserialize_keras_object(preprocessor) if isinstance(preprocessor, Mapping) else preprocessor


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"Invalid value for argument `{name}`. Expected one of {known}. Received: {name}={value!r}")


class FeatureSpace(layers.Layer, described=True):
    """Makes rows of numbers of tables, by a layer for each column.

    Args:
        features: for each name of a column what it holds: the name of one of the class methods below, such as
            'string_categorical', or what one of them returns.
        output_mode: 'concat' for one row of all, or 'dict'.
        crosses: groups of names that are hashed together, or what `cross` returns.
        crossing_dim, hashing_dim, num_discretization_bins: how many bins crosses, hashed and discretized features get that do
            not say so themselves.
        name: of the layer.

    `adapt` it to data, then call it on a dict of columns or a data frame, or on one row of it; in `Dataset.map`; or use
    `get_inputs` and `get_encoded_features` as the entrance of a functional model. It is saved by `save` and read by
    `keras.models.load_model`.

    Attributes:
        features, crosses: what was given, as objects.
        preprocessors, crossers, one_hot_encoders: the layers, by the names of features and crosses.

    Raises:
        ValueError: for unknown kinds of features, crosses of names that are no features, or use before `adapt`.

    >>> data = {"size": [0.0, 1.0, 2.0], "town": ["Ulm", "Bonn", "Ulm"]}
    >>> space = tf.keras.utils.FeatureSpace({"size": "float_normalized", "town": "string_categorical"})
    >>> space.adapt(data)
    >>> print(space(data).numpy().round(2))
    [[-1.22  0.    1.    0.  ]
     [ 0.    0.    0.    1.  ]
     [ 1.22  0.    1.    0.  ]]
    """

    _not_walked = ("inputs", "encoded_features", "features", "crosses", "crosses_by_name")
    _takes_text = _open = True

    def __init__(
        self,
        features: Mapping[str, Any],
        output_mode: str = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int | None = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not features:
            raise ValueError("The `features` argument cannot be None or empty.")
        _one_of("output_mode", output_mode, ("dict", "concat"))
        self.output_mode, self.crossing_dim, self.hashing_dim = output_mode, crossing_dim, hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.features = {key: self._feature(key, value) for key, value in features.items()}
        self.crosses = [self._cross(one) for one in crosses or ()]
        self.crosses_by_name = {cross.name: cross for cross in self.crosses}
        self.preprocessors = {key: feature.preprocessor for key, feature in self.features.items()}
        self.crossers = {cross.name: layers.HashedCrossing(cross.crossing_dim, name=cross.name) for cross in self.crosses}
        self.one_hot_encoders: dict[str, layers.Layer] = {}
        self.concat: Any = None
        self.inputs = {key: layers.Input((1,), dtype=feature.dtype, name=key) for key, feature in self.features.items()}
        self.encoded_features: Any = None
        self._built = not self._adaptable()

    # Kinds of features -----------------------------------------------------------------------------------------------------

    @classmethod
    def cross(cls, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot") -> Cross:
        """Features that are hashed together."""
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype: str, preprocessor: Any, output_mode: str) -> Feature:
        """A column with a layer of your choice."""
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name: str | None = None) -> Feature:
        """Numbers as they are."""
        return Feature("float32", layers.Identity(name=_named(name, "float")), "float")

    @classmethod
    def float_rescaled(cls, scale: Real = 1.0, offset: Real = 0.0, name: str | None = None) -> Feature:
        """Numbers times a scale plus an offset."""
        return Feature("float32", layers.Rescaling(scale, offset, name=_named(name, "float_rescaled")), "float")

    @classmethod
    def float_normalized(cls, name: str | None = None) -> Feature:
        """Numbers with mean 0 and variance 1."""
        return Feature("float32", layers.Normalization(axis=-1, name=_named(name, "float_normalized")), "float")

    @classmethod
    def float_discretized(
        cls, num_bins: int | None, bin_boundaries: Any = None, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """The interval that a number lies in."""
        layer = layers.Discretization(bin_boundaries, num_bins, name=_named(name, "float_discretized"))
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(
        cls, max_tokens: int | None = None, num_oov_indices: int = 1, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """Integers by their place in a vocabulary."""
        layer = layers.IntegerLookup(max_tokens, num_oov_indices, name=_named(name, "integer_categorical"))
        return Feature("int32", layer, output_mode)

    @classmethod
    def string_categorical(
        cls, max_tokens: int | None = None, num_oov_indices: int = 1, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """Texts by their place in a vocabulary."""
        layer = layers.StringLookup(max_tokens, num_oov_indices, name=_named(name, "string_categorical"))
        return Feature("string", layer, output_mode)

    @classmethod
    def integer_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
        """Integers by their hash."""
        return Feature("int32", layers.Hashing(num_bins, name=_named(name, "integer_hashed")), output_mode)

    @classmethod
    def string_hashed(cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
        """Texts by their hash."""
        return Feature("string", layers.Hashing(num_bins, name=_named(name, "string_hashed")), output_mode)

    def _feature(self, name: str, given: Any) -> Feature:
        if isinstance(given, Mapping):
            given = deserialize_keras_object(given)
        if isinstance(given, Feature):
            return given
        _one_of(f"features[{name!r}]", given, _KINDS)
        bins = {"float_discretized": self.num_discretization_bins, "integer_hashed": self.hashing_dim}
        bins["string_hashed"] = self.hashing_dim
        made: Feature = getattr(self, given)(*([bins[given]] if given in bins else []), name=name)
        return made

    def _cross(self, given: Any) -> Cross:
        if isinstance(given, Mapping):
            given = deserialize_keras_object(given)
        if not isinstance(given, Cross) and not self.crossing_dim:
            raise ValueError("When specifying `crosses`, the argument `crossing_dim` should be specified as well.")
        cross = given if isinstance(given, Cross) else Cross(given, self.crossing_dim or 0)
        if unknown := [name for name in cross.feature_names if name not in self.features]:
            raise ValueError(f"All features of `crosses` should be present in the `features` dict. Received unknown: {unknown}")
        return cross

    # Adapting --------------------------------------------------------------------------------------------------------------

    def _adaptable(self) -> list[str]:
        """The features whose layers learn from data; those that were given what they need do not."""
        return [name for name, layer in self.preprocessors.items() if getattr(layer, "_can_adapt", hasattr(layer, "adapt"))]

    def adapt(self, dataset: Any) -> None:
        """Let the layers learn from data.

        Args:
            dataset: a dict of columns, a data frame, or a Dataset of dicts, batched or not; of pairs the first counts.

        Raises:
            ValueError: for other data, or if columns are missing; then no layer has learned anything.
        """
        columns = _columns(dataset)
        if columns is None and not isinstance(dataset, Dataset):
            raise ValueError(
                "`adapt()` can only be called on a tf.data.Dataset, a data frame or a dict of arrays/lists. "
                f"Received instead: {dataset!r:.80} (of type {type(dataset)})"
            )
        first = columns if columns is not None else next(iter(dataset), {})
        held = first[0] if isinstance(first, tuple) else first
        if not isinstance(held, Mapping):
            raise ValueError(
                f"FeatureSpace '{self.name}' adapts to a Dataset of dicts of columns, found {type(held).__name__}."
            )
        if missing := [name for name in self._adaptable() if name not in held]:
            raise ValueError(f"FeatureSpace '{self.name}' needs the columns {missing} to adapt to, found {list(held)}.")
        for name in self._adaptable():
            if columns is None:
                values = dataset.map(lambda *element, name=name: element[0][name])
            else:
                values = Dataset.from_tensor_slices(as_column(columns[name]))
            rank = next(iter(values)).ndim
            if not rank:
                values = values.batch(32)
            self.preprocessors[name].adapt(values.map(lambda x: expand_dims(x, -1)) if rank < 2 else values)
        self.encoded_features, self.one_hot_encoders = None, {}
        self._built = True
        self.get_encoded_features()

    def _need_adapt(self) -> None:
        if not self._built:
            raise ValueError("You need to call `.adapt(dataset)` on the FeatureSpace before you can start using it.")
        if self.encoded_features is None:
            self.encoded_features = self._encode(self.inputs)

    def get_inputs(self) -> dict[str, KerasTensor]:
        """The inputs of a functional model, by the names of the features."""
        self._need_adapt()
        return self.inputs

    def get_encoded_features(self) -> Any:
        """The encoded features of these inputs: a KerasTensor, or a dict of them."""
        self._need_adapt()
        return self.encoded_features

    # Encoding --------------------------------------------------------------------------------------------------------------

    def __call__(self, data: Any) -> Any:
        """The rows for columns; for the values of one row its numbers."""
        self._need_adapt()
        columns = _columns(data)
        if columns is None:
            raise ValueError(
                f"A FeatureSpace can only be called with a dict. Received: data={data!r:.80} (of type {type(data)})"
            )
        if set(columns) != set(self.features):
            missing, unknown = set(self.features) - set(columns), set(columns) - set(self.features)
            raise ValueError(
                f"FeatureSpace '{self.name}' takes the columns {list(self.features)}; missing: {sorted(missing)}, unknown: "
                f"{sorted(unknown)}. Leave out what is no feature, such as the column to be predicted."
            )
        given = {name: self._column(name, columns[name]) for name in self.features}
        found = self._encode({name: column for name, (column, _) in given.items()})
        if not any(single for _, single in given.values()):
            return found
        if self.output_mode == "concat":
            return squeeze(found, 0)
        return {name: squeeze(x, 0) if x.ndim == 2 and x.shape[0] == 1 else x for name, x in found.items()}

    def _column(self, name: str, values: Any) -> tuple[Any, bool]:
        """A column with its last axis, and whether it was one value; numbers are cast where floats are expected."""
        x = as_column(values)
        dtype = as_dtype(self.features[name].dtype)
        if isinstance(x, Tensor) and dtype.is_floating and x.dtype != dtype and x.dtype.name != "string":
            x = cast(x, dtype)
        if len(x.shape) < 2:
            return reshape(x, (-1, 1)), not x.shape
        return x, False

    def _encode(self, columns: Mapping[str, Any]) -> Any:
        """The encoded features of columns of shape (batch, n)."""
        found = {name: self.preprocessors[name](column) for name, column in columns.items()}
        crossed = {
            cross.name: self.crossers[cross.name]([found[name] for name in cross.feature_names]) for cross in self.crosses
        }
        encoded = {}
        for name, value in (*sorted(found.items()), *sorted(crossed.items())):
            spec = self.crosses_by_name.get(name) or self.features[name]
            if spec.output_mode == "one_hot":
                if name not in self.one_hot_encoders:
                    self.one_hot_encoders = self.one_hot_encoders | {name: self._encoder(name, value)}
                value = self.one_hot_encoders[name](value)
            encoded[name] = value
        if self.output_mode == "dict":
            return encoded
        for name, value in encoded.items():
            if not value.dtype.is_floating:
                raise ValueError(
                    f"Cannot concatenate features because feature '{name}' has not been encoded (it has dtype "
                    f"{value.dtype.name}). Consider using `output_mode='dict'`."
                )
        self.concat = self.concat or layers.Concatenate(axis=-1)
        return self.concat(list(encoded.values())) if len(encoded) > 1 else next(iter(encoded.values()))

    def _encoder(self, name: str, value: Any) -> layers.Layer:
        """The layer that makes rows of the integers of a feature."""
        layer = self.preprocessors.get(name) or self.crossers[name]
        if not value.dtype.is_integer:
            raise ValueError(
                f"Feature '{name}' has `output_mode='one_hot'`. Thus its preprocessor should return an integer dtype. Instead "
                f"it returns a {value.dtype.name} dtype."
            )
        if isinstance(layer, (layers.IntegerLookup, layers.StringLookup)):
            count: int | None = layer.vocabulary_size()
        elif isinstance(layer, layers.Discretization):
            count = layer.num_bins or len(layer.bin_boundaries or ()) + 1
        else:
            count = getattr(layer, "num_bins", None) or getattr(layer, "num_tokens", None)
        if count is None:
            raise ValueError(
                f"Feature '{name}' has `output_mode='one_hot'`. However it isn't a standard feature and the dimensionality of "
                "its output space is not known, thus it cannot be one-hot encoded. Try using `output_mode='int'`."
            )
        return layers.CategoryEncoding(count, "multi_hot")

    # Files -----------------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        names = ("output_mode", "crossing_dim", "hashing_dim", "num_discretization_bins")
        return {
            "features": serialize_keras_object(self.features),
            "crosses": serialize_keras_object(self.crosses),
            **{name: getattr(self, name) for name in names},
        }

    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes that its layers were built for, by the names of the features; None before `adapt`."""
        return {name: layer.get_build_config() for name, layer in self.preprocessors.items()} if self._built else None

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        """Build the layers of the features."""
        for name, shapes in (config or {}).items():
            self.preprocessors[name].build_from_config(shapes)
        self._built = True

    def save(self, filepath: str | os.PathLike[str]) -> None:
        """Write it to a `.keras` file, which `keras.models.load_model` reads."""
        save_model(self, filepath)


def _named(name: str | None, kind: str) -> str:
    return f"{name or auto_name(kind)}_preprocessor"


def _columns(data: Any) -> dict[str, Any] | None:
    """The columns of a dict or a data frame by their names; None for other data."""
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        return {name: data[name] for name in data.columns}
    return dict(data) if isinstance(data, Mapping) else None


_KINDS = (
    *("float", "float_normalized", "float_rescaled", "float_discretized"),
    *("integer_categorical", "string_categorical", "integer_hashed", "string_hashed"),
)
CLASSES = {"FeatureSpace": FeatureSpace, "Cross": Cross, "Feature": Feature, "TFDIdentity": layers.Identity}
"""By Keras's names of them."""
