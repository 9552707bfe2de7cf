"""Stored: what a model can do with files. The work is done in `saving/`, which is imported when it is first asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from ...boundary import explaining
from ..optimizers import LossScaleOptimizer
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..training import Trainer


class Stored:
    """The part of `Model` that saves and loads.

    A model can also be pickled and deep-copied, for another process or as a trial: the copy has weights, compilation, state of
    the optimizer and random streams of its own, and training goes on as with the original. To keep a model, `save` it: a pickle
    fits one version of this package, and whoever loads it runs what it says.

    >>> import copy, minikeras as tf
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> trial = copy.deepcopy(model)
    >>> trial.layers[0].kernel is model.layers[0].kernel
    False
    """

    @explaining
    def save(self, filepath: str | os.PathLike[str], overwrite: bool = True, **kwargs: Any) -> None:
        """Write the whole model to a '.keras' file: see `keras.saving.save_model`."""
        from ..saving.archives import save_model

        save_model(self, filepath, overwrite, **kwargs)

    @explaining
    def save_weights(self, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write weights and the state of the optimizer to a '.weights.h5' or '.safetensors' file.

        >>> import minikeras as tf, tempfile
        >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
        >>> path = tempfile.mkdtemp() + "/model.weights.h5"
        >>> model.save_weights(path)
        >>> model.load_weights(path)
        """
        from ..saving.weights import save_weights

        save_weights(self, filepath, overwrite)

    @explaining
    def load_weights(
        self, filepath: str | os.PathLike[str], skip_mismatch: bool = False, by_name: bool = False, cast: bool = False
    ) -> None:
        """Read weights, and the state of the optimizer if the file holds one: see `keras.saving.load_weights`."""
        from ..saving.weights import load_weights

        load_weights(self, filepath, skip_mismatch, by_name, cast)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        **options: Any,
    ) -> None:
        """Write what the model computes in inference mode to an '.onnx' file: see `keras.export.export_model`."""
        from ..export import export_model

        export_model(self, filepath, format, verbose, input_signature, **options)

    def get_compile_config(self) -> dict[str, Any] | None:
        """The arguments of `compile` as plain data; None if it was not called, or with something that has no description."""
        arguments: dict[str, Any] = dict(self._compile_arguments)  # type: ignore[attr-defined]
        if not arguments:
            return None
        optimizer = self.optimizer  # type: ignore[attr-defined]
        if isinstance(optimizer, LossScaleOptimizer) and not isinstance(arguments["optimizer"], LossScaleOptimizer):
            optimizer = optimizer.inner_optimizer  # the policy wraps it again
        arguments["optimizer"] = optimizer
        try:
            return serialize_keras_object(arguments)
        except (TypeError, ValueError) as error:
            warnings.warn(
                f"How the model was compiled cannot be saved; call `compile` again after loading it. {error}", stacklevel=3
            )
            return None

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile as `get_compile_config` says; a class with a `compile` of its own overrides both, or compiles again."""
        if type(self).compile is not Trainer.compile:  # type: ignore[attr-defined]
            warnings.warn(
                f"The model '{self.name}' was loaded without being compiled, since its `compile` is custom. Override "  # type: ignore[attr-defined]
                "`get_compile_config` and `compile_from_config` in its class, or call `compile`.",
                stacklevel=2,
            )
            return
        self.compile(**deserialize_keras_object(dict(config)))  # type: ignore[attr-defined]
