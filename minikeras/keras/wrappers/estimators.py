"""Estimators of scikit-learn around models. An estimator holds what makes a model and fits a new one each time, so that clones
and folds share nothing; targets become what losses expect.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from ...errors import MissingExtraError
from ...types import TensorLike
from .. import losses
from ..models import Model, clone_model
from ..saving.model_files import decoded, encoded

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError(
        "keras.wrappers needs scikit-learn 1.6 or later: pip install 'minikeras[sklearn]', or scikit-learn alone."
    ) from error

Rows = np.ndarray[Any, Any]


class Estimator(BaseEstimator):
    """The common part of the estimators.

    Args:
        model: a compiled model, of which each fit trains a clone with new weights; or a function that returns one and is called
            as `model(X=X, y=y, **model_kwargs)` with the data in the form in which the model is trained on it.
        warm_start: whether fitting goes on with the weights of the fit before; a model that was given is then trained itself.
        model_kwargs: further arguments of the function.
        fit_kwargs: arguments of `Model.fit`, such as `epochs`; those given to `fit` of the estimator come before them. Silent
            unless there is a `verbose`.

    Attributes:
        model_: the fitted model.
        history_: what `Model.fit` returned as `History.history`: a list for the loss and each metric.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.

    A pickle of an estimator holds its models in the `.keras` format: configuration, weights and optimizer, no code.
    """

    def __init__(
        self,
        model: Any,
        warm_start: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        fit_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.warm_start = warm_start
        self.model_kwargs = model_kwargs
        self.fit_kwargs = fit_kwargs

    def fit(self, X: TensorLike, y: TensorLike, sample_weight: TensorLike = None, **kwargs: Any) -> Self:
        """Fit the model.

        Args:
            X: (rows, features), or with more axes.
            y: (rows,), or (rows, outputs) where several are possible.
            sample_weight: the weight of each row in the loss.
            kwargs: for `Model.fit`, before those in `fit_kwargs`.

        Raises:
            RuntimeError: if the model is not compiled.
            ValueError: for data that cannot be used, with scikit-learn's words.
        """
        X, y = self._validated(X, y)
        target = self._target(y)
        model = self._model(X, target)
        if not model.compiled or model.loss is None:
            raise RuntimeError("Given model needs to be compiled, and have a loss and an optimizer: model.compile(...).")
        options = {"verbose": 0} | (self.fit_kwargs or {}) | kwargs
        if sample_weight is not None:
            options["sample_weight"] = _check_sample_weight(sample_weight, X)
        self.history_ = model.fit(X, target, **options).history
        self.model_ = model
        return self

    def _validated(self, X: TensorLike, y: TensorLike) -> tuple[Rows, Rows]:
        return validate_data(self, X, y, allow_nd=True)

    def _target(self, y: Rows) -> Rows:
        """The targets in the form in which the model is trained on them."""
        return y.reshape(-1, 1) if y.ndim == 1 else y

    def _model(self, X: Rows, y: Rows) -> Any:
        if self.warm_start and hasattr(self, "model_"):
            return self.model_
        if not isinstance(self.model, Model):
            return self.model(X=X, y=y, **(self.model_kwargs or {}))
        if self.warm_start:
            return self.model
        model = clone_model(self.model)
        described = self.model.get_compile_config()
        if described is not None:
            model.compile_from_config(described)
        return model

    def _outputs(self, X: TensorLike) -> Rows:
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, reset=False, allow_nd=True), verbose=0)

    def __sklearn_tags__(self) -> Any:
        """Two fits differ, unless the model and the order of the rows are seeded."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: Packed(value) if isinstance(value, Model) else value for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value.unpacked() if isinstance(value, Packed) else value for name, value in state.items()})


class Packed:
    """A model as the bytes of a `.keras` file."""

    def __init__(self, model: Model) -> None:
        self.content = encoded(model)

    def unpacked(self) -> Any:
        """The model again."""
        return decoded(bytearray(self.content), Path("model.keras"), None, True, None)


