"""What a layer expects of its inputs: checked before anything is computed, and told in full."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, ShapeError

L, InputSpec = tf.keras.layers, tf.keras.layers.InputSpec


class Plain(L.Layer):
    """Passes on what it gets, if the specification lets it in."""

    def __init__(self, spec=None, **options):
        super().__init__(**options)
        self.input_spec = spec
        self.calls = 0

    def call(self, inputs):
        self.calls += 1
        return inputs


@pytest.mark.parametrize(
    ("spec", "good", "bad", "expected"),
    [
        ({"ndim": 2}, (4, 3), (4, 3, 1), "2 axes"),
        ({"min_ndim": 2}, (4, 3, 1), (4,), "at least 2 axes"),
        ({"max_ndim": 2}, (4,), (4, 3, 1), "at most 2 axes"),
        ({"axes": {-1: 3}}, (4, 3), (4, 2), "size 3 along axis -1"),
        ({"axes": {1: 3, 2: None}}, (4, 3, 7), (4, 2, 7), "size 3 along axis 1"),
        ({"axes": {2: 3}}, (1, 1, 3), (4, 2), "size 3 along axis 2"),
        ({"shape": (None, 3)}, (4, 3), (4, 2), r"shape \(None, 3\)"),
        ({"shape": (None, 3)}, (4, 3), (4, 3, 1), r"shape \(None, 3\)"),
        ({"shape": (None, 1), "allow_last_axis_squeeze": True}, (4,), (4, 2), r"shape \(None, 1\)"),
    ],
)
def test_a_shape_that_is_not_expected_is_told_with_the_one_that_is(spec, good, bad, expected):
    layer = Plain(InputSpec(**spec), name="p")
    assert layer(np.ones(good)).shape == good
    with pytest.raises(ShapeError, match=rf"Layer 'p' \(p\), a Plain, expected {expected}.* and found inputs of shape \("):
        layer(np.ones(bad))
    assert layer.calls == 1


def test_a_dtype_is_checked_too():
    layer = Plain(InputSpec(dtype="int32"))
    assert layer(tf.constant([1, 2, 3])).dtype == tf.int32
    with pytest.raises(DTypeError, match="expected dtype int32 and found float32"):
        layer(tf.constant([1.0, 2.0, 3.0]))


def test_a_specification_that_contradicts_itself_is_refused():
    with pytest.raises(TypeError, match="axes must be a dict of position and size, found 3"):
        InputSpec(axes=3)
    with pytest.raises(ValueError, match=r"axes \[2\] are out of range for 2 axes"):
        InputSpec(ndim=2, axes={2: 3})
    with pytest.raises(TypeError, match="input_spec must be an InputSpec or a list of them, found 3"):
        Plain().input_spec = 3
    spec = InputSpec("float32", min_ndim=2, axes={-1: 3})
    assert repr(spec) == "InputSpec(dtype=float32, min_ndim=2, axes={-1: 3})" == repr(InputSpec.from_config(spec.get_config()))


def test_several_inputs_are_counted_and_named():
    layer = Plain([InputSpec(ndim=2, name="a"), InputSpec(ndim=1, name="b", optional=True)], name="two")
    layer([np.ones((2, 2)), np.ones(2)])
    layer({"b": np.ones(2), "a": np.ones((2, 2))})
    with pytest.raises(ShapeError, match="expected 1 axes and found input b of shape"):
        layer([np.ones((2, 2)), np.ones((2, 2))])
    with pytest.raises(ValueError, match=r"expects 2 input\(s\), but it received 1"):
        layer([np.ones((2, 2))])
    with pytest.raises(ValueError, match="Missing data for input 'a' of layer 'two': expected"):
        layer({"b": np.ones(2)})


def test_another_width_than_that_of_the_weights_names_the_weight_and_leaves_the_layer_as_it_was():
    layer = L.Dense(2, name="d")
    layer(np.ones((4, 3)))
    message = (
        r"Layer 'd' \(d\), a Dense, was built for 3 features along axis -1 \(weight 'd/kernel' has shape \(3, 2\)\); it "
        r"expected size 3 along axis -1 and found inputs of shape \(4, 5\)\."
    )
    for _ in range(2):
        with pytest.raises(ShapeError, match=message):
            layer(np.ones((4, 5)))
    assert layer(np.ones((7, 3))).shape == (7, 2)


def test_a_single_row_is_told_to_need_the_batch_axis_before_and_after_the_layer_is_built():
    dense, convolution = L.Dense(2), L.Conv1D(2, 1)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"A single row needs the batch axis: shape \(1, 3\)"):
            dense(np.ones(3))
        with pytest.raises(ShapeError, match=r"A single row needs the batch axis: shape \(1, 4, 3\)"):
            convolution(np.ones((4, 3)))
        dense(np.ones((1, 3))), convolution(np.ones((1, 4, 3)))


def test_the_input_may_come_by_name_and_is_checked_as_well():
    layer = L.Dense(2)
    assert layer(inputs=np.ones((4, 3))).shape == (4, 2)
    with pytest.raises(ShapeError, match="found inputs of shape"):
        layer(inputs=np.ones((4, 5)))


# Building -----------------------------------------------------------------------------------------------------------------


def test_build_is_told_the_shape_of_every_argument_it_names():
    class Pair(L.Layer):
        def build(self, left_shape, right_shape):
            self.weight = self.add_weight((left_shape[-1], right_shape[-1]), name="weight")

        def call(self, left, right=None):
            return left @ self.weight @ tf.transpose(right)

    layer = Pair()
    assert layer(np.ones((2, 3)), np.ones((5, 4))).shape == (2, 5) == Pair()(np.ones((2, 3)), right=np.ones((5, 4))).shape
    config = layer.get_build_config()
    assert config == {"shapes_dict": {"left_shape": (None, 3), "right_shape": (None, 4)}}
    twin = Pair()
    twin.build_from_config(config)
    assert twin.weight.shape == (3, 4)


def test_a_layer_without_build_is_built_by_a_run_on_zeros():
    class Block(L.Layer):
        def __init__(self):
            super().__init__(name="block")
            self.first, self.second = L.Dense(4, name="first"), L.Dense(2, name="second")
            self.runs = 0

        def call(self, x):
            self.runs += 1
            return self.second(self.first(x))

    block = Block()
    assert block.get_build_config() is None
    block.build((None, 3))
    assert [weight.path for weight in block.weights][:2] == ["block/first/kernel", "block/first/bias"]
    assert block.count_params() == 3 * 4 + 4 + 4 * 2 + 2 and block.runs == 1
    called = Block()
    called(np.ones((5, 3)))
    assert called.runs == 1 and called.get_build_config() == {"input_shape": (None, 3)} == block.get_build_config()


def test_weights_may_be_given_at_once_and_by_the_older_name():
    class Old(L.Layer):
        def build(self, input_shape):
            self.w = self.add_variable(shape=(2,), initializer="ones", name="w")

        def call(self, x):
            return x * self.w

    assert Old()(np.ones((1, 2))).numpy().tolist() == [[1.0, 1.0]]
    table = L.Embedding(2, 2, weights=np.eye(2))
    assert table.built and table([1]).numpy().tolist() == [[0.0, 1.0]]


# Configurations ------------------------------------------------------------------------------------------------------------


def test_the_configuration_of_one_s_own_layer_follows_from_its_attributes():
    class Scaled(L.Layer):
        def __init__(self, factor, shape=(1, 2), table=None, **options):
            super().__init__(**options)
            self.factor, self.shape, self.table = factor, shape, table

        def call(self, x):
            return x * self.factor

    layer = Scaled(2.0, table=np.array([1, 2]), name="s", activity_regularizer="l2")
    config = layer.get_config()
    assert {name: config[name] for name in ("factor", "shape", "table")} == {"factor": 2.0, "shape": (1, 2), "table": [1, 2]}
    assert config["activity_regularizer"]["class_name"] == "L2"
    assert Scaled.from_config(config).get_config() == config


def test_an_argument_that_is_no_plain_value_and_kept_nowhere_is_named():
    class Hidden(L.Layer):
        def __init__(self, factor, **options):
            super().__init__(**options)
            self._f = factor

    assert Hidden.from_config(Hidden(2.0).get_config())._f == 2.0
    with pytest.raises(NotImplementedError, match="the constructor takes 'factor', but 'kept' has no attribute of that name"):
        Hidden(np.float32(2.0), name="kept").get_config()

    class Told(Hidden):
        def get_config(self):
            return {**super().get_config(), "factor": float(self._f)}

    assert Told.from_config(Told(np.float32(2.0)).get_config())._f == 2.0


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "SimpleRNN", "Conv1D"])
def test_a_symbol_without_steps_is_told_so_before_weights_are_made(layer):
    made = {"Conv1D": lambda: L.Conv1D(4, 2)}.get(layer, lambda: getattr(L, layer)(4))
    for one in (made, lambda: L.Bidirectional(made()), lambda: L.RNN(L.LSTMCell(4)))[: 1 if layer == "Conv1D" else 3]:
        told = r"3 axes and found inputs of shape \(None, 5\)\. One feature .* shape \(None, 5, 1\)\. .*return_sequences=True"
        with pytest.raises(ShapeError, match=told):
            tf.keras.Sequential([tf.keras.Input((6, 5)), L.LSTM(5), one()])
    with pytest.raises(ShapeError, match=r"expected 4 axes and found inputs of shape \(None, 5\)\."):
        L.Conv2DTranspose(3, 2)(tf.keras.Input((5,)))
    with pytest.raises(ShapeError, match=r"channel needs an axis of its own: shape \(8, 28, 28, 1\)\.$"):
        L.Conv2D(3, 2)(np.ones((8, 28, 28)))


@pytest.mark.parametrize("x", [np.ones((2, 5, 8), "float32"), tf.keras.Input((5, 8))], ids=["array", "symbol"])
def test_an_attention_layer_that_lacks_an_argument_says_which(x):
    for layer in (L.MultiHeadAttention(2, 4), L.GroupQueryAttention(4, 2, 1)):
        with pytest.raises(TypeError, match=r"the call takes \['query', 'value', 'key', .*, and lacks \['value'\]"):
            layer(x)
    for layer in (L.Attention(), L.AdditiveAttention()):
        with pytest.raises(ValueError, match=r"must be called on a list, \[query, value\] or"):
            layer(x)
