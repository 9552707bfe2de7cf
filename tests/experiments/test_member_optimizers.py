"""Members of an ensemble step as each would alone, whatever the optimizer and its numbers."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from slow import diagonal, sampled

import minikeras as tf
from minikeras.compiler import CompiledFunction
from minikeras.core.batch import BatchedTensor
from minikeras.errors import InvalidArgumentError
from minikeras.experiments.ensemble import Ensemble
from minikeras.experiments.members import EnsembleMember, Members
from minikeras.experiments.optimizers import StackedOptimizer, kind_of
from minikeras.nn_ops.streams import set_global_seed

keras = tf.keras
optimizers = keras.optimizers
STEPS = 9
rng = np.random.default_rng(5)
X = tf.constant(rng.normal(size=(STEPS, 6, 3)).astype("float32"))
Y = tf.constant(rng.normal(size=(STEPS, 6, 2)).astype("float32"))

Make = Callable[[int], Any]


def build(seed: int, **options: Any) -> Any:
    set_global_seed(seed)
    layers = [keras.layers.Dense(4, "tanh", name="hidden", **options), keras.layers.Dense(2, name="head")]
    return keras.Sequential([keras.Input((3,)), *layers])


def step_of(model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
            scaled = optimizer.scale_loss(loss)
        variables = model.trainable_variables
        optimizer.prepare(variables)
        optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
        return loss

    return step


def ready(step: Callable[[Any, Any], Any], jit_compile: Any) -> Callable[[Any, Any], Any]:
    if not jit_compile:
        return step
    return CompiledFunction(step, jit_compile=None if jit_compile == "auto" else True)


class Stack:
    """Members that are trained together."""

    def __init__(self, models: list[Any], own: list[Any], jit_compile: Any = False) -> None:
        self.members, self.model = Members([(place, 0) for place, _ in enumerate(models)]), copy.deepcopy(models[0])
        self.rows = [
            (self.members.stack(variable, np.stack([one.array for one in found])), found)
            for variable, *found in zip(self.model.variables, *[model.variables for model in models], strict=True)
        ]
        for row in self.rows:
            self.members.hold(*row)
        self.own, self.optimizer = own, StackedOptimizer(own, self.members)
        members, step = self.members, step_of(self.model, self.optimizer)

        def of_all(x: Any, y: Any) -> Any:
            with members:
                return members.stack_of(step(x, y))

        self.step = ready(of_all, jit_compile)

    def train(self, first: int = 0, last: int = STEPS) -> None:
        with np.errstate(all="ignore"):
            for number in range(first, last):
                self.step(X[number], Y[number])

    def weights_of(self, place: int) -> list[Any]:
        return [whole.numpy()[place] for whole, _ in self.rows]

    def state_of(self, place: int) -> list[Any]:
        self.members.give([place])
        return [variable.numpy() for variable in self.own[place].variables]


@functools.cache
def trained_alone(make: Make, place: int, **options: Any) -> tuple[list[Any], list[Any]]:
    """By eager steps; what compiled ones make is told by tests/compiler."""
    model, optimizer = build(place, **options), make(place)
    step = step_of(model, optimizer)
    with np.errstate(all="ignore"):
        for number in range(STEPS):
            step(X[number], Y[number])
    return [one.numpy() for one in model.variables], [one.numpy() for one in optimizer.variables]


def assert_as_alone(make: Make, jit_compile: Any, size: int = 3, **options: Any) -> Stack:
    stack = Stack([build(seed, **options) for seed in range(size)], [make(i) for i in range(size)], jit_compile)
    stack.train()
    for place in range(size):
        weights, state = trained_alone(make, place, **options)
        for found, wanted in zip([*stack.weights_of(place), *stack.state_of(place)], [*weights, *state], strict=True):
            assert found.shape == wanted.shape
            if jit_compile is True:
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(wanted).max()))
            else:
                np.testing.assert_array_equal(found, wanted)
    return stack


def with_numbers(kind: Any, place: int, **options: Any) -> Any:
    """An optimizer with another learning rate for each member, and other values of all its settings that are numbers."""
    config = kind(**options).get_config()
    floats = {name: value for name, value in config.items() if name in kind.settings and type(value) is float}
    numbers = {name: value * (1.0 - place / 50) for name, value in floats.items()}
    return kind(**options, **numbers, learning_rate=config["learning_rate"] * (2.0 + place))


def with_rate(kind: Any, place: int) -> Any:
    """An optimizer with another learning rate for each member."""
    return kind(kind().get_config()["learning_rate"] / (1 + place))


def is_first_order(name: str) -> bool:
    kind = getattr(optimizers, name)
    abstract = kind in (optimizers.Optimizer, optimizers.SecondOrder)
    return isinstance(kind, type) and issubclass(kind, optimizers.Optimizer) and not abstract and not kind.needs_loss


WITHIN: dict[str, Make] = {
    "LossScaleOptimizer": lambda i: optimizers.LossScaleOptimizer(
        optimizers.Adam(0.01 * (i + 1)), initial_scale=2.0 ** (125 + i), dynamic_growth_steps=3
    ),
    "MultiOptimizer": lambda i: optimizers.MultiOptimizer(
        optimizers.OptimizerMap(optimizers.Adam(0.01 * (i + 1)), {".*bias": optimizers.SGD(0.1 * (i + 1))})
    ),
    "PerLayer": lambda i: optimizers.PerLayer({"hidden": with_numbers(optimizers.Adam, i), "*": optimizers.SGD(0.1 * (i + 1))}),
}
FIRST_ORDER: dict[str, Make] = {
    name: WITHIN.get(name) or functools.partial(with_numbers, getattr(optimizers, name))
    for name in optimizers.__all__
    if is_first_order(name)
}
NEED_LOSS: dict[str, Make] = {
    name: functools.partial(with_rate, getattr(optimizers, name))
    for name in optimizers.__all__
    if getattr(getattr(optimizers, name), "needs_loss", False) is True and name != "SecondOrder"
} | {"PerLayer": lambda i: optimizers.PerLayer({"head": optimizers.LevenbergMarquardt(), "*": optimizers.SGD(0.1 * (i + 1))})}
CHOICES: dict[str, Make] = {
    "momentum": lambda i: (
        with_numbers(optimizers.SGD, i, momentum=0.5 + i / 10, nesterov=True)
        if False
        else optimizers.SGD(0.1 * (i + 1), momentum=0.5 + i / 10, nesterov=True)
    ),
    "centered": lambda i: optimizers.RMSprop(0.01 * (i + 1), rho=0.8 + i / 20, momentum=0.1 * (i + 1), centered=True),
    "amsgrad": lambda i: with_numbers(optimizers.Adam, i, amsgrad=True),
    "warm-up": lambda i: optimizers.ScheduleFreeAdamW(0.1, warmup_steps=3 * i),
    "decay": lambda i: optimizers.SGD(0.1, weight_decay=0.01 * i if i else None),
    "values are clipped": lambda i: optimizers.Adam(0.01, clipvalue=0.01 * (i + 1)),
    "norms are clipped": lambda i: optimizers.Adam(0.01, clipnorm=0.1 * (i + 1)),
    "the norm is clipped": lambda i: optimizers.Adam(0.01, global_clipnorm=0.1 * (i + 1)),
    "averages": lambda i: optimizers.Adam(0.01 * (i + 1), use_ema=True, ema_momentum=0.5 + i / 10),
    "weights become averages": lambda i: optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=2 + i),
    "accumulation": lambda i: optimizers.Adam(0.01, gradient_accumulation_steps=2 + i),
    "accumulation and averages": lambda i: optimizers.Nadam(0.1 * (i + 1), gradient_accumulation_steps=2, use_ema=True),
    "one average for all": lambda i: optimizers.SGD(0.1, use_ema=True),
    "the loss is scaled": lambda i: optimizers.Adam(0.01, loss_scale_factor=3.0 + i),
    "schedules": lambda i: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1 * (i + 1), 2, 0.9)),
    "schedules that begin alike": lambda i: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 2 + i, 0.9)),
    "a function": lambda i: optimizers.SGD(lambda: 0.1 * (i + 1)),
    "one is frozen": lambda i: optimizers.PerLayer({"hidden": None, "*": optimizers.SGD(0.1 * (i + 1))}),
    "factors": lambda i: optimizers.PerLayer({"hidden": 0.5 + i / 10, "*": optimizers.Adam(0.1 * (i + 1))}),
    "factors to a schedule": lambda i: optimizers.PerLayer(
        {"head": 0.5, "*": optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1 * (i + 1), 1, 0.5))}
    ),
}
"""What all members do at once."""
IN_TURN: dict[str, Make] = {
    "norms of scaled losses": lambda i: optimizers.Adam(0.01, clipnorm=0.1 * (i + 1), loss_scale_factor=3.0),
    "norms of gathered gradients": lambda i: optimizers.Adam(0.01, clipnorm=0.1 * (i + 1), gradient_accumulation_steps=2),
    "powers": lambda i: optimizers.Ftrl(0.1, learning_rate_power=-0.5 - i / 10),
    "momentum or none": lambda i: optimizers.SGD(0.1, momentum=0.5 * i),
    "taking turns": lambda i: optimizers.PerLayer({"hidden": optimizers.Every(2, "adam"), "*": optimizers.SGD(0.1 * (i + 1))}),
}
"""What members do in turn."""


@pytest.mark.parametrize("name, jit_compile", sampled(diagonal(FIRST_ORDER, [False, "auto", True]), 3))
def test_members_step_as_alone_with_every_optimizer_whatever_its_numbers(name: str, jit_compile: Any) -> None:
    assert_as_alone(FIRST_ORDER[name], jit_compile)


@pytest.mark.parametrize("name, jit_compile", sampled(diagonal(CHOICES, [False, "auto", True]), 3))
def test_members_step_at_once_as_alone_with_all_options(name: str, jit_compile: Any) -> None:
    assert assert_as_alone(CHOICES[name], jit_compile).optimizer.steps_at_once


@pytest.mark.parametrize("jit_compile", [False, "auto"])
@pytest.mark.parametrize("name", IN_TURN)
def test_members_step_in_turn_where_a_step_is_more_than_a_formula(name: str, jit_compile: Any) -> None:
    assert not assert_as_alone(IN_TURN[name], jit_compile).optimizer.steps_at_once


def test_members_with_a_constraint_step_as_alone() -> None:
    options = {"kernel_constraint": keras.constraints.MaxNorm(0.9)}
    stack = assert_as_alone(lambda i: optimizers.SGD(0.1 * (i + 1)), False, **options)
    assert not stack.optimizer.steps_at_once


class Momentum(optimizers.Optimizer):
    """Written for Keras."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        m = self.momentums[self._get_variable_index(variable)]
        self.assign(m, 0.9 * m - learning_rate * gradient)
        self.assign_add(variable, m)


