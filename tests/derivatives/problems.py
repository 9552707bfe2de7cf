"""Small losses with known structure, and derivatives of them by plain nested tapes, one row after the other."""

import numpy as np

import minikeras as tf


def watched(function, *values, dtype=None, persistent=False):
    """A tape that watched tensors of these values, the tensors, and what `function` made of them."""
    tensors = [tf.constant(value, dtype=dtype) for value in values]
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return tape, tensors, y


def gradient(function, *values, **options):
    """The gradients of a function at constants."""
    tape, tensors, y = watched(function, *values)
    return tape.gradient(y, tensors, **options)


def slopes(function, value):
    """The first and the second derivative at a constant, as arrays."""

    def slope(x):
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        return inner.gradient(y, x)

    outer, (x,), first = watched(slope, value)
    return first.numpy(), outer.gradient(first, x).numpy()


class Network:
    """A network of two layers with a bias that nothing uses, in a given dtype."""

    def __init__(self, dtype="float64", seed=0):
        random = np.random.default_rng(seed)
        self.x = tf.constant(random.normal(size=(5, 3)).astype(dtype))
        self.labels = tf.constant(random.integers(0, 2, 5).astype("int32"))
        self.hidden = tf.Variable(random.normal(size=(3, 4)).astype(dtype))
        self.bias = tf.Variable(random.normal(size=4).astype(dtype))
        self.outer = tf.Variable(random.normal(size=(4, 2)).astype(dtype))
        self.unused = tf.Variable(np.ones((2, 1), dtype))
        self.trainable_variables = [self.hidden, self.bias, self.unused, self.outer]
        self.runs = 0

    def outputs(self, x=None):
        self.runs += 1
        return tf.tanh((self.x if x is None else x) @ self.hidden + self.bias) @ self.outer

    def loss_of(self, outputs):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(self.labels, outputs))

    def loss(self):
        return self.loss_of(self.outputs())

    def log_likelihood(self):
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(self.labels, self.outputs())


def looped_jacobian(function, variables):
    """The Jacobian of a function's elements, one gradient for each, as an array (elements, P)."""
    with tf.GradientTape(persistent=True) as tape:
        flat = tf.reshape(function(), [-1])
        elements = [flat[i] for i in range(flat.shape[0])]
    return np.stack([raveled(tape.gradient(element, variables, unconnected_gradients="zero")) for element in elements])


def looped_hessian(loss, variables):
    """The Hessian by two tapes: a row for each element of the gradient."""

    def gradient():
        with tf.GradientTape() as tape:
            value = loss()
        found = tape.gradient(value, variables, unconnected_gradients="zero")
        return tf.concat([tf.reshape(g, [-1]) for g in found], 0)

    return looped_jacobian(gradient, variables)


def second_derivative(function, x):
    """The Hessian of a function of one tensor."""
    v = tf.Variable(x)
    return looped_hessian(lambda: function(v), [v])


def raveled(tensors):
    return np.concatenate([np.asarray(t).ravel() for t in tensors])
