"""What a model's steps read in Python: compiled `fit` sees every change that eager `fit` sees, and ordinary scripts replay."""

import collections
import copy
import sys
import types

import numpy as np
import pytest

import minikeras as tf
from minikeras.nn_ops import streams

L, keras = tf.keras.layers, tf.keras
RANDOM = np.random.default_rng(2)
X, Y = RANDOM.normal(size=(24, 3)).astype("f"), RANDOM.normal(size=(24, 2)).astype("f")

strength, factors = 1.0, [1.0]


class Scale(L.Layer):
    """A layer that holds numbers in every way."""

    def __init__(self):
        super().__init__()
        self.k = 1.0
        self.scales, self.d, self.arr, self.chosen = [1.0], {"k": 1.0}, np.ones(2, "f"), {1.0}
        self.queue, self._private, self.inner = collections.deque([1.0]), [1.0], [[1.0]]
        self.box = types.SimpleNamespace(k=1.0, deep=types.SimpleNamespace(k=1.0), items=[1.0])
        self.boxes = [types.SimpleNamespace(k=1.0)]
        self.activation = Power()

    def call(self, x):
        numbers = self.k * self.scales[0] * self.d["k"] * sum(self.chosen) * self.queue[0] * self._private[0]
        boxes = self.box.k * self.box.deep.k * self.box.items[0] * self.boxes[0].k * self.inner[0][0]
        return self.activation(x * numbers * boxes * self.arr)


class Power:
    """A plain object that is an activation."""

    def __init__(self):
        self.p = 1.0

    def __call__(self, x):
        return x * self.p


class Distance(keras.losses.Loss):
    def __init__(self):
        super().__init__()
        self.k, self.weights = 1.0, [1.0]

    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), -1) * self.k * self.weights[0] * strength * factors[0]


class Plain:
    """A loss that derives from nothing."""

    def __init__(self):
        self.k = 1.0

    def __call__(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred)) * self.k


class Penalty(keras.regularizers.Regularizer):
    def __init__(self):
        self.factor = 0.01

    def __call__(self, x):
        return self.factor * tf.reduce_sum(tf.abs(x))


class Limit(keras.constraints.Constraint):
    def __init__(self):
        self.most = 1.0

    def __call__(self, w):
        return tf.clip_by_value(w, -self.most, self.most)


class Error(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="error")
        self.k, self.total = 1.0, self.add_variable((), name="total")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(tf.abs(y_true - y_pred)) * self.k)

    def result(self):
        return self.total.read_value()


def made(jit_compile, loss=None, optimizer="sgd"):
    keras.utils.clear_session()
    streams.set_global_seed(5)
    regular = L.Dense(4, kernel_regularizer=keras.regularizers.L1L2(0.01, 0.01), activity_regularizer="l2")
    own = L.Dense(2, kernel_regularizer=Penalty(), kernel_constraint=Limit())
    model = keras.Sequential([keras.Input((3,)), regular, L.Dropout(0.2), own, Scale()], name="net")
    model.compile(optimizer, loss or Distance(), metrics=[Error()], jit_compile=jit_compile)
    return model


def state(model):
    return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]