class Decided(optimizers.Optimizer):
    """A formula that decides by a number of its own."""

    elementwise = True

    def __init__(self, learning_rate: Any, factor: float) -> None:
        super().__init__(learning_rate)
        self.factor, self._hidden = factor, 2.0 * factor

    def formula(self, step: Any, gradient: Any, value: Any, *slots: Any) -> Any:
        return (value - gradient * step * self._hidden if self.factor > 1.0 else value - gradient,)


@pytest.mark.parametrize("make", [lambda i: Momentum(0.01 * (i + 1)), lambda i: Decided(0.01, 0.5 + i)])
@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_members_step_as_alone_with_the_users_own_optimizer(make: Make, jit_compile: Any) -> None:
    assert_as_alone(make, jit_compile)


@pytest.mark.parametrize("jit_compile", [False, "auto"])
@pytest.mark.parametrize("same", [False, True])
def test_learning_rates_of_single_members_change_during_training(same: bool, jit_compile: Any) -> None:
    def make(i: int) -> Any:
        return optimizers.Adam(0.01 if same else 0.01 * (i + 1))

    stack = Stack([build(seed) for seed in range(2)], [make(0), make(1)], jit_compile)
    stack.train(0, 5)
    stack.own[1].learning_rate = 0.2
    stack.train(5, STEPS)
    model, alone = build(1), make(1)
    for number in range(STEPS):
        if number == 5:
            alone.learning_rate = 0.2
        step_of(model, alone)(X[number], Y[number])
    for found, wanted in zip(stack.weights_of(1), model.variables, strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())


