"""Several optimizers for one model: who owns what, whose turn it is, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
from second_order.problems import data, network, objective

import minikeras as tf
from minikeras import keras

optimizers = keras.optimizers
PerLayer, Every = optimizers.PerLayer, optimizers.Every


def weights(model):
    return {v.path.split("/", 1)[1]: v.numpy() for v in model.trainable_variables}


def deep():
    return network((3, 4, 4, 2))


def one_step(optimizer, model, seed=2):
    x, labels, _ = data(seed=seed)
    fit = objective(model, x, labels)
    if optimizer.needs_loss:
        optimizer.minimize(fit, model.trainable_variables)
    else:
        with tf.GradientTape() as tape:
            loss = fit()
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))


def test_each_layer_moves_as_with_its_own_optimizer_alone():
    """The guide's example: one persistent tape, two optimizers, two independent updates."""
    by_hand, model = deep(), deep()
    x, labels, _ = data()
    adam, sgd = optimizers.Adam(0.01), optimizers.SGD(0.1, momentum=0.9)
    both = PerLayer({"hidden*": optimizers.Adam(0.01), "head": optimizers.SGD(0.1, momentum=0.9)})
    for _ in range(4):
        with tf.GradientTape(persistent=True) as tape:
            loss = objective(by_hand, x, labels)()
        hidden, head = by_hand.trainable_variables[:4], by_hand.trainable_variables[4:]
        adam.apply_gradients(zip(tape.gradient(loss, hidden), hidden, strict=True))
        sgd.apply_gradients(zip(tape.gradient(loss, head), head, strict=True))
        one_step(both, model)
    for name, expected in weights(by_hand).items():
        np.testing.assert_array_equal(weights(model)[name], expected, err_msg=name)


def test_none_freezes_and_a_star_takes_the_rest():
    model = deep()
    before = weights(model)
    one_step(PerLayer({"hidden_0": None, "*": "adam"}), model)
    moved = {name: not np.array_equal(value, before[name]) for name, value in weights(model).items()}
    assert moved == {name: not name.startswith("hidden_0") for name in before}


@pytest.mark.parametrize("pattern", ["*.bias", "*.hidden_0.bias", "hidden_0.bias"])
def test_a_glob_may_name_single_weights(pattern):
    model = deep()
    before = weights(model)
    one_step(PerLayer({pattern: None, "*": "sgd"}), model)
    still = [name for name, value in weights(model).items() if np.array_equal(value, before[name])]
    assert still == (["hidden_0/bias", "hidden_1/bias", "head/bias"] if pattern == "*.bias" else ["hidden_0/bias"])


def test_a_layer_and_a_variable_serve_as_patterns():
    model = deep()
    head, kernel = model.layers[-1], model.layers[0].kernel
    optimizer = PerLayer([(head, "sgd"), ([kernel], None), ("*", "adam")])
    optimizer.build(model.trainable_variables)
    assert [type(optimizer.optimizer_for(v)).__name__ for v in model.trainable_variables] == [
        *("NoneType", "Adam", "Adam", "Adam", "SGD", "SGD")
    ]


def test_a_number_is_a_factor_to_the_default_learning_rate_that_follows_it():
    model, by_hand = deep(), deep()
    default = optimizers.SGD(0.5)
    optimizer = PerLayer({"*": default, "head": 0.1})
    one_step(optimizer, model)
    one_step(PerLayer({"hidden*": optimizers.SGD(0.5), "head": optimizers.SGD(0.05)}), by_hand)
    for name, expected in weights(by_hand).items():
        np.testing.assert_allclose(weights(model)[name], expected, rtol=1e-7)
    default.learning_rate = 0.25
    rates = {label: float(rate) for label, rate in optimizer.learning_rate.items()}
    assert rates == pytest.approx({"*": 0.25, "head": 0.025})


def test_turns_alternate():
    model = deep()
    optimizer = PerLayer(optimizers.cycle({"hidden*": optimizers.SGD(0.1), "head": optimizers.SGD(0.1)}))
    for step in range(4):
        before = weights(model)
        one_step(optimizer, model)
        moved = {name.split("_")[0].split("/")[0] for name, value in weights(model).items() if (value != before[name]).any()}
        assert moved == ({"hidden"} if step % 2 == 0 else {"head"})
    assert [int(member.iterations) for member in optimizer.optimizers] == [2, 2]
    assert int(optimizer.iterations) == 4


def test_a_member_may_step_less_often():
    model = deep()
    optimizer = PerLayer({"head": Every(3, optimizers.SGD(0.1), offset=2), "*": "sgd"})
    moved = []
    for _ in range(6):
        before = weights(model)["head/kernel"]
        one_step(optimizer, model)
        moved.append(not np.array_equal(before, weights(model)["head/kernel"]))
    assert moved == [False, False, True, False, False, True]