class SKLearnClassifier(ClassifierMixin, Estimator):
    """A classifier of scikit-learn around a model with one output for each class.

    The model is trained on one-hot targets, so its loss is 'categorical_crossentropy' or its like.

    Args:
        model, warm_start, model_kwargs, fit_kwargs: a compiled model, or a function of `X` and the one-hot `y` that returns
            one; see `Estimator`.

    Attributes:
        classes_: the labels, sorted; output i stands for `classes_[i]`.
        model_, history_: the fitted model, and its losses and metrics by name.

    Raises:
        MissingExtraError: without scikit-learn.
        ValueError: in `fit`, if there is only one class, or the number of outputs is not that of the classes.

    >>> def network(X, y, units=8):
    ...     model = tf.keras.Sequential([
    ...         tf.keras.Input((X.shape[1],)),
    ...         tf.keras.layers.Dense(units, activation="relu"),
    ...         tf.keras.layers.Dense(y.shape[1], activation="softmax"),
    ...     ])
    ...     model.compile("adam", "categorical_crossentropy")
    ...     return model
    >>> classifier = tf.keras.wrappers.SKLearnClassifier(network, model_kwargs={"units": 4}, fit_kwargs={"epochs": 2})
    >>> classifier.fit([[0.0], [1.0]], ["no", "yes"]).classes_.tolist()
    ['no', 'yes']
    >>> classifier.predict_proba([[0.5]]).shape
    (1, 2)
    """

    def _target(self, y: Rows) -> Rows:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Only binary and multiclass target types are supported. Unknown label type: {kind}.")
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) == 1:
            raise ValueError("Classifier can't train when only one class is present.")
        self.classes_ = classes
        return np.eye(len(classes), dtype="float32")[codes]

    def _model(self, X: Rows, y: Rows) -> Any:
        model = super()._model(X, y)
        width = model.output_shape[-1] if model.built else y.shape[1]
        if width != y.shape[1]:
            raise ValueError(
                f"SKLearnClassifier: the model has {width} outputs, the data {y.shape[1]} classes. Targets are one-hot: give "
                "the model an output for each class, also for two, and a loss such as 'categorical_crossentropy'."
            )
        loss = losses.get(model.loss) if model.compiled else None
        if loss is losses.sparse_categorical_crossentropy or isinstance(loss, losses.SparseCategoricalCrossentropy):
            raise ValueError(
                "SKLearnClassifier: the model's loss takes integers, but its targets are one-hot. Compile it with "
                "'categorical_crossentropy', or CategoricalCrossentropy(from_logits=True), instead."
            )
        return model

    def predict(self, X: TensorLike) -> Rows:
        """The class with the largest output for each row."""
        outputs = self._outputs(X)  # before `classes_`, which only a fit makes
        return self.classes_[outputs.argmax(axis=1)]

    def predict_proba(self, X: TensorLike) -> Rows:
        """The probability of each class, (rows, classes): the outputs, or their softmax if the loss says that they are logits.

        Raises:
            ValueError: if the outputs are neither.
        """
        outputs = self._outputs(X)
        loss = self.model_.loss
        if hasattr(loss, "get_config") and loss.get_config().get("from_logits"):
            outputs = np.exp(outputs - outputs.max(axis=1, keepdims=True))
            return outputs / outputs.sum(axis=1, keepdims=True)
        if outputs.min() < 0 or abs(outputs.sum(axis=1) - 1).max() > 1e-3:
            raise ValueError(
                "predict_proba: the outputs of the model are no probabilities. End it with a softmax, or use a loss with "
                "from_logits=True."
            )
        return outputs

    def decision_function(self, X: TensorLike) -> Rows:
        """The outputs, (rows, classes); of two classes how much the second one's exceeds the first one's, (rows,)."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def __sklearn_tags__(self) -> Any:
        """Its score depends on the model."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class SKLearnRegressor(RegressorMixin, Estimator):
    """A regressor of scikit-learn around a model.

    The model is trained on targets of shape (rows, outputs). Predictions have the shape of the targets it was fitted to.

    Args and attributes are those of `SKLearnClassifier`; a function is given `X` and `y`.

    >>> line = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> line.compile("sgd", "mse")
    >>> regressor = tf.keras.wrappers.SKLearnRegressor(line, fit_kwargs={"epochs": 100})
    >>> regressor.fit([[0.0], [1.0]], [1.0, 3.0]).predict([[0.5], [1.0]]).shape
    (2,)
    """

    def _validated(self, X: TensorLike, y: TensorLike) -> tuple[Rows, Rows]:
        X, y = validate_data(self, X, y, allow_nd=True, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        return X, y

    def predict(self, X: TensorLike) -> Rows:
        """The outputs for each row: (rows,) or (rows, outputs), like the targets."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._flat and outputs.ndim == 2 else outputs

    def __sklearn_tags__(self) -> Any:
        """Its score depends on the model, and it may have several outputs."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags


class SKLearnTransformer(TransformerMixin, Estimator):
    """A transformer of scikit-learn around a model: an autoencoder, or the features that another model goes on with.

    Args and attributes are those of `SKLearnClassifier`; a function is given `X` and `y`.

    >>> squeeze = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)])
    >>> squeeze.compile("sgd", "mse")
    >>> tf.keras.wrappers.SKLearnTransformer(squeeze).fit_transform([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).shape
    (2, 3)
    """

    def fit(self, X: TensorLike, y: TensorLike = None, sample_weight: TensorLike = None, **kwargs: Any) -> Self:
        """Fit the model to targets, or without any to give back its inputs; otherwise as for the other estimators."""
        return super().fit(X, y, sample_weight, **kwargs)

    def _validated(self, X: TensorLike, y: TensorLike) -> tuple[Rows, Rows]:
        if y is None:
            X = validate_data(self, X, allow_nd=True)
            return X, X
        return validate_data(self, X, y, allow_nd=True, multi_output=True, y_numeric=True)

    def transform(self, X: TensorLike) -> Rows:
        """The outputs for each row."""
        return self._outputs(X)

    def __sklearn_tags__(self) -> Any:
        """The outputs have the dtype of the model."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


__all__ = ["Estimator", "SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]