class At(keras.callbacks.Callback):
    """Does something before the fourth batch."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 3:
            self.change(self.model)


def set_item(container, key, value):
    container[key] = value


def fill(array, value):
    array[:] = value


CHANGES = {
    "an attribute of a layer": lambda m: setattr(m.layers[-1], "k", 3.0),
    "an element of its list": lambda m: set_item(m.layers[-1].scales, 0, 3.0),
    "an element of its private list": lambda m: set_item(m.layers[-1]._private, 0, 3.0),
    "an element of a list in its list": lambda m: set_item(m.layers[-1].inner[0], 0, 3.0),
    "an entry of its dict": lambda m: set_item(m.layers[-1].d, "k", 3.0),
    "its array": lambda m: fill(m.layers[-1].arr, 3.0),
    "its set": lambda m: m.layers[-1].chosen.add(2.0),
    "its deque": lambda m: m.layers[-1].queue.appendleft(3.0),
    "an attribute of a plain object that it holds": lambda m: setattr(m.layers[-1].box, "k", 3.0),
    "an attribute of an object in that": lambda m: setattr(m.layers[-1].box.deep, "k", 3.0),
    "a list in that": lambda m: set_item(m.layers[-1].box.items, 0, 3.0),
    "an object in its list": lambda m: setattr(m.layers[-1].boxes[0], "k", 3.0),
    "an attribute of its activation": lambda m: setattr(m.layers[-1].activation, "p", 3.0),
    "a function in place of its activation": lambda m: setattr(m.layers[-1], "activation", lambda x: x * 3.0),
    "an attribute of the loss": lambda m: setattr(m.loss, "k", 10.0),
    "an element of the loss's list": lambda m: set_item(m.loss.weights, 0, 10.0),
    "the reduction of the loss": lambda m: setattr(m.loss, "reduction", "sum"),
    "a global that the loss reads": lambda m: setattr(sys.modules[__name__], "strength", 10.0),
    "an element of a global list": lambda m: set_item(factors, 0, 10.0),
    "an attribute of the metric": lambda m: setattr(m.metrics[-1], "k", 3.0),
    "a regularizer": lambda m: setattr(m.layers[0].kernel_regularizer, "l2", 0.5),
    "an own regularizer": lambda m: setattr(m.layers[2].kernel_regularizer, "factor", 0.5),
    "an own constraint": lambda m: setattr(m.layers[2].kernel_constraint, "most", 0.1),
    "an activity regularizer": lambda m: setattr(m.layers[0].activity_regularizer, "l2", 0.5),
    "a rate": lambda m: setattr(m.layers[1], "rate", 0.5),
    "a frozen layer": lambda m: setattr(m.layers[0], "trainable", False),
    "a frozen weight": lambda m: setattr(m.layers[0].kernel, "trainable", False),
    "the learning rate": lambda m: setattr(m.optimizer, "learning_rate", 0.5),
    "an option of the optimizer": lambda m: setattr(m.optimizer, "weight_decay", 0.5),
    "its momentum": lambda m: setattr(m.optimizer, "clipvalue", 0.001),
    "a built-in activation": lambda m: setattr(m.layers[0], "activation", tf.nn.relu),
    "a layer's method": lambda m: setattr(m.layers[-1], "call", lambda x: x * 3.0),
}


@pytest.mark.parametrize(("change", "loss"), [*((name, Distance) for name in CHANGES), ("an attribute of the loss", Plain)])
def test_a_change_between_two_steps_counts_from_the_next_one_on(change, loss, monkeypatch):
    models = [made(False, loss()), made("auto", loss())]
    for model in models:
        monkeypatch.setattr(sys.modules[__name__], "strength", 1.0)
        factors[0] = 1.0
        history = model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=[At(CHANGES[change])])
        model.kept = history.history
    factors[0] = 1.0
    assert models[0].kept == models[1].kept
    for one, other in zip(*map(state, models), strict=True):
        np.testing.assert_array_equal(one, other)
    step = models[1]._trainer.steps["train_step"]
    assert step.replays >= 7, step


@pytest.mark.parametrize(("kind", "sizes"), [(L.Dense, (3,)), (L.Conv1D, (3, 2))])
def test_a_new_activation_counts_in_models_that_hold_nothing_of_the_users(kind, sizes):
    losses = []
    for jit_compile in ("auto", False):
        tf.random.set_seed(1)
        model = keras.Sequential([keras.Input((4, 2)), kind(*sizes, activation="relu"), L.Flatten(), L.Dense(1)])
        model.compile("sgd", "mse", jit_compile=jit_compile)
        x, y = np.ones((2, 4, 2), "f"), np.zeros((2, 1), "f")
        before = [model.train_on_batch(x, y) for _ in range(4)]
        model.layers[0].activation = tf.nn.tanh
        losses.append([*before, *(model.train_on_batch(x, y) for _ in range(3))])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("how", ["evaluate", "test_on_batch"])
def test_evaluation_sees_changes_too(how):
    model, plain = made("auto"), made(False)

    def tested(one):
        return one.evaluate(X, Y, batch_size=8, verbose=0) if how == "evaluate" else one.test_on_batch(X, Y)

    for value in (1.0, 2.0, 3.0):
        for one in (model, plain):
            one.layers[-1].boxes[0].k = one.loss.k = value
        assert tested(model) == tested(plain) == tested(model)


class Counting(keras.Sequential):
    """Applies gradients in every second step."""

    def __init__(self, layers):
        super().__init__(layers)
        self.n = 0
        self.applied = 0

    def train_step(self, data):
        x, y = data
        self.n += 1
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        if self.n % 2 == 0:
            self.applied += 1
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss}


def test_a_step_that_counts_runs_once_for_each_batch_and_says_why(caplog):
    model = Counting([keras.Input((3,)), L.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=4, epochs=3, verbose=0)
    assert (model.n, model.applied, int(model.optimizer.iterations)) == (18, 9, 9)
    (told,) = [record.getMessage() for record in caplog.records]
    assert (
        "train_step runs eagerly: it changes attribute 'n' of Counting 'counting'; keep in a tf.Variable" in told
        and "tf.Variable" in told
    )


@pytest.mark.parametrize(
    "join", [lambda x: L.add([x, x]), lambda x: L.ReLU()(L.Concatenate()([x, x])), lambda x: L.Flatten()(x)]
)
def test_a_layer_without_state_may_be_made_in_each_call(join, caplog):
    class Joined(L.Layer):
        def call(self, x):
            return join(x)

    model = keras.Sequential([keras.Input((3,)), Joined(), L.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=4, epochs=3, verbose=0)
    assert not caplog.records  # "runs eagerly: it changes attribute '_layer_place' of Joined 'joined'"


@pytest.mark.parametrize("overridden", [False, True])
def test_a_model_whose_outputs_carry_masks_predicts_by_its_program(overridden, caplog):
    class Own(keras.Model):
        def predict_step(self, data):
            return self(data, training=False)

    words = keras.Input((4,))
    y = L.Embedding(5, 3, mask_zero=True)(words)
    model = (Own if overridden else keras.Model)(words, [y, {"z": L.Dense(2)(y)}])
    ids = np.array([[1, 2, 0, 0], [4, 3, 2, 1]])
    assert np.array_equal(model.predict_step(tf.constant(ids))[0]._keras_mask, ids > 0)
    for found in (model.predict(ids, verbose=0), model.predict_on_batch(ids)):
        assert np.array_equal(found[0], model(ids)[0]) and found[1]["z"].shape == (2, 4, 2)
    assert not caplog.records  # "predict_step runs eagerly: the function returns a tensor with a mask"


def test_two_models_trained_in_turn_replay_whatever_is_set_that_no_step_reads():
    models = [made("auto"), made("auto")]
    for i in range(20):
        for model, other in (models, models[::-1]):
            model.train_on_batch(X, Y)
            held = other.collect_contents()
            model.note, model.layers[0].remark, model.loss.comment, model.optimizer.label = [i], (i, "seen"), [i], {"i": i}
            assert other.collect_contents() is held  # a change of one model is none of the other
    for model in models:
        step = model._trainer.steps["train_step"]
        assert (step.recordings, step.replays) == (1, 19), step


def test_a_change_in_one_model_is_none_in_another():
    one, other = made("auto"), made("auto")
    for i in range(10):
        one.layers[-1].k = float(i % 2)
        one.train_on_batch(X, Y)
        other.train_on_batch(X, Y)
    assert other._trainer.steps["train_step"].recordings == 1


def test_a_layer_that_is_added_to_a_list_between_steps_is_trained():
    class Grown(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [L.Dense(3)]
            self.head = L.Dense(2)

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    def trained(jit_compile):
        keras.utils.clear_session()
        streams.set_global_seed(5)
        model = Grown()
        model.compile("sgd", "mse", jit_compile=jit_compile)
        model.fit(X, Y, batch_size=8, verbose=0, shuffle=False)
        further = L.Dense(3)
        further.build((None, 3))
        model.blocks.append(further)
        model.compile("sgd", "mse", jit_compile=jit_compile)
        model.fit(X, Y, batch_size=8, verbose=0, shuffle=False)
        return state(model)

    for one, other in zip(trained(False), trained("auto"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_tf_function_of_ones_own_sees_that_a_layer_is_frozen():
    model = keras.Sequential([keras.Input((3,)), L.Dense(4), L.Dense(2)])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    x, y = tf.constant(X), tf.constant(Y)
    step(x, y), step(x, y)
    model.layers[0].trainable = False
    before = model.layers[0].kernel.numpy()
    step(x, y), step(x, y)
    np.testing.assert_array_equal(before, model.layers[0].kernel.numpy())
    assert (step.recordings, step.replays) == (2, 2)


# Ordinary scripts replay -----------------------------------------------------------------------------------------------------


def tracked():
    """A train_step with trackers, as in Keras's guide."""
    loss_tracker, mae = keras.metrics.Mean(name="loss"), keras.metrics.MeanAbsoluteError(name="mae")

    class Custom(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = keras.losses.mean_squared_error(y, y_pred)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            loss_tracker.update_state(loss)
            mae.update_state(y, y_pred)
            return {"loss": loss_tracker.result(), "mae": mae.result()}

        @property
        def metrics(self):
            return [loss_tracker, mae]

    inputs = keras.Input((3,))
    model = Custom(inputs, L.Dense(2)(inputs))
    model.compile("adam")
    return model, Y


def generic():
    class Custom(keras.Model):
        def train_step(self, data):
            x, y, sample_weight = data if len(data) == 3 else (*data, None)
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)
            self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred, sample_weight=sample_weight)
            return {m.name: m.result() for m in self.metrics}

    inputs = keras.Input((3,))
    model = Custom(inputs, L.Dense(2)(L.Dense(8, activation="relu")(inputs)))
    model.compile("adam", "mse", metrics=["mae"])
    return model, Y


