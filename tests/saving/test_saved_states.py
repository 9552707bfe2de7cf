"""What was saved can be loaded, whatever was or was not trained, compiled or frozen when it was; Keras's files as well."""

import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from slow import mostly_slow, sampled

import minikeras as tf

pytest.importorskip("safetensors")
layers, optimizers = tf.keras.layers, tf.keras.optimizers
FILES = Path(__file__).parent.parent / "golden" / "files"
X = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
Y = X[:, :1]
ABSTRACT = {"Optimizer", "SecondOrder"}
MADE = {
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.01)),
    "MultiOptimizer": lambda: optimizers.MultiOptimizer(
        optimizers.OptimizerMap(optimizers.SGD(0.1, momentum=0.9), {".*bias": optimizers.Adam(0.1)})
    ),
    "PerLayer": lambda: optimizers.PerLayer({"hidden": "adam", "head": None}),
    "schedule": lambda: optimizers.Adam(optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)),
    "averages": lambda: optimizers.SGD(0.1, momentum=0.9, use_ema=True),
    "accumulation": lambda: optimizers.Adam(0.1, gradient_accumulation_steps=3),
    "turns": lambda: optimizers.PerLayer(optimizers.per_layer.cycle({"hidden": optimizers.Adam(0.1), "*": "sgd"})),
}
KINDS = [
    *MADE,
    *(
        name
        for name, value in sorted(vars(optimizers).items())
        if inspect.isclass(value) and issubclass(value, optimizers.Optimizer) and name not in MADE and name in dir(optimizers)
        if name not in ABSTRACT and not name.startswith("_")
    ),
]
ENDINGS = [".keras", ".weights.h5", ".safetensors"]


def made(optimizer="adam"):
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), layers.Dense(4, activation="tanh", name="hidden"), layers.Dense(1, name="head")], name="net"
    )
    kind = getattr(optimizers, optimizer or "", None)
    if optimizer is not None:
        model.compile(MADE[optimizer]() if optimizer in MADE else kind() if isinstance(kind, type) else optimizer, "mse")
    return model


def saved(model, path):
    model.save(path) if path.suffix == ".keras" else model.save_weights(path)
    return path


def loaded(path, optimizer):
    if path.suffix == ".keras":
        return tf.keras.models.load_model(path)
    model = made(optimizer)
    model.load_weights(path)
    return model


def state(model):
    return [*model.get_weights(), *(variable.numpy() for variable in model.optimizer.variables)]


def same(first, second):
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("ending", sampled(ENDINGS, 2))
@pytest.mark.parametrize("steps", [0, 2], ids=["untrained", "trained"])
@pytest.mark.parametrize("kind", mostly_slow(KINDS, *list(KINDS)[::6]))
def test_a_compiled_model_comes_back_trained_or_not(tmp_path, kind, steps, ending):
    model = made(kind)
    model.fit(X, Y, epochs=steps, verbose=0, shuffle=False)
    again = loaded(saved(model, tmp_path / f"m{ending}"), kind)
    assert same(state(model), state(again))
    for one in (model, again):
        tf.random.set_seed(1)  # some optimizers draw
        one.fit(X, Y, epochs=2, verbose=0, shuffle=False)
    assert same(state(model), state(again))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_model_that_was_frozen_or_thawed_after_training_comes_back(tmp_path, compiled, ending):
    model = made(None)
    model.get_layer("hidden").trainable = False
    model.compile("adam", "mse", run_eagerly=not compiled)
    model.optimizer.build(model.trainable_variables)
    model.fit(X, Y, verbose=0)
    for frozen in (True, False):
        model.get_layer("hidden").trainable = not frozen
        again = loaded(saved(model, tmp_path / f"m{ending}"), "adam")
        assert same(state(model), state(again))
        assert again.get_layer("hidden").trainable is (not frozen if ending == ".keras" else True)


