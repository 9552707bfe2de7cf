"""`get_concrete_function`: a function for one signature."""

import pytest

import minikeras as tf


def test_tensors_are_given_and_other_arguments_are_fixed():
    f = tf.function(lambda x, n=2.0, *, shift=0.0: x * n + shift)
    concrete = f.get_concrete_function(tf.TensorSpec([None, 2]), 3.0, shift=1.0)
    assert concrete(tf.ones([1, 2])).numpy().tolist() == [[4, 4]]
    assert concrete(x=tf.ones([3, 2])).shape == (3, 2)
    with pytest.raises(TypeError, match="input_signature"):
        concrete(tf.ones([3]))
    with pytest.raises(TypeError, match="input_signature"):
        concrete(tf.ones([1, 2], tf.float64))


def test_a_tensor_stands_for_its_shape_and_dtype():
    concrete = tf.function(lambda x: x + 1.0).get_concrete_function(tf.zeros([2]))
    assert [concrete(tf.fill([2], k)).numpy().tolist() for k in (1.0, 2.0, 3.0)] == [[2, 2], [3, 3], [4, 4]]
    assert concrete.recordings == 1 and concrete.replays == 2


def test_methods_and_signatures():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.factor = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def __call__(self, x):
            return self.factor * x

        @tf.function
        def shifted(self, x, by):
            return self.factor * x + by["b"]

    scale = Scale()
    assert scale.__call__.get_concrete_function()(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 4]
    shifted = scale.shifted.get_concrete_function(tf.TensorSpec([]), {"b": tf.TensorSpec([])})
    assert shifted(tf.constant(1.0), {"b": tf.constant(5.0)}).numpy() == 7.0
    scale.factor.assign(3.0)
    assert shifted(tf.constant(1.0), {"b": tf.constant(5.0)}).numpy() == 8.0
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    assert f.get_concrete_function() is f


def test_tensors_are_given_by_name_where_python_carries_out_the_call():
    x = tf.Variable(3.0)
    concrete = tf.function(lambda a, b=2.0: a * b).get_concrete_function(tf.TensorSpec([]))
    with tf.GradientTape() as tape:
        y = concrete(a=x)
    assert tape.gradient(y, x).numpy() == 2.0
    twice = tf.function(lambda a: a + a).get_concrete_function(tf.constant("a"))
    assert twice(a=tf.constant("b")).numpy() in ("bb", b"bb")


def test_an_input_signature_holds_under_a_tape_too():
    f = tf.function(lambda x: x.shape.rank, input_signature=[tf.TensorSpec([None])])
    with tf.GradientTape():
        assert f([1.0, 2.0]) == 1
        with pytest.raises(TypeError, match="input_signature"):
            f(tf.ones([1, 1]))


def test_a_function_that_stays_eager_goes_on_taking_what_its_signature_says():
    twice = tf.function(lambda a: a + a).get_concrete_function(tf.constant("a"))
    assert [str(twice(a=tf.constant(text)).numpy()) for text in "abc"] == ["aa", "bb", "cc"]
    f = tf.function(lambda x: (tf.constant("text"), x.shape.rank), input_signature=[tf.TensorSpec([None])])
    assert [int(f([1.0, 2.0])[1]) for _ in range(3)] == [1, 1, 1]


def test_arguments_without_names_and_with_any():
    total = tf.function(lambda x, *more, **named: x + more[1] * named["by"])
    scalar = tf.TensorSpec([])
    concrete = total.get_concrete_function(scalar, 5.0, scalar, by=scalar)
    one, two = tf.constant(1.0), tf.constant(2.0)
    assert concrete(one, two, by=two).numpy() == 5.0
    assert concrete(x=one, more_1=two, by=one).numpy() == 3.0
