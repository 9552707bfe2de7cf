"""Derivatives of a model's loss in one call: rules (a) to (h) of section 18.3."""

import numpy as np
import pytest
from derivatives.problems import Network, looped_hessian, looped_jacobian, raveled

import minikeras as tf
from minikeras.compiler.executors import llvm
from minikeras.derivatives.flat import cached_rows, strips
from minikeras.layout import Layout

ad = tf.autodiff
CLOSE = dict(rtol=1e-10, atol=1e-13)


@pytest.fixture
def network():
    return Network()


def every_matrix(net, chunk_size=None):
    """All that have the form (P, P), by name."""
    variables = net.trainable_variables
    return {
        "hessian": ad.hessian(net.loss, variables, chunk_size=chunk_size),
        "gauss_newton": ad.gauss_newton(net.outputs, net.loss_of, variables, chunk_size=chunk_size),
        "fisher": ad.fisher(net.log_likelihood, variables, chunk_size=chunk_size),
    }


def every_result(net):
    """All results as one flat list of Tensors."""
    variables, count = net.trainable_variables, 26
    found = [*every_matrix(net).values(), ad.jacobian(net.outputs, variables)]
    found += [block for row in ad.hessian(net.loss, variables, flat=False) for block in row]
    found.append(ad.hvp(net.loss, variables, tf.ones(count, net.x.dtype)))
    found += ad.hvp(net.loss, variables, [tf.ones_like(v) for v in variables])
    found += [ad.hessian_diag(net.loss, variables), ad.hessian_trace(net.loss, variables)]
    found += [ad.ggnvp(net.outputs, net.loss_of, variables, tf.ones(count, net.x.dtype))]
    found += ad.block_hessian(net.loss, [variables[:2], variables[2:]])
    found += [ad.jvp(net.outputs, variables, tf.ones(count, net.x.dtype))]
    found += ad.vjp(net.outputs, variables, tf.ones((5, 2), net.x.dtype))
    found += [*ad.hessian_diag(net.loss, variables, samples=3, seed=1), *ad.hessian_trace(net.loss, variables, samples=3)]
    return found + ad.per_example_gradients(lambda x: tf.reduce_sum(net.outputs(x[None])), variables, net.x)


def test_the_jacobian_is_that_of_a_loop(network):
    whole = ad.jacobian(network.outputs, network)
    assert whole.shape == (5, 2, 26)
    np.testing.assert_allclose(
        whole.numpy().reshape(10, 26), looped_jacobian(network.outputs, network.trainable_variables), **CLOSE
    )


def test_the_hessian_is_that_of_nested_tapes(network):
    """(a)."""
    expected = looped_hessian(network.loss, network.trainable_variables)
    np.testing.assert_allclose(ad.hessian(network.loss, network).numpy(), expected, **CLOSE)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("chunk_size", [None, 1, 5, 9])
def test_the_hessian_is_that_of_nested_tapes_for_variables_in_any_order(network, monkeypatch, order, chunk_size):
    """Its strips end where a variable ends, or where a chunk is full."""
    monkeypatch.setattr("minikeras.derivatives.flat.LEAST", 4)
    variables = [network.trainable_variables[i] for i in order]
    found = ad.hessian(network.loss, variables, chunk_size=chunk_size).numpy()
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, looped_hessian(network.loss, variables), **CLOSE)


def test_a_large_hessian_is_made_of_strips():
    """In float64 as that of one sweep to 1e-12 of its largest number; a model with shared, normalizing and dropping layers."""
    tf.random.set_seed(1)
    shared = tf.keras.layers.Dense(12, activation="tanh", dtype="float64", name="shared")
    model = tf.keras.Sequential(
        [
            tf.keras.Input((12,), dtype="float64"),
            shared,
            tf.keras.layers.BatchNormalization(dtype="float64"),
            tf.keras.layers.Dropout(0.3, dtype="float64", seed=3),
            shared,
            tf.keras.layers.Dense(3, dtype="float64", name="head"),
        ]
    )
    x = tf.constant(np.random.default_rng(0).normal(size=(7, 12)))
    variables = model.trainable_variables
    with tf.GradientTape() as outer:
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        flat = tf.concat([tf.reshape(part, [-1]) for part in tape.gradient(loss, variables)], 0)
    found = tape.hessian(loss, variables).numpy()
    whole = np.concatenate([rows.numpy().reshape(len(found), -1) for rows in outer.jacobian(flat, variables)], axis=1)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12 * np.abs(whole).max())