def test_slots_come_back_in_the_order_in_which_the_optimizer_has_them(tmp_path):
    model = made()
    model.optimizer.build(reversed(model.trainable_variables))
    model.fit(X, Y, verbose=0)
    for ending in ENDINGS:
        again = loaded(saved(model, tmp_path / f"m{ending}"), "adam")
        for mine, its in zip(model.trainable_variables, again.trainable_variables, strict=True):
            assert np.array_equal(model.optimizer.slot(mine, "momentum"), again.optimizer.slot(its, "momentum"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_weights_saved_before_the_first_fit_restart_a_model_that_has_been_trained(tmp_path, ending):
    model = made()
    first = model.get_weights()
    saved(model, tmp_path / f"m{ending}")
    for fold in range(2):
        model.fit(X[fold::2], Y[fold::2], verbose=0)
        kept = [variable.numpy() for variable in model.optimizer.variables]
        with pytest.warns(UserWarning, match="Skipping variable loading for optimizer 'adam', because") as caught:
            model.load_weights(tmp_path / f"m{ending}")
        assert len(caught) == 1 and same(first, model.get_weights())
        assert same(kept, [variable.numpy() for variable in model.optimizer.variables])


@pytest.mark.parametrize("ending", sampled(ENDINGS, 3))
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("before, after", [("adam", "sgd"), ("sgd", "adam"), ("Adam", "KFAC"), ("averages", "sgd")])
def test_weights_saved_under_one_optimizer_load_under_another_with_one_warning(tmp_path, before, after, trained, ending):
    model = made(before)
    model.fit(X, Y, verbose=0)
    saved(model, tmp_path / f"m{ending}")
    other = made(after)
    other.fit(X, Y, epochs=int(trained), verbose=0)
    kept = [variable.numpy() for variable in other.optimizer.variables]
    with pytest.warns(UserWarning, match=r"Skipping variable loading for optimizer '\w+', because (it|'optimizer/)") as caught:
        other.load_weights(tmp_path / f"m{ending}")
    assert len(caught) == 1 and same(model.get_weights(), other.get_weights())
    assert same(kept, [variable.numpy() for variable in other.optimizer.variables])
    other.fit(X, Y, verbose=0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_warning_that_is_an_error_leaves_everything_as_it_was(tmp_path, ending):
    model = made()
    model.fit(X, Y, verbose=0)
    saved(model, tmp_path / f"m{ending}")
    other = made("sgd")
    before = state(other)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning):
        other.load_weights(tmp_path / f"m{ending}")
    assert same(before, state(other)) and not other.optimizer.built


class TwoOptimizers(tf.keras.Model):
    """The shape of Keras's GAN examples: a `compile` and optimizers of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.maker, self.judge = layers.Dense(3, name="maker"), layers.Dense(1, name="judge")

    def build(self, shape):
        self.maker.build(shape)
        self.judge.build(shape)

    def call(self, x):
        return self.judge(self.maker(x))

    def compile(self, d_optimizer, g_optimizer, **options):
        super().compile(**options)
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def train_step(self, data):
        for layer, optimizer in ((self.judge, self.d_optimizer), (self.maker, self.g_optimizer)):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(data[0]) ** 2)
            optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        return {"loss": loss}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("compiled", [True, False])
def test_several_optimizers_of_one_model_keep_their_states(tmp_path, ending, compiled):
    def two():
        model = TwoOptimizers()
        model.build((None, 3))
        model.compile(optimizers.Adam(0.1), optimizers.RMSprop(0.1))
        return model

    model = two()
    model.fit(X, Y, verbose=0)
    saved(model, tmp_path / f"m{ending}")
    if ending == ".keras":
        with pytest.warns(UserWarning, match="its `compile` is custom"):
            again = tf.keras.models.load_model(tmp_path / "m.keras", {"TwoOptimizers": TwoOptimizers})
        assert same(model.get_weights(), again.get_weights())
    again = two() if compiled else TwoOptimizers()
    if not compiled:
        again.build((None, 3))
    again.load_weights(tmp_path / f"m{ending}")
    assert same(model.get_weights(), again.get_weights())
    if compiled:
        for name in ("d_optimizer", "g_optimizer"):
            mine, its = ([v.numpy() for v in getattr(one, name).variables] for one in (model, again))
            assert same(mine, its)


@pytest.mark.parametrize("name", json.loads((FILES / "states.json").read_text())["files"])
def test_files_of_keras_in_any_state_load(name):
    golden = json.loads((FILES / "states.json").read_text())
    expected = golden["files"][name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = tf.keras.models.load_model(FILES / name)
    np.testing.assert_allclose(model.predict(np.float32(golden["x"]), verbose=0).reshape(-1), expected["prediction"], rtol=1e-5)
    skipped = [str(one.message) for one in caught]
    if skipped:  # as in Keras: slots for what was trained before, and for more now
        assert (
            name in ("unfrozen_after_training.keras", "untrained_loss_scale.keras", "untrained_adam.h5") and len(skipped) == 1
        )
        assert "Skipping variable loading for optimizer" in skipped[0]
    else:
        found = [variable.numpy() for variable in model.optimizer.variables]
        assert len(found) == len(expected["optimizer"])
        for one, value in zip(found, expected["optimizer"], strict=True):
            np.testing.assert_allclose(one, value, rtol=1e-6)
    model.fit(np.float32(golden["x"]), np.float32(golden["x"])[:, :1], verbose=0)
