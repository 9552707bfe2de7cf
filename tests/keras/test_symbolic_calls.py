"""Calls on KerasTensors: shapes and dtypes are found by trial, and the trial leaves no trace."""

import operator
import re

import numpy as np
import pytest

import minikeras as tf
from minikeras.nn_ops import streams

layers, Input, Model = tf.keras.layers, tf.keras.Input, tf.keras.Model
Dense = layers.Dense


class Apply(layers.Layer):
    """A function as a layer, for these tests."""

    def __init__(self, function, **options):
        super().__init__(**options)
        self.function = function

    def call(self, x, training=None):
        return self.function(x)


@pytest.mark.parametrize(
    "function, shape, expected",
    [
        (lambda x: tf.reduce_sum(x, axis=-1), (3,), (None,)),
        (lambda x: tf.reduce_sum(x), (3,), ()),
        (lambda x: tf.concat([x, x], axis=0), (3,), (None, 3)),
        (lambda x: tf.concat([x, x], axis=1), (3,), (None, 6)),
        (lambda x: tf.transpose(x), (3,), (3, None)),
        (lambda x: x[:2], (3,), (2, 3)),
        (lambda x: tf.reshape(x, (-1,)), (3,), (None,)),
        (lambda x: tf.ones((5, 5)), (3,), (5, 5)),
        (lambda x: tf.matmul(x, x, transpose_b=True), (3,), (None, None)),
        (lambda x: tf.reduce_max(x, axis=1), (None, 4), (None, 4)),
        (lambda x: x[:, :7], (None, 4), (None, 7, 4)),
        (lambda x: tf.expand_dims(x, 0), (), (1, None)),
    ],
)
def test_sizes_that_follow_an_unknown_one_are_unknown(function, shape, expected):
    assert Apply(function)(Input(shape)).shape == expected


def test_a_known_batch_size_stays_known():
    x = Input((3,), batch_size=7)
    assert Apply(lambda x: tf.concat([x, x], axis=0))(x).shape == (14, 3)


def test_a_table_of_positions_may_have_few_rows():
    class Positions(tf.keras.layers.Layer):
        def __init__(self, rows, first=0, **options):
            super().__init__(**options)
            self.first, self.rows = first, tf.keras.layers.Embedding(rows, 3)

        def call(self, x):
            return self.rows(self.first + tf.range(tf.shape(x)[1])) + tf.cast(x, "float32")[..., None]

    for rows in (70, 20, 6, 3):
        assert Positions(rows)(Input((None,), dtype="int64")).shape == (None, None, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 3\)") as caught:
        Positions(3, first=7)(Input((None,), dtype="int64"))
    assert "tried on zeros" in caught.value.__notes__[0]


ops = tf.keras.ops


@pytest.mark.parametrize(
    ("function", "shape", "expected", "data"),
    [
        (lambda x: ops.add(x, np.ones((10, 4), "float32")), (None, 4), (None, 10, 4), (3, 10, 4)),
        (lambda x: ops.add(np.ones((10, 1), "float32"), x), (None, 4), (None, 10, 4), (3, 1, 4)),
        (lambda x: x * [[1.0], [2.0], [3.0]], (None, 4), (None, 3, 4), (2, 3, 4)),
        (lambda x: ops.where(x > 0, x, np.ones((5, 7), "float32")), (None,), (5, 7), (5, 7)),
        (lambda x: ops.where(x > 0, x, x[:, :1]), (None,), (None, None), (5, 7)),
        (lambda x: ops.add(x, x[:, 0]), (None, 4), (None, None, 4), (3, 3, 4)),
        (lambda x: ops.matmul(x, np.ones((5, 4, 3), "float32")), (None, 4), (5, None, 3), (5, 2, 4)),
        (lambda x: ops.matmul(x, np.ones((6, 3), "float32")), (None,), (None, 3), (2, 6)),
        (lambda x: ops.concatenate([x, np.ones((3, 2, 4), "float32")], axis=1), (None, 4), (3, None, 4), (3, 5, 4)),
        (lambda x: ops.reshape(x, (3, 7, 2, 2)), (None, 4), (3, 7, 2, 2), (3, 7, 4)),
        (lambda x: ops.reshape(x, (-1, 3, 1)), (None,), (None, 3, 1), (2, 6)),
        (lambda x: x[:, :3], (None, 4), (None, None, 4), (2, 2, 4)),
        (lambda x: x[:, -1], (None, 4), (None, 4), (2, 2, 4)),
    ],
)
def test_unknown_lengths_meet_constants_and_one_another(function, shape, expected, data):
    x = Input(shape)
    y = function(x)
    found = Model(x, y)(np.ones(data, "float32")).shape
    assert y.shape == expected and all(claimed in (None, size) for claimed, size in zip(expected, found, strict=True))