def test_variables_may_have_one_gradient_in_common():
    """The gradient of v + w is one tensor for both."""
    v, w = (tf.Variable(np.arange(3.0)) for _ in range(2))
    found = ad.hessian(lambda: tf.reduce_sum((v + w) ** 3), [v, w]).numpy()
    np.testing.assert_allclose(found, np.tile(np.diag(6.0 * 2.0 * np.arange(3.0)), (2, 2)))


def test_what_has_no_elements_has_no_hessian():
    empty, w = tf.Variable(np.zeros((0, 2))), tf.Variable([1.0, 2.0], dtype=tf.float64)
    loss = lambda: tf.reduce_sum(empty) + tf.reduce_sum(w**3)
    assert ad.hessian(loss, [empty]).shape == (0, 0)
    for variables in ([empty, w], [w, empty]):
        np.testing.assert_allclose(ad.hessian(loss, variables).numpy(), np.diag([6.0, 12.0]))


def test_strips_end_with_leaves_or_with_chunks():
    layout = Layout([(10, 26), (26,), (26, 26), (26,), (26, 1), (1,)])
    assert strips(layout, cached_rows(1015, 64 * 26))[:4] == [(0, 157), (157, 260), (260, 417), (417, 574)]
    assert strips(layout, cached_rows(1015, 10)) == [(0, 260), (260, 962), (962, 1015)]
    assert strips(layout, 400) == [(0, 260), (260, 660), (660, 962), (962, 1015)]
    assert strips(Layout([(3,), (2, 2)]), 64) == [(0, 7)]
    assert strips(Layout([(3,), (2, 2)]), 2) == [(0, 2), (2, 4), (4, 6), (6, 7)]


def test_the_blocks_of_the_hessian_are_its_parts(network):
    variables = network.trainable_variables
    whole, blocks = ad.hessian(network.loss, variables).numpy(), ad.hessian(network.loss, variables, flat=False)
    for first, row in zip(variables, blocks, strict=True):
        for second, block in zip(variables, row, strict=True):
            assert block.shape == (*first.shape, *second.shape)
    sizes = [int(np.prod(v.shape)) for v in variables]
    rows = [np.concatenate([b.numpy().reshape(n, -1) for b in row], 1) for n, row in zip(sizes, blocks, strict=True)]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


@pytest.mark.parametrize("form", ["flat", "nested", "dict"])
def test_hessian_vector_products_are_the_hessian_times_a_vector(network, form):
    variables = network.trainable_variables
    vector = np.random.default_rng(1).normal(size=26)
    expected = looped_hessian(network.loss, variables) @ vector
    parts = np.split(vector, np.cumsum([int(np.prod(v.shape)) for v in variables])[:-1])
    shaped = [tf.constant(part.reshape(v.shape)) for part, v in zip(parts, variables, strict=True)]
    if form == "flat":
        product = ad.hvp(network.loss, network, tf.constant(vector)).numpy()
    elif form == "nested":
        product = raveled(ad.hvp(network.loss, variables, shaped))
    else:
        named = dict(zip("abcd", variables, strict=True))
        found = ad.hvp(network.loss, named, dict(zip("abcd", shaped, strict=True)))
        assert list(found) == list("abcd")
        product = raveled(found.values())
    np.testing.assert_allclose(product, expected, **CLOSE)