def test_newton_on_the_head_and_adam_below():
    model = deep()
    optimizer = PerLayer({"head": optimizers.Newton(damping=1e-3), "*": optimizers.Adam(0.01)})
    x, labels, _ = data()
    fit = objective(model, x, labels)
    losses = [float(optimizer.minimize(fit, model.trainable_variables)) for _ in range(10)]
    assert losses[-1] < 0.5 * losses[0]
    assert optimizer.logs()["damping"] == pytest.approx(1e-3)
    assert [int(member.iterations) for member in optimizer.optimizers] == [10, 10]


def test_statistics_move_once_with_members_of_both_orders():
    def normalized():
        tf.random.set_seed(3)
        layers = [
            keras.layers.Dense(4, dtype="float64", name="below"),
            keras.layers.BatchNormalization(dtype="float64", name="norm"),
        ]
        return keras.Sequential(
            [keras.Input((3,), dtype="float64"), *layers, keras.layers.Dense(2, dtype="float64", name="head")]
        )

    x, labels, _ = data()
    once, model = normalized(), normalized()
    objective(once, x, labels)()
    rules = {"head": optimizers.Newton(), "norm": optimizers.GaussNewton(damping=1.0), "*": "sgd"}
    PerLayer(rules).minimize(objective(model, x, labels), model.trainable_variables)
    for expected, found in zip(once.non_trainable_variables, model.non_trainable_variables, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_everything_that_does_not_fit_is_listed_at_once():
    model = deep()
    with pytest.raises(ValueError, match="PerLayer") as caught:
        PerLayer({"hid*": "sgd", "hidden_1": "adam", "tail": "sgd"}).build(model.trainable_variables)
    message = str(caught.value)
    for line in (
        "hidden_1/kernel belongs to 'hid*' and 'hidden_1'",
        "head/kernel belongs to no entry",
        "entry 'tail' matches no variable",
    ):
        assert line in message
    assert "entry 'hidden_1' matches no variable" not in message


def test_a_failed_step_leaves_all_members_as_they_were():
    model = deep()
    optimizer = PerLayer({"head": "sgd", "*": "adam"})
    one_step(optimizer, model)
    before = [v.numpy() for v in (*model.variables, *optimizer.variables)]
    gradients = [tf.zeros_like(v) for v in model.trainable_variables]
    gradients[-1] = tf.zeros([7])
    with pytest.raises(ValueError, match=r"shape \(7,\)"):
        optimizer.apply(gradients, model.trainable_variables)
    after = [v.numpy() for v in (*model.variables, *optimizer.variables)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_state_and_configuration_come_back():
    model = deep()
    optimizer = PerLayer({"head": Every(2, optimizers.Adam(0.01)), "hidden_0": None, "*": optimizers.SGD(0.1, momentum=0.9)})
    for _ in range(3):
        one_step(optimizer, model)
    again, twin = PerLayer.from_config(optimizer.get_config()), deep()
    assert again.get_config() == optimizer.get_config()
    twin.set_weights(model.get_weights())
    store = {}
    optimizer.save_own_variables(store)
    again.build(twin.trainable_variables)
    again.load_own_variables(store)
    for _ in range(3):
        one_step(optimizer, model)
        one_step(again, twin)
    for name, expected in weights(model).items():
        np.testing.assert_array_equal(weights(twin)[name], expected)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copied", "pickled"])
def test_a_copy_owns_its_own_variables_and_no_others(copied):
    layers = [keras.layers.Dense(width, dtype="float64", name=name) for width, name in ((4, "below"), (2, "head"))]
    model = keras.Sequential([keras.Input((3,), dtype="float64"), *layers])
    optimizer = PerLayer([(model.layers[-1], "sgd"), ("*", None)])
    one_step(optimizer, model)
    twin, again = copied((model, optimizer))
    assert [again.optimizer_for(v) for v in model.trainable_variables] == [None] * 4
    assert [again.optimizer_for(v) is not None for v in twin.trainable_variables] == [False] * 2 + [True] * 2
    before = weights(model)
    one_step(again, twin)
    one_step(optimizer, model)
    for name, expected in weights(model).items():
        np.testing.assert_array_equal(weights(twin)[name], expected)
        assert np.array_equal(expected, before[name]) != name.startswith("head")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "no rules"),
        ({"head": 0.1}, "factor"),
        ({"head": Every(0, "sgd")}, "every"),
        ({"head": Every(2, "sgd", 2)}, "offset"),
        ({"head": "slow"}, "slow"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        PerLayer(rules)


def test_one_learning_rate_for_all_is_refused():
    optimizer = PerLayer({"head": "sgd", "*": "adam"})
    with pytest.raises(TypeError, match="learning rate for each"):
        optimizer.learning_rate = 0.1
    optimizer.learning_rate = {"head": 0.5}
    assert float(optimizer.learning_rate["head"]) == 0.5
