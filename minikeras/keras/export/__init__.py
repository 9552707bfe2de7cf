# mypy: implicit-reexport
"""Models for other programs: `model.export("model.onnx")`, from a recorded run (`inference.py`), one primitive at a time."""

from ...absent import late as _late
from .onnx import export_model

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
