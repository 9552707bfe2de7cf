"""The same mathematics as one process with the same batches: layers, losses, optimizers, metrics."""

import numpy as np
import pytest
from slow import sampled
from trained import WEIGHTS, X, Y, assert_close, assert_same, check, classifier, on_ranks, trained

import minikeras as tf

layers, losses, metrics, optimizers = tf.keras.layers, tf.keras.losses, tf.keras.metrics, tf.keras.optimizers
IMAGES = np.random.default_rng(3).normal(size=(50, 6, 6, 2)).astype("float32")
ONE_HOT = np.eye(3, dtype="float32")[Y]
SEQUENCES = np.random.default_rng(4).integers(0, 5, (50, 7))


def sequential(shape, *hidden, dtype="float32"):
    return lambda: tf.keras.Sequential([tf.keras.Input(shape, dtype=dtype), *[make() for make in hidden], layers.Dense(3)])


MODELS = {
    "convolution": (
        sequential((6, 6, 2), lambda: layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D, layers.Flatten),
        IMAGES,
    ),
    "regularizers of all kinds": (
        sequential((6,), lambda: layers.Dense(5, "tanh", kernel_regularizer="l1l2", bias_regularizer="l2")),
        X,
    ),
    "constraints": (sequential((6,), lambda: layers.Dense(5, "tanh", kernel_constraint="max_norm")), X),
    "LayerNormalization": (sequential((6,), lambda: layers.Dense(5), layers.LayerNormalization), X),
    "masks": (
        sequential((7,), lambda: layers.Embedding(5, 4, mask_zero=True), layers.GlobalAveragePooling1D, dtype="int32"),
        SEQUENCES,
    ),
    "synchronized BatchNormalization": (
        sequential((6,), lambda: layers.Dense(5, use_bias=False), lambda: layers.BatchNormalization(synchronized=True)),
        X,
    ),
}


@pytest.mark.parametrize("name", sampled(MODELS, 2))
def test_layers(name):
    make, x = MODELS[name]
    check(3, make=make, x=x)


@pytest.mark.parametrize(
    "name", sampled(["mse", "mae", "huber", "categorical_crossentropy", "kl_divergence", "cosine_similarity", "hinge"], 2)
)
def test_losses_with_sample_weights(name):
    check(3, y=ONE_HOT, compile=lambda: {"loss": name}, sample_weight=WEIGHTS)


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight"])
def test_reductions(reduction):
    make = lambda: losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
    check(3, compile=lambda: {"loss": make(), "optimizer": optimizers.SGD(0.01)}, sample_weight=WEIGHTS)


OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop": lambda: optimizers.RMSprop(0.01, centered=True),
    "AdamW": lambda: optimizers.AdamW(0.01, clipnorm=0.1),
    "Lamb": lambda: optimizers.Lamb(0.01, global_clipnorm=0.1),
    "Muon": lambda: optimizers.Muon(0.01, adam_lr_ratio=1.0) if hasattr(optimizers, "Muon") else optimizers.Adam(),
    "accumulation": lambda: optimizers.Adam(0.01, gradient_accumulation_steps=3),
    "moving averages": lambda: optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=3),
    "a schedule": lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 4, 0.5), clipvalue=0.01),
    "Adafactor": lambda: optimizers.Adafactor(0.01),
}


@pytest.mark.parametrize("name", sampled(OPTIMIZERS, 2))
def test_optimizers(name):
    expected = trained(None, compile=lambda: {"optimizer": OPTIMIZERS[name]()})
    found = on_ranks(2, lambda: trained({}, compile=lambda: {"optimizer": OPTIMIZERS[name]()}))
    assert_close(found[0], expected, rtol=1e-5, atol=2e-6)
    assert_same(found[1], found[0])


def test_metrics():
    names = ["accuracy", "mse", "cosine_similarity", "kl_divergence"]
    make = lambda: [
        metrics.AUC(multi_label=True, num_labels=3, num_thresholds=20, name="auc"),
        metrics.F1Score("macro", name="f1"),
        metrics.TopKCategoricalAccuracy(2, name="top"),
        metrics.OneHotMeanIoU(3, name="iou"),
        metrics.PrecisionAtRecall(0.5, name="precision"),
        metrics.R2Score(name="r2"),
    ]
    check(3, y=ONE_HOT, compile=lambda: {"loss": "mse", "metrics": [*names, *make()]}, sample_weight=WEIGHTS)


def test_several_outputs():
    def make():
        x = tf.keras.Input((6,))
        hidden = layers.Dense(5, "tanh")(x)
        return tf.keras.Model(x, {"a": layers.Dense(3, name="a")(hidden), "b": layers.Dense(1, name="b")(hidden)})

    y = {"a": ONE_HOT, "b": X[:, :1]}
    options = {"loss": {"a": "mse", "b": "mae"}, "loss_weights": {"a": 0.3, "b": 2.0}, "metrics": {"a": "accuracy", "b": "mse"}}
    check(3, make=make, y=y, compile=lambda: options, sample_weight={"a": WEIGHTS, "b": 1.0 / WEIGHTS})


