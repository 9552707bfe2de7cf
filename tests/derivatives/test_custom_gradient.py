"""stop_gradient, custom_gradient, grad_pass_through and recompute_grad."""

import numpy as np
import pytest
from derivatives.problems import gradient, slopes

import minikeras as tf


@tf.custom_gradient
def clipped(x):
    """The identity, whose gradient is at most one half."""
    return x, lambda upstream: tf.minimum(upstream, 0.5)


# stop_gradient --------------------------------------------------------------------------------------------------------


def test_stop_gradient_cuts_one_path_and_leaves_the_others():
    """T67."""
    (slope,) = gradient(lambda x: tf.stop_gradient(x * x) * x, 3.0)
    assert slope.numpy() == 9.0
    assert gradient(lambda x: tf.stop_gradient(x * x), 3.0) == [None]


def test_what_stop_gradient_returns_can_itself_be_a_source():
    """T67: and a Python number can be its argument."""
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        stopped = tf.stop_gradient(x)
        tape.watch(stopped)
        y = stopped * stopped
    assert tape.gradient(y, stopped).numpy() == 6.0 and tape.gradient(stopped, stopped).numpy() == 1.0
    assert tape.gradient(y, x) is None
    assert tf.stop_gradient(2.0).numpy() == 2.0


# custom_gradient ------------------------------------------------------------------------------------------------------


def test_the_users_gradient_is_used():
    """T68: the value is that of the function, also of NumPy's; name and documentation are kept."""
    assert gradient(clipped, 3.0)[0].numpy() == 0.5
    assert clipped.__name__ == "clipped" and "one half" in clipped.__doc__

    @tf.custom_gradient
    def by_numpy(x):
        return np.exp(x.numpy()), lambda upstream: upstream * 100.0

    x = tf.constant([0.0, 1.0])
    assert isinstance(by_numpy(x), tf.Tensor) and isinstance(clipped(2.5), tf.Tensor)
    np.testing.assert_array_equal(gradient(by_numpy, [0.0, 1.0])[0].numpy(), [100.0, 100.0])


def test_the_result_is_never_the_input_itself():
    """T68: else the rule could not be told from no rule."""
    x = tf.constant(3.0)
    assert clipped(x) is not x


def test_the_decorator_may_be_called_without_arguments():
    """T68."""

    @tf.custom_gradient()
    def f(x):
        return x, lambda upstream: upstream * 7.0

    assert gradient(f, 1.0)[0].numpy() == 7.0


def test_it_decorates_methods():
    """T68: self is not counted."""

    class Scaler:
        factor = 3.0

        @tf.custom_gradient
        def scale(self, x):
            return x * self.factor, lambda upstream: upstream * self.factor * 2.0

    assert gradient(Scaler().scale, 1.0)[0].numpy() == 6.0


def test_an_output_that_the_target_does_not_use_gets_zeros():
    """T69."""
    seen = []

    @tf.custom_gradient
    def two(x):
        def grad_fn(first, second):
            seen.append((first.numpy(), second.numpy()))
            return first * 10.0 + second

        return (x, x * 2.0), grad_fn

    assert gradient(lambda x: two(x)[1], 1.0)[0].numpy() == 1.0
    assert seen == [(0.0, 1.0)]


@pytest.mark.parametrize("form", [tuple, list, dict])
def test_the_structure_of_the_results_is_kept(form):
    """T69."""

    @tf.custom_gradient
    def f(x):
        y = {"a": x, "b": x + 1.0} if form is dict else form([x, x + 1.0])
        return y, lambda first, second: first + second

    result = f(tf.constant(1.0))
    assert type(result) is form and len(result) == 2


def test_one_gradient_for_each_argument_also_for_numbers_and_nests():
    """T69: None where there is none."""

    @tf.custom_gradient
    def f(pair, factor, unused):
        return pair[0] * pair[1] * factor, lambda upstream: (upstream * 2.0, upstream * 3.0, None, None)

    x, y = tf.constant(5.0), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = f([x, y], 10.0, y)
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [2.0, 3.0]


