"""Models that several ranks train: the same numbers as one process with the same batches, and as other numbers of ranks."""

import numpy as np
import pytest
from trained import WEIGHTS, X, Y, assert_close, assert_same, check, classifier, compiled, on_ranks, scope, trained

import minikeras as tf

layers = tf.keras.layers


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_train_what_one_process_does(size, eager):
    data = {"validation_data": (X[:13], Y[:13]), "sample_weight": WEIGHTS}
    check(size, compile=lambda: {"metrics": ["accuracy"], "weighted_metrics": ["accuracy"], "run_eagerly": eager}, **data)


def test_a_compiled_step_is_replayed_many_times_in_a_row():
    model, _ = check(2, x=X[:48], y=Y[:48], epochs=16)
    (step,) = [step for (name, _), step in model._trainer.steps._steps.items() if name == "train_step"]
    assert step.recordings == 1 and step.replays >= 40 and step.eager_calls <= 2


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_virtual_shards_give_the_same_bits_for_every_number_of_ranks(eager):
    options = {
        "compile": lambda: {"metrics": ["accuracy"], "run_eagerly": eager},
        "epochs": 16,
        "validation_data": (X[:13], Y[:13]),
    }
    found = [on_ranks(size, lambda: trained({"virtual_shards": 4}, **options)) for size in (1, 2, 4)]
    for one in [one for ranks in found for one in ranks]:
        assert_same(one, found[0][0])
    assert_close(found[0][0], trained(None, **options))


def test_evaluate_and_predict_give_all_ranks_the_results_for_all_rows():
    def work(options):
        model, _ = trained(options)
        results = model.evaluate(X, Y, batch_size=7, verbose=0)
        return results, model.predict(X, batch_size=7, verbose=0), model.train_on_batch(X, Y), model.test_on_batch(X[:2], Y[:2])

    expected = work(None)
    for found in on_ranks(3, lambda: work({})):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_predict_comes_before_any_labels():
    def work():
        model = made({}, {"metrics": ["accuracy"]})
        return model.predict(X, verbose=0), model.fit(X, Y, batch_size=16, verbose=0).history

    for found, _ in on_ranks(2, work):
        assert found.shape == (50, 3)


def made(options, compile):
    tf.random.set_seed(3)
    with scope(options):
        model = classifier()
        compiled(model, **compile)
    return model


class Noise(layers.Layer):
    """Noise and a count of its calls, in training and without."""

    def __init__(self):
        super().__init__()
        self.calls = self.add_weight((), "zeros", trainable=False)

    def call(self, x):
        self.calls.assign_add(1.0)
        return x + tf.random.normal(x.shape)


def test_draws_without_training_are_those_of_one_process():
    def make():
        inputs = tf.keras.Input((6,))
        hidden = layers.Dropout(0.5)(layers.Dense(8)(inputs), training=True)
        return tf.keras.Model(inputs, layers.Dense(3)(Noise()(hidden)))

    def work(options):
        found = trained(options, make=make, validation_split=0.3)
        return found, found[0].predict(X, batch_size=16, verbose=0)

    expected, predicted = work(None)
    for found, of_all_rows in on_ranks(2, lambda: work({})):
        assert_close(found, expected, 1e-5, 1e-6)
        np.testing.assert_allclose(of_all_rows, predicted, rtol=1e-5, atol=1e-6)


def test_fit_outside_of_the_scope_is_refused_on_every_rank():
    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match="was made outside of any strategy"):
            trained(None)
        return True

    assert on_ranks(2, work) == [True, True]


def test_batches_with_fewer_rows_than_ranks_are_refused():
    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match="a batch of 2 rows is too small for 3 ranks"):
            trained({}, batch_size=2)
        return True

    assert on_ranks(3, work) == [True] * 3


@pytest.mark.parametrize(
    ("optimizer", "size", "reason"),
    [
        (lambda: "adam", 1, "a batch of 1 rows is too small for 2 ranks"),
        (lambda: "lbfgs", 16, "asks for the loss of all rows"),
        (lambda: tf.distribute.DistributedOptimizer(tf.keras.optimizers.Adam()), 16, "and so has DistributedOptimizer"),
    ],
)
def test_what_ranks_cannot_train_is_refused_after_an_evaluation_too(optimizer, size, reason):
    def work():
        model = made({}, {"optimizer": optimizer()})
        model.evaluate(X, Y, verbose=0)
        with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
            model.fit(X, Y, batch_size=size, verbose=0)
        return True

    assert on_ranks(2, work) == [True, True]


