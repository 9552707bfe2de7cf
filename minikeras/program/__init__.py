"""`tf.function`: the place of compiled steps. May import everything up to `functions`. Read `function.py`.

A decorated function runs as plain Python: the second of TensorFlow's two ways, `run_functions_eagerly(True)`.
"""

from .function import Function, function, functions_run_eagerly, run_functions_eagerly

__all__ = ["Function", "function", "functions_run_eagerly", "run_functions_eagerly"]
