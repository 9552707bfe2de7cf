"""Everything to run once on a machine with a GPU: `pytest -m gpu`, training against the CPU, repeatability, leaks, times.

    python tests/gpu_check.py [--device GPU:0] [--out FILE]

Needs numpy, the package and, for its first part, pytest. Prints a short table last and writes JSON if asked; exits 0 only if
all checks pass. With `--device CPU:0` it runs everywhere, which is how its own logic is tested.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

import minikeras as tf

ROOT = pathlib.Path(__file__).resolve().parent.parent


def make_model(batch_normalization: bool) -> tf.keras.Model:
    """A small classifier with weights from a fixed seed, on the current device."""
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    normalization = [layers.BatchNormalization()] if batch_normalization else []
    return tf.keras.Sequential(
        [tf.keras.Input((20,)), layers.Dense(32, "tanh"), *normalization, layers.Dropout(0.2), layers.Dense(5)]
    )


def trained_weights(device: str, batch_normalization: bool) -> list[np.ndarray]:
    """The weights after three epochs of Adam on made-up data."""
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((256, 20)).astype("float32"), generator.integers(0, 5, 256)
    with tf.device(device):
        model = make_model(batch_normalization)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
        model.fit(x, y, batch_size=32, epochs=3, verbose=0)
        return model.get_weights()


def training_agrees_with_the_cpu(device: str) -> dict[str, object]:
    """Largest difference of any weight after training, beside the rounding that 24 steps may add up to."""
    worst = 0.0
    for batch_normalization in (False, True):
        pairs = zip(trained_weights("CPU:0", batch_normalization), trained_weights(device, batch_normalization), strict=True)
        worst = max(worst, *(float(np.abs(cpu - other).max()) for cpu, other in pairs))
    return {"largest difference": worst, "passed": worst < 2e-3}


def training_repeats_bit_for_bit(device: str) -> dict[str, object]:
    """The same run twice."""
    first, second = (trained_weights(device, True) for _ in range(2))
    return {"passed": all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))}


def memory_stays_constant(device: str) -> dict[str, object]:
    """Bytes of CuPy's pool before and after 1,000 gradients; not applicable on the CPU."""
    with tf.device(device):
        weights, x = tf.Variable(tf.random.normal([64, 64])), tf.random.normal([32, 64])

        def step() -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.tanh(x @ weights) ** 2)
            tape.gradient(loss, weights)

        for _ in range(20):
            step()
        before = pool_bytes(device)
        for _ in range(1000):
            step()
    return {"growth in bytes": pool_bytes(device) - before, "passed": pool_bytes(device) == before}


def pool_bytes(device: str) -> int:
    """Bytes that CuPy's memory pool has taken from the device."""
    if device.startswith("CPU"):
        return 0
    import cupy

    return int(cupy.get_default_memory_pool().total_bytes())


def step_times(device: str) -> dict[str, object]:
    """Milliseconds of an eager Adam step at three sizes, median of 20, each waited for."""
    found: dict[str, object] = {"passed": True}
    for name, sizes, rows in (
        ("small", (64, 64, 64, 10), 32),
        ("medium", (784, 256, 128, 10), 128),
        ("large", (784, 1024, 1024, 10), 256),
    ):
        with tf.device(device):
            x, y = tf.random.normal([rows, sizes[0]]), tf.random.uniform([rows], maxval=10, dtype=tf.int32)
            model = tf.keras.Sequential([tf.keras.Input((sizes[0],)), *(tf.keras.layers.Dense(n, "relu") for n in sizes[1:-1])])
            model.add(tf.keras.layers.Dense(sizes[-1]))
            optimizer, loss_of = tf.keras.optimizers.Adam(1e-3), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            times = []
            for _ in range(25):
                start = time.perf_counter()
                with tf.GradientTape() as tape:
                    loss = loss_of(y, model(x, training=True))
                optimizer.apply_gradients(
                    zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
                )
                float(loss)  # waits for the device
                times.append(time.perf_counter() - start)
        found[name] = round(1e3 * float(np.median(times[5:])), 3)
    return found


def marked_tests_pass(device: str) -> dict[str, object]:
    """`pytest -m gpu`; running none of them counts as a failure."""
    if device.startswith("CPU"):
        return {"passed": True, "skipped": "only on a GPU"}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-o", "addopts=", "tests/ops"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return {"passed": run.returncode == 0, "last line": (run.stdout.strip().splitlines() or ["no output"])[-1]}


CHECKS = (marked_tests_pass, training_agrees_with_the_cpu, training_repeats_bit_for_bit, memory_stays_constant, step_times)


def main() -> int:
    """Run all checks and say how they went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="GPU:0")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    report: dict[str, object] = {"environment": tf.config.device_report()}
    for check in CHECKS:
        try:
            report[check.__name__] = check(options.device)
        except Exception as error:  # one broken check must not hide the others
            report[check.__name__] = {"passed": False, "error": f"{type(error).__name__}: {error}"}
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    for name, outcome in report.items():
        print(f"{name:32} {outcome}")
    return 0 if all(report[check.__name__]["passed"] for check in CHECKS) else 1


if __name__ == "__main__":
    sys.exit(main())
