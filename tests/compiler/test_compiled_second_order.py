"""Methods that need the loss as a function, in compiled steps: the same bits as eager ones, and what stays eager says so."""

import functools

import numpy as np
import pytest
from side_by_side import EXECUTORS, assert_same, both_ways
from slow import mostly_slow

import minikeras as tf
from minikeras.core.arrays import namespace
from minikeras.errors import CompileError
from minikeras.nn_ops import streams

L, optimizers = tf.keras.layers, tf.keras.optimizers
CROSS_ENTROPY = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
RANDOM = np.random.default_rng(2)
X, Y = RANDOM.normal(size=(24, 5)).astype("f"), RANDOM.integers(0, 3, 24)

RECORDED = {
    "newton": lambda: optimizers.Newton(),
    "newton, damped": lambda: optimizers.Newton(damping=0.1, globalization="damping"),
    "newton, trust region": lambda: optimizers.Newton(globalization="trust_region", blocks="layer"),
    "newton, whole steps": lambda: optimizers.Newton(0.1, damping=1.0, globalization=None, chunk_size=7),
    "newton, average": lambda: optimizers.Newton(damping=0.1, repair="eigenvalues", use_ema=True, ema_overwrite_frequency=3),
    "newton, schedule": lambda: optimizers.Newton(optimizers.schedules.ExponentialDecay(0.5, 3, 0.5), damping=1.0),
    "newton cg": lambda: optimizers.NewtonCG(),
    "newton cg, preconditioned": lambda: optimizers.NewtonCG(preconditioner="diagonal", max_iterations=5),
    "lbfgs": lambda: optimizers.LBFGS(memory=3),
    "adahessian": lambda: optimizers.AdaHessian(0.05, probes=2),
    "gauss-newton": lambda: optimizers.GaussNewton(damping=0.1),
    "gauss-newton, by layer": lambda: optimizers.GaussNewton(damping=0.1, blocks="layer", globalization="trust_region"),
    "levenberg-marquardt": lambda: optimizers.LevenbergMarquardt(),
    "levenberg-marquardt, accelerated": lambda: optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75),
    "newton cg, gauss-newton": lambda: optimizers.NewtonCG(curvature="gauss_newton"),
    "kfac": lambda: optimizers.KFAC(),
    "per layer, gauss-newton": lambda: optimizers.PerLayer(
        {"dense": optimizers.GaussNewton(damping=0.1), "*": optimizers.Adam(0.01)}
    ),
    "per layer": lambda: optimizers.PerLayer({"dense": optimizers.Newton(), "dense_1.bias": None, "*": optimizers.Adam(0.01)}),
    "per layer, two": lambda: optimizers.PerLayer({"dense": optimizers.NewtonCG(), "*": optimizers.Newton(damping=0.1)}),
}
EAGER = {
    "turns": lambda: optimizers.PerLayer({"dense": optimizers.Every(2, optimizers.Newton()), "*": optimizers.Adam(0.01)}),
}


def network():
    layers = [L.Dense(6, "tanh", kernel_regularizer="l2", activity_regularizer="l2"), L.BatchNormalization(), L.Dropout(0.2)]
    return tf.keras.Sequential([tf.keras.Input((5,)), *layers, L.Dense(3)])


def minimizing(optimizer):
    """A step as users write it; what is computed before and after the minimization is part of it."""

    def make():
        net, chosen = network(), optimizer()
        count = tf.Variable(0.0)

        def step(x, y):
            scaled, logits = x * 0.5, []
            count.assign_add(1.0)

            def outputs():
                logits.append(net(scaled, training=True))
                return logits.pop()

            def penalty():
                return tf.add_n(net.losses) / count

            fit = optimizers.Objective(outputs, lambda z: CROSS_ENTROPY(y, z), penalty)
            loss = chosen.minimize(fit, net.trainable_variables)
            return {"loss": loss, "after": net(scaled) * tf.norm(net.weights[0]), "count": count * 1.0, **chosen.logs()}

        return step, lambda: [*net.variables, *chosen.variables, count]

    return make


def batches():
    x, y = tf.constant(X), tf.constant(Y, "int32")
    return [(x[:12], y[:12]), (x[12:], y[12:]), (x[:10], y[:10])]


@pytest.mark.parametrize("name", mostly_slow(RECORDED, "newton", "lbfgs"))
def test_a_step_of_second_order_is_recorded_and_the_same(name):
    for run in both_ways(minimizing(RECORDED[name]), batches()):
        names = [record.primitive.name for record in run.program(*batches()[0]).records]
        assert names.count("optimizer_minimize") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newton", "newton cg, preconditioned", "lbfgs", "adahessian", "per layer"])
