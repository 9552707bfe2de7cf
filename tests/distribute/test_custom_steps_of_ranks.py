"""Models with steps of their own, aggregation of Variables, and synchronized normalization, on several ranks."""

import numpy as np
import pytest
from trained import on_ranks

import minikeras as tf

keras = tf.keras
X = np.random.default_rng(0).normal(size=(30, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(30, 1)).astype("float32")


def dense(units, seed, **options):
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(seed=seed), **options)


class Gan(keras.Model):
    """A generator and a discriminator; logs have other names than the metrics that give them."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((3,)), dense(4, 1, activation="tanh"), dense(3, 2)])
        self.discriminator = keras.Sequential([keras.Input((3,)), dense(4, 3, activation="tanh"), dense(1, 4)])
        self.first, self.second = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.05, clipnorm=0.5)
        self.loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
        self.tracker = keras.metrics.Mean(name="discriminated")
        self.score = keras.metrics.R2Score(name="score")  # has Variables from the first batch on
        self.hits = keras.metrics.BinaryAccuracy(name="loss", threshold=0.5)

    def call(self, x):
        return self.discriminator(self.generator(x))

    def train_step(self, data):
        real, _ = data
        with tf.GradientTape() as tape:
            fake = self(real[:, ::-1])
            first = self.loss_of(tf.zeros_like(fake), fake) + self.loss_of(tf.ones_like(fake), self.discriminator(real))
        weights = self.discriminator.trainable_variables
        self.first.apply_gradients(zip(tape.gradient(first, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            fake = self(real[:, ::-1])
            second = self.loss_of(tf.ones_like(fake), fake)
        self.second.minimize(second, self.generator.trainable_variables, tape)
        self.tracker.update_state(first)
        self.hits.update_state(tf.ones_like(fake), fake)
        self.score.update_state(real[:, :1], fake)
        return {
            "r2": self.score.result(),
            "loss": self.tracker.result(),
            "g_loss": second,
            "accuracy": self.hits.result(),
            "rate": 0.5,
        }

    def test_step(self, data):
        real, _ = data
        self.tracker.update_state(tf.reduce_mean(tf.square(self(real))))
        return {"squares": self.tracker.result()}


def gan(eager):
    tf.random.set_seed(1)
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = Gan()
        model.compile(run_eagerly=eager)
    history = model.fit(X, Y, batch_size=8, epochs=3, verbose=0).history
    return model.get_weights(), history, model.evaluate(X, Y, batch_size=8, verbose=0, return_dict=True)


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_a_train_step_with_two_optimizers_is_that_of_one_process(eager):
    expected = gan(eager)
    for size in (2, 3):
        found = on_ranks(size, lambda: gan(eager))
        for weights, *logs in found:
            assert all((one == other).all() for one, other in zip(weights, found[0][0], strict=True))
            assert logs == list(found[0][1:])
            for one, other in zip(weights, expected[0], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            assert logs[0].keys() == expected[1].keys() and logs[1].keys() == expected[2].keys()
            for name, values in logs[0].items():
                np.testing.assert_allclose(values, expected[1][name], rtol=1e-5, err_msg=name)
            np.testing.assert_allclose(logs[1]["squares"], expected[2]["squares"], rtol=1e-5)


def test_a_train_step_of_its_own_has_no_virtual_shards():
    def work():
        with tf.distribute.MultiWorkerMirroredStrategy(virtual_shards=4).scope():
            model = Gan()
            model.compile(run_eagerly=True)
        with pytest.raises(RuntimeError, match="a step of an optimizer needs sums over all ranks.*2 virtual shards"):
            model.fit(X, Y, batch_size=8, verbose=0)

    on_ranks(2, work)


class Counting(keras.layers.Layer):
    """Keeps numbers of the rows that it has seen, put together in all ways."""

    def build(self, shape):
        new = lambda rule, kind="float32": self.add_weight((), "zeros", kind, trainable=False, aggregation=rule, name=rule)
        self.rows, self.count = new("sum"), new("sum", "int64")
        self.means, self.first = new("mean"), new("only_first_replica")

    def call(self, x, training=False):
        if training:
            self.rows.assign_add(float(x.shape[0]))
            self.count.assign_add(x.shape[0])
            self.means.assign_add(tf.reduce_mean(x))
            self.first.assign(tf.reduce_sum(x[0]))
        return x


class Largest(keras.metrics.Metric):
    """The mean over rows of a state that is no sum, and a number of the first part."""

    def __init__(self):
        super().__init__(name="largest")
        self.mean = self.add_variable((), "zeros", aggregation="mean", name="mean")
        self.first = self.add_variable((), "zeros", aggregation="only_first_replica", name="first")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.mean.assign(0.5 * self.mean + 0.5 * tf.reduce_mean(y_pred))
        self.first.assign(y_true[0, 0])

    def result(self):
        return {"smoothed": self.mean.read_value(), "label": self.first.read_value()}


def counted(options, eager):
    tf.random.set_seed(1)
    with tf.distribute.MultiWorkerMirroredStrategy(**options).scope():
        model = keras.Sequential([keras.Input((3,)), Counting(), dense(1, 1)])
        model.compile("sgd", "mse", metrics=[Largest()], run_eagerly=eager)
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return model.get_weights(), history


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_variables_are_put_together_as_they_say(eager):
    expected = counted({}, eager)
    for size, options in ((2, {}), (3, {}), (2, {"virtual_shards": 4}), (1, {"virtual_shards": 2})):
        for weights, history in on_ranks(size, lambda options=options: counted(options, eager)):
            for one, other in zip(weights, expected[0], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=2e-6)
            for name, values in history.items():
                np.testing.assert_allclose(values, expected[1][name], rtol=2e-6, err_msg=name)


@pytest.mark.parametrize("made", [keras.Variable, lambda *given, **named: keras.metrics.Mean().add_variable(**named)])
def test_other_aggregations_are_refused(made):
    with pytest.raises(ValueError, match="Invalid value for argument `aggregation`.*'only_first_replica'.*aggregation='max'"):
        made(1.0, aggregation="max")


def test_copies_keep_their_aggregation():
    import copy
    import pickle

    metric = Largest()
    layer = Counting()
    layer.build((None, 3))
    for one in (metric.mean, layer.first, keras.Variable(1.0, aggregation="sum")):
        assert copy.deepcopy(one).aggregation == one.aggregation != "none"
        assert pickle.loads(pickle.dumps(one)).aggregation == one.aggregation


def normalized(options, eager, synchronized=True):
    tf.random.set_seed(1)
    with tf.distribute.MultiWorkerMirroredStrategy(**options).scope():
        norm = keras.layers.BatchNormalization(synchronized=synchronized)
        model = keras.Sequential([keras.Input((3,)), dense(4, 1), norm, dense(1, 2)])
        model.compile("sgd", "mse", run_eagerly=eager)
    history = model.fit(X, Y, batch_size=8, epochs=3, verbose=0).history
    return model.get_weights(), history["loss"]


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_synchronized_normalization_in_fit_is_that_of_one_process(eager):
    expected = normalized({}, eager)
    for size in (2, 4):
        for weights, losses in on_ranks(size, lambda: normalized({}, eager)):
            np.testing.assert_allclose(losses, expected[1], rtol=1e-5)
            for one, other in zip(weights, expected[0], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# Custom loops in TensorFlow's words -------------------------------------------------------------------------------------------


def looped(compiled, optimizer):
    """The losses and weights of a loop over batches of ten rows."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([keras.Input((3,)), dense(4, 1, activation="tanh"), dense(1, 2)])
        optimizer = optimizer()
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((X, Y)).batch(10))

    def step_of_a_rank(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(x) - y)) / 10.0
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    step = lambda x, y: strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step_of_a_rank, args=(x, y)), axis=None)
    step = tf.function(step) if compiled else step
    losses = [float(step(x, y)) for _ in range(3) for x, y in data]
    return losses, np.concatenate([weight.ravel() for weight in model.get_weights()])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=0.5),
        lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
        lambda: tf.distribute.DistributedOptimizer(keras.optimizers.Adam(0.01), op="sum"),
    ],
    ids=["SGD", "Adam", "DistributedOptimizer"],
)
def test_optimizers_in_run_step_by_the_sum_over_the_ranks(compiled, optimizer):
    losses, weights = looped(compiled, optimizer)
    found = on_ranks(3, lambda: looped(compiled, optimizer))
    for other_losses, other_weights in found:
        np.testing.assert_allclose(other_losses, losses, rtol=2e-6)
        np.testing.assert_allclose(other_weights, weights, rtol=1e-5, atol=1e-6)
        assert other_weights.tobytes() == found[0][1].tobytes()


