"""Optimizers that step by the gradients of all ranks."""

import numpy as np
import pytest
from trained import on_parts

import minikeras as tf
from minikeras.distribute.parts import BatchPart
from minikeras.ranks import computing_on

keras = tf.keras
X = np.random.default_rng(0).normal(size=(14, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(14, 1)).astype("float32")


def on_ranks(size, function, total=None):
    """What `function(rows)` gives on each rank: rows of a batch of `total`, computed as a part of it, or of its own."""
    return [found for _, found in on_parts(size, function, len(X) if total is None else total, total is not None)]


def layer_of(units, seed, **options):
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(seed=seed), **options)


def same_everywhere(found):
    for one in found[1:]:
        assert all((a == b).all() for a, b in zip(one, found[0], strict=True))
    return found[0]


def gan_after(steps, rows, compiled):
    """Weights of a generator and a discriminator with an optimizer each."""
    noise = np.random.default_rng(2).normal(size=(7, 2)).astype("float32")
    generator = keras.Sequential([keras.Input((2,)), layer_of(4, 1, activation="tanh"), layer_of(3, 2)])
    discriminator = keras.Sequential([keras.Input((3,)), layer_of(4, 3, activation="tanh"), layer_of(1, 4)])
    first, second = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.05, global_clipnorm=0.5)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)

    def step(real, noise):
        with tf.GradientTape() as tape:
            fake = discriminator(generator(noise))
            value = loss(tf.zeros_like(fake), fake) + loss(tf.ones_like(fake), discriminator(real))
        weights = discriminator.trainable_variables
        first.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            fake = discriminator(generator(noise))
            value = loss(tf.ones_like(fake), fake)
        second.minimize(value, generator.trainable_variables, tape)

    run = tf.function(step) if compiled else step
    for _ in range(steps):
        run(tf.constant(X[: len(noise)][rows]), tf.constant(noise[rows]))
    return generator.get_weights() + discriminator.get_weights()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [2, 3])
def test_a_gan_with_two_optimizers_is_that_of_one_process(size, compiled):
    expected = gan_after(8, range(7), compiled)
    found = same_everywhere(on_ranks(size, lambda rows: gan_after(8, list(rows), compiled), 7))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "made",
    [
        lambda: keras.optimizers.SGD(0.1, clipnorm=0.3),
        lambda: keras.optimizers.Adam(0.1, gradient_accumulation_steps=2),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
    ],
    ids=["clipped", "accumulated", "scaled"],
)
def test_gradients_of_parts_are_averaged_before_all_else(made):
    def trained(rows):
        layer, optimizer = layer_of(1, 1), made()
        layer.build((None, 3))
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(tf.reduce_mean(tf.square(layer(X[rows]) - Y[rows])))
            optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        return layer.get_weights()

    expected = trained(slice(0, 7))
    for one, other in zip(same_everywhere(on_ranks(3, lambda rows: trained(list(rows)), 7)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_gradient_that_overflows_on_one_rank_skips_the_step_on_all():
    def scale_after(rows):
        optimizer, w = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0), tf.Variable(1.0)
        optimizer.apply([tf.constant(np.inf if rows[0] else 1.0)], [w])
        return float(w), float(optimizer.dynamic_scale)

    assert on_ranks(2, scale_after, 7) == [(1.0, 4.0)] * 2


def test_gradients_of_rows_of_tables_are_averaged_too():
    def trained(rows):
        table, ids = tf.Variable(tf.ones([4, 2])), np.array([0, 1, 1, 2, 0, 0, 1])[rows]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.gather(table, ids)))
        keras.optimizers.SGD(1.0).apply([tape.gradient(loss, table)], [table])
        return [table.numpy()]

    found = same_everywhere(on_ranks(2, lambda rows: trained(list(rows)), 7))
    np.testing.assert_allclose(found[0], trained(slice(0, 7))[0], rtol=1e-6)


def test_shards_of_one_rank_cannot_step_one_after_another():
    with computing_on(BatchPart(0, 2, 8, shards=4)), pytest.raises(RuntimeError, match="a step of an optimizer needs sums"):
        keras.optimizers.SGD().apply([tf.constant(1.0)], [tf.Variable(1.0)])


