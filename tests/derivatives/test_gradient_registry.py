"""Operations without a gradient: what they say, and RegisterGradient and no_gradient."""

import uuid

import numpy as np
import pytest
from derivatives.problems import gradient

import minikeras as tf


@pytest.mark.parametrize("method", ["gradient", "jacobian"])
def test_an_operation_without_a_gradient_on_the_path_says_so(method):
    """T75: exactly a LookupError, with exactly this text; off the path there is no error, and the tape stays usable."""
    image = tf.Variable(np.arange(4.0, dtype="float32").reshape(2, 2, 1))
    with tf.GradientTape(persistent=True) as tape:
        adjusted, other = tf.image.adjust_contrast(image, 2.0), image * 3.0
    with pytest.raises(LookupError) as caught:
        getattr(tape, method)(adjusted, image)
    assert type(caught.value) is LookupError
    assert str(caught.value) == "gradient registry has no entry for: AdjustContrastv2"
    assert tape.gradient(other, image).numpy().ravel().tolist() == [3.0] * 4


def test_reading_the_bits_of_a_number_has_no_gradient():
    """T75."""
    with pytest.raises(LookupError, match="^gradient registry has no entry for: Bitcast$"):
        gradient(lambda x: tf.bitcast(x, "float32") * 2.0, 1.0)


UNREGISTERED = {
    "IsNan": tf.math.is_nan,
    "IsInf": tf.math.is_inf,
    "IsFinite": tf.math.is_finite,
    "Unique": lambda x: tf.unique(x)[0],
    "HistogramFixedWidth": lambda x: tf.histogram_fixed_width(x, [0.0, 5.0], nbins=5),
}


@pytest.mark.parametrize("name", UNREGISTERED)
def test_operations_that_tensorflow_has_no_gradient_for_say_so_as_targets(name):
    """T75: also where the result is no float; off the path, and behind a cast, there is no error."""
    with pytest.raises(LookupError) as caught:
        gradient(UNREGISTERED[name], [1.0, 2.0, 2.0])
    assert type(caught.value) is LookupError and str(caught.value) == f"gradient registry has no entry for: {name}"
    if name.startswith("Is"):
        chosen = gradient(lambda x: tf.where(UNREGISTERED[name](x), 0.0 * x, 3.0 * x), [1.0])
        assert chosen[0].numpy().tolist() == [0.0 if name == "IsFinite" else 3.0]
    if name != "Unique":
        assert gradient(lambda x: tf.cast(UNREGISTERED[name](x), "float32"), [1.0]) == [None]


@pytest.fixture
def opaque():
    """An operation without a gradient under a name of its own."""
    name = f"Opaque{uuid.uuid4().hex}"
    return tf.autodiff.elementwise(name, lambda xp, x: xp.exp(x), lambda x, y: y, vjp=None, jvp=None)


def test_a_gradient_can_be_registered(opaque):
    """T76: with op.inputs and op.outputs."""

    @tf.RegisterGradient(opaque.name)
    def _rule(op, upstream):
        return upstream * op.outputs[0] + op.inputs[0]

    assert gradient(opaque, 0.0)[0].numpy() == 1.0
    with pytest.raises(KeyError, match="Registering two gradient with name"):
        tf.RegisterGradient(opaque.name)(_rule)


def test_an_operation_can_be_said_to_have_no_gradient(opaque):
    """T76: then the source behind it gets None."""
    with pytest.raises(LookupError, match=opaque.name):
        gradient(opaque, 1.0)
    tf.no_gradient(opaque.name)
    assert gradient(opaque, 1.0) == [None]


@pytest.mark.parametrize("register", [tf.RegisterGradient, tf.no_gradient])
def test_the_name_of_an_operation_is_a_str(register):
    """T76."""
    with pytest.raises(TypeError, match="must be a str"):
        register(3)


def test_operations_that_are_not_differentiable_give_none_and_sign_gives_zeros():
    """T77."""
    for function in (tf.floor, tf.math.ceil, tf.round, tf.zeros_like, tf.ones_like, lambda x: x // 1.0, lambda x: x > 0):
        assert gradient(function, 1.5) == [None]
    assert gradient(lambda x: tf.cast(tf.argmax(x), "float32"), [1.5, 2.0]) == [None]
    assert gradient(tf.sign, 1.5)[0].numpy() == 0.0
    assert [g.numpy() for g in gradient(lambda x, c: x % c, 7.5, 2.0)] == [1.0, -3.0]