def test_a_function_is_recorded_for_run_apart():
    def work():
        strategy, w = tf.distribute.MultiWorkerMirroredStrategy(), tf.Variable(0.0)
        optimizer, found = keras.optimizers.SGD(1.0), []
        step = tf.function(lambda g: optimizer.apply_gradients([(g, w)]))
        for run in (lambda f, args: f(*args), strategy.run) * 3:
            run(step, args=(tf.constant(-1.0),))
            found.append(float(w))
        return found

    assert on_ranks(2, work) == [[1.0, 3.0, 4.0, 6.0, 7.0, 9.0]] * 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda w, loss: tf.distribute.DistributedGradientTape().gradient(loss(), w), "optimizers add up the gradients"),
        (lambda w, loss: keras.optimizers.Newton().minimize(loss, [w]), "Newton asks for the loss of all rows"),
    ],
    ids=["tape", "Newton"],
)
def test_what_would_go_wrong_in_run_is_refused(step, message):
    def work():
        w = tf.Variable(2.0)
        with pytest.raises((tf.errors.InvalidArgumentError, RuntimeError), match=message):
            tf.distribute.MultiWorkerMirroredStrategy().run(step, args=(w, lambda: w * w))
        return float(w)

    assert on_ranks(2, work) == [2.0, 2.0]


