"""Data parallelism: each rank computes on its rows of every batch, and all take the same step.

`python examples/data_parallel.py` is one process; `python -m minikeras.distribute.run -n 2 examples/data_parallel.py` starts
two, with the same accuracy.
"""

import numpy as np

import minikeras as tf

(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = (np.asarray(one / 16.0, "float32") for one in (x, x_test))

tf.keras.utils.set_random_seed(1)
strategy = tf.keras.distribution.DataParallel(virtual_shards=4)  # the same bits for 1, 2 and 4 ranks
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(64, "relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])

backup = tf.keras.callbacks.BackupAndRestore("data_parallel_backup")  # a job that is started again goes on from here
history = model.fit(x, y, batch_size=96, epochs=10, verbose=0, callbacks=[backup])  # 96 rows of all ranks together
_, accuracy = model.evaluate(x_test, y_test, verbose=0)  # all ranks call it
if tf.distribute.rank() == 0:
    print(f"ranks: {tf.distribute.size()}; loss: {history.history['loss'][-1]:.4f}; test accuracy: {accuracy:.4f}")