def test_members_whose_first_steps_were_taken_alone_go_on_together() -> None:
    models, own = [build(seed) for seed in range(2)], [optimizers.Adam(0.01), optimizers.Adam(0.02)]
    for model, optimizer in zip(models, own, strict=True):
        for number in range(4):
            step_of(model, optimizer)(X[number], Y[number])
    stack = Stack(models, own)
    stack.train(4, STEPS)
    for place, rate in enumerate([0.01, 0.02]):
        weights, state = trained_alone(lambda _: optimizers.Adam(rate), place)  # noqa: B023
        for found, wanted in zip([*stack.weights_of(place), *stack.state_of(place)], [*weights, *state], strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_state_that_a_member_was_given_meanwhile_is_taken() -> None:
    stack = Stack([build(seed) for seed in range(2)], [optimizers.Adam(0.01), optimizers.Adam(0.02)])
    stack.train(0, 3)
    slot = next(iter(stack.own[1].state.slots.values())).slots["momentum"]
    with stack.members.shown([1]):
        assert slot.numpy().any()
        slot.assign(tf.ones_like(slot))
    whole = next(iter(stack.optimizer.state.slots.values())).slots["momentum"]
    assert whole.numpy()[1].min() == 1.0
    assert whole.numpy()[0].max() < 1.0


def test_the_learning_rate_that_the_model_sees_is_each_members_own() -> None:
    stack = Stack([build(seed) for seed in range(2)], [optimizers.SGD(0.1), optimizers.SGD(0.2)])
    with stack.members:
        seen = stack.members.stack_of(stack.optimizer.learning_rate * 2.0)
    np.testing.assert_allclose(seen.numpy(), [0.2, 0.4], rtol=1e-6)
    stack.optimizer.learning_rate = [0.3, 0.4]
    assert [float(one.learning_rate) for one in stack.own] == pytest.approx([0.3, 0.4])
    with pytest.raises(InvalidArgumentError, match="2 members need as many, found 3"):
        stack.optimizer.learning_rate = [0.1, 0.2, 0.3]


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_a_scheduled_rate_that_a_step_reads_is_each_members_own_at_each_step(jit_compile: Any) -> None:
    schedules = [optimizers.schedules.ExponentialDecay(0.1 * (2 + i), 1, 0.5 + 0.25 * i) for i in range(2)]
    stack = Stack([build(seed) for seed in range(2)], [optimizers.SGD(schedule) for schedule in schedules])
    step = step_of(stack.model, stack.optimizer)

    def reading(x: Any, y: Any) -> Any:
        with stack.members:
            rate = stack.members.stack_of(tf.identity(stack.optimizer.learning_rate))
            step(x, y)
            return rate

    reading = ready(reading, jit_compile)
    for number in range(STEPS):
        seen = [float(schedule(number)) for schedule in schedules]
        np.testing.assert_allclose(reading(X[number], Y[number]).numpy(), seen, rtol=1e-6)


def test_one_rate_for_all_that_is_assigned_unseen_is_refused_once() -> None:
    stack = Stack([build(seed) for seed in range(2)], [optimizers.SGD(0.1), optimizers.SGD(0.1)], "auto")
    stack.train(0, 4)
    stack.own[1].learning_rate.assign(0.5)
    before = stack.weights_of(1)
    with pytest.raises(InvalidArgumentError, match="assigned different values"):
        stack.train(4, 5)
    np.testing.assert_array_equal(stack.weights_of(1)[0], before[0])
    stack.train(4, 5)


@pytest.mark.parametrize("name, jit_compile", sampled(diagonal(NEED_LOSS, [False, "auto"]), 2))
def test_members_take_turns_with_optimizers_that_are_given_the_loss(name: str, jit_compile: Any) -> None:
    make = NEED_LOSS[name]
    x, y = X.numpy().reshape(-1, 3)[:18], Y.numpy().reshape(-1, 2)[:18]
    options = {"loss": "mse", "metrics": ["mae"], "jit_compile": jit_compile}
    fit = {"batch_size": 6, "epochs": 3, "validation_split": 1 / 3, "verbose": 0}
    ensemble = Ensemble.of([EnsembleMember.built(functools.partial(build, seed), seed) for seed in range(3)])
    ensemble.compile(make, **options)
    history = ensemble.fit(x, y, callbacks=lambda place: [StopAfter(place)], **fit).history
    for place in range(3):
        model = build(place)
        model.compile(make(place), **options)
        alone = model.fit(x, y, callbacks=[StopAfter(place)], **fit)
        state = [*model.variables, *model.optimizer.variables]
        for found, wanted in zip([*ensemble[place].variables, *ensemble[place].optimizer.variables], state, strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-6)
        for entry, values in alone.history.items():
            np.testing.assert_allclose(history[entry][: len(values), place], values, rtol=1e-5)


def test_optimizers_of_several_kinds_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="member 0 has Adam, member 1 has SGD"):
        Stack([build(0), build(1)], [optimizers.Adam(), optimizers.SGD()])
    with pytest.raises(InvalidArgumentError, match="member 0 of the ensemble has no optimizer"):
        Stack([build(0)], [None])
    assert kind_of(WITHIN["PerLayer"](0)) == kind_of(WITHIN["PerLayer"](1)) != kind_of(CHOICES["factors"](0))


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_steps_are_taken_in_turn_once_an_option_needs_it(jit_compile: Any) -> None:
    def changed(optimizer: Any) -> None:
        optimizer.loss_scale_factor, optimizer.clipnorm = 2.0, 0.1

    stack = Stack([build(seed) for seed in range(2)], [optimizers.Adam(0.1), optimizers.Adam(0.1)], jit_compile)
    stack.train(0, 4)
    for optimizer in stack.own:
        changed(optimizer)
    stack.train(4, STEPS)
    model, alone = build(1), optimizers.Adam(0.1)
    for number in range(STEPS):
        if number == 4:
            changed(alone)
        step_of(model, alone)(X[number], Y[number])
    state = [variable.numpy() for variable in alone.variables]
    for found, wanted in zip(
        [*stack.weights_of(1), *stack.state_of(1)], [*(one.numpy() for one in model.variables), *state], strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_averages_of_variables_without_a_gradient_move_too() -> None:
    def make(i: int) -> Any:
        return optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5 + i / 10)

    stack = Stack([build(seed) for seed in range(2)], [make(0), make(1)])
    stack.train(0, 2)
    with stack.members:
        ones = BatchedTensor(tf.ones_like(stack.rows[0][0]), stack.members)
        stack.optimizer.apply([ones, None, None, None], stack.model.variables)
    model, alone = build(1), make(1)
    for number in range(2):
        step_of(model, alone)(X[number], Y[number])
    alone.apply([tf.ones_like(model.variables[0]), None, None, None], model.variables)
    for found, wanted in zip(stack.state_of(1), alone.variables, strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())


