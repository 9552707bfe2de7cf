# mypy: implicit-reexport
"""Models for other programs: `model.export("model.onnx")`, from a recorded run (`graph.py`), one primitive at a time."""

from ...absent import facade as _facade
from .onnx import export_model

__getattr__, __dir__, __all__ = _facade(__name__, {})