def test_positions_are_added_to_an_embedding_of_any_length():
    words = layers.Embedding(20, 4)(Input((None,)))
    assert ops.add(words, np.zeros((10, 4), "float32")).shape == (None, 10, 4)


@pytest.mark.parametrize("function", [ops.add, ops.matmul, lambda x, y: Apply(lambda z: z + y)(x)])
def test_no_message_names_a_size_that_nobody_wrote(function):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        function(Input((None, 5)), np.ones((7, 4), "float32"))
    error = caught.value
    assert "None, None, 5" in str(error)
    while error is not None:
        assert "7" in str(error) and not {"2", "64", "128"} & set(re.findall(r"\d+", str(error)))
        error = error.__cause__


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: ops.broadcast_to(tf.ones((1, 5, 3)), (ops.shape(x)[0], 5, 3)), (None, 5, 3)),
        (lambda x: ops.reshape(x, (ops.shape(x)[0], -1)), (None, None)),
        (lambda x: tf.reshape(x, (tf.shape(x)[0], tf.shape(x)[1] * 2, 2)), (None, None, 2)),
        (lambda x: ops.reshape(x, (ops.shape(x)[0], ops.shape(x)[1] // 2, 8)), (None, None, 8)),
        (lambda x: x + ops.cast(ops.arange(ops.shape(x)[1]), "float32")[:, None], (None, None, 4)),
        (lambda x: x[:, 0] + ops.zeros((ops.shape(x)[0], 4)), (None, 4)),
        (lambda x: ops.ones(ops.shape(x)), (None, None, 4)),
        (lambda x: tf.tile(tf.ones((1, 5)), [tf.shape(x)[0], 1]), (None, 5)),
        (lambda x: ops.mean(x, axis=1) * ops.cast(ops.size(x), "float32"), (None, 4)),
    ],
)
def test_sizes_of_symbols_are_numbers_to_compute_with(function, expected):
    x, data = Input((None, 4)), np.ones((3, 6, 4), "float32")
    model = Model(x, function(x))
    assert model.output.shape == expected
    for one in (model, tf.keras.models.model_from_json(model.to_json())):
        assert np.array_equal(one(data), function(tf.constant(data)))


def test_an_unknown_size_equals_none_and_makes_an_input():
    x = Input((None, 4))
    assert ops.shape(x) == (None, None, 4) and None in ops.shape(x) and None not in ops.shape(Input((3,), batch_size=2))
    assert Input(ops.shape(x)[1:]).shape == (None, None, 4)


def test_a_loop_on_symbols_asks_the_body_once():
    x, steps = Input((3,)), []
    found = ops.while_loop(lambda y: ops.sum(y) < 1.0, lambda y: steps.append(1) or y * 2.0, x)
    assert found.shape == (None, 3) and len(steps) <= 3
    doubled = Model(x, found)(np.full((1, 3), 0.1, "float32"))
    np.testing.assert_allclose(doubled, np.full((1, 3), 0.4), rtol=1e-6)


def test_a_loop_in_a_layer_that_zeros_would_never_end_ends():
    layer = Apply(lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 1.0, lambda y: [y * 2.0], [x])[0])
    assert layer(Input((3,))).shape == (None, 3)


def test_the_dtype_is_that_of_the_result():
    x = Input((3,))
    assert Apply(lambda x: tf.cast(x, "int32"))(x).dtype == tf.int32
    assert Apply(lambda x: x > 0.0)(x).dtype == tf.bool
    assert layers.Dense(2, dtype="float64")(x).dtype == tf.float64


def test_nests_of_outputs_keep_their_structure():
    a, rest = Apply(lambda x: (x, {"sum": tf.reduce_sum(x, -1)}))(Input((3,)))
    assert a.shape == (None, 3) and rest["sum"].shape == (None,)


def test_a_layer_is_built_for_unknown_batches_and_only_once():
    built = []

    class Noted(layers.Layer):
        def build(self, shape):
            built.append(shape)

        def call(self, x):
            return x

    layer = Noted()
    layer(Input((3,)))
    layer(Input((3,)))
    assert built == [(None, 3)]


