"""Names that TensorFlow has for its graphs only, and that refuse in eager mode, there as here."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", **options: Any) -> NoReturn:
    """Refuses: without a tape nothing was recorded.

    Raises:
        RuntimeError: always.

    >>> try:
    ...     tf.gradients(tf.constant(1.0), tf.constant(1.0))
    ... except RuntimeError as error:
    ...     print(error)
    tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.
    """
    raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")


def hessians(ys: Any, xs: Any, **options: Any) -> NoReturn:
    """Refuses, as `gradients` does; `tf.autodiff.hessian` and `tape.hessian` give second derivatives.

    Raises:
        RuntimeError: always.

    >>> try:
    ...     tf.hessians(tf.constant(1.0), tf.constant(1.0))
    ... except RuntimeError as error:
    ...     print(str(error)[-55:])
    tf.autodiff.hessian, or hessian() of a tf.GradientTape.
    """
    raise RuntimeError(
        "tf.hessians is not supported when eager execution is enabled: tf.gradients, which it is made of, is not either. "
        "Use tf.GradientTape instead: tf.autodiff.hessian, or hessian() of a tf.GradientTape."
    )


def executing_eagerly() -> bool:
    """True: Python runs every function, also one that is recorded for later calls.

    >>> tf.executing_eagerly()
    True
    """
    return True


def no_op(name: str | None = None) -> None:
    """Nothing; what is listed elsewhere as an operation to be run has run already.

    >>> tf.no_op()
    """


def group(*inputs: Any, name: str | None = None) -> None:
    """Nothing, since the operations have run.

    >>> tf.group(tf.constant(1.0))
    """


def control_dependencies(control_inputs: Any) -> contextlib.AbstractContextManager[None]:
    """A context in which everything runs as usual: after what was written before it.

    >>> with tf.control_dependencies([tf.no_op()]):
    ...     print(tf.constant(1.0).numpy())
    1.0
    """
    return contextlib.nullcontext()


def init_scope() -> contextlib.AbstractContextManager[None]:
    """A context in which everything runs as usual: there is no graph to leave.

    >>> with tf.init_scope():
    ...     print(tf.constant(1.0).numpy())
    1.0
    """
    return contextlib.nullcontext()
