"""The numbers that real Keras computed (tests/golden), and what of them is for a later stage.

Every case of every file is either run or named here; `test_golden_coverage.py` counts, so that this list can only shrink.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(__file__).parent.parent / "golden"
TOLERANCE = {
    "float64": {"rtol": 1e-9, "atol": 1e-11},
    "float32": {"rtol": 2e-5, "atol": 2e-5},
    "edge": {"rtol": 1e-2, "atol": 1e-6},
    "single": {"rtol": 2e-6, "atol": 2e-6},
}
"""By dtype. 'single' is for what Keras computed in float32 although all else was float64: tanh, normalization, losses.
What it loosens is held to the formula in float64, by NumPy, beside the test.
'edge' is for probabilities at 0 and 1 in float32, which has no number 1 - 1e-7.
"""

LATER_CLASSES: dict[str, set[str]] = {
    "optimizers": {
        *("Adadelta", "Adafactor", "Adagrad", "Adamax", "Ftrl", "Lamb", "Lion", "Muon", "Nadam", "RMSprop"),
        "ScheduleFreeAdamW",
    },
    "losses": {
        *("BinaryFocalCrossentropy", "CategoricalFocalCrossentropy", "CategoricalGeneralizedCrossEntropy"),
        *("CategoricalHinge", "Circle", "CosineSimilarity", "Dice", "Hinge", "Huber", "KLDivergence", "LogCosh"),
        *("MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "Poisson", "SquaredHinge", "Tversky"),
    },
    "metrics": {
        *("AUC", "BinaryIoU", "CategoricalHinge", "ConcordanceCorrelation", "CosineSimilarity", "F1Score"),
        *("FBetaScore", "FalseNegatives", "FalsePositives", "Hinge", "IoU", "KLDivergence", "LogCoshError"),
        *("MeanAbsolutePercentageError", "MeanIoU", "MeanSquaredLogarithmicError", "OneHotIoU", "OneHotMeanIoU"),
        *("PearsonCorrelation", "Poisson", "Precision", "PrecisionAtRecall", "R2Score", "Recall", "RecallAtPrecision"),
        *("RootMeanSquaredError", "SensitivityAtSpecificity", "SparseTopKCategoricalAccuracy"),
        *("SpecificityAtSensitivity", "SquaredHinge", "TopKCategoricalAccuracy", "TrueNegatives", "TruePositives"),
    },
    "layers": {
        *("ELU", "Embedding", "GaussianNoise", "GroupNormalization", "LayerNormalization", "LeakyReLU", "PReLU"),
        *("RMSNormalization", "ReLU", "Rescaling", "Reshape", "Softmax", "UnitNormalization"),
    },
    "activations": {
        *("celu", "glu", "hard_shrink", "hard_silu", "hard_tanh", "mish", "soft_shrink", "sparse_plus"),
        *("sparse_sigmoid", "sparsemax", "squareplus", "tanh_shrink", "threshold"),
    },
    "regularizers": {"OrthogonalRegularizer"},
    "constraints": set(),
    "initializers": {"STFT"},
    "callbacks": {"EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau"},
}
"""Names of `keras.<module>` that golden cases need and that do not exist yet."""

LATER_OPTIONS: dict[str, set[str]] = {
    "Optimizer": {"use_ema", "gradient_accumulation_steps", "loss_scale_factor"},
    "BatchNormalization": {"renorm"},
}
"""Constructor arguments that golden cases use and that are refused until they exist."""


@functools.cache
def golden(name: str) -> Any:
    """One file, with "nan" and "inf" as numbers."""
    return _numbers(json.loads((_FOLDER / f"{name}.json").read_text()))


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_numbers(entry) for entry in value]
    return float(value) if value in ("nan", "inf", "-inf") else value


def now(cases: list[Any], kind: str, class_key: str) -> list[Any]:
    """The cases whose class exists by now."""
    return [case for case in cases if case[class_key] not in LATER_CLASSES[kind]]


def assert_golden(actual: Any, expected: Any, dtype: str = "float64") -> None:
    """Equal within the tolerance that the golden README states."""
    values = actual.numpy() if hasattr(actual, "numpy") else np.asarray(actual)
    expected = np.asarray(expected)
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, **TOLERANCE[dtype])