def test_a_layer_without_build_has_its_parts_built_under_its_name():
    class Block(layers.Layer):
        def __init__(self):
            super().__init__(name="block")
            self.dense = layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    block = Block()
    block(Input((3,)))
    assert [weight.path for weight in block.weights] == ["block/dense/kernel", "block/dense/bias"]


# No trace -------------------------------------------------------------------------------------------------------------


class Stateful(layers.Layer):
    """Everything that a call may change: statistics, random draws, losses, metrics."""

    def __init__(self):
        super().__init__()
        self.norm = layers.BatchNormalization()
        self.dropout = layers.Dropout(0.5)
        self.seen = tf.keras.metrics.Sum(name="seen")
        self.calls = self.add_weight((), "zeros", name="calls", trainable=False)

    def call(self, x, training=None):
        self.calls.assign_add(1.0)
        self.add_loss(tf.reduce_sum(x))
        self.seen.update_state(tf.ones([3]))
        tf.random.normal([2])
        return self.dropout(self.norm(x + 1.0))


def state(layer):
    return [np.array(v.numpy()) for v in (*layer.variables, *layer.seen.variables)], streams.global_stream().state, layer.losses


@pytest.mark.parametrize("training", [True, False, None])
def test_a_trial_leaves_no_trace(training):
    layer = Stateful()
    layer(Input((3,)), training=training)
    arrays, random_state, losses = state(layer)
    assert layer.calls.numpy() == 0.0 and float(layer.seen.result()) == 0.0 and losses == []
    assert layer.norm.moving_mean.numpy().tolist() == [0.0] * 3
    layer(Input((3,)), training=training)
    again, random_state_again, losses = state(layer)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, again, strict=True))
    assert random_state == random_state_again and losses == []


def test_the_first_weights_are_the_same_as_after_a_call_on_data():
    def made(symbolic):
        tf.keras.utils.clear_session()
        streams.set_global_seed(5)
        layer = Stateful()
        layer(Input((3,))) if symbolic else layer(np.zeros((2, 3)))
        return [weight.numpy() for weight in layer.trainable_weights], layer.dropout.seed_generator.state.numpy()

    (symbolic, seeds), (direct, other_seeds) = made(True), made(False)
    assert all(np.array_equal(a, b) for a, b in zip(symbolic, direct, strict=True)) and np.array_equal(seeds, other_seeds)


def test_what_build_assigns_stays():
    class Shifted(layers.Layer):
        def build(self, shape):
            self.shift = self.add_weight((), "zeros", name="shift", trainable=False)
            self.shift.assign(3.0)

        def call(self, x):
            return x + self.shift

    class Around(layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Shifted()

        def call(self, x):
            return self.inner(x)

    around = Around()
    around(Input((2,)))
    assert around.inner.shift.numpy() == 3.0


def test_no_tape_sees_a_trial():
    layer = layers.Dense(2)
    with tf.GradientTape() as tape:
        layer(Input((3,)))
        assert len(tape.tape.records) == 0


def test_a_trial_that_fails_says_so_and_leaves_the_layer_unbuilt():
    class Picky(layers.Layer):
        def __init__(self):
            super().__init__(name="picky")
            self.dense = layers.Dense(2)

        def call(self, x):
            raise RuntimeError("not like this")

    layer = Picky()
    with pytest.raises(RuntimeError, match="not like this") as caught:
        layer(Input((3,)))
    assert "'picky' (Picky) was tried on zeros" in caught.value.__notes__[0]
    assert not layer.built and layer.weights == []


def test_outputs_that_are_no_tensors_or_change_their_rank_are_refused():
    with pytest.raises(ValueError, match="All outputs of 'apply' must be tensors to be part of a model; it returned 3"):
        Apply(lambda x: 3)(Input((3,)))
    with pytest.raises(ValueError, match="number of axes depends on the batch size"):
        Apply(lambda x: tf.reshape(x, (1,) * x.shape[0] + (-1,)))(Input((3,)))


# Operators ------------------------------------------------------------------------------------------------------------

BINARY = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "ne"),
]


@pytest.mark.parametrize("name", BINARY)
def test_operators_compute_what_they_compute_on_tensors(name):
    function = getattr(operator, name)
    a, b = np.array([[1.0, 2.0, 5.0]], "float32"), np.array([[2.0, 2.0, 3.0]], "float32")
    x, y = Input((3,)), Input((3,))
    model = Model([x, y], [function(x, y), function(x, 2.0), function(3.0, x)])
    found = model([a, b])
    t, u = tf.constant(a), tf.constant(b)
    for result, expected in zip(found, (function(t, u), function(t, 2.0), function(3.0, t)), strict=True):
        assert np.array_equal(result, expected) and result.dtype == expected.dtype


