"""Models for other programs: `model.export("model.onnx")`, from a recorded run (`inference.py`), one primitive at a time."""

from .onnx import export_model

__all__ = ["export_model"]
