"""Data parallelism: each rank computes gradients on its rows, and all take the step of their mean.

python examples/data_parallel.py                                      one process
python -m minikeras.distribute.run -n 2 examples/data_parallel.py     two, with the same accuracy
"""

import numpy as np

import minikeras as tf

EPOCHS, BATCH = 10, 96  # of all ranks together

(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = (np.asarray(one / 16.0, "float32") for one in (x, x_test))

tf.distribute.initialize()
tf.keras.utils.set_random_seed(1)  # all ranks draw the same first weights and the same orders
model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam(3e-3)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
tf.distribute.broadcast_variables(model.variables)


@tf.function
def step(x, y):
    with tf.distribute.DistributedGradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return tf.distribute.all_reduce(loss, "mean")


generator = np.random.default_rng(1)
mine = tf.distribute.rows_of(BATCH)
for _ in range(EPOCHS):
    order = generator.permutation(len(x))
    for start in range(0, len(x) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH][mine.start : mine.stop]
        loss = step(tf.constant(x[rows]), tf.constant(y[rows]))

if tf.distribute.rank() == 0:
    accuracy = (model.predict(x_test, verbose=0).argmax(axis=1) == y_test).mean()
    print(f"ranks: {tf.distribute.size()}; loss: {float(loss):.4f}; test accuracy: {accuracy:.4f}")
