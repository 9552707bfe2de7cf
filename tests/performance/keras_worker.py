"""Keras on JAX, TensorFlow or PyTorch. A process holds one backend, so each has its own and takes orders from here.

The process waits at its standard input, so it uses no processor while other candidates have their turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from .settings import ROOT

BACKENDS = {"jax": "jax", "tensorflow": "tensorflow", "torch": "torch"}


class KerasWorker:
    """A process that trains by `fit` when told to.

    Args:
        backend: 'jax', 'tensorflow' or 'torch'.
        subset: of Fashion-MNIST.
    """

    def __init__(self, backend: str, subset: str | None) -> None:
        environment = {**os.environ, "KERAS_BACKEND": backend}
        program = [sys.executable, "-m", f"{__package__}.keras_worker", subset or ""]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            program, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, *order: Any) -> float:
        """Give an order, ('start', seed), ('steps', problem), ('epoch',) or ('accuracy',), and wait for its number."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the Keras process ended while it was asked for {order}")
        return float(json.loads(answer))

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


def _serve(subset: str | None) -> None:
    """Carry out orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a backend prints must not look like an answer
    import keras

    from .epochs import keras_trainer
    from .training import fit_trainer

    if keras.backend.backend() == "torch":
        from .peers import threaded_torch

        threaded_torch()
    epoch = accuracy = None
    for line in sys.stdin:
        order, *arguments = json.loads(line)
        if order == "start":
            epoch, accuracy = keras_trainer(keras, subset, arguments[0], [])
            answer = 0.0
        elif order == "steps":
            epoch, accuracy, answer = fit_trainer(keras, arguments[0]), None, 0.0
        else:
            action = epoch if order == "epoch" else accuracy
            assert action is not None, "the first order must be 'start' or 'steps'"
            answer = action()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1] or None)