NOISY = sequential((6,), lambda: layers.Dense(16, "tanh"), lambda: layers.Dropout(0.5), lambda: layers.GaussianNoise(0.1))


def test_dropout_draws_what_one_process_would():
    check(3, make=NOISY)


class Subclassed(tf.keras.Model):
    """Built by its first batch, and so are the layers that its attention holds."""

    def __init__(self):
        super().__init__(name="subclassed")
        self.attention, self.dropout, self.outer = (
            layers.MultiHeadAttention(2, 3, dropout=0.3),
            layers.Dropout(0.5),
            layers.Dense(3),
        )

    def call(self, x, training=None):
        rows = tf.reshape(x, [-1, 3, 2])
        found = tf.reduce_mean(self.attention(rows, rows, training=training), 1)
        return self.outer(self.dropout(found, training=training))


def test_dropout_of_layers_that_are_not_built_draws_what_one_process_would():
    check(3, make=Subclassed, compile=lambda: {"optimizer": "sgd"})


def test_dropout_has_the_same_bits_with_virtual_shards():
    found = [on_ranks(size, lambda: trained({"virtual_shards": 4}, make=NOISY)) for size in (1, 2, 4)]
    for one in [one for ranks in found for one in ranks]:
        assert_same(one, found[0][0])
    assert_close(found[0][0], trained(None, make=NOISY))


class Noise(layers.Layer):
    """Noise from a stream of its own, or from that of tf.random."""

    def __init__(self, own):
        super().__init__()
        self.seeds = tf.keras.random.SeedGenerator(1) if own else None

    def call(self, x, training=None):
        if not training:
            return x
        return x + (tf.keras.random.normal(x.shape, seed=self.seeds) if self.seeds else tf.random.normal(x.shape))


def test_draws_from_a_generator_that_a_layer_holds_have_the_same_bits_with_virtual_shards():
    make = sequential((6,), lambda: layers.Dense(4), lambda: Noise(own=True))
    found = [on_ranks(size, lambda: trained({"virtual_shards": 2}, make=make))[0] for size in (1, 2)]
    assert_same(found[0], found[1])
    assert_close(found[0], trained(None, make=make))


def test_draws_that_depend_on_the_number_of_ranks_are_refused_with_virtual_shards():
    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot draw from the stream of tf.random"):
            trained({"virtual_shards": 2}, make=sequential((6,), lambda: Noise(own=False)))
        return True

    assert on_ranks(2, work) == [True, True]


def test_losses_and_metrics_that_layers_add():
    class Penalty(layers.Layer):
        def __init__(self):
            super().__init__()
            self.mean = metrics.Mean(name="size")

        def call(self, x):
            self.add_loss(tf.reduce_mean(x * x))
            self.mean.update_state(tf.reduce_sum(abs(x), -1))
            return x

    check(3, make=sequential((6,), lambda: layers.Dense(5, "tanh"), Penalty))


def test_moving_statistics_without_synchronization_are_the_means_over_the_ranks():
    """As in Keras each rank normalizes by its own rows: that is not the step of one process."""
    make = sequential((6,), lambda: layers.BatchNormalization(momentum=0.0))
    found = on_ranks(2, lambda: trained({}, make=make, x=X[:16], y=Y[:16], epochs=1))
    for one in found:
        assert_same(one, found[0])
    moving_mean, moving_variance = found[0][0].get_weights()[2:4]
    np.testing.assert_allclose(moving_mean, X[:16].mean(0), rtol=1e-5, atol=1e-6)


def test_half_precision_scales_the_loss_of_all_ranks_alike():
    def make():
        policy = tf.keras.mixed_precision.DTypePolicy("mixed_float16")
        model = tf.keras.Sequential(
            [tf.keras.Input((6,)), layers.Dense(8, "tanh", dtype=policy), layers.Dense(3, dtype=policy)]
        )
        return model

    def work(options):
        optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), initial_scale=2.0**15, dynamic_growth_steps=4)
        x = X.copy()
        x[3] = np.inf  # on one rank alone
        model, history = trained(options, make=make, x=x[:16], y=Y[:16], compile=lambda: {"optimizer": optimizer}, epochs=2)
        return float(model.optimizer.dynamic_scale), int(model.optimizer.iterations), model.get_weights()

    found = on_ranks(2, lambda: work({}))
    assert [one[:2] for one in found] == [work(None)[:2]] * 2
    assert all(np.isfinite(one).all() for one in found[0][2])


def test_names_of_set_distribution():
    distribution = tf.keras.distribution
    strategy = distribution.DataParallel()
    distribution.set_distribution(strategy)
    try:
        assert tf.distribute.has_strategy() and tf.distribute.get_strategy() is distribution.distribution() is strategy
        with tf.distribute.MultiWorkerMirroredStrategy().scope() as inner:
            assert tf.distribute.get_strategy() is inner
        assert classifier()._trainer.strategy is strategy
    finally:
        distribution.set_distribution(None)
    assert not tf.distribute.has_strategy() and tf.distribute.get_strategy().num_replicas_in_sync == 1
