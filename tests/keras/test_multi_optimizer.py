"""MultiOptimizer and OptimizerMap: what Keras's arguments mean, and steps per layer as instructions of a program."""

import copy
import pickle

import numpy as np
import pytest
from small_fits import X, instructions, state, trained

import minikeras as tf

optimizers = tf.keras.optimizers


def by_map():
    return optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.SGD(0.1), {".*/kernel": optimizers.Adam(0.02)}))


def by_function():
    adam, sgd = optimizers.Adam(0.02), optimizers.SGD(0.1)
    return optimizers.MultiOptimizer(lambda variable: adam if variable.path.endswith("kernel") else sgd)


def per_layer():
    return optimizers.PerLayer({"*.kernel": optimizers.Adam(0.02), "*": optimizers.SGD(0.1)})


@pytest.mark.host
@pytest.mark.parametrize("make", [by_map, by_function, per_layer])
def test_a_step_is_instructions_and_has_the_bits_of_an_eager_one(make):
    eager, recorded, native = trained(make(), run_eagerly=True), trained(make()), trained(make(), jit_compile=True)
    assert all(np.array_equal(*pair) for pair in zip(state(eager), state(recorded), strict=True))
    for mine, theirs in zip(state(native), state(eager), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
    assert "optimizer_step" not in instructions(recorded) and instructions(recorded).count("step_counted") == 1
    for one in (recorded, native):
        assert {int(each.iterations) for each in (one.optimizer, *one.optimizer.optimizers)} == {12}


@pytest.mark.parametrize("jit", [False, True])
def test_a_factor_to_a_schedule_sees_the_count_of_before_the_step_when_compiled_too(jit):
    def trained(wrap):
        rate = optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
        optimizer = optimizers.PerLayer({"head": 0.5, "*": optimizers.SGD(rate)})
        body, head = tf.Variable([1.0, 2.0], name="body"), tf.Variable([1.0, 2.0], name="head")
        step = wrap(lambda: optimizer.apply([tf.ones([2]), tf.ones([2])], [body, head]))
        for _ in range(5):
            step()
        return [*body.numpy(), *head.numpy(), int(optimizer.iterations)]

    assert trained(lambda step: tf.function(step, jit_compile=jit)) == trained(lambda step: step)


@pytest.mark.parametrize("jit", [False, True])
def test_several_optimizers_under_a_loss_scale_skip_a_step_together(jit):
    def trained(wrap):
        inner = optimizers.PerLayer({"head": optimizers.Nadam(0.1), "*": optimizers.SGD(0.5, clipnorm=1.0)})
        optimizer = optimizers.LossScaleOptimizer(inner, initial_scale=8.0, dynamic_growth_steps=2)
        body, head = tf.Variable([1.0, 2.0], name="body"), tf.Variable([1.0, 2.0], name="head")

        def step(first, second):
            optimizer.apply([first * 8.0, second * 8.0], [body, head])

        step = wrap(step)
        for factor in (1.0, 1.0, float("inf"), 1.0, 2.0, 1.0):
            step(tf.constant([2.0, 1.0]), tf.constant([1.0, 1.0]) * factor)
        return [one.numpy() for one in (body, head, *optimizer.variables)], int(inner.iterations)

    (eager, taken), (compiled, also) = trained(lambda step: step), trained(lambda step: tf.function(step, jit_compile=jit))
    assert taken == also == 5
    for mine, theirs in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_all_three_ways_of_saying_it_take_the_same_steps():
    first, *others = [trained(make()).get_weights() for make in (by_map, by_function, per_layer)]
    assert all(np.array_equal(*pair) for weights in others for pair in zip(first, weights, strict=True))


@pytest.mark.parametrize(
    "rules",
    [
        {"hidden": optimizers.Every(2, "sgd"), "*": "adam"},
        {"hidden": "adafactor", "*": "adam"},
    ],
    ids=["turns", "whole weights"],
)
def test_a_step_of_which_one_member_needs_python_stays_whole(rules):
    assert instructions(trained(optimizers.PerLayer(rules))).count("optimizer_step") == 1


@pytest.mark.host  # on a device a graph takes the step apart
def test_norms_of_a_member_are_instructions():
    rules = {"hidden": optimizers.SGD(0.1, global_clipnorm=1.0), "*": optimizers.Adam(clipnorm=1.0)}
    assert "optimizer_step" not in instructions(trained(optimizers.PerLayer(rules)))


def test_members_are_recorded_with_their_options():
    model = trained(per_layer())
    sgd = model.optimizer.optimizer_for(model.get_layer("head").bias)
    sgd.weight_decay = 0.5
    before = model.get_layer("head").bias.numpy()
    sgd.learning_rate, model.optimizer.optimizers[0].learning_rate = 1e-3, 0.0
    model.fit(X, model.predict(X, verbose=0), batch_size=32, verbose=0)
    np.testing.assert_allclose(model.get_layer("head").bias.numpy(), before * (1 - 0.5e-3), rtol=1e-5)


@pytest.mark.host
def test_eager_steps_become_a_program_unless_a_member_is_the_user_s():
    class Mine(optimizers.SGD):
        pass

    def program(second):
        optimizer, weights = (
            optimizers.PerLayer({"a": optimizers.Adam(), "b": second}),
            [tf.Variable(1.0, name=n) for n in "ab"],
        )
        for _ in range(8):
            optimizer.apply([tf.constant(1.0)] * 2, weights)
        return optimizer._eager_step.program, [weight.numpy() for weight in weights]

    (known, first), (none, second) = program(optimizers.SGD(0.1)), program(Mine(0.1))
    assert known is not None and none is None and first == second


def test_a_model_is_saved_and_loaded_with_all_members(tmp_path):
    model = trained(by_map())
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert all(np.array_equal(*pair) for pair in zip(state(model), state(loaded), strict=True))
    assert [type(one).__name__ for one in loaded.optimizer.optimizers] == ["Adam", "SGD"]


def test_the_variables_are_keras_s_in_keras_s_order():
    """As `keras.optimizers.MultiOptimizer` of Keras 3.15.1 lists them for this model."""
    counters = ["iteration", "learning_rate"]
    slots = [f"m_{layer}_kernel_{slot}" for layer in ("hidden", "head") for slot in ("momentum", "velocity")]
    names = [variable.name for variable in trained(by_map()).optimizer.variables]
    assert names == [*counters, *counters, *slots, *counters]


def test_a_configuration_makes_the_same_optimizer():
    config = optimizers.serialize(by_map())
    assert config["class_name"] == "MultiOptimizer" and config["config"]["optimizer_map"]["class_name"] == "OptimizerMap"
    again = optimizers.deserialize(config)
    assert optimizers.serialize(again) == config | {"config": config["config"]}


def test_a_loss_scale_is_that_of_all_members():
    scaled = optimizers.OptimizerMap(optimizers.SGD(0.1, loss_scale_factor=3.0), {".*/kernel": optimizers.SGD(0.1)})
    optimizer = optimizers.MultiOptimizer(scaled, loss_scale_factor=8.0)
    assert [one.loss_scale_factor for one in optimizer.optimizers] == [8.0, 8.0]
    plain = trained(optimizers.SGD(0.1)).get_weights()
    for mine, theirs in zip(trained(optimizer).get_weights(), plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


# OptimizerMap ------------------------------------------------------------------------------------------------------------


def test_a_path_is_looked_up_as_it_is_then_as_a_pattern_then_the_default_takes_it():
    first, second, third = optimizers.SGD(), optimizers.Adam(), optimizers.Lion()
    found = optimizers.OptimizerMap(first, {"a/b": second})
    found["a/.*"] = third
    assert (found["a/b"], found["a/c"], found["x"]) == (second, third, first)
    assert len(found) == 2 and list(found) == ["a/b", "a/.*"]
    del found["a/b"]
    assert found["a/b"] is third
    found["a/c.*"] = second
    with pytest.raises(ValueError, match="several patterns match 'a/cd'"):
        found["a/cd"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("a", "adam", "expected optimizers of first order"),
        ("a", optimizers.Newton(), "PerLayer takes those of second order"),
        ("a", optimizers.LossScaleOptimizer(optimizers.SGD()), "put a LossScaleOptimizer around the whole"),
        ("known", optimizers.SGD(), "expected a new path or pattern, found 'known'"),
        (3, optimizers.SGD(), "expected a new path or pattern, found 3"),
    ],
)
def test_what_is_no_entry_is_refused(key, value, message):
    entries = optimizers.OptimizerMap(optimizers.SGD(), {"known": optimizers.SGD()})
    with pytest.raises(ValueError, match=message):
        entries[key] = value


@pytest.mark.parametrize("arguments", [("adam",), (optimizers.SGD(), ["a"])], ids=["name", "list"])
def test_what_makes_no_map_is_refused(arguments):
    with pytest.raises(TypeError, match="expected an optimizer and a dict"):
        optimizers.OptimizerMap(*arguments)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "a*" * 9, "a" * 400])
