"""Every error this package raises on purpose.

The tree, with the builtin that each class also is, so that code written for TensorFlow, Keras or NumPy catches it
as before:

    MinikerasError
    ├── OpError                             tf.errors.OpError
    │   ├── InvalidArgumentError            tf.errors.InvalidArgumentError
    │   │   ├── ShapeError                  + ValueError
    │   │   ├── DTypeError                  + TypeError
    │   │   └── NotFiniteError              + ArithmeticError, RuntimeError
    │   └── NotFoundError                   + FileNotFoundError, ValueError
    ├── TapeError                           + RuntimeError
    ├── CompileError                        + TypeError
    ├── ExportError                         + NotImplementedError
    ├── DeviceUnavailableError              + RuntimeError
    ├── MissingExtraError                   + ImportError
    ├── UnconnectedGradientError            + ValueError
    ├── GradientMismatchError               + AssertionError
    ├── CheckpointBusyError                 + OSError
    └── LoadError                           + ValueError
        ├── UnknownObjectError              + TypeError
        └── DatasetUnavailableError         + OSError

A message says what was asked, what was found and what to do, in that order.
"""

from typing import Any

__all__ = [
    "CheckpointBusyError",
    "CompileError",
    "DTypeError",
    "DatasetUnavailableError",
    "DeviceUnavailableError",
    "ExportError",
    "GradientMismatchError",
    "InvalidArgumentError",
    "LoadError",
    "MinikerasError",
    "MissingExtraError",
    "NotFiniteError",
    "NotFoundError",
    "OpError",
    "ShapeError",
    "TapeError",
    "UnconnectedGradientError",
    "UnknownObjectError",
]


class MinikerasError(Exception):
    """Root of the tree."""


class OpError(MinikerasError):
    """An operation could not be carried out on the values it was given."""


class InvalidArgumentError(OpError):
    """The arguments of an operation contradict one another or the operation."""


class ShapeError(InvalidArgumentError, ValueError):
    """Shapes do not fit together. Compare the two shapes in the message axis by axis, from the last one."""


class DTypeError(InvalidArgumentError, TypeError):
    """Operands have different dtypes. Nothing is promoted in silence: convert one of them with `tf.cast`."""


class NotFoundError(OpError, FileNotFoundError, ValueError):
    """A file or an entry that was named does not exist."""


class TapeError(MinikerasError, RuntimeError):
    """A gradient tape was used out of turn, for example twice although it is not persistent."""


class CompileError(MinikerasError, TypeError):
    """A function that was to be recorded asks for what only its next run can know; the message names line and ways out."""


class ExportError(MinikerasError, NotImplementedError):
    """A model computes something that another format cannot hold. The message names the layer and the operation."""


class UnconnectedGradientError(MinikerasError, ValueError):
    """A strict tape found sources without gradient; the message says why for each, and `.explanations` holds the reasons."""

    def __init__(self, message: str, explanations: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.explanations = explanations


class GradientMismatchError(MinikerasError, AssertionError):
    """A gradient differs from the numerical derivative. The message names the worst element."""


class DeviceUnavailableError(MinikerasError, RuntimeError):
    """A GPU was asked for and none can be used. The message holds the reason that the probe found."""


class MissingExtraError(MinikerasError, ImportError):
    """An optional package is needed. The message holds the `pip install` line that brings it."""


class NotFiniteError(InvalidArgumentError, ArithmeticError, RuntimeError):
    """A NaN or an infinity appeared where a check was asked for."""


class CheckpointBusyError(MinikerasError, OSError):
    """Another process is writing checkpoints into the same folder."""


class LoadError(MinikerasError, ValueError):
    """A file is damaged, hostile or not what its name promises. What was being loaded into is unchanged."""


class UnknownObjectError(LoadError, TypeError):
    """A configuration names a class or function that is not known. Register it, or pass it in `custom_objects`."""


class DatasetUnavailableError(LoadError, OSError):
    """A dataset is nowhere to be found. The message lists every place that was searched."""


def kind_of(thing: Any) -> str:
    """The class of a thing as messages name it, with its article: 'an int', 'a Tensor'."""
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