def autoencoder():
    class Sampling(L.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.seed_generator = keras.random.SeedGenerator(7) if hasattr(keras, "random") else None

        def call(self, inputs):
            mean, log_var = inputs
            return mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))

    class Encoder(L.Layer):
        def __init__(self, units, latent):
            super().__init__()
            self.hidden, self.mean, self.log_var, self.sampling = (
                L.Dense(units, "relu"),
                L.Dense(latent),
                L.Dense(latent),
                Sampling(),
            )

        def call(self, x):
            h = self.hidden(x)
            mean, log_var = self.mean(h), self.log_var(h)
            return mean, log_var, self.sampling((mean, log_var))

    class Vae(keras.Model):
        def __init__(self, beta=0.5, **options):
            super().__init__(**options)
            self.encoder, self.decoder = Encoder(8, 2), keras.Sequential([L.Dense(8, "relu"), L.Dense(3)])
            self.beta = beta
            self.total, self.kl = keras.metrics.Mean(name="total"), keras.metrics.Mean(name="kl")

        @property
        def metrics(self):
            return [self.total, self.kl]

        def call(self, x):
            return self.decoder(self.encoder(x)[2])

        def train_step(self, data):
            x = data[0] if isinstance(data, tuple) else data
            with tf.GradientTape() as tape:
                mean, log_var, z = self.encoder(x)
                error = tf.reduce_mean(tf.reduce_sum((x - self.decoder(z)) ** 2, -1))
                kl = tf.reduce_mean(tf.reduce_sum(-0.5 * (1 + log_var - mean**2 - tf.exp(log_var)), -1))
                loss = error + self.beta * kl
            self.optimizer.apply_gradients(
                zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights, strict=True)
            )
            self.total.update_state(loss)
            self.kl.update_state(kl)
            return {metric.name: metric.result() for metric in self.metrics}

    model = Vae()
    model.compile(keras.optimizers.Adam(0.01))
    return model, X