def test_a_step_of_second_order_is_the_same_on_every_device(name, device):
    for run in both_ways(minimizing(RECORDED[name]), batches()):
        assert (namespace(run(*batches()[0])["loss"].array) is np) == (device == "cpu")


@pytest.mark.parametrize("name", EAGER)
def test_a_step_that_decides_by_more_than_its_sweeps_is_eager_and_says_so(name):
    (run,) = both_ways(minimizing(EAGER[name]), batches(), eager=True)
    assert "depends on values" in str(run.program(*batches()[0]))


@pytest.mark.parametrize("name", mostly_slow([*RECORDED, *EAGER], "newton cg", "kfac"))
def test_fit_with_a_method_of_second_order_is_the_same(name, caplog):
    seen = []
    for compiled in (False, "auto"):
        tf.keras.utils.clear_session()
        streams.set_global_seed(3)
        model = network()
        model.compile((RECORDED | EAGER)[name](), CROSS_ENTROPY, metrics=["accuracy"], jit_compile=compiled)
        rows = {"x": X, "y": Y, "sample_weight": np.linspace(0.0, 2.0, 24)}
        history = model.fit(**rows, batch_size=8, epochs=8, verbose=0, validation_data=(X, Y)).history
        state = [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]
        seen.append([*state, *map(np.asarray, history.values())])
    assert_same(*seen)
    assert not caplog.records
    assert model._trainer.steps["test_step"].replays > 0
    if name in RECORDED:
        assert model._trainer.steps["train_step"].replays >= 20


def test_what_cannot_be_recorded_raises_where_it_has_to_be():
    model = network()
    model.compile(EAGER["turns"](), CROSS_ENTROPY, jit_compile=True)
    with pytest.raises(CompileError, match="depends on values"):
        model.fit(X, Y, verbose=0)


def test_a_loss_that_asks_for_a_value_runs_eagerly_and_says_where():
    def make():
        w, optimizer = tf.Variable([1.0, -2.0]), optimizers.Newton()

        def step(x):
            return optimizer.minimize(lambda: tf.reduce_sum((w - x) ** (4 if float(x[0]) > 0.0 else 2)), [w])

        return step, lambda: [w, *optimizer.variables]

    (run,) = both_ways(make, [(tf.constant([0.5, 0.5]),), (tf.constant([-0.5, 0.5]),)], eager=True)
    assert "float() of a tensor, at " in str(run.program(tf.constant([0.5, 0.5])))


def test_a_loss_that_hands_out_its_tensors_is_the_same_or_refused():
    def make(keep):
        def made():
            w, optimizer = tf.Variable([1.0, -2.0]), optimizers.Newton()

            def step(x):
                kept = []

                def loss():
                    found = tf.sqrt(1.0 + (w - x) ** 2)  # a whole step goes too far, and is halved several times
                    keep(kept, found)
                    return tf.reduce_sum(found)

                return optimizer.minimize(loss, [w]), kept[0] * 2.0

            return step, lambda: [w, *optimizer.variables]

        return made

    given = [(tf.constant([0.5, 0.5]),), (tf.constant([-3.5, 0.5]),)]
    both_ways(make(lambda kept, found: kept or kept.append(found)), given)
    both_ways(make(lambda kept, found: kept.__setitem__(slice(None), [found])), given)
    (run,) = both_ways(make(lambda kept, found: kept.append(found)), given, eager=True)
    assert "hands out tensors of each of its runs" in str(run.program(*given[0]))


def test_a_loss_that_hands_out_its_tensors_is_refused_also_if_the_recorded_step_tried_one_point_only():
    def make():
        w, optimizer = tf.Variable([1.0, -2.0]), optimizers.Newton()

        def step(x):
            kept = []

            def loss():
                kept.append(tf.sqrt(1.0 + (w - x) ** 2))
                return tf.reduce_sum(kept[-1])

            return optimizer.minimize(loss, [w]), kept[1] * 2.0

        return step, lambda: [w, *optimizer.variables]

    one_point, many_points = (tf.constant([0.9, -1.9]),), (tf.constant([-3.5, 0.5]),)
    (run,) = both_ways(make, [one_point, many_points], eager=True)
    assert "hands out tensors of each of its runs" in str(run.program(*one_point))


def test_a_first_step_that_ends_early_is_not_taken_for_all_steps():
    def make():
        w, optimizer = tf.Variable([1.0, -2.0]), optimizers.Newton()

        def step(x):
            return optimizer.minimize(lambda: tf.reduce_sum((w - x) ** 4), [w])

        return step, lambda: [w, *optimizer.variables]

    bad, good = (tf.constant([np.nan, 1.0]),), (tf.constant([0.5, 0.5]),)
    both_ways(make, [good, bad, good])
    (run,) = both_ways(make, [bad, good, good], eager=True)
    assert "ended before it asked for ['hessian', 'value']" in str(run.program(*good))


