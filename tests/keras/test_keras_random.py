"""keras.random: where numbers come from, their dtypes and distributions, and that parameters may change from run to run."""

import numpy as np
import pytest

import minikeras as tf

random = tf.keras.random
DRAWS = {
    "normal": ((), {}),
    "uniform": ((), {}),
    "truncated_normal": ((), {}),
    "gamma": ((2.0,), {}),
    "beta": ((2.0, 3.0), {}),
    "binomial": ((9, 0.4), {}),
    "randint": ((0, 9), {"dtype": "int64"}),
}
every_draw = pytest.mark.parametrize("name", DRAWS)


def drawn(name, seed, shape=(40,)):
    arguments, options = DRAWS[name]
    return getattr(random, name)(shape, *arguments, seed=seed, **options).numpy()


@every_draw
def test_a_seed_says_where_numbers_come_from(name):
    generator, other = random.SeedGenerator(3), random.SeedGenerator(3)
    first, second = drawn(name, generator), drawn(name, generator)
    assert not np.array_equal(first, second)
    assert np.array_equal(drawn(name, other), first) and np.array_equal(drawn(name, other), second)
    assert np.array_equal(drawn(name, 1), drawn(name, np.int64(1))) and not np.array_equal(drawn(name, 1), drawn(name, 2))
    tf.random.set_seed(5)
    third = drawn(name, None)
    assert not np.array_equal(drawn(name, None), third)
    tf.random.set_seed(5)
    assert np.array_equal(drawn(name, None), third)


@every_draw
def test_a_recorded_function_draws_anew(name):
    generator = random.SeedGenerator(3)
    step = tf.function(lambda: getattr(random, name)((40,), *DRAWS[name][0], seed=generator, **DRAWS[name][1]))
    found = [step().numpy() for _ in range(4)]
    again = random.SeedGenerator(3)
    assert all(np.array_equal(one, drawn(name, again)) for one in found) and step.replays >= 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", [name for name in DRAWS if name != "randint"])
def test_numbers_have_the_dtype_that_was_asked_for(name, dtype):
    arguments, _ = DRAWS[name]
    assert getattr(random, name)((2, 3), *arguments, dtype=dtype).dtype == dtype
    assert getattr(random, name)((2, 3), *arguments).dtype == "float32"
    with pytest.raises(ValueError, match=f"random.{name}: expected a float dtype"):
        getattr(random, name)((2,), *arguments, dtype="int32")


@pytest.mark.parametrize(
    ("name", "arguments", "mean", "variance"),
    [
        ("normal", (2.0, 3.0), 2.0, 9.0),
        ("uniform", (-1.0, 5.0), 2.0, 3.0),
        ("truncated_normal", (1.0, 2.0), 1.0, 4 * 0.7737),
        ("gamma", (2.5,), 2.5, 2.5),
        ("beta", (2.0, 3.0), 0.4, 0.04),
        ("binomial", (10, 0.3), 3.0, 2.1),
        ("randint", (0, 7), 3.0, 4.0),
    ],
)
def test_numbers_follow_their_distribution(name, arguments, mean, variance):
    values = getattr(random, name)((20_000,), *arguments, seed=1).numpy().astype("float64")
    assert abs(values.mean() - mean) < 4 * np.sqrt(variance / len(values))
    assert abs(values.var() - variance) < 0.05 * variance


def test_parameters_broadcast_and_may_be_others_in_each_run():
    assert random.gamma((2, 3), [1.0, 2.0, 3.0]).shape == (2, 3)

    @tf.function
    def step(alpha):
        return random.gamma((500,), alpha, seed=1)

    means = [float(tf.reduce_mean(step(tf.constant(alpha)))) for alpha in (1.0, 1.0, 1.0, 100.0)]
    assert step.replays and means[2] < 2 and means[3] > 90


def test_no_gradient_flows_to_the_parameters_of_a_distribution():
    alpha = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = random.gamma((2,), alpha)
    assert tape.gradient(y, alpha) is None
    mean = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = random.normal((3,), mean, 2.0)
    assert float(tape.gradient(y, mean)) == 3.0


def test_rows_of_logits_are_drawn_from():
    found = random.categorical(np.log([[0.5, 0.5, 1e-30], [1e-30, 1e-30, 1.0]]).astype("float32"), 200, seed=1)
    assert found.dtype == "int32" and set(found.numpy()[0]) == {0, 1} and set(found.numpy()[1]) == {2}
    with pytest.raises(ValueError, match=r"expected logits of shape \(batch, classes\), found \(2,\)"):
        random.categorical([0.0, 1.0], 2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_are_shuffled_along_an_axis(axis):
    x = np.arange(24).reshape(4, 6)
    found = random.shuffle(x, axis=axis, seed=2).numpy()
    assert not np.array_equal(found, x)
    order = np.argsort(np.take(found, 0, axis=1 - axis % 2))
    assert np.array_equal(np.take(found, order, axis=axis), x)


def test_dropout_keeps_the_mean_and_repeats_along_an_axis():
    x = tf.ones([3, 2000])
    found = random.dropout(x, 0.25, seed=1).numpy()
    np.testing.assert_allclose(np.unique(found), [0.0, 4 / 3], rtol=1e-6)
    assert abs(found.mean() - 1.0) < 0.05
    rows = random.dropout(x, 0.5, noise_shape=(None, 1), seed=3).numpy()
    assert (rows == rows[:, :1]).all()
    assert random.dropout(x, 0.0) is x and not random.dropout(x, 1.0).numpy().any()
    assert random.dropout(tf.ones([2], "float16"), 0.5).dtype == "float16"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random.normal((2,), seed=0.5), "seed must be an int, a SeedGenerator or None, found 0.5"),
        (lambda: random.normal((2,), seed=True), "seed must be an int"),
        (lambda: random.randint((2,), 0, 3, dtype="float32"), "expected an integer dtype"),
        (lambda: random.gamma((2,), -1.0), r"^gamma: alpha must be finite numbers of at least 0, for beta above 0, found -1.0"),
        (lambda: random.beta((2,), 0.0, 1.0), "^beta: alpha must be"),
        (lambda: random.binomial((2,), 5, 1.5), "^binomial: probabilities must be numbers from 0 to 1, found 1.5"),
        (lambda: random.randint((2,), [0, 1], 3), "^random.randint: minval of integers must be one integer"),
        (
            lambda: random.randint((2,), 0, 300, dtype="uint8"),
            "^random.randint: maxval 300 is no uint8, which goes from 0 to 255",
        ),
        (lambda: random.dropout(tf.ones([2]), 1.5), r"rate must be in \[0, 1\], found 1.5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        call()


def test_a_layer_of_the_user_s_holds_a_generator_as_state():
    class Noisy(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.seed_generator = random.SeedGenerator(7)

        def call(self, x, training=False):
            return random.dropout(x, 0.5, seed=self.seed_generator) if training else x

    layer = Noisy()
    first, second = (layer(tf.ones([50]), training=True).numpy() for _ in range(2))
    assert not np.array_equal(first, second) and not layer.weights
    assert random.SeedGenerator.from_config(layer.seed_generator.get_config()).get_config() == {
        "seed": 7,
        "name": layer.seed_generator.name,
    }


@pytest.mark.parametrize(("inputs", "noise_shape"), [([1, 2, 3], None), ([[1.0, 2.0]], (2,))])
def test_dropout_takes_floats_and_a_size_for_each_axis(inputs, noise_shape):
    with pytest.raises(ValueError, match="random.dropout: expected floats and a noise_shape"):
        random.dropout(inputs, 0.5, noise_shape)