def adversarial():
    class Gan(keras.Model):
        def __init__(self, discriminator, generator, latent_dim):
            super().__init__()
            self.discriminator, self.generator, self.latent_dim = discriminator, generator, latent_dim
            self.d_loss_metric, self.g_loss_metric = keras.metrics.Mean(name="d_loss"), keras.metrics.Mean(name="g_loss")

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

        @property
        def metrics(self):
            return [self.d_loss_metric, self.g_loss_metric]

        def train_step(self, data):
            real = data[0] if isinstance(data, tuple) else data
            rows = tf.shape(real)[0]
            noise = tf.random.normal((rows, self.latent_dim))
            mixed = tf.concat([self.generator(noise), real], 0)
            labels = tf.concat([tf.ones((rows, 1)), tf.zeros((rows, 1))], 0)
            with tf.GradientTape() as tape:
                d_loss = self.loss_fn(labels, self.discriminator(mixed))
            weights = self.discriminator.trainable_weights
            self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights, strict=True))
            with tf.GradientTape() as tape:
                g_loss = self.loss_fn(tf.zeros((rows, 1)), self.discriminator(self.generator(noise)))
            weights = self.generator.trainable_weights
            self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights, strict=True))
            self.d_loss_metric.update_state(d_loss)
            self.g_loss_metric.update_state(g_loss)
            return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}

    model = Gan(
        keras.Sequential([keras.Input((3,)), L.Dense(4, "relu"), L.Dense(1)]),
        keras.Sequential([keras.Input((2,)), L.Dense(4, "relu"), L.Dense(3)]),
        2,
    )
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(d_optimizer=keras.optimizers.Adam(0.01), g_optimizer=keras.optimizers.Adam(0.01), loss_fn=loss)
    return model, X


