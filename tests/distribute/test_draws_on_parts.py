"""Draws for parts of a batch: the rows of what one process draws for the whole, bit for bit."""

import numpy as np
import pytest
from slow import diagonal, sampled
from trained import on_parts, on_ranks

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

keras, layers = tf.keras, tf.keras.layers
ROWS = 7
PARTS = [range(0, 3), range(3, 5), range(5, 6), range(6, 7)]
LAYERS = {
    "dropout": (lambda: layers.Dropout(0.4, seed=1), (5, 3)),
    "dropout of numbers": (lambda: layers.Dropout(0.4, seed=1), ()),
    "dropout of features": (lambda: layers.Dropout(0.4, noise_shape=(None, 1, 3), seed=1), (5, 3)),
    "dropout of all rows alike": (lambda: layers.Dropout(0.4, noise_shape=(1, None, 3), seed=1), (5, 3)),
    "spatial": (lambda: layers.SpatialDropout1D(0.4, seed=1), (5, 3)),
    "spatial, channels first": (lambda: layers.SpatialDropout2D(0.4, "channels_first", seed=1), (3, 2, 5)),
    "alpha": (lambda: layers.AlphaDropout(0.4, seed=1), (5, 3)),
    "noise": (lambda: layers.GaussianNoise(0.4, seed=1), (5, 3)),
    "noisy factors": (lambda: layers.GaussianDropout(0.4, seed=1), (5, 3)),
    "steps of a series": (lambda: layers.TimeDistributed(layers.Dropout(0.4, seed=1)), (5, 3)),
    "a layer of keras.random": (lambda: Drawing(), (5,)),
    "numbers that may be rejected": (lambda: Rejecting(), (5,)),
    "tf.random": (lambda: Global(), (5,)),
}


class Drawing(keras.layers.Layer):
    """Draws for its rows, for all of them alike, and a weight with as many rows as a part."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)

    def build(self, shape):
        self.table = self.add_weight((3, 2), lambda shape, dtype: keras.random.normal(shape, dtype=dtype, seed=4))

    def call(self, x, training=False):
        drawn = keras.random.normal((x.shape[0], 2), seed=self.seeds) + keras.random.uniform((9,), seed=self.seeds)[:2]
        kept = keras.random.dropout(x, 0.5, seed=self.seeds)
        chosen = tf.cast(keras.random.categorical(x, 4, seed=self.seeds), x.dtype)
        whole = tf.cast(keras.random.randint((x.shape[0], 3), -4, 5, seed=self.seeds), x.dtype)
        clipped = keras.random.truncated_normal((x.shape[0], 3), seed=self.seeds)
        return tf.concat([kept, drawn, chosen, whole, clipped], 1) + self.table[0, 0]


class Rejecting(keras.layers.Layer):
    """Draws with parameters of its rows."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)

    def call(self, x, training=False):
        given, shape = x, tuple(x.shape)
        x = tf.stop_gradient(x)
        found = [given, keras.random.gamma(shape, x, seed=self.seeds), keras.random.beta(shape, x, 0.5, seed=self.seeds)]
        return tf.concat([*found, keras.random.binomial(shape, 9.0 * x, 0.3, seed=self.seeds)], 1)


class Global(keras.layers.Layer):
    """Draws from the global stream, and from seeds."""

    def call(self, x, training=False):
        shape = tuple(x.shape)
        found = [tf.random.normal(shape), tf.random.uniform(shape, -1.0), tf.random.stateless_normal(shape, [1, 2])]
        found += [keras.random.normal(shape), tf.nn.dropout(x, 0.5), tf.random.truncated_normal(shape)]
        return tf.concat([tf.cast(one, x.dtype) for one in found], 1)


def steps(name, rows, total, kind, run=lambda step: step):
    """Outputs and gradients of some steps on rows of a batch."""
    make, shape = LAYERS[name]
    x = np.random.default_rng(0).uniform(0.5, 1.5, (total, *shape)).astype(kind)[rows.start : rows.stop]
    found = []
    tf.random.set_seed(7)
    with computing_on(BatchPart(rows.start, len(rows), total)):
        layer = make()

        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, training=True)
                loss = tf.reduce_sum(tf.square(y))
            return y, tape.gradient(loss, x)

        step = run(step)
        for _ in range(5):
            found.append([one.numpy() for one in step(tf.constant(x))])
    return found


