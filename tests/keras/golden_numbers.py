"""The numbers that real Keras computed (tests/golden). Every case of every file is run."""

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


def assert_golden(actual: Any, expected: Any, dtype: str = "float64") -> None:
    """Equal within the tolerance that the golden README states."""
    values = actual.numpy() if hasattr(actual, "numpy") else np.asarray(actual)
    expected = np.asarray(expected)
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, **TOLERANCE[dtype])