def own_layers():
    class Linear(L.Layer):
        def __init__(self, units=2, **options):
            super().__init__(**options)
            self.units, self.calls = units, ()

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True)
            self.b = self.add_weight(shape=(self.units,), initializer="zeros")

        def call(self, x):
            return tf.matmul(x, self.w) + self.b

    class Block(L.Layer):
        def __init__(self):
            super().__init__()
            self.parts = [Linear(8), L.LayerNormalization(), L.Dropout(0.1)]
            self.config = {"residual": True, "rate": 0.5}

        def call(self, x, training=None):
            h = x
            for part in self.parts:
                h = part(h, training=training) if isinstance(part, L.Dropout) else part(h)
            self.add_loss(0.01 * tf.reduce_mean(h**2))
            return h * self.config["rate"] + x if self.config["residual"] and x.shape[-1] == h.shape[-1] else h

    model = keras.Sequential([Linear(8), Block(), Block(), Linear(2)])
    model.compile("adam", "mse", metrics=["mae"])
    return model, Y


def closures():
    alpha, weights = 0.3, {"a": 1.0, "b": [0.5, 0.25]}

    def loss(y_true, y_pred):
        def term(p):
            return tf.reduce_mean(tf.abs(y_true - y_pred) ** p, -1)

        return alpha * term(1.0) + weights["a"] * term(2.0) + sum(w * term(2.0) for w in weights["b"])

    def accuracy(y_true, y_pred):
        return tf.cast(tf.abs(y_true - y_pred) < alpha, "float32")

    inputs = keras.Input((3,))
    x = L.Dense(4, activation=lambda t: tf.nn.relu(t) * weights["a"])(inputs) * alpha
    model = keras.Model(inputs, L.Dense(2)(x))
    model.compile(keras.optimizers.SGD(lambda: 0.01), loss, metrics=[accuracy])
    return model, Y


