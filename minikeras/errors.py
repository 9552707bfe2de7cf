# mypy: implicit-reexport
"""Every error this package raises on purpose.

The tree, with the builtin that each class also is, so that code written for TensorFlow, Keras or NumPy catches it
as before:

    MinikerasError
    ├── OpError                             tf.errors.OpError
    │   ├── InvalidArgumentError            tf.errors.InvalidArgumentError
    │   │   ├── ShapeError                  + ValueError
    │   │   ├── DTypeError                  + TypeError
    │   │   ├── MatrixError                 + LinAlgError
    │   │   └── NotFiniteError              + ArithmeticError, RuntimeError
    │   ├── NotFoundError                   + FileNotFoundError, ValueError
    │   ├── OutOfRangeError                 + StopIteration
    │   └── AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError,
    │       FailedPreconditionError, InternalError, OperatorNotAllowedInGraphError, PermissionDeniedError,
    │       ResourceExhaustedError, UnauthenticatedError, UnavailableError, UnimplementedError, UnknownError
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

from typing import TYPE_CHECKING, Any

from numpy.linalg import LinAlgError


class MinikerasError(Exception):
    """Root of the tree.

    >>> tf.zeros([2]) + tf.zeros([3])
    Traceback (most recent call last):
        ...
    minikeras.errors.ShapeError: add: Incompatible shapes: [2] vs. [3]: sizes 2 and 3 clash at axis -1. ...
    """


class OpError(MinikerasError):
    """An operation could not be carried out on the values it was given.

    >>> tf.reshape([1, 2, 3], [2, 2])
    Traceback (most recent call last):
        ...
    minikeras.errors.ShapeError: reshape: Input to reshape is a tensor with 3 values (shape (3,)), but ...
    """

    @property
    def message(self) -> str:
        """The sentence."""
        return str(self)


class InvalidArgumentError(OpError):
    """The arguments of an operation contradict one another or the operation.

    >>> tf.constant([1, 2])[5]
    Traceback (most recent call last):
        ...
    minikeras.errors.InvalidArgumentError: slice index 5 of dimension 0 out of bounds: the axis has 2 elements.
    """


class ShapeError(InvalidArgumentError, ValueError):
    """Shapes do not fit together. Compare the two shapes in the message axis by axis, from the last one.

    >>> tf.ones([2, 3]) @ tf.ones([2, 3])
    Traceback (most recent call last):
        ...
    minikeras.errors.ShapeError: matmul: Matrix size-incompatible: (2, 3) @ (2, 3): inner sizes 3 and 2 ...
    """


class DTypeError(InvalidArgumentError, TypeError):
    """Operands have different dtypes. Nothing is promoted in silence: convert one of them with `tf.cast`.

    >>> tf.constant(1) + tf.constant(1.0)
    Traceback (most recent call last):
        ...
    minikeras.errors.DTypeError: cannot compute add as input #1(zero-based) was expected to be a int32 ...
    """


class MatrixError(InvalidArgumentError, LinAlgError):
    """A matrix has no inverse, or is not positive definite. Add a small multiple of the identity, or look for equal rows.

    >>> tf.linalg.solve([[0.0]], [[1.0]])
    Traceback (most recent call last):
        ...
    minikeras.errors.MatrixError: solve: Input matrix is not invertible (float32[1,1], ...
    """


class NotFoundError(OpError, FileNotFoundError, ValueError):
    """A file or an entry that was named does not exist.

    >>> tf.train.Checkpoint().read("no/such/file")
    Traceback (most recent call last):
        ...
    minikeras.errors.NotFoundError: checkpoint ...
    """


class OutOfRangeError(OpError, StopIteration):
    """An iterator was asked for an element after its last one, by `get_next`.

    >>> elements = iter(tf.data.Dataset.range(0))
    >>> elements.get_next()
    Traceback (most recent call last):
        ...
    minikeras.errors.OutOfRangeError: get_next: end of sequence. Every element has been taken; begin anew with iter.
    """


UNRAISED = (
    *("AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError", "DeadlineExceededError"),
    *("FailedPreconditionError", "InternalError", "OperatorNotAllowedInGraphError", "PermissionDeniedError"),
    *("ResourceExhaustedError", "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError"),
)
_EXAMPLE = """TensorFlow's error of this name. Nothing raises it here; code that catches it runs.

    >>> issubclass(tf.errors.{0}, tf.errors.OpError)
    True
    """
globals().update({n: type(n, (OpError,), {"__doc__": _EXAMPLE.format(n), "__module__": __name__}) for n in UNRAISED})
if TYPE_CHECKING:
    AbortedError = AlreadyExistsError = CancelledError = DataLossError = DeadlineExceededError = FailedPreconditionError = (
        OpError
    )
    InternalError = OperatorNotAllowedInGraphError = PermissionDeniedError = ResourceExhaustedError = OpError
    UnauthenticatedError = UnavailableError = UnimplementedError = UnknownError = OpError


class TapeError(MinikerasError, RuntimeError):
    """A gradient tape was used out of turn, for example twice although it is not persistent.

    >>> x = tf.Variable(1.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> slope = tape.gradient(y, x)
    >>> tape.gradient(y, x)
    Traceback (most recent call last):
        ...
    minikeras.errors.TapeError: A non-persistent GradientTape can only be used to compute one set of ...
    """


class CompileError(MinikerasError, TypeError):
    """A function that was to be recorded asks for what only its next run can know; the message names line and ways out.

    >>> issubclass(tf.errors.CompileError, TypeError)
    True
    """


class ExportError(MinikerasError, NotImplementedError):
    """A model computes something that another format cannot hold. The message names the layer and the operation.

    >>> issubclass(tf.errors.ExportError, NotImplementedError)
    True
    """


class UnconnectedGradientError(MinikerasError, ValueError):
    """A strict tape found sources without gradient; the message says why for each, and `.explanations` holds the reasons.

    >>> x = tf.Variable(1.0)
    >>> with tf.GradientTape(strict=True) as tape:
    ...     y = tf.stop_gradient(x)
    >>> tape.gradient(y, x)
    Traceback (most recent call last):
        ...
    minikeras.errors.UnconnectedGradientError: 1 of 1 sources have no ...
    """

    def __init__(self, message: str, explanations: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.explanations = explanations


class GradientMismatchError(MinikerasError, AssertionError):
    """A gradient differs from the numerical derivative. The message names the worst element.

    >>> @tf.custom_gradient
    ... def wrong(x):
    ...     return x * x, lambda upstream: upstream
    >>> tf.test.check_gradients(wrong, [2.0])
    Traceback (most recent call last):
        ...
    minikeras.errors.GradientMismatchError: check_gradients, first order: the worst of 1 is element [] ...
    """


class DeviceUnavailableError(MinikerasError, RuntimeError):
    """A GPU was asked for and none can be used. The message holds the reason that the probe found.

    >>> issubclass(tf.errors.DeviceUnavailableError, RuntimeError)
    True
    """


class MissingExtraError(MinikerasError, ImportError):
    """An optional package is needed. The message holds the `pip install` line that brings it.

    >>> issubclass(tf.errors.MissingExtraError, ImportError)
    True
    """


class NotFiniteError(InvalidArgumentError, ArithmeticError, RuntimeError):
    """A NaN or an infinity appeared where a check was asked for.

    >>> tf.debugging.check_numerics(tf.math.log([0.0]), "the logarithm")
    Traceback (most recent call last):
        ...
    minikeras.errors.NotFiniteError: the logarithm : Tensor had Inf values, the first at index [0] of float32[1].
    """


class CheckpointBusyError(MinikerasError, OSError):
    """Another process is writing checkpoints into the same folder.

    >>> issubclass(tf.errors.CheckpointBusyError, OSError)
    True
    """


class LoadError(MinikerasError, ValueError):
    """A file is damaged, hostile or not what its name promises. What was being loaded into is unchanged.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "damaged.keras"
    >>> size = path.write_bytes(b"no model")
    >>> tf.keras.models.load_model(path)
    Traceback (most recent call last):
        ...
    minikeras.errors.LoadError: damaged.keras: damaged ZIP archive (File is not a zip file)
    """


class UnknownObjectError(LoadError, TypeError):
    """A configuration names a class or function that is not known. Register it, or pass it in `custom_objects`.

    >>> tf.keras.saving.deserialize_keras_object({"class_name": "Dense_", "config": {}})
    Traceback (most recent call last):
        ...
    minikeras.errors.UnknownObjectError: Could not locate class 'Dense_'. Did you mean 'Dense'? Nothing ...
    """


class DatasetUnavailableError(LoadError, OSError):
    """A dataset is nowhere to be found. The message lists every place that was searched.

    >>> tf.keras.datasets.iris.load_data("no/such/folder")
    Traceback (most recent call last):
        ...
    minikeras.errors.DatasetUnavailableError: dataset 'iris' was asked for, but no intact copy was ...
    """


def kind_of(thing: Any) -> str:
    """The class of a thing as messages name it, with its article: 'an int', 'a Tensor'."""
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


__all__ = [name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, MinikerasError)]
