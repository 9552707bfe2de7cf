"""Models for other programs: `model.export("model.onnx")`.

Key idea: no layer knows how it is exported. A run in inference mode is recorded (`inference.py`), and each primitive in it is
translated (`elementwise.py`, `shaping.py`, `windows.py`), so layers of one's own are exported like those that are here. Read
`inference.py` first.
"""

from .onnx import export_model

__all__ = ["export_model"]
