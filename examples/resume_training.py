"""A training loop that is killed in the middle of an epoch and resumes to the same weights, bit for bit."""

import os
import signal
import subprocess
import sys
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf


def train(folder, kill_at=None):
    """Three epochs; all there is to resume is in `checkpoint`. The weights at the end, and the loss of each step taken here."""
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
    losses = {}
    while data.epoch < 3:
        for features, labels in data:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(features, training=True))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            losses[int(optimizer.iterations)] = float(loss)
            manager.save()
            if int(optimizer.iterations) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
    return np.concatenate([weight.ravel() for weight in model.get_weights()]), losses


if __name__ == "__main__":
    if len(sys.argv) > 1:  # the process that is killed
        train(sys.argv[1], kill_at=14)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        expected, losses = train(whole)
        killed = subprocess.run([sys.executable, __file__, broken], check=False).returncode
        saved = tf.train.latest_checkpoint(broken).rpartition("-")[2]
        print(f"the first process ended with {killed}; {saved} steps were saved")
        found, later = train(broken)
    print(f"largest difference after going on: {np.abs(found - expected).max()}")
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    axes.plot(losses.keys(), losses.values(), label="not killed")
    axes.plot(later.keys(), later.values(), "o", label="after the restart")
    axes.axvline(int(saved), color="black", linestyle="--", label="SIGKILL")
    axes.set(xlabel="step", ylabel="loss of the batch")
    axes.legend()
    figure.savefig("resume_training.png")