def test_a_wrong_number_of_gradients_is_refused():
    """T70."""

    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda upstream: upstream

    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1 instead"):
        gradient(f, 1.0, 2.0)


def test_exceptions_of_the_rule_come_through_unchanged():
    """T70."""

    class Peculiar(Exception):
        pass

    @tf.custom_gradient
    def f(x):
        def grad_fn(upstream):
            raise Peculiar

        return x * 1.0, grad_fn

    with pytest.raises(Peculiar):
        gradient(f, 1.0)


def test_variables_inside_ask_for_the_keyword():
    """T71: at the call, even without a tape."""
    v = tf.Variable(2.0, name="inner")

    @tf.custom_gradient
    def f(x):
        return x * v, lambda upstream: upstream

    with pytest.raises(TypeError, match=r"grad_fn must accept keyword argument 'variables'.*inner:0"):
        f(tf.constant(1.0))


@pytest.mark.parametrize("form", ["positional", "keyword only", "any keyword"])
def test_gradients_of_variables_inside(form):
    """T71."""
    v, w = tf.Variable(2.0), tf.Variable(3.0)

    def both(upstream, variables):
        assert [u.ref() for u in variables] == [v.ref(), w.ref()]
        return upstream * 10.0, [upstream * 20.0, upstream * 30.0]

    def keyword_only(upstream, *, variables):
        return both(upstream, variables)

    def any_keyword(upstream, **options):
        return both(upstream, options["variables"])

    rule = {"positional": both, "keyword only": keyword_only, "any keyword": any_keyword}[form]

    @tf.custom_gradient
    def f(x):
        return x * v * w, rule

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v, w])] == [10.0, 20.0, 30.0]


def test_a_wrong_number_of_gradients_of_variables_is_refused():
    """T71."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda upstream, variables: (upstream, [])

    with pytest.raises(ValueError, match="Must return gradient for each variable from @custom_gradient grad_fn."):
        gradient(f, 1.0)


def test_a_frozen_variable_counts_as_a_constant():
    """T71."""
    v = tf.Variable(2.0, trainable=False)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda upstream: upstream * 5.0

    assert gradient(f, 1.0)[0].numpy() == 5.0


def test_a_variable_as_argument_gets_the_gradient():
    """T72."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = clipped(v)
    assert tape.gradient(y, v).numpy() == 0.5


def test_keyword_arguments_are_options_unless_everything_is_one():
    """T72 and 18.2: with everything by keyword the rule holds as well."""

    @tf.custom_gradient
    def f(x, factor=2.0):
        return x * factor, lambda *upstream: upstream[0] * 100.0

    assert gradient(lambda x: f(x, factor=3.0), 1.0)[0].numpy() == 100.0

    @tf.custom_gradient
    def g(x):
        return x * 1.0, lambda upstream: upstream * 100.0

    assert gradient(lambda x: g(x=x), 1.0)[0].numpy() == 100.0


def test_second_order_differentiates_the_operations_of_the_rule():
    """T73: the rule of x**2 says 5 x**3, whose derivative is 15 x**2."""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: upstream * 5.0 * x**3

    assert slopes(f, 2.0) == (40.0, 60.0)


def test_the_rule_may_have_a_custom_gradient_of_its_own():
    """T73: first order says 10, second 100."""

    @tf.custom_gradient
    def slope_of(x):
        return x * 0.0 + 10.0, lambda upstream: upstream * 100.0

    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda upstream: upstream * slope_of(x)

    assert slopes(f, 2.0) == (10.0, 100.0)