class StopAfter(keras.callbacks.Callback):
    """Ends training after an epoch."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch >= self.epoch:
            self.model.stop_training = True


@pytest.mark.parametrize(
    "make",
    [
        lambda i: optimizers.Adam(0.01 * (i + 1)),
        lambda i: optimizers.Nadam(0.01 * (i + 1)),
        lambda i: optimizers.Adam(0.01, use_ema=True, ema_momentum=0.5 + i / 10),
        WITHIN["PerLayer"],
    ],
)
def test_members_that_end_early_keep_their_state_and_go_on_with_it(make: Make) -> None:
    x, y = X.numpy().reshape(-1, 3)[:20], Y.numpy().reshape(-1, 2)[:20]

    def fit(model: Any, callbacks: Any) -> None:
        for _ in range(2):
            model.fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=callbacks)

    ensemble = Ensemble.of([EnsembleMember.built(functools.partial(build, seed), seed) for seed in range(3)])
    ensemble.compile(make, loss="mse")
    fit(ensemble, lambda place: [StopAfter(place)])
    for place in range(3):
        model = build(place)
        model.compile(make(place), loss="mse")
        fit(model, [StopAfter(place)])
        for found, wanted in zip(
            [*ensemble[place].variables, *ensemble[place].optimizer.variables],
            [*model.variables, *model.optimizer.variables],
            strict=True,
        ):
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("kind", [optimizers.SGD, optimizers.Nadam])
@pytest.mark.parametrize("jit_compile", ["auto", True])
def test_a_learning_rate_of_a_member_that_counts_its_calls_is_called_once_a_step(kind, jit_compile):
    """It was called once more where the steps of all members were written as one, so that later rates were those of others."""

    class Counted(optimizers.schedules.LearningRateSchedule):
        def __init__(self) -> None:
            self.steps: list[int] = []

        def __call__(self, step: Any) -> float:
            self.steps.append(int(step))
            return 0.1 / len(self.steps)

    def make() -> Any:
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        model.compile(kind(Counted()), "mse", jit_compile=jit_compile)
        return model

    members = Ensemble(make, size=3, seeds=range(3))
    members.fit(X.numpy().reshape(-1, 3), Y.numpy().reshape(-1, 2), batch_size=18, epochs=3, verbose=0)
    assert [members[place].optimizer._learning_rate.steps for place in range(3)] == [[*range(9)]] * 3