def test_a_file_s_pattern_that_could_match_for_years_is_refused(pattern):
    config = optimizers.OptimizerMap(optimizers.SGD(), {pattern: optimizers.Adam()}).get_config()
    with pytest.raises(ValueError, match="could take too long to match"):
        optimizers.OptimizerMap.from_config(config)


def test_a_function_that_gives_no_optimizer_is_refused_and_nothing_changes():
    optimizer, w = optimizers.MultiOptimizer(lambda variable: None), tf.Variable(1.0)
    with pytest.raises(ValueError, match="found None"):
        optimizer.apply([tf.constant(1.0)], [w])
    assert w.numpy() == 1.0 and not optimizer.built


@pytest.mark.parametrize("rules", [{"*": "sgd"}, {"a*": None, "*": "sgd"}])
def test_a_variable_whose_first_step_failed_is_taken_by_the_next(rules):
    optimizer, a, b = optimizers.PerLayer(rules), tf.Variable([1.0], name="a"), tf.Variable([1.0], name="b")
    optimizer.apply([tf.ones([1]), tf.ones([1])], [a, tf.Variable([1.0], name="c")])
    with pytest.raises(tf.errors.ShapeError):
        optimizer.apply([tf.ones([2])], [b])
    optimizer.apply([tf.ones([1])], [b])
    assert b.numpy() < 1.0