@pytest.mark.parametrize("kind", sampled(["float32", "float64"], 3))
@pytest.mark.parametrize("name, how", diagonal(LAYERS, ["eager", "recorded", "native"]))
def test_layers_draw_the_rows_of_the_whole_batch(name, kind, how):
    keras.config.set_floatx(kind)
    run = {
        "eager": lambda step: step,
        "recorded": tf.function,
        "native": lambda step: tf.function(step, jit_compile=True),
    }[how]
    try:
        expected = steps(name, range(ROWS), ROWS, kind)
        for rows in PARTS:
            for step, (found, whole) in enumerate(zip(steps(name, rows, ROWS, kind, run), expected, strict=True)):
                for one, other in zip(found, whole, strict=True):
                    np.testing.assert_allclose(one, other[rows.start : rows.stop], rtol=1e-6, err_msg=f"step {step}, {rows}")
                    assert ((one == 0) == (other[rows.start : rows.stop] == 0)).all()
    finally:
        keras.config.set_floatx("float32")


@pytest.mark.parametrize("jit", [False, True], ids=["numpy", "llvm"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("start", [1, 5, 8, 13, 1024, 3001])
def test_a_part_has_the_bits_of_the_whole_draw(start, dtype, jit):
    from minikeras.nn_ops import draws

    key = tf.constant(np.array([3, 4], np.uint32))
    options = {"dtype": np.dtype(dtype), "xp": np}
    for primitive, own in ((draws.dropout_mask, {"rate": 0.3}), (draws.random_uniform, {}), (draws.random_normal, {})):
        part = lambda key: primitive(key, shape=(41, 53), start=start, **own, **options) * 1.0  # noqa: B023
        found = tf.function(part, jit_compile=jit)(key)
        whole = primitive(key, shape=(41 * 53 + start,), **own, **options)
        assert found.numpy().tobytes() == whole.numpy()[start:].tobytes(), primitive.name


def test_attention_drops_the_weights_of_the_whole_batch():
    def attended(rows):
        x = np.random.default_rng(0).normal(size=(ROWS, 4, 6)).astype("float32")[rows.start : rows.stop]
        with computing_on(BatchPart(rows.start, len(rows), ROWS)):
            heads = layers.MultiHeadAttention(2, 3, dropout=0.5, seed=1, kernel_initializer="ones")
            plain = layers.Attention(dropout=0.5, seed=2)
            return np.concatenate([heads(x, x, training=True).numpy(), plain([x, x], training=True).numpy()], -1)

    whole = attended(range(ROWS))
    for rows in PARTS:
        np.testing.assert_allclose(attended(rows), whole[rows.start : rows.stop], rtol=1e-5, atol=1e-6)


def test_rows_are_shuffled_among_all_ranks():
    x = np.arange(ROWS, dtype="float32")[:, None]
    expected = keras.random.shuffle(x, seed=5).numpy()

    def work(rows):
        columns = keras.random.shuffle(np.arange(12.0).reshape(2, 6), axis=1, seed=5)
        return keras.random.shuffle(x[rows], seed=5).numpy(), columns.numpy()

    found = on_parts(3, work, ROWS)
    assert (np.concatenate([one for _, (one, _) in found]) == expected).all()
    assert (found[0][1][1] == keras.random.shuffle(np.arange(12.0).reshape(2, 6), axis=1, seed=5).numpy()).all()


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_a_model_with_dropout_is_trained_as_by_one_process(eager):
    x = np.random.default_rng(0).normal(size=(30, 3)).astype("float32")
    y = np.random.default_rng(1).normal(size=(30, 1)).astype("float32")

    def trained():
        tf.random.set_seed(1)
        with tf.distribute.MultiWorkerMirroredStrategy().scope():
            model = keras.Sequential([keras.Input((3,)), layers.Dense(8), layers.Dropout(0.5)])
            model.add(layers.GaussianNoise(0.1))
            model.add(layers.Dense(1))
            model.compile("sgd", "mse", run_eagerly=eager)
        history = model.fit(x, y, batch_size=7, epochs=4, verbose=0)
        return model.get_weights(), history.history["loss"]

    expected = trained()
    for size in (2, 3):
        for weights, losses in on_ranks(size, trained):
            np.testing.assert_allclose(losses, expected[1], rtol=2e-6)
            for one, other in zip(weights, expected[0], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
