"""The tree of errors: drawn in the documentation, catchable as the builtins that code for TensorFlow expects."""

import re

import numpy as np
import pytest

import minikeras as tf
from minikeras import errors


def classes():
    return {name: getattr(errors, name) for name in errors.__all__}


def test_every_error_descends_from_one_root_and_says_when_it_is_raised():
    for name, kind in classes().items():
        assert issubclass(kind, errors.MinikerasError), name
        assert kind.__doc__ and kind.__doc__.partition("\n")[0].endswith("."), name


def test_all_errors_are_exported():
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__}
    assert defined == set(errors.__all__)


def test_the_tree_in_the_documentation_is_the_tree_of_the_classes():
    """Indentation gives the parent, '+ Name, Name' the builtins; names after one another have the same parent."""
    path, drawn = [errors.MinikerasError], {}
    whole = re.sub(r",\n[ │]+", ", ", errors.__doc__)
    lines = re.sub(r"(.*[├└]── )(\w+(?:, \w+)+)", lambda m: "\n".join(m[1] + name for name in m[2].split(", ")), whole)
    for line in lines.splitlines():
        found = re.match(r"(.*)[├└]── (\w+)(?: +(.*))?$", line)
        if found:
            depth, name, note = len(found[1]) // 4, found[2], found[3] or ""
            del path[depth:]
            builtins = re.findall(r"\w+", note) if note.startswith("+") else []
            drawn[name] = {path[-1].__name__, *builtins}
            path.append(getattr(errors, name))
    assert drawn == {
        name: {base.__name__ for base in kind.__bases__} for name, kind in classes().items() if name != "MinikerasError"
    }


def test_tensorflows_names_are_in_the_tree():
    assert tf.errors.InvalidArgumentError is errors.InvalidArgumentError
    assert issubclass(tf.errors.InvalidArgumentError, tf.errors.OpError)
    assert issubclass(tf.errors.NotFoundError, tf.errors.OpError)
    assert issubclass(tf.errors.FailedPreconditionError, tf.errors.OpError)
    assert not issubclass(tf.errors.InvalidArgumentError, ValueError)
    assert tf.errors.ShapeError("2 and 3 clash").message == "2 and 3 clash"


RAISED = {
    "shapes": (
        lambda: tf.ones([2]) + tf.ones([3]),
        (tf.errors.InvalidArgumentError, ValueError),
        r"\[2\] vs\. \[3\].*axis -1",
    ),
    "three shapes": (
        lambda: tf.where([True, False], tf.ones([3]), tf.ones([2, 2])),
        (tf.errors.InvalidArgumentError, ValueError),
        "Incompatible shapes",
    ),
    "inner sizes": (
        lambda: tf.matmul(tf.ones([7, 5]), tf.ones([4, 10])),
        (tf.errors.InvalidArgumentError, ValueError),
        r"Matrix size-incompatible: \(7, 5\) @ \(4, 10\): inner sizes 5 and 4 differ",
    ),
    "vectors": (
        lambda: tf.ones([3]) @ tf.ones([3]),
        (tf.errors.InvalidArgumentError, ValueError),
        r"In\[0\] ndims must be >= 2.*tf.linalg.matvec",
    ),
    "batches": (
        lambda: tf.ones([2, 3, 4]) @ tf.ones([3, 4, 5]),
        (tf.errors.InvalidArgumentError, ValueError),
        "batch axes of .* cannot be broadcast",
    ),
    "dtypes": (
        lambda: tf.ones([2]) * tf.ones([2], "float64"),
        (tf.errors.InvalidArgumentError, TypeError),
        r"expected to be a float32 tensor but is a float64 tensor.*tf\.cast\(x, 'float32'\)",
    ),
    "singular": (
        lambda: tf.linalg.inv(tf.zeros([2, 2])),
        (tf.errors.InvalidArgumentError, np.linalg.LinAlgError, ValueError),
        "not invertible",
    ),
    "indefinite": (
        lambda: tf.keras.ops.cholesky([[1.0, 2.0], [2.0, 1.0]]),
        (tf.errors.InvalidArgumentError, np.linalg.LinAlgError, ValueError),
        "not positive definite. Add a small multiple",
    ),
    "elements": (
        lambda: tf.reshape(tf.ones([4]), [3]),
        (tf.errors.InvalidArgumentError, ValueError),
        r"reshape.*4.*3",
    ),
    "tape": (lambda: tf.GradientTape().gradient(tf.ones([]), []), (RuntimeError,), "Ask for all sources in one call"),
    "index": (
        lambda: tf.ones([2])[5],
        (tf.errors.InvalidArgumentError,),
        r"index 5 of dimension 0 out of bounds.*2 elements",
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_a_message_says_what_was_asked_and_what_was_found(name):
    """T96, T99, T100, T124: caught as each of its kinds."""
    function, kinds, pattern = RAISED[name]
    for kind in kinds:
        with pytest.raises(kind, match=pattern) as caught:
            function()
        assert isinstance(caught.value, errors.MinikerasError)