@pytest.mark.parametrize(
    "function, kind, name",
    [
        (lambda x: tf.add(x, x), "Add", "add"),
        (lambda x: tf.math.reduce_variance(x, 1), "Var", "var"),
        (lambda x: tf.math.reduce_std(x, axis=1), "Std", "std"),
        (lambda x: tf.math.top_k(x)[0], "TopK", "top_k"),
        (lambda x: tf.math.nextafter(x, x), "Nextafter", "nextafter"),
        (lambda x: tf.math.truediv(x, 2.0), "Divide", "divide"),
        (lambda x: tf.abs(x), "Absolute", "absolute"),
        (lambda x: tf.bitwise.invert(tf.cast(x, "int32")), "BitwiseInvert", "bitwise_invert"),
        (lambda x: tf.argmax(x, 1, "int32"), "TensorFunction", "argmax"),
        (lambda x: tf.linalg.expm(x), "TensorFunction", "expm"),
    ],
)
def test_a_function_of_tf_is_one_step_with_the_first_free_name(function, kind, name):
    tf.keras.utils.clear_session()
    x = Input((4, 4))
    y = function(x)
    assert (type(y.node.operation).__name__, y.node.operation.name) == (kind, name)
    data = tf.random.normal([2, 4, 4])
    np.testing.assert_allclose(Model(x, y)(data), function(data), rtol=1e-6)


@pytest.mark.parametrize(
    "pattern", ["((a b) c -> a b c", "a a -> a a", "(a b -> b a", "a b -> a b b", "a b", "(a b) c -> a b c"]
)
def test_patterns_that_mean_nothing_are_refused(pattern):
    with pytest.raises(ValueError, match="rearrange"):
        tf.keras.ops.rearrange(tf.ones([2, 2]), pattern, a=0)


def test_models_with_functions_that_keras_has_not_are_loaded(tmp_path):
    x = Input((3, 3))
    model = Model(x, [tf.linalg.expm(x), tf.matmul(x, x, transpose_b=True), tf.argmax(x, 1), tf.gather(x, [0, 2], axis=1)])
    model.save(tmp_path / "m.keras")
    data = tf.random.normal([2, 3, 3])
    for one in (tf.keras.models.load_model(tmp_path / "m.keras"), tf.keras.models.model_from_json(model.to_json())):
        for result, expected in zip(one(data), model(data), strict=True):
            assert np.array_equal(result, expected)


def test_a_list_that_begins_with_a_number_may_hold_a_symbol():
    x = Input((), batch_size=1)
    for stack in (tf.stack, tf.keras.ops.stack):
        assert np.array_equal(Model(x, stack([2.0, x[0]]))(np.ones(1, "float32")), [2.0, 1.0])


def test_a_number_of_tensors_that_the_batch_decides_is_refused():
    with pytest.raises(ValueError, match="more or fewer tensors"):
        tf.unstack(Input((3,)))


def test_a_symbol_is_found_in_lists_and_compared_with_numbers():
    x, other = Input((3,)), Input((2,))
    model = Model(x, Dense(2)(x))
    assert model.layers[-1].output in model.outputs and x in model.inputs and x in [other, x] and x not in [other]
    assert [other, x].index(x) == 1 and x != "x" and (x == None) is False and len({x, model.input, other}) == 2  # noqa: E711
    a = np.array([[1.0, 2.0, 5.0]], "float32")
    for found in Model(x, [x == 2.0, x == np.array([1.0, 2.0, 0.0], "float32")])(a):
        assert found.dtype == tf.bool and bool(found[0, 1])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: layers.Reshape((3, 5))(Input(batch_shape=(2, None))), (2, 3, 5)),
        (lambda: layers.Reshape((3, -1))(Input((None,))), (None, 3, None)),
        (lambda: layers.Reshape((3, 5))(Input((None, None))), (None, 3, 5)),
        (lambda: layers.Reshape((-1, 8))(Input((None, None, 4))), (None, None, 8)),
        (lambda: layers.Add()([Input((None,)), Input((7,))]), (None, 7)),
        (lambda: Input((None,)) + Input((7,)), (None, 7)),
        (lambda: layers.Concatenate()([Input((None, 3)), Input((5, 3))]), (None, 5, 6)),
        (lambda: layers.Concatenate(axis=1)([Input((None, 3)), Input((5, 3))]), (None, None, 3)),
        (lambda: layers.Multiply()([Input((None, 1)), Input((10, 16))]), (None, 10, 16)),
    ],
)
def test_an_axis_of_any_size_may_have_to_be_of_one_size(call, expected):
    assert call().shape == expected