def subclassed():
    class Net(keras.Model):
        def __init__(self, widths=(8, 8), dropout=0.1):
            super().__init__()
            self.hidden = [L.Dense(width, "relu") for width in widths]
            self.drop, self.normalize, self.head = L.Dropout(dropout), L.BatchNormalization(), L.Dense(2)
            self.by_name = {"head": self.head}
            self.temperature = 2.0

        def call(self, x, training=False):
            for layer in self.hidden:
                x = layer(x)
            if training:
                x = self.drop(x, training=training)
            return self.by_name["head"](self.normalize(x, training=training)) / self.temperature

    model = Net()
    model.compile("adam", "mse", metrics=["mae", keras.metrics.RootMeanSquaredError()])
    return model, Y


SCRIPTS = {one.__name__: one for one in (tracked, generic, autoencoder, adversarial, own_layers, closures, subclassed)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_ordinary_scripts_replay(script, caplog):
    model, y = SCRIPTS[script]()
    model.fit(X, y, batch_size=8, epochs=6, verbose=0)
    step = model._trainer.steps["train_step"]
    assert step.recordings == 1 and step.replays >= 15 and not caplog.records, (step, caplog.text)


def test_an_attribute_is_no_module_of_its_name(monkeypatch):
    """With Keras imported beside, `tf.keras.losses` is none of its own, which are too many to compare."""
    other = types.ModuleType("keras")
    other.losses = list(range(2000))
    monkeypatch.setitem(sys.modules, "keras", other)
    function = tf.function(lambda x: keras.losses.mse(x, x) + tf.keras.losses.mse(x, x))
    for _ in range(3):
        function(tf.ones(2))
    assert function.recordings == 1 and function.replays == 2, function


def test_loops_of_ones_own_replay():
    """A trainer, a plain object that counts and logs between its steps."""

    class Trainer:
        def __init__(self, model, rate):
            self.model, self.optimizer = model, keras.optimizers.Adam(rate)
            self.loss_fn, self.history, self.steps, self.clip = keras.losses.MeanSquaredError(), [], 0, 1.0
            self.metric = keras.metrics.Mean()

        @tf.function
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = self.loss_fn(y, self.model(x, training=True)) + sum(self.model.losses)
            gradients = [tf.clip_by_norm(g, self.clip) for g in tape.gradient(loss, self.model.trainable_variables)]
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
            self.metric.update_state(loss)
            return loss

        def train(self, count):
            for _ in range(count):
                self.history.append(float(self.step(tf.constant(X), tf.constant(Y))))
                self.steps += 1

    model = keras.Sequential([keras.Input((3,)), L.Dense(4, "relu", kernel_regularizer="l2"), L.Dense(2)])
    trainer = Trainer(model, 0.01)
    trainer.train(10)
    assert (Trainer.step.recordings, Trainer.step.replays) == (1, 8)
    trainer.clip = 0.0
    before = [v.numpy() for v in model.variables]
    trainer.optimizer.learning_rate = 0.0
    trainer.train(2)
    assert all(np.array_equal(v.numpy(), one) for v, one in zip(model.variables, before, strict=True))


def test_a_copied_model_has_facts_of_its_own():
    model = made("auto")
    model.train_on_batch(X, Y)
    other = copy.deepcopy(model)
    other.layers[-1].k = 3.0
    for _ in range(3):
        model.train_on_batch(X, Y), other.train_on_batch(X, Y)
    assert model._trainer.steps["train_step"].recordings == 1


def test_batches_of_two_sizes_and_a_new_learning_rate_each_epoch_need_two_programs(caplog):
    class Schedule(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            pass

        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.1 / (epoch + 1)

    model = keras.Sequential([L.Dense(2)])
    model.compile(keras.optimizers.RMSprop(0.1), "mse")
    model.fit(X, Y, batch_size=9, epochs=15, verbose=0, callbacks=[Schedule()])
    assert "goes on eagerly" not in caplog.text