def test_a_rank_does_not_minimize_the_loss_of_its_own_rows():
    def work(rows):
        w = tf.Variable([1.0])
        for optimizer in (keras.optimizers.Newton(), keras.optimizers.PerLayer({"*": keras.optimizers.Newton()})):
            with pytest.raises(RuntimeError, match=r"asks for the loss of all 7 rows several times.*knows [34]\."):
                optimizer.minimize(lambda: tf.reduce_sum(w * w), [w])
        keras.optimizers.PerLayer({"*": keras.optimizers.SGD(0.5)}).minimize(lambda: tf.reduce_sum(w) * len(rows), [w])
        return float(w[0])

    found = on_ranks(2, work, 7)
    assert found == pytest.approx([1.0 - 0.5 * (16 + 9) / 7] * 2)


# DistributedOptimizer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1.0 - 2.0),
        ({"op": "sum"}, 1.0 - 6.0),
        ({"compression": "bf16"}, 1.0 - 2.0),
        ({"compression": "fp16", "op": "sum"}, 1.0 - 6.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_distributed_optimizer_steps_by_all_gradients(options, expected, compiled):
    def work(rows):
        w = tf.Variable(1.0)
        optimizer = tf.distribute.DistributedOptimizer(keras.optimizers.SGD(0.25), **options)
        step = lambda g: optimizer.apply_gradients([(g, w)])
        step = tf.function(step) if compiled else step
        for _ in range(4):
            step(tf.constant(float(tf.distribute.rank() + 1)))
        return float(w), w.dtype.name

    assert on_ranks(3, work) == [(expected, "float32")] * 3


class CountingRanks(tf.distribute.ThreadCommunicator):
    """Ranks that count the sums of the first one."""

    sums = 0

    def all_reduce(self, array, operation):
        self.sums += self.rank == 0
        return super().all_reduce(array, operation)


@pytest.mark.parametrize("compression", [None, "bf16"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("average", "expected"),
    [(False, [[0.0, 0.0], [-5.0, -1.0], [-14.0, -2.0]]), (True, [[0.5, 0.5], [-2.0, 0.0], [-6.5, -0.5]])],
    ids=["sum", "average"],
)
def test_several_backward_passes_are_exchanged_once(average, expected, compiled, compression):
    ranks = CountingRanks(2, timeout=20.0)

    def work():
        w, found = tf.Variable([1.0, 1.0]), []
        options = {"compression": compression, "average_aggregated_gradients": average}
        optimizer = tf.distribute.DistributedOptimizer(keras.optimizers.SGD(1.0), 2, **options)
        step = lambda g: optimizer.apply_gradients([(g, w)])
        step = tf.function(step) if compiled else step
        for number in range(6):
            step(tf.constant([float(number), float(ranks.rank)]))
            found.append(w.numpy().tolist())
        return found

    with tf.distribute.using(ranks):
        first, second = ranks.run(work)
    assert first == second and first[0] == [1.0, 1.0] and first[1::2] == expected and first[2:5:2] == expected[:2]
    assert ranks.sums == 3


@pytest.mark.parametrize(("op", "expected"), [("average", [0.5, 0.5]), ("sum", [0.0, 0.0])])
def test_an_optimizer_that_accumulates_by_itself_does_so_with_exchanged_gradients(op, expected):
    def work(rows):
        w = tf.Variable([1.0, 1.0])
        optimizer = tf.distribute.DistributedOptimizer(keras.optimizers.SGD(1.0, gradient_accumulation_steps=2), op=op)
        for number in range(2):
            optimizer.apply_gradients([(tf.constant([float(number), float(tf.distribute.rank())]), w)])
        return w.numpy().tolist()

    assert on_ranks(2, work) == [expected] * 2


def test_fit_with_a_distributed_optimizer_has_callbacks_for_ranks():
    def work(rows):
        model = keras.Sequential([keras.Input((3,)), layer_of(1, tf.distribute.rank())])
        model.compile(tf.distribute.DistributedOptimizer(keras.optimizers.SGD(0.05)), "mse")
        callbacks = [tf.distribute.BroadcastGlobalVariablesCallback(0), tf.distribute.MetricAverageCallback()]
        part = list(rows)
        history = model.fit(X[part], Y[part], 7, epochs=12, shuffle=False, verbose=0, callbacks=callbacks)
        return model.get_weights(), history.history

    found = on_ranks(2, work)
    same_everywhere([weights for weights, _ in found])
    assert found[0][1] == found[1][1]
    model = keras.Sequential([keras.Input((3,)), layer_of(1, 0)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    history = model.fit(X, Y, 14, epochs=12, shuffle=False, verbose=0).history
    for one, other in zip(found[0][0], model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_allclose(found[0][1]["loss"], history["loss"], rtol=1e-5)


@pytest.mark.parametrize("listens", [False, True])
def test_the_learning_rate_warms_up_before_each_batch_of_the_first_epochs(listens):
    def work(rows):
        rates = []
        heard = keras.callbacks.LambdaCallback(
            on_train_batch_begin=lambda batch, logs: rates.append(float(model.optimizer.learning_rate))
        )
        model = keras.Sequential([keras.Input((3,)), layer_of(1, 0)])
        model.compile(tf.distribute.DistributedOptimizer(keras.optimizers.SGD(0.6)), "mse")
        warm_up = tf.distribute.LearningRateWarmupCallback(initial_lr=0.6, warmup_epochs=2, verbose=1)
        part = list(rows)[:6]
        history = model.fit(X[part], Y[part], 3, epochs=3, verbose=0, callbacks=[warm_up, *[heard] * listens])
        return rates, history.history["learning_rate"]

    for rates, logged in on_ranks(2, work):
        np.testing.assert_allclose(rates, [0.375, 0.45, 0.525, 0.6, 0.6, 0.6][: 6 * listens], rtol=1e-6)
        np.testing.assert_allclose(logged, [0.45, 0.6, 0.6], rtol=1e-6)


def test_a_warm_up_needs_to_know_the_number_of_batches():
    model = keras.Sequential([keras.Input((3,)), layer_of(1, 0)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="the number of batches is not known; give steps_per_epoch"):
        model.fit(iter([(X, Y)]), verbose=0, callbacks=[tf.distribute.LearningRateWarmupCallback(0.1)])


def test_a_model_without_weights_yet_is_broadcast_after_the_first_batch():
    def work(rows):
        model = keras.Sequential([layer_of(1, tf.distribute.rank())])
        model.compile(tf.distribute.DistributedOptimizer(keras.optimizers.Adam(0.05)), "mse")
        part = list(rows)
        model.fit(X[part], Y[part], 7, verbose=0, callbacks=[tf.distribute.BroadcastGlobalVariablesCallback(1)])
        return model.get_weights()

    same_everywhere(on_ranks(2, work))


def test_a_saved_model_has_the_plain_optimizer(tmp_path):
    model = keras.Sequential([keras.Input((3,)), layer_of(1, 0)])
    model.compile(tf.distribute.DistributedOptimizer(keras.optimizers.Adam(0.05)), "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is keras.optimizers.Adam and loaded.optimizer.exchange is None
    assert model.optimizer.get_config() == loaded.optimizer.get_config()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda of: of(keras.optimizers.SGD(), compression="int8"), "compression must be None, 'bf16' or 'fp16'"),
        (lambda of: of(keras.optimizers.SGD(), op="max"), "op 'average' or 'sum', found None and 'max'"),
        (lambda of: of(of(keras.optimizers.SGD())), "not distributed yet"),
        (lambda of: of(keras.optimizers.Newton()), "expected an optimizer of gradients"),
        (lambda of: of("adam"), "found 'adam'"),
        (lambda of: of(keras.optimizers.SGD(), 0), "backward_passes_per_step must be at least 1"),
        (lambda of: of(keras.optimizers.SGD(gradient_accumulation_steps=3), 2), "no gradient_accumulation_steps of its own"),
        (
            lambda of: keras.optimizers.LossScaleOptimizer(of(keras.optimizers.SGD(), 2)).apply([1.0], [tf.Variable(1.0)]),
            "Use 1 with mixed_float16",
        ),
    ],
)
def test_what_cannot_be_distributed_is_refused(made, message):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        made(tf.distribute.DistributedOptimizer)


def test_a_loss_scale_around_it_sees_the_gradients_of_all_ranks():
    def work(rows):
        inner = tf.distribute.DistributedOptimizer(keras.optimizers.SGD(1.0))
        optimizer, w = keras.optimizers.LossScaleOptimizer(inner, initial_scale=8.0), tf.Variable(1.0)
        optimizer.apply([tf.constant(8.0 * (tf.distribute.rank() + 1))], [w])
        optimizer.apply([tf.constant(np.inf if tf.distribute.rank() else 1.0)], [w])
        return float(w), float(optimizer.dynamic_scale)

    assert on_ranks(2, work) == [(-0.5, 4.0)] * 2
