"""A small model that an optimizer trains, its state, and what its steps are made of."""

import numpy as np

import minikeras as tf

X = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
Y = X[:, :1] - X[:, 1:2]


def model_of(optimizer, **options):
    uniform = tf.keras.initializers.GlorotUniform
    hidden = tf.keras.layers.Dense(4, "tanh", kernel_initializer=uniform(1), name="hidden")
    head = tf.keras.layers.Dense(1, kernel_initializer=uniform(2), name="head")
    model = tf.keras.Sequential([tf.keras.Input((3,)), hidden, head], name="m")
    model.compile(optimizer, "mse", **options)
    return model


def trained(optimizer, epochs=3, **options):
    model = model_of(optimizer, **options)
    model.fit(X, Y, batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return model


def state(model):
    return [one.numpy() for one in (*model.weights, *model.optimizer.variables)]


def instructions(model):
    (program,) = [replay.program for replay in model._trainer.steps["train_step"]._replays]
    return [record.primitive.name for record in program.records]