@pytest.mark.parametrize("rules", [{"a*": None, "*": "sgd"}, {"*": None}])
@pytest.mark.parametrize("wrap", [lambda step: step, tf.function])
def test_a_loss_scale_leaves_alone_what_is_frozen(rules, wrap):
    optimizer = optimizers.LossScaleOptimizer(optimizers.PerLayer(rules), initial_scale=1.0)
    a, b = tf.Variable([1.0], name="a"), tf.Variable([1.0], name="b")
    step = wrap(lambda g: optimizer.apply([g, g], [a, b]))
    for _ in range(9):
        step(tf.ones([1]))
    assert a.numpy() == 1.0 and (b.numpy() < 1.0) == (len(rules) > 1) and int(optimizer.iterations) == 9


def test_a_factor_follows_the_default_optimizer_of_its_copy_and_is_kept_in_configurations():
    optimizer = optimizers.PerLayer({"head": 0.5, "frozen": 0.0, "*": optimizers.SGD(0.1)})
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        copied.learning_rate = {"*": 10.0}
        assert float(copied.optimizers[0].learning_rate) == 5.0
    optimizer.learning_rate = {"*": 1.0}
    assert float(copied.optimizers[0].learning_rate) == 5.0
    again = optimizers.PerLayer.from_config(optimizer.get_config())
    assert [member.factor for member in again.members] == [0.5, 0.0, None]