def test_the_gauss_newton_matrix_is_its_formula(network):
    """J^T H J, which has no negative eigenvalue since the loss is convex in the outputs."""
    variables = network.trainable_variables
    j = looped_jacobian(network.outputs, variables)
    z = tf.Variable(network.outputs())
    h = looped_hessian(lambda: network.loss_of(z), [z])
    matrix = ad.gauss_newton(network.outputs, network.loss_of, variables).numpy()
    np.testing.assert_allclose(matrix, j.T @ h @ j, **CLOSE)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_products_with_the_gauss_newton_matrix(network, form):
    """Without the matrix, and in the form of the vector."""
    variables = network.trainable_variables
    vector = np.random.default_rng(4).normal(size=26)
    expected = ad.gauss_newton(network.outputs, network.loss_of, variables).numpy() @ vector
    given = tf.constant(vector) if form == "flat" else parts_of(vector, variables)
    found = ad.ggnvp(network.outputs, network.loss_of, variables, given)
    np.testing.assert_allclose(found.numpy() if form == "flat" else raveled(found), expected, **CLOSE)


def parts_of(vector, variables):
    """A vector cut into tensors like the variables."""
    ends = np.cumsum([int(np.prod(v.shape)) for v in variables])
    return [tf.constant(part.reshape(v.shape)) for part, v in zip(np.split(vector, ends[:-1]), variables, strict=True)]


@pytest.mark.parametrize("form", ["flat", "nested", "model"])
def test_products_with_the_jacobian_from_both_sides(network, form):
    variables = network.trainable_variables
    j = looped_jacobian(network.outputs, variables)
    random = np.random.default_rng(5)
    v, u = random.normal(size=26), random.normal(size=(5, 2))
    asked = network if form == "model" else variables
    given = parts_of(v, variables) if form == "nested" else tf.constant(v)
    forward = ad.jvp(network.outputs, asked, given)
    assert forward.shape == (5, 2)
    np.testing.assert_allclose(forward.numpy().ravel(), j @ v, **CLOSE)
    backward = ad.vjp(network.outputs, asked, tf.constant(u))
    assert isinstance(backward, list)
    np.testing.assert_allclose(raveled(backward), u.ravel() @ j, **CLOSE)


def test_the_result_of_a_product_has_the_structure_that_was_asked_with():
    w, b = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    function = lambda: w * b
    named = ad.vjp(function, {"w": w, "b": b}, tf.constant([1.0, 1.0]))
    assert list(named) == ["w", "b"] and named["b"].numpy() == 3.0
    assert ad.vjp(function, w, [1.0, 1.0]).numpy().tolist() == [3.0, 3.0]
    assert ad.jvp(function, w, [1.0, 0.0]).numpy().tolist() == [3.0, 0.0]
    assert ad.hvp(lambda: tf.reduce_sum(function() ** 2), b, 1.0).numpy() == 10.0


def test_the_blocks_of_layers_are_those_of_the_hessian(network):
    groups = [[network.hidden, network.bias], [network.outer]]
    whole = ad.hessian(network.loss, [v for group in groups for v in group]).numpy()
    for chunk_size in (None, 3):
        first, second = ad.block_hessian(network.loss, groups, chunk_size=chunk_size)
        np.testing.assert_allclose(first.numpy(), whole[:16, :16], **CLOSE)
        np.testing.assert_allclose(second.numpy(), whole[16:, 16:], **CLOSE)
        np.testing.assert_array_equal(first.numpy(), first.numpy().T)
    with pytest.raises(ValueError, match="no trainable variables in an empty list"):
        ad.block_hessian(network.loss, [groups[0], []])


def test_a_model_stands_for_its_layers_that_have_variables():
    layers, x = tf.keras.layers, tf.constant(np.ones((3, 2), "float32"))
    model = tf.keras.Sequential([layers.Dense(2), layers.Dropout(0.5), layers.Dense(1)])
    model(x)
    blocks = ad.block_hessian(lambda: tf.reduce_mean(model(x) ** 2), model)
    assert [block.shape for block in blocks] == [(6, 6), (3, 3)]


def test_the_gauss_newton_matrix_of_a_linear_model_is_the_hessian():
    w, x = tf.Variable([[0.3], [-0.2]], dtype="float64"), tf.constant([[1.0, 2.0], [3.0, -1.0]], dtype="float64")
    half_square = lambda z: tf.reduce_sum(z**4)
    matrix = ad.gauss_newton(lambda: x @ w, half_square, [w])
    np.testing.assert_allclose(matrix.numpy(), ad.hessian(lambda: half_square(x @ w), [w]).numpy(), rtol=1e-12)