@pytest.mark.parametrize("name, recordings", [("levenberg-marquardt", 4), ("newton cg, gauss-newton", 1)])
def test_rows_that_meet_at_some_steps_only_are_noticed_and_the_step_is_recorded_anew(name, recordings):
    """A matrix is made row by row if numbers allow it; a replay where they do not is put back. Products need not know.

    The sixth call decides otherwise than the fifth, of which it is the second run: that needs no other recording.
    """
    x = tf.linspace(0.0, 1.0, 6)
    gates = [(0.0, 0.0), (0.0, 0.0), (0.5, 0.0), (0.5, 0.0), (0.0, 0.0), (0.0, 0.5), (0.5, 0.5)]

    def seen(wrapped):
        streams.set_global_seed(3)
        w, v, count = tf.Variable([1.0, -2.0]), tf.Variable(0.5), tf.Variable(0.0)
        optimizer, dropped = RECORDED[name](), L.Dropout(0.3, seed=1)

        def step(x, model_gate, loss_gate):
            count.assign_add(1.0)
            noise = tf.random.normal([6]) * 1e-3

            def outputs():
                y = tf.exp(w[0] * x) * w[1] + v + dropped(noise, training=True)
                return y + model_gate * tf.roll(y, 1, axis=0)

            fit = optimizers.Objective(outputs, lambda z: tf.reduce_sum(z**2) + loss_gate * tf.reduce_sum(z) ** 2)
            return optimizer.minimize(fit, [w, v]) * count, tf.reduce_sum(noise)

        run = wrapped(step)
        found = [[part.numpy() for part in run(x, tf.constant(a), tf.constant(b))] for a, b in gates]
        held = (w, v, count, *dropped.variables, *optimizer.variables)
        return run, [np.asarray(found), *[variable.numpy() for variable in held]]

    _, expected = seen(lambda step: step)
    for executor in EXECUTORS:
        run, found = seen(functools.partial(tf.function, jit_compile=executor.jit_compile))
        assert_same(expected, found, executor.exact)
        assert (run.recordings, run.replays) == (recordings, len(gates) - recordings)


def test_rows_that_begin_to_meet_amid_the_steps_of_fit_are_noticed():
    class Meeting(L.Layer):
        def build(self, shape):
            self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False, name="steps")

        def call(self, x):
            self.steps.assign_add(1.0)
            return x + tf.cast(self.steps > 9.0, "float32") * tf.roll(x, 1, axis=0)

    seen = []
    for compiled in (False, "auto"):
        tf.keras.utils.clear_session()
        streams.set_global_seed(3)
        model = tf.keras.Sequential([tf.keras.Input((5,)), L.Dense(4, "tanh"), Meeting(), L.Dense(3)])
        model.compile(optimizers.GaussNewton(damping=0.1), CROSS_ENTROPY, jit_compile=compiled)
        history = model.fit(X, Y, batch_size=4, epochs=5, verbose=0).history
        seen.append([variable.numpy() for variable in (*model.variables, *model.optimizer.variables)] + [history["loss"]])
    assert_same(*seen)
    step = model._trainer.steps["train_step"]
    assert step.recordings > 1 and step.replays > 20


def test_two_methods_in_one_function_are_two_instructions():
    def make():
        w, v = tf.Variable([1.0, -2.0]), tf.Variable(3.0)
        newton, quasi = optimizers.Newton(), optimizers.LBFGS()

        def step(x):
            first = newton.minimize(lambda: tf.reduce_sum((w - x) ** 4) * v**2, [w])
            return first, quasi.minimize(lambda: (v - first * tf.reduce_sum(w)) ** 2, [v]), w * v

        return step, lambda: [w, v, *newton.variables, *quasi.variables]

    both_ways(make, [(tf.constant([0.5, 0.5]),), (tf.constant([-3.5, 0.5]),)])


def test_the_sweeps_of_a_recorded_step_can_be_printed():
    w, newton = tf.Variable([1.0, -2.0], name="w"), optimizers.Newton(globalization=None)
    descend = tf.function(lambda x: newton.minimize(lambda: tf.reduce_sum((w - x) ** 4), [w]))
    descend(tf.constant([0.5, 0.5]))
    program = descend.program(tf.constant([0.5, 0.5]))
    assert "optimizer_minimize(%0:float32[2], step=newton)" in str(program)
    shown = str(program.records[0].params["step"])
    assert shown.startswith("record:\n") and "\n\nhessian 0:\n" in shown and "read_variable(w:0:float32[2])" in shown


