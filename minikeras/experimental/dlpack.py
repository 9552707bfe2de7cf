"""Tensors to and from other libraries in the same memory, under TensorFlow's names.

Most libraries take a Tensor as it is: `torch.from_dlpack(x)`, `jax.numpy.from_dlpack(x)`, `numpy.from_dlpack(x)`. Next:
`core/tensor.py`.
"""

from __future__ import annotations

from typing import Any

from ..core import Tensor, adopt, convert_to_tensor, from_capsule


def to_dlpack(tf_tensor: Any) -> Any:
    """A capsule for libraries that take nothing else; it can be taken once.

    A capsule of this kind cannot say that the memory is read-only: do not write to what is made from it.

    Args:
        tf_tensor: Tensor or Variable of numbers or bools, of any shape.

    Returns:
        A PyCapsule named 'dltensor', which keeps the values alive; what a Variable holds later is not seen through it.

    Raises:
        BufferError: for strings and bfloat16.

    >>> capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1.0, 2.0]))
    >>> tf.experimental.dlpack.from_dlpack(capsule).numpy()
    array([1., 2.], dtype=float32)
    """
    return convert_to_tensor(tf_tensor).__dlpack__()


def from_dlpack(dlcapsule: Any) -> Tensor:
    """The array of another library as a Tensor in the same memory, as `tf.convert_to_tensor` does with a copy.

    A write to the array changes the Tensor, on which all else relies never to change: give the array away, or copy.

    Args:
        dlcapsule: an array with `__dlpack__` (PyTorch, JAX, NumPy, CuPy), or a capsule that `to_dlpack` gave.

    Returns:
        A Tensor on the device on which the array lies.

    Raises:
        ValueError: if the library cannot share it, for example because it has a gradient.

    >>> import numpy as np
    >>> array = np.zeros(2)
    >>> np.shares_memory(array, tf.experimental.dlpack.from_dlpack(array))
    True
    """
    return Tensor(adopt(dlcapsule) if hasattr(dlcapsule, "__dlpack__") else from_capsule(dlcapsule))


__all__ = ["from_dlpack", "to_dlpack"]