def test_the_fisher_matrix_is_the_mean_of_outer_products(network):
    rows = looped_jacobian(network.log_likelihood, network.trainable_variables)
    np.testing.assert_allclose(ad.fisher(network.log_likelihood, network).numpy(), rows.T @ rows / 5, **CLOSE)


def test_diagonal_and_trace_are_those_of_the_hessian(network):
    whole = looped_hessian(network.loss, network.trainable_variables)
    np.testing.assert_allclose(ad.hessian_diag(network.loss, network).numpy(), np.diag(whole), **CLOSE)
    np.testing.assert_allclose(ad.hessian_trace(network.loss, network).numpy(), np.trace(whole), **CLOSE)


def test_estimates_agree_within_their_standard_error(network):
    whole = looped_hessian(network.loss, network.trainable_variables)
    trace = ad.hessian_trace(network.loss, network, samples=200, seed=3)
    assert 0 < trace.standard_error < 0.1 * abs(np.trace(whole)) + 0.05
    assert abs(trace.value - np.trace(whole)) < 4 * trace.standard_error
    diagonal = ad.hessian_diag(network.loss, network, samples=200, seed=3)
    assert np.all(np.abs(diagonal.value.numpy() - np.diag(whole)) <= 5 * diagonal.standard_error.numpy() + 1e-12)


def test_an_estimate_is_repeated_by_its_seed_and_needs_a_sample(network):
    first, second = (ad.hessian_trace(network.loss, network, samples=2, seed=5).value for _ in range(2))
    assert first.numpy() == second.numpy()
    assert np.isnan(ad.hessian_trace(network.loss, network, samples=1, seed=5).standard_error.numpy())
    with pytest.raises(ValueError, match="at least one"):
        ad.hessian_trace(network.loss, network, samples=0)


def test_a_diagonal_hessian_is_estimated_without_error():
    """Each probe is +1 or -1, so v * (H v) is the diagonal itself."""
    w = tf.Variable([1.0, 2.0, 3.0], dtype="float64")
    value, error = ad.hessian_diag(lambda: tf.reduce_sum(w**3), [w], samples=4, seed=0)
    np.testing.assert_allclose(value.numpy(), [6.0, 12.0, 18.0])
    np.testing.assert_array_equal(error.numpy(), 0.0)


def test_per_example_gradients_are_those_of_a_loop(network):
    variables = network.trainable_variables
    loss = lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, network.outputs(x[None])[0])
    found = ad.per_example_gradients(loss, network, network.x, network.labels)
    for i in range(5):
        with tf.GradientTape() as tape:
            value = loss(network.x[i], network.labels[i])
        expected = tape.gradient(value, variables, unconnected_gradients="zero")
        np.testing.assert_allclose(raveled([g[i] for g in found]), raveled(expected), **CLOSE)


def test_matrices_are_symmetric_to_the_last_bit(network):
    """(b)."""
    for name, matrix in every_matrix(network).items():
        np.testing.assert_array_equal(matrix.numpy(), matrix.numpy().T, err_msg=name)


def test_unconnected_blocks_are_zeros(network):
    """(c): the variable that nothing uses has rows and columns of zeros."""
    for matrix in every_matrix(network).values():
        assert not matrix.numpy()[16:18].any() and not matrix.numpy()[:, 16:18].any()
    assert not ad.jacobian(network.outputs, network).numpy()[..., 16:18].any()
    assert not ad.hvp(network.loss, network, tf.ones(26, "float64")).numpy()[16:18].any()