@pytest.mark.parametrize("shards", [None, 2])
def test_fit_within_run_adds_gradients_up_once(shards):
    def weights(within):
        strategy = tf.distribute.MultiWorkerMirroredStrategy(virtual_shards=shards)
        with strategy.scope():
            model = keras.Sequential([keras.Input((3,)), dense(1, 1)])
            model.compile("sgd", "mse")
        for fit in (lambda: model.fit(X, Y, batch_size=29, shuffle=False, verbose=0), lambda: model.train_on_batch(X, Y)):
            strategy.run(fit) if within else fit()
        return model.get_weights()[0]

    for one, other in on_ranks(2, lambda: (weights(True), weights(False))):
        np.testing.assert_array_equal(one, other)


def test_datasets_are_made_for_each_rank():
    def made(context):
        rows = context.get_per_replica_batch_size(4)
        return tf.data.Dataset.range(10).shard(context.num_input_pipelines, context.input_pipeline_id).batch(rows)

    def work():
        data = tf.distribute.MultiWorkerMirroredStrategy().distribute_datasets_from_function(made)
        return [batch.numpy().tolist() for batch in data]

    assert on_ranks(2, work) == [[[0, 2], [4, 6], [8]], [[1, 3], [5, 7], [9]]]
    with pytest.raises(ValueError, match="7 rows do not divide among 2 ranks"):
        tf.distribute.InputContext(2, 0, 2).get_per_replica_batch_size(7)


def test_one_process_has_a_strategy_of_one_device():
    """As the guides of custom loops write it."""
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
        optimizer = tf.keras.optimizers.SGD(0.1)

    def step(x):
        with tf.GradientTape() as tape:
            losses = tf.square(model(x)[:, 0])
            loss = tf.nn.compute_average_loss(losses, global_batch_size=4)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return loss

    rows = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(tf.ones([8, 2])).batch(4))
    losses = [strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, (x,)), axis=None) for x in rows]
    np.testing.assert_allclose(losses, [4.0, 0.8**2], rtol=1e-5)
    assert strategy.num_replicas_in_sync == 1


def test_a_strategy_of_one_device_makes_arrays_there():
    for strategy in (tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy(["/cpu:0"])):
        with strategy.scope() as inside:
            assert tf.distribute.get_strategy() is inside is strategy and tf.zeros([]).device == "CPU:0"
        assert strategy.device is not None and not tf.distribute.has_strategy()


def test_several_devices_of_one_process_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="MultiWorkerMirroredStrategy"):
        tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    ranks = tf.distribute.ThreadCommunicator(2)
    with tf.distribute.using(ranks), pytest.raises(tf.errors.InvalidArgumentError, match="2 ranks"):
        ranks.run(tf.distribute.MirroredStrategy)


def test_average_losses_and_penalties_count_the_rows_of_all_ranks():
    average, scale = tf.nn.compute_average_loss, tf.nn.scale_regularization_loss
    losses = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.float64)
    assert float(average(losses, [1.0, 0.5])) == 3.25 and average(losses).dtype == tf.float64
    assert float(average(tf.zeros([0]))) == 0.0 and float(average(losses, global_batch_size=tf.constant(5))) == 2.0
    with pytest.raises(tf.errors.ShapeError, match="a loss for each row"):
        average(1.0)
    ranks = tf.distribute.ThreadCommunicator(2)
    with tf.distribute.using(ranks):
        assert ranks.run(lambda: (float(average(losses)), float(scale([1.0, 2.0])))) == [(2.5, 1.5)] * 2