def test_a_reshape_of_open_axes_computes():
    x = Input(batch_shape=(2, None))
    model = Model(x, layers.Reshape((3, 5))(x))
    assert model(np.ones((2, 15))).shape == (2, 3, 5)
    with pytest.raises(ValueError, match=r"rows of shape \(14,\) have 14 elements"):
        model(np.ones((2, 14)))


def test_further_operators():
    x, flags = Input((2, 2)), Input((2,), dtype="bool")
    a = np.array([[[1.0, -2.0], [3.0, 4.0]]], "float32")
    f = np.array([[True, False]])
    outputs = [-x, abs(x), x @ x, x[:, 0], x[..., 1:], +x, ~flags, flags & flags, flags | ~flags, flags ^ flags]
    found = Model([x, flags], outputs)([a, f])
    t, g = tf.constant(a), tf.constant(f)
    expected = [-t, abs(t), t @ t, t[:, 0], t[..., 1:], t, ~g, g & g, g | ~g, g ^ g]
    assert all(np.array_equal(y, e) for y, e in zip(found, expected, strict=True))
    assert [y.shape for y in outputs[3:5]] == [(None, 2), (None, 2, 1)]


@pytest.mark.parametrize("name", sorted({*tf.keras.activations.__all__} - {"deserialize", "get", "serialize"}))
def test_activations_of_symbols_compute_what_they_compute_on_tensors(name):
    activation, options = getattr(tf.keras.activations, name), (0.1, 7.0) if name == "threshold" else ()
    x, data = Input((4,)), np.float32([[-3.0, -0.3, 0.2, 4.0]])
    np.testing.assert_array_equal(Model(x, activation(x, *options))(data), activation(data, *options))


def test_methods_of_a_symbol_are_functions_of_keras_ops():
    x, a = Input((1, 4)), np.arange(8, dtype="float32").reshape(2, 1, 4) / 3
    outputs = [x.reshape((-1, 2, 2)), x.squeeze(1), round(x), round(x, 1)]
    assert [y.shape for y in outputs] == [(None, 2, 2), (None, 4), (None, 1, 4), (None, 1, 4)]
    expected = [a.reshape(-1, 2, 2), a[:, 0], a.round(), a.round(1)]
    assert all(np.allclose(y, e) for y, e in zip(Model(x, outputs)(a), expected, strict=True))


def test_indices_survive_files():
    keys = [(0, 1), (..., 1), np.s_[:, None], 0, np.s_[:, 1:, 0], np.s_[1:2]]
    x = Input((3, 2))
    model = Model(x, [x[key] for key in keys])
    data = np.arange(12.0, dtype="float32").reshape(2, 3, 2)
    for same in (model, tf.keras.models.model_from_json(model.to_json())):
        assert all(np.array_equal(y, data[key]) for y, key in zip(same(data), keys, strict=True))


def test_arrays_stand_on_either_side_of_an_operator():
    x = Input((2,))
    row = np.array([1.0, 2.0], "float32")
    left, right = Model(x, [row - x, x - row])(np.zeros((1, 2)))
    assert left.numpy().tolist() == [[1.0, 2.0]] and right.numpy().tolist() == [[-1.0, -2.0]]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.sum(np.asarray(x)),
        lambda x: bool(x > 0),
        lambda x: float(x),
        lambda x: list(x),
        lambda x: x.numpy(),
    ],
)
def test_what_needs_values_refuses_and_says_what_to_use(use):
    with pytest.raises(TypeError, match="A KerasTensor is symbolic.*Use functions of keras.ops or tf"):
        use(Input((2,), name="x"))


def test_a_keras_tensor_prints_its_shape_and_has_no_length():
    x = Input((2,), name="x")
    assert repr(x) == "<KerasTensor shape=(None, 2), dtype=float32, name=x>" and x.ndim == 2
    with pytest.raises(TypeError, match=r"no len\(\): its first axis may have any size"):
        len(x)
    assert len({x, x}) == 1