def test_models_that_differ_are_refused_on_every_rank():
    def work():
        units, activation = (8, "tanh") if tf.distribute.rank() else (8, "relu")
        make = lambda: tf.keras.Sequential([tf.keras.Input((6,)), layers.Dense(units, activation), layers.Dense(3)])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"on rank \d part 1 of model .* is Dense .*, on the ranks \["):
            trained({}, make=make)
        return True

    assert on_ranks(2, work) == [True, True]


@pytest.mark.parametrize(
    ("mine", "other", "said"),
    [
        ({"loss": "mse"}, {"loss": "mae"}, "MeanSquaredError|MeanAbsoluteError"),
        ({"loss": tf.keras.losses.Huber(2.0)}, {"loss": tf.keras.losses.Huber(1.0)}, "Huber .*delta"),
        ({"loss": "mse", "loss_weights": [2.0]}, {"loss": "mse", "loss_weights": [1.0]}, r"list \[[12].0\]"),
    ],
    ids=["loss", "option", "weights"],
)
def test_losses_that_differ_are_refused_on_every_rank(mine, other, said):
    def work():
        compile = lambda: mine if tf.distribute.rank() else other
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"on rank \d part \d of model .* is ({said})"):
            trained({}, y=np.eye(3, dtype="float32")[Y], compile=compile)
        return True

    assert on_ranks(2, work) == [True, True]


def test_seeds_that_differ_are_refused_on_every_rank():
    def work():
        tf.random.set_seed(tf.distribute.rank())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"rank 0: set to 0, rank 1: set to 1"):
            tf.distribute.MultiWorkerMirroredStrategy()
        return True

    assert on_ranks(2, work) == [True, True]


def test_seeds_that_were_not_set_are_those_of_the_first_rank():
    def work():
        tf.random.set_seed(None)
        with tf.distribute.MultiWorkerMirroredStrategy().scope():
            return classifier().get_weights()

    one, other = on_ranks(2, work)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_weights_that_drift_apart_are_noticed_at_the_end_of_the_epoch():
    class Spoil(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if tf.distribute.rank() == 1:
                self.model.layers[0].bias.assign_add(tf.ones(8))

    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"weights of model 'classifier' on rank \d are not those of"):
            trained({}, callbacks=[Spoil()])
        return True

    assert on_ranks(2, work) == [True, True]


class StopBatches(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training = tf.distribute.rank() == 1 and batch == 1


class StopEpochs(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = tf.distribute.rank() == 1 and epoch == 1


class StopAtOnce(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.model.stop_training = tf.distribute.rank() == 1


@pytest.mark.parametrize(("callback", "expected"), [(StopAtOnce, (0, None)), (StopBatches, (2, 1)), (StopEpochs, (8, 2))])
def test_what_one_rank_stops_stops_on_all(callback, expected):
    def work():
        model, history = trained({}, callbacks=[callback()], epochs=5)
        return int(model.optimizer.iterations), len(history["loss"]) if history else None

    assert on_ranks(3, work) == [expected] * 3


def test_a_callback_of_one_rank_alone_does_not_hold_up_the_others():
    def work():
        own = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: None)
        return trained({}, callbacks=[own] if tf.distribute.rank() == 0 else [], epochs=8)

    found = on_ranks(2, work)
    assert_same(found[0], found[1])


def test_optimizers_that_ask_for_the_loss_are_refused():
    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match="LBFGS asks for the loss of all rows several times"):
            trained({}, compile=lambda: {"optimizer": tf.keras.optimizers.LBFGS()})
        return True

    assert on_ranks(2, work) == [True, True]


def test_gradients_are_not_exchanged_twice():
    def work():
        make = lambda: tf.distribute.DistributedOptimizer(tf.keras.optimizers.SGD())
        with pytest.raises(tf.errors.InvalidArgumentError, match="and so has DistributedOptimizer"):
            trained({}, compile=lambda: {"optimizer": make()})
        return True

    assert on_ranks(2, work) == [True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"virtual_shards": 6}, "a power of two and a multiple of the 2 ranks"),
        ({"virtual_shards": 1}, "a power of two and a multiple of the 2 ranks"),
        ({"virtual_shards": 4, "auto_shard_dataset": False}, "cuts batches that all ranks know"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    def work():
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            tf.keras.distribution.DataParallel(**options)
        return True

    assert on_ranks(2, work) == [True, True]