def test_it_works_in_jacobians_and_in_maps():
    """T73."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = clipped(x) * tf.constant([0.25, 4.0])
    np.testing.assert_array_equal(tape.jacobian(y, x).numpy(), np.diag([0.25, 0.5]))

    def slope(row):
        with tf.GradientTape() as tape:
            tape.watch(row)
            y = clipped(row) * row
        return tape.gradient(y, row)

    np.testing.assert_array_equal(tf.vectorized_map(slope, tf.constant([0.25, 4.0])).numpy(), [0.5, 4.5])


# grad_pass_through and recompute_grad ---------------------------------------------------------------------------------


def test_grad_pass_through_has_the_values_of_the_function_and_the_gradient_of_the_identity():
    """T74."""
    rounded = tf.grad_pass_through(tf.round)
    assert rounded(tf.constant(2.6)).numpy() == 3.0
    (slope,) = gradient(lambda x: rounded(x) ** 2, 2.6)
    assert slope.numpy() == 6.0


class Block:
    """tanh(x v + b), scaled, with how often it ran."""

    def __init__(self):
        self.v, self.runs = tf.Variable(0.5, dtype="float64"), 0

    def __call__(self, x, b, scale=1.0):
        self.runs += 1
        y = tf.tanh(x * self.v + b)
        return y * scale, y * y


def test_recomputing_gives_the_same_gradients_and_runs_once_more():
    """T74: also for captured variables, keyword arguments and several outputs."""
    found = {}
    for name in ("plain", "recomputed"):
        block = Block()
        function = block if name == "plain" else tf.recompute_grad(block)
        x, b = tf.constant([0.3, -0.7], dtype="float64"), tf.constant(0.1, dtype="float64")
        with tf.GradientTape() as tape:
            tape.watch([x, b])
            first, second = function(x, b, scale=3.0)
            total = tf.reduce_sum(first) + tf.reduce_prod(second)
        found[name] = [g.numpy() for g in tape.gradient(total, [x, b, block.v])]
        assert block.runs == (1 if name == "plain" else 2)
    for plain, recomputed in zip(*found.values(), strict=True):
        np.testing.assert_allclose(recomputed, plain, rtol=1e-14)


def test_recomputing_gives_zeros_for_an_unconnected_argument():
    """T74."""
    assert gradient(tf.recompute_grad(lambda x, y: x * 2.0), 1.0, 5.0)[1].numpy() == 0.0


def test_recomputing_has_second_derivatives():
    """T74 and 18.2: TensorFlow raises NotImplementedError; by nested tapes, hvp and hessian."""
    block, w = Block(), tf.Variable([0.3, -0.7], dtype="float64")
    loss = lambda f: lambda: tf.reduce_sum(f(w, tf.constant(0.1, dtype="float64"))[0] ** 2)
    plain = tf.autodiff.hessian(loss(block), [w, block.v]).numpy()
    again = tf.recompute_grad(block)
    np.testing.assert_allclose(tf.autodiff.hessian(loss(again), [w, block.v]).numpy(), plain, rtol=1e-12)
    vector = np.array([1.0, 2.0, 3.0])
    product = tf.autodiff.hvp(loss(again), [w, block.v], tf.constant(vector))
    np.testing.assert_allclose(product.numpy(), plain @ vector, rtol=1e-12)


def test_recomputing_goes_through_maps_and_jacobians():
    """T73, T74."""
    x = tf.constant([[0.3, 0.4], [0.5, 0.6]], dtype="float64")
    again = tf.recompute_grad(lambda v: tf.sin(v) * tf.reduce_sum(v))

    def jacobian_of(function):
        def one(row):
            with tf.GradientTape() as tape:
                tape.watch(row)
                y = function(row)
            return tape.jacobian(y, row)

        return tf.vectorized_map(one, x).numpy()

    np.testing.assert_allclose(jacobian_of(again), jacobian_of(lambda v: tf.sin(v) * tf.reduce_sum(v)), rtol=1e-14)


def test_recomputing_keeps_one_record():
    """The values inside the block are not kept by the tape."""
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tf.recompute_grad(lambda v: tf.sin(tf.sin(tf.sin(v))))(x)
    assert len(tape.tape.records) == 1


@pytest.mark.parametrize("make", [tf.Variable, tf.constant], ids=["variable", "tensor"])
@pytest.mark.parametrize(
    ("function", "arguments", "derivative"),
    [
        (lambda a, b: a * b, lambda x: (x, x), lambda x: 2 * x),
        (lambda a, b: a * a * b, lambda x: (x, x), lambda x: 3 * x**2),
        (lambda a, b, c: a * b * c, lambda x: (x, x, x), lambda x: 3 * x**2),
        (lambda pair: pair[0] * pair[1], lambda x: ([x, x],), lambda x: 2 * x),
        (lambda d: d["b"] * d["a"] ** 2, lambda x: ({"b": x, "a": x},), lambda x: 3 * x**2),
        (lambda a, b, c: a * b * b, lambda x: (2.0, x, x), lambda x: 4 * x),
    ],
)
def test_recomputing_with_one_tensor_given_twice_counts_each_use_once(make, function, arguments, derivative):
    x = make([2.0, 4.0])
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        outer.watch(x), tape.watch(x)
        y = tf.recompute_grad(function)(*arguments(x))
        gradient = tape.gradient(y, x)
    np.testing.assert_allclose(gradient, derivative(x.numpy()))
    with tf.GradientTape() as check_outer:
        check_outer.watch(x)
        with tf.GradientTape() as check:
            check.watch(x)
            plain = function(*arguments(x))
        expected = check.gradient(plain, x)
    np.testing.assert_allclose(outer.gradient(gradient, x), check_outer.gradient(expected, x))


def test_a_rule_of_dicts_returns_gradients_by_key():
    @tf.custom_gradient
    def function(d):
        return {"y": 2.0 * d["b"], "x": 3.0 * d["a"]}, lambda x, y: {"b": 20.0 * y, "a": 30.0 * x}

    given = {"b": tf.Variable(1.0), "a": tf.Variable(1.0)}
    with tf.GradientTape() as tape:
        result = function(given)
        loss = result["y"] + 100.0 * result["x"]
    gradients = tape.gradient(loss, given)
    assert {key: float(g) for key, g in gradients.items()} == {"b": 20.0, "a": 3000.0} and list(gradients) == ["b", "a"]


def test_a_rule_of_several_arguments_may_return_nests_like_them():
    @tf.custom_gradient
    def function(x, d):
        return x + d["b"] + d["a"], lambda g: (g, {"a": 2.0 * g, "b": 3.0 * g})

    x, d = tf.Variable(1.0), {"b": tf.Variable(1.0), "a": tf.Variable(1.0)}
    with tf.GradientTape() as tape:
        y = function(x, d)
    found = tape.gradient(y, [x, d])
    assert [float(found[0]), float(found[1]["a"]), float(found[1]["b"])] == [1.0, 2.0, 3.0]


def test_a_rule_whose_dict_has_other_keys_is_refused():
    @tf.custom_gradient
    def function(d):
        return d["a"], lambda g: {"b": g}

    d = {"a": tf.Variable(1.0)}
    with tf.GradientTape() as tape:
        y = function(d)
    with pytest.raises(ValueError, match="not nested like the 1 arguments"):
        tape.gradient(y, d)


@pytest.mark.parametrize("give", [lambda x: x, lambda x: x * 1.0, lambda x: [x * 1.0], lambda x: {"c": x * 1.0}])
def test_a_recomputed_function_has_gradients_of_tensors_given_by_keyword(give):
    def product(a, b, *, power, training=None):
        assert isinstance(power, int), "numbers stay numbers when it is computed again"
        assert training is True
        return a * sum(tf.nest.flatten(b)) ** power

    for x in (tf.Variable([2.0, 3.0]), tf.constant([2.0, 3.0])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.recompute_grad(product)(x, b=give(x), power=2, training=True)
        assert tape.gradient(y, x).numpy().tolist() == [12.0, 27.0]  # of x * x**2