STRICT = {
    "jacobian": lambda net: ad.jacobian(net.outputs, net, strict=True),
    "vjp": lambda net: ad.vjp(net.outputs, net, tf.ones((5, 2), "float64"), strict=True),
    "hessian": lambda net: ad.hessian(net.loss, net, strict=True),
    "block_hessian": lambda net: ad.block_hessian(net.loss, [net], strict=True),
    "hvp": lambda net: ad.hvp(net.loss, net, tf.ones(26, "float64"), strict=True),
    "gauss_newton": lambda net: ad.gauss_newton(net.outputs, net.loss_of, net, strict=True),
    "ggnvp": lambda net: ad.ggnvp(net.outputs, net.loss_of, net, tf.ones(26, "float64"), strict=True),
    "fisher": lambda net: ad.fisher(net.log_likelihood, net, strict=True),
    "diagonal": lambda net: ad.hessian_diag(net.loss, net, strict=True),
    "trace": lambda net: ad.hessian_trace(net.loss, net, samples=2, strict=True),
    "per example": lambda net: ad.per_example_gradients(lambda x: tf.reduce_sum(net.outputs(x[None])), net, net.x, strict=True),
}


@pytest.mark.parametrize("name", STRICT)
def test_strictness_raises_for_a_variable_that_nothing_uses(network, name):
    """(c): and is content where each has its part, though blocks of second derivatives may be zeros."""
    with pytest.raises(tf.errors.UnconnectedGradientError, match="1 of 4 sources have no gradient"):
        STRICT[name](network)
    used = Network()
    used.trainable_variables = [used.hidden, used.bias, used.outer]
    if name not in ("hvp", "ggnvp"):
        STRICT[name](used)
    linear = tf.Variable([1.0, 2.0])
    assert not ad.hessian(lambda: tf.reduce_sum(linear), [linear], strict=True).numpy().any()


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_a_chunk_has_at_least_one_row(network, chunk_size):
    """(d): whatever asks; the tape stays as it was."""
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    asked = [
        lambda: tape.jacobian(y, x, chunk_size=chunk_size),
        lambda: tape.batch_jacobian(y, x, chunk_size=chunk_size),
        lambda: tape.hessian(tf.reduce_sum(y), x, chunk_size=chunk_size),
        lambda: ad.hessian(network.loss, network, chunk_size=chunk_size),
        lambda: ad.jacobian(network.outputs, network, chunk_size=chunk_size),
        lambda: ad.block_hessian(network.loss, [network], chunk_size=chunk_size),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=f"chunk_size: at least one row is carried at once, found {chunk_size}"):
            ask()
    for nonsense in (2.5, "2", True):
        with pytest.raises(TypeError, match="chunk_size: an integer or None"):
            tape.jacobian(y, x, chunk_size=nonsense)
    assert tape.jacobian(y, x, chunk_size=np.int64(1)).shape == (1, 2, 1, 2)


def test_a_loss_that_is_linear_has_a_hessian_of_zeros():
    w = tf.Variable([1.0, 2.0])
    linear = lambda: tf.reduce_sum(3.0 * w)
    np.testing.assert_array_equal(ad.hessian(linear, [w]).numpy(), np.zeros((2, 2)))
    np.testing.assert_array_equal(ad.hvp(linear, [w], tf.ones(2)).numpy(), np.zeros(2))
    np.testing.assert_array_equal(ad.hessian_trace(linear, [w], samples=2).value.numpy(), 0.0)


@pytest.mark.parametrize("chunk_size", [1, 3, 26, 1000])
def test_the_size_of_chunks_does_not_matter(network, chunk_size):
    """(d)."""
    whole = every_matrix(network)
    for name, matrix in every_matrix(network, chunk_size).items():
        np.testing.assert_allclose(matrix.numpy(), whole[name].numpy(), err_msg=name, **CLOSE)


