"""Random numbers of layers: fixed by the global seed and the names, whatever else is made or drawn."""

import numpy as np
import pytest
from philox_reference import dropout_mask

import minikeras as tf

L, seed = tf.keras.layers, tf.random.set_seed
X = np.ones((4, 3), "float32")


def noise(layer):
    return layer(X, training=True).numpy()


def test_what_a_layer_draws_does_not_depend_on_when_it_is_made():
    def drawn(order):
        seed(5)
        layers = {}
        for name in order:
            layers[name] = (L.Dense(2, name=name), L.Dropout(0.5, name=f"{name}_noise"))
            tf.random.normal([3])
        return [layers["b"][0](X).numpy(), noise(layers["b"][1])]

    for first, second in zip(drawn("ab"), drawn("ba"), strict=True):
        assert np.array_equal(first, second)


def test_layers_of_a_model_follow_its_structure():
    def made(extra):
        seed(5)
        if extra:
            L.Dense(2)(X)
            tf.keras.Sequential([L.Dense(2), L.Dropout(0.5)], name="another")(X, training=True)
        model = tf.keras.Sequential([L.Dense(8, name="a"), L.Dropout(0.5, name="d"), L.Dense(2)], name="model")
        return [model(X, training=True).numpy() for _ in range(2)], model.get_weights()

    (first, again), weights = made(False)
    (same, _), others = made(True)
    assert np.array_equal(first, same) and not np.array_equal(first, again)
    assert all(np.array_equal(a, b) for a, b in zip(weights, others, strict=True))


def test_layers_of_one_name_in_one_place_differ():
    class Pair(L.Layer):
        def __init__(self):
            super().__init__()
            self.parts = [L.Dense(3, name="same"), L.Dense(3, name="same")]

        def call(self, x):
            return self.parts[1](self.parts[0](x))

    pair = Pair()
    pair(X)
    assert not np.array_equal(pair.parts[0].kernel.numpy(), pair.parts[1].kernel.numpy())
    first, second = L.Dense(3, name="same"), L.Dense(3, name="same")
    assert not np.array_equal(first(X).numpy(), second(X).numpy())
    assert not np.array_equal(noise(L.Dropout(0.5)), noise(L.Dropout(0.5)))


def test_two_weights_of_a_layer_differ_though_they_have_one_initializer():
    class Two(L.Layer):
        def build(self, input_shape):
            one = tf.keras.initializers.RandomNormal()
            self.a, self.b = (self.add_weight((3,), one, name=name) for name in "ab")
            self.c, self.d = self.add_weight((3,), one), self.add_weight((3,), one)
            self.fixed = [self.add_weight((3,), tf.keras.initializers.RandomNormal(seed=1), name=name) for name in "ef"]

        def call(self, x):
            return x

    layer = Two()
    layer(X)
    values = [weight.numpy().tolist() for weight in (layer.a, layer.b, layer.c, layer.d)]
    assert len({str(value) for value in values}) == 4
    assert np.array_equal(*[weight.numpy() for weight in layer.fixed])


def test_the_same_seed_and_names_give_the_same_numbers_in_every_run_of_the_program():
    seed(1)
    layer = L.Dropout(0.5, name="d")
    layer.build((None, 3))
    assert layer.seed_generator.state.numpy().tolist() == [3300865337, 0]
    assert np.array_equal(noise(layer), dropout_mask(3300865337, 0, X.shape, 0.5))


