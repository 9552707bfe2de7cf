"""A training loop that is killed in the middle of an epoch and goes on to the same weights, bit for bit."""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np

import minikeras as tf


def train(folder, kill_at=None):
    """Three epochs; all there is to resume is in `checkpoint`."""
    tf.random.set_seed(1)
    (x, y), _ = tf.keras.datasets.wine.load_data()
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype("float32")

    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(16, activation="relu"), layers.Dropout(0.3), layers.Dense(3)])
    optimizer = tf.keras.optimizers.Adam(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    data = tf.data.Resumable(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(16))

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, data=data)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    manager.restore_or_initialize()
    while data.epoch < 3:
        for features, labels in data:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(features, training=True))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            manager.save()
            if int(optimizer.iterations) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
    return np.concatenate([weight.ravel() for weight in model.get_weights()])


if __name__ == "__main__":
    if len(sys.argv) > 1:  # the process that is killed
        train(sys.argv[1], kill_at=14)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        expected = train(whole)
        killed = subprocess.run([sys.executable, __file__, broken], check=False).returncode
        saved = tf.train.latest_checkpoint(broken).rpartition("-")[2]
        print(f"the first process ended with {killed}; {saved} steps were saved")
        print(f"largest difference after going on: {np.abs(train(broken) - expected).max()}")