THIRD_ORDER = {
    "ggnvp": lambda net: ad.ggnvp(net.outputs, net.loss_of, net, tf.ones(26, "float64")),
    "layer block": lambda net: ad.block_hessian(net.loss, [[net.hidden, net.bias], [net.outer]])[0],
    "jvp": lambda net: ad.jvp(net.outputs, net, tf.ones(26, "float64")),
    "vjp": lambda net: ad.vjp(net.outputs, net, tf.ones((5, 2), "float64"))[0],
    "hessian": lambda net: ad.hessian(net.loss, net),
    "blocks": lambda net: ad.hessian(net.loss, net, flat=False)[0][3],
    "hvp": lambda net: ad.hvp(net.loss, net, tf.ones(26, "float64")),
    "gauss_newton": lambda net: ad.gauss_newton(net.outputs, net.loss_of, net),
    "fisher": lambda net: ad.fisher(net.log_likelihood, net),
    "diagonal": lambda net: ad.hessian_diag(net.loss, net),
    "estimated trace": lambda net: ad.hessian_trace(net.loss, net, samples=2, seed=1).value,
    "per example": lambda net: ad.per_example_gradients(lambda x: tf.reduce_sum(net.outputs(x[None]) ** 2), net, net.x)[0],
}


@pytest.mark.parametrize("name", THIRD_ORDER)
def test_an_outer_tape_differentiates_once_more(network, name):
    """(e), against central differences in a random direction."""
    generator = np.random.default_rng(2)
    with tf.GradientTape() as tape:
        result = THIRD_ORDER[name](network)
        weights = tf.constant(generator.normal(size=result.shape))
        total = tf.reduce_sum(result * weights)
    variables = [network.hidden, network.outer]
    gradients = tape.gradient(total, variables)
    directions = [generator.normal(size=v.shape) for v in variables]
    starts, ends, step = [v.numpy() for v in variables], [], 1e-5
    for sign in (1, -1):
        for variable, start, direction in zip(variables, starts, directions, strict=True):
            variable.assign(start + sign * step * direction)
        ends.append(float(tf.reduce_sum(THIRD_ORDER[name](network) * weights)))
    actual = sum(np.sum(g.numpy() * d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(actual, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_have_the_dtype_of_the_variables(dtype):
    """(g)."""
    for result in every_result(Network(dtype)):
        assert result.dtype == dtype


def ones_for(net):
    return tf.ones(sum(int(np.prod(v.shape)) for v in net.trainable_variables))


SHAPES = {True: np.ones((5, 2), "float32"), False: np.ones((6, 2), "float32")}
"""What has the shape of the outputs: of the network, and of the layers below."""

ONE_RUN = {
    "jacobian": lambda net, out, loss: ad.jacobian(out, net),
    "hessian": lambda net, out, loss: ad.hessian(loss, net, chunk_size=2),
    "hvp": lambda net, out, loss: ad.hvp(loss, net, ones_for(net)),
    "gauss_newton": lambda net, out, loss: ad.gauss_newton(out, lambda z: tf.reduce_sum(z**2), net),
    "ggnvp": lambda net, out, loss: ad.ggnvp(out, lambda z: tf.reduce_sum(z**2), net, ones_for(net)),
    "block_hessian": lambda net, out, loss: ad.block_hessian(loss, [net]),
    "jvp": lambda net, out, loss: ad.jvp(out, net, ones_for(net)),
    "vjp": lambda net, out, loss: ad.vjp(out, net, tf.ones_like(tf.constant(SHAPES[type(net) is Network]))),
    "fisher": lambda net, out, loss: ad.fisher(out, net),
    "diagonal": lambda net, out, loss: ad.hessian_diag(loss, net),
    "estimated diagonal": lambda net, out, loss: ad.hessian_diag(loss, net, samples=3, seed=0),
    "estimated trace": lambda net, out, loss: ad.hessian_trace(loss, net, samples=3, seed=0),
}


@pytest.mark.parametrize("name", ONE_RUN)
def test_the_loss_is_run_once(name):
    """(f)."""
    net = Network("float32")
    ONE_RUN[name](net, net.outputs, net.loss)
    assert net.runs == 1


@pytest.mark.parametrize("name", ONE_RUN)
def test_moving_statistics_move_once(name):
    """(f): as after one call of the layer in training."""
    layers, x = tf.keras.layers, tf.constant(np.random.default_rng(0).normal(size=(6, 3)).astype("float32"))

    def state_after(use):
        norm = layers.BatchNormalization()
        model = tf.keras.Sequential([norm, layers.Dense(2, kernel_initializer="ones")])
        model(x)
        outputs = lambda: model(x, training=True)
        use(model, outputs, lambda: tf.reduce_mean(outputs() ** 2))
        return norm.moving_mean.numpy(), norm.moving_variance.numpy()

    expected = state_after(lambda model, outputs, loss: loss())
    for actual, wanted in zip(state_after(ONE_RUN[name]), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("name", ["hessian", "gauss_newton", "estimated diagonal"])
def test_the_random_mask_is_the_same_in_all_passes(name):
    """(f): y = mask * w, so each result is made of the squares of one mask."""
    w, dropout = tf.Variable(tf.ones(40)), tf.keras.layers.Dropout(0.5, seed=1)
    outputs = lambda: dropout(w, training=True)
    result = ONE_RUN[name]([w], outputs, lambda: tf.reduce_sum(outputs() ** 2))
    diagonal = np.diag(result.numpy()) if name != "estimated diagonal" else result.value.numpy()
    assert set(diagonal.tolist()) == {0.0, 8.0}


def test_a_layer_with_state_refuses_a_stack_of_examples():
    """(f): statistics of a batch have no meaning for one example of a stack, and no cell can hold all of them."""
    norm = tf.keras.layers.BatchNormalization()
    norm(tf.ones((2, 3)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="stands for 4 values"):
        ad.per_example_gradients(lambda x: tf.reduce_sum(norm(x[None], training=True)), norm, tf.ones((4, 3)))


# On a tape ------------------------------------------------------------------------------------------------------------


def taped(net, **options):
    """A tape that recorded the loss of a network, and the loss."""
    with tf.GradientTape(**options) as tape:
        loss = net.loss()
    return tape, loss


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_a_tape_gives_the_hessian_of_what_it_recorded(network, chunk_size):
    """(a): once on a tape for one use; no further run of the function."""
    variables, expected = network.trainable_variables, looped_hessian(network.loss, network.trainable_variables)
    network.runs = 0
    tape, loss = taped(network)
    matrix = tape.hessian(loss, variables, chunk_size=chunk_size).numpy()
    assert network.runs == 1
    np.testing.assert_allclose(matrix, expected, **CLOSE)
    np.testing.assert_array_equal(matrix, matrix.T)
    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        tape.hessian(loss, variables)
    tape, loss = taped(network)
    blocks = tape.hessian(loss, variables, flat=False)
    np.testing.assert_allclose(blocks[0][3].numpy().reshape(12, 8), expected[:12, 18:], **CLOSE)


def test_a_persistent_tape_gives_gradient_hessian_and_products(network):
    variables, tape_and_loss = [network.hidden, network.outer], taped(network, persistent=True)
    tape, loss = tape_and_loss
    before = tape.summary().records
    expected = looped_hessian(network.loss, variables)
    vector = np.random.default_rng(6).normal(size=20)
    np.testing.assert_allclose(tape.hvp(loss, variables, tf.constant(vector)).numpy(), expected @ vector, **CLOSE)
    nested = tape.hvp(loss, variables, parts_of(vector, variables))
    np.testing.assert_allclose(raveled(nested), expected @ vector, **CLOSE)
    np.testing.assert_allclose(tape.hessian(loss, variables).numpy(), expected, **CLOSE)
    assert [g.shape for g in tape.gradient(loss, variables)] == [(3, 4), (4, 2)]
    assert tape.summary().records == before, "second derivatives leave nothing on the tape"


def test_intermediate_results_have_second_derivatives_as_well():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(y**3)
    np.testing.assert_allclose(tape.hessian(z, y).numpy(), [[6.0, 0.0], [0.0, 24.0]])
    np.testing.assert_allclose(tape.hvp(z, {"x": x}, {"x": [1.0, 1.0]})["x"].numpy(), [30.0, 480.0])


def test_second_derivatives_of_a_tape_are_differentiated_by_an_outer_one():
    """(e): inside the outer block."""
    x = tf.Variable([1.0, 2.0], dtype="float64")
    with tf.GradientTape() as outer:
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(x**4)
        curvature = tf.reduce_sum(tape.hvp(y, x, tf.ones(2, "float64"))) + tf.reduce_sum(tape.hessian(y, x))
    np.testing.assert_allclose(outer.gradient(curvature, x).numpy(), [48.0, 96.0])


def test_a_strict_tape_raises_for_what_is_unconnected(network):
    """(c)."""
    tape, loss = taped(network, strict=True)
    with pytest.raises(tf.errors.UnconnectedGradientError, match="1 of 4 sources"):
        tape.hessian(loss, network.trainable_variables)
    tape, loss = taped(network)
    assert not tape.hessian(loss, [network.unused]).numpy().any()


def test_second_derivatives_are_those_of_one_number(network):
    tape, _ = taped(network, persistent=True)
    for ask in (
        lambda: tape.hessian(network.hidden, [network.hidden]),
        lambda: tape.hvp(network.hidden, [network.hidden], 1.0),
    ):
        with pytest.raises(ValueError, match=r"the target has shape \(3, 4\)"):
            ask()
    loss = taped(network, persistent=True)[1]
    with pytest.raises(ValueError, match="a part of the vector has shape"):
        tape.hvp(loss, [network.bias], [tf.ones(3, "float64")])
    with pytest.raises(ValueError, match="not nested like the 2 variables"):
        tape.hvp(loss, [network.bias, network.outer], [tf.ones(4, "float64")])


def test_helpers_compute_on_the_device_of_the_variables(device):
    """(h): the strict device refuses what would leave it in silence."""
    w, x = tf.Variable([[0.5], [-1.0]]), tf.constant([[1.0, 2.0], [3.0, 4.0], [0.5, 1.0]])
    outputs = lambda: tf.tanh(x @ w)
    loss_of = lambda z: tf.reduce_sum(z**2)
    loss = lambda: loss_of(outputs())
    ones = tf.ones(2)
    results = [
        ad.jacobian(outputs, [w]),
        ad.jvp(outputs, [w], ones),
        ad.hessian(loss, [w], chunk_size=1),
        ad.hvp(loss, [w], ones),
        ad.gauss_newton(outputs, loss_of, [w]),
        ad.ggnvp(outputs, loss_of, [w], ones),
        ad.fisher(outputs, [w]),
        ad.hessian_diag(loss, [w]),
        ad.hessian_trace(loss, [w], samples=2, seed=0).value,
        *ad.vjp(outputs, [w], tf.ones((3, 1))),
        *ad.block_hessian(loss, [[w]]),
        *ad.per_example_gradients(lambda row: tf.reduce_sum(tf.tanh(row[None] @ w)), [w], x),
    ]
    assert {result.device for result in results} == {w.device}
    assert all(np.isfinite(result.numpy()).all() for result in results)


def test_a_loss_that_is_no_scalar_is_refused():
    w = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="must return a scalar"):
        ad.hessian(lambda: w * w, [w])
    with pytest.raises(ValueError, match="2 elements"):
        ad.hvp(lambda: tf.reduce_sum(w * w), [w], tf.ones(3))


@pytest.mark.parametrize("fast", [None, pytest.param(True, marks=pytest.mark.skipif(not llvm.installed(), reason="no LLVM"))])
def test_a_compiled_hessian_of_several_strips_is_the_eager_one(fast):
    random = np.random.default_rng(0)
    pairs = [(8, 16), (16, 16), (16, 1)]
    kernels = [tf.Variable(random.normal(size=pair) / pair[0] ** 0.5) for pair in pairs]
    biases = [tf.Variable(np.zeros(width)) for _, width in pairs]
    x = tf.constant(random.normal(size=(64, 8)))

    def loss():
        y = x
        for kernel, bias in zip(kernels, biases, strict=True):
            y = tf.tanh(y @ kernel + bias)
        return tf.reduce_mean((y - 0.5) ** 2)

    variables = [variable for pair in zip(kernels, biases, strict=True) for variable in pair]
    expected = ad.hessian(loss, variables).numpy()
    compiled = tf.function(lambda: ad.hessian(loss, variables), jit_compile=fast)
    for _ in range(3):
        np.testing.assert_allclose(compiled().numpy(), expected, rtol=0, atol=1e-12 if fast else 0)