def test_under_a_tape_a_step_runs_eagerly():
    def make():
        w, newton = tf.Variable([1.0, -2.0]), optimizers.Newton()

        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                before = tf.reduce_sum(x**2 * w)
                newton.minimize(lambda: tf.reduce_sum((w - x) ** 4), [w])
            return tape.gradient(before, x)

        return step, lambda: [w, *newton.variables]

    both_ways(make, [(tf.constant([0.5, 0.5]),)], eager=True)


def test_a_method_of_ones_own_is_eager_until_it_names_its_sweeps():
    class Descent(optimizers.SecondOrder):
        def step(self, problem):
            return -0.1 * problem.gradient, []

    class Recorded(Descent):
        sweeps = ("record",)

    for kind in (Descent, Recorded):

        def make(kind=kind):
            w, optimizer = tf.Variable([1.0, -2.0]), kind()

            def step(x):
                return optimizer.minimize(lambda: tf.reduce_sum((w - x) ** 4), [w])

            return step, lambda: [w, *optimizer.variables]

        both_ways(make, [(tf.constant([0.5, 0.5]),)], eager=kind is Descent)


def test_a_step_that_asks_for_a_sweep_it_does_not_name_is_refused():
    class Careful(optimizers.SecondOrder):
        sweeps = ("record",)

        def step(self, problem):
            step = -0.1 * problem.gradient
            return (step if float(problem.loss) > 1.0 or problem.value(step) < 1.0 else step * 0.0), []

    w, optimizer = tf.Variable(3.0), Careful()
    descend = tf.function(lambda: optimizer.minimize(lambda: w**2, [w]))
    for _ in range(5):
        descend()
    before = w.numpy()
    with pytest.raises(CompileError, match="careful asks for the sweep 'value'.*let `sweeps` be None"):
        descend()
    assert w.numpy() == before


def test_a_replayed_step_that_fails_changes_nothing():
    def made(compiled):
        tf.keras.utils.clear_session()
        streams.set_global_seed(3)
        model = network()
        model.compile(optimizers.NewtonCG(), CROSS_ENTROPY, jit_compile=compiled)
        for _ in range(3):
            model.train_on_batch(X, Y)
        return model

    def state(model):
        return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]

    model, untouched = made("auto"), made(False)
    before = state(model)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        model.train_on_batch(X, np.where(Y == 1, 7, Y))
    assert_same(before, state(model))
    assert model.train_on_batch(X, Y) == untouched.train_on_batch(X, Y)


def test_options_that_change_between_steps_count():
    changes = {6: {"globalization": "line_search"}, 9: {"blocks": "variable"}, 12: {"learning_rate": 0.5}}
    seen = []
    for compiled in (False, True):
        w, newton = tf.Variable([1.0, -2.0]), optimizers.Newton(globalization=None)

        def step(x, w=w, newton=newton):
            return newton.minimize(lambda: tf.reduce_sum(tf.sqrt(1.0 + (w - x) ** 2)) + tf.reduce_prod(w) ** 2, [w])

        run = tf.function(step) if compiled else step
        for i in range(15):
            for name, value in changes.get(i, {}).items():
                setattr(newton, name, value)
            run(tf.constant([0.5, 0.7]))
        seen.append([variable.numpy() for variable in (w, *newton.variables)])
    assert_same(*seen)
    assert run.recordings == 3 and run.replays == 12, "a learning rate is looked up in each run"


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("kind", ["Newton", "LBFGS"])
def test_a_step_of_first_order_starts_where_one_of_second_order_ends(kind, jit_compile):
    """Its weights were read before the other step, whose loss takes no tensor from outside: that step was lost in silence."""

    def trained(wrap):
        weights = tf.Variable([3.0, -2.0]), tf.Variable([[0.5]])
        second, first = getattr(tf.keras.optimizers, kind)(learning_rate=0.5), tf.keras.optimizers.SGD(0.1)
        second.build(weights), first.build(weights)

        def step(x):
            before = sum(tf.reduce_sum(weight) for weight in weights)
            second.minimize(lambda: sum(tf.reduce_sum((weight - 1.0) ** 2) for weight in weights), weights)
            first.apply([x, tf.ones([1, 1])], weights)
            return before

        call = wrap(step)
        return [float(call(tf.constant([1.0, 2.0]))) for _ in range(5)], [weight.numpy().tolist() for weight in weights]

    expected = trained(lambda step: step)
    found = trained(lambda step: tf.function(step, jit_compile=jit_compile))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