def test_a_layer_that_failed_to_build_draws_what_it_would_have_drawn():
    class Fragile(L.Layer):
        def build(self, input_shape):
            self.w = self.add_weight((3,), name="w")
            if input_shape[-1] == 2:
                raise ValueError("two is too few")

        def call(self, x):
            return x * self.w

    def drawn(fail):
        seed(5)
        outer = tf.keras.Sequential([Fragile(name="f")], name="m")
        alone = Fragile(name="f")
        if fail:
            for layer in (outer, alone):
                with pytest.raises(ValueError, match="two is too few"):
                    layer(X[:, :2])
        return outer(X).numpy(), alone(X).numpy()

    for first, second in zip(drawn(False), drawn(True), strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize("make", [lambda **o: L.Dropout(0.5, **o), lambda **o: L.GaussianNoise(1.0, **o)])
def test_a_seed_of_its_own_repeats(make):
    first, second = make(seed=3), make(seed=3)
    draws = [noise(first), noise(second), noise(first)]
    assert np.array_equal(draws[0], draws[1]) and not np.array_equal(draws[0], draws[2])


def test_the_state_of_a_stream_is_a_variable_but_no_weight_and_lies_on_the_host(device):
    layer = L.Dropout(0.5)
    y = layer(tf.constant(X), training=True)
    assert [v.name.removesuffix(":0") for v in layer.variables] == ["seed_generator_state"] and layer.weights == []
    assert isinstance(layer.variables[0].array, np.ndarray) and layer.variables[0].array.dtype == np.uint32
    assert type(y.array) is type(tf.constant(X).array)
    assert layer.get_weights() == [] and layer.count_params() == 0


def test_every_device_draws_the_same_numbers(device):
    seed(2)
    layer, weights = L.Dropout(0.5, name="d"), L.Dense(2, name="w")
    y = layer(tf.constant(X), training=True).numpy(), weights(tf.constant(X)).numpy()
    with tf.device("CPU:0"):
        seed(2)
        layer, weights = L.Dropout(0.5, name="d"), L.Dense(2, name="w")
        expected = layer(tf.constant(X), training=True).numpy(), weights(tf.constant(X)).numpy()
    for found, wanted in zip(y, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_nothing_is_drawn_outside_training_nor_at_rate_zero():
    layer = L.Dropout(0.5)
    layer(X), layer(X, training=False)
    assert layer.seed_generator.state.numpy()[1] == 0
    assert L.Dropout(0.0).variables == [] and np.array_equal(noise(L.Dropout(0.0)), X)
    assert np.array_equal(noise(L.Dropout(1.0)), np.zeros_like(X))


def test_noise_has_the_distribution_it_promises():
    seed(0)
    x = np.ones((200, 500), "float32")
    dropped = L.Dropout(0.3)(x, training=True).numpy()
    assert abs((dropped == 0).mean() - 0.3) < 0.01 and set(np.unique(dropped)) == {np.float32(0), np.float32(1 / 0.7)}
    scaled = L.GaussianDropout(0.3)(x, training=True).numpy()
    assert abs(scaled.mean() - 1) < 0.01 and abs(scaled.var() - 0.3 / 0.7) < 0.01
    added = L.GaussianNoise(0.5)(x, training=True).numpy() - 1
    assert abs(added.mean()) < 0.01 and abs(added.std() - 0.5) < 0.01
    for rank, kind in enumerate((L.SpatialDropout1D, L.SpatialDropout2D, L.SpatialDropout3D), 1):
        spatial = kind(0.5)(np.ones((50, *(2,) * rank, 20), "float32"), training=True).numpy()
        features = spatial.reshape(50, -1, 20)[:, 0]
        assert np.array_equal(spatial, np.broadcast_to(features.reshape(50, *(1,) * rank, 20), spatial.shape))
        assert abs((features == 0).mean() - 0.5) < 0.1
    first = L.SpatialDropout2D(0.5, data_format="channels_first")(np.ones((50, 20, 2, 2), "float32"), training=True).numpy()
    assert np.array_equal(first, np.broadcast_to(first[:, :, :1, :1], first.shape)) and len(np.unique(first[:, :, 0, 0])) == 2
    shaped = L.Dropout(0.5, noise_shape=(None, 1))(x, training=True).numpy()
    assert np.array_equal(shaped, np.broadcast_to(shaped[:, :1], shaped.shape))


@pytest.mark.parametrize("layer", [L.Dropout, L.SpatialDropout1D, L.GaussianDropout, L.AlphaDropout])
def test_integers_are_not_scaled(layer):
    """As in Keras. 1 / (1 - rate) would be cut to 1, and the sums become smaller."""
    with pytest.raises(tf.errors.DTypeError, match="int32"):
        layer(0.3)(tf.ones([2, 3, 4], "int32"), training=True)
