"""Everything to run once on a machine with a GPU: its own tests, five models against the CPU, repeatability, leaks, times.

    PYTHONPATH=. python tests/gpu_check.py [--device GPU:0] [--out FILE] [CHECK ...]

Needs CuPy and what the package needs, for its last check also pytest, hypothesis and SciPy; PyTorch and JAX are timed beside it
if they see a GPU. Several checks have a process each, since an error on the device ends all that follows in a process; what was
found before it is kept. Writes JSON as it goes on, prints a short table last, ends within 10 minutes, exits 0 only if all
checks pass. With `--device CPU:0` it runs everywhere, which is how its own logic is tested.
"""

import argparse
import functools
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import gpu_peers
import numpy as np

import minikeras as tf
from minikeras.compiler.executors.cuda_graph import graphs
from minikeras.compiler.executors.cuda_graph.device import device_of
from minikeras.data.table import RowBatches, RowTable

ROOT = pathlib.Path(__file__).resolve().parent.parent
START, TIME, MOST = time.perf_counter(), 540.0, 150.0
"""When the script began, and how many seconds all of it may take, and a check in a process of its own."""
L, Report = tf.keras.layers, dict[str, Any]
LIMITS = {"float32": 1e-5, "mixed_bfloat16": 0.1, "mixed_float16": 1e-2}
"""Largest difference from float64, all gradients of a model together, relative to their size."""
SIZES = {"small": (64, 64, 10), "medium": (784, 256, 128, 10), "large": (784, 1024, 1024, 10)}
RUNS = 1000
"""Of which none may take memory."""
ROWS = {"small": 32, "medium": 128, "large": 1024}
KINDS: dict[str, Report] = {"eager": {}, "compiled": {"jit_compile": True}}
"""Of steps, with the options of `tf.function`."""
IMAGES, EPOCHS = 60_000, 6
"""Of a data set of the size of Fashion-MNIST, and of each run over it."""
OUTPUT = 30
"""Lines that are kept of what a check printed if it failed."""


def collected(measures: Mapping[str, Callable[[], Any]]) -> Report:
    """What each gives, or its error: one that fails hides no other. Printed too, should the process end before its report."""
    found: Report = {}
    for name, measure in measures.items():
        try:
            found[name] = measure()
        except Exception as error:
            traceback.print_exc()
            found[name] = described(error)
        print(f"{name}: {found[name]}", flush=True)
    return found


def described(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {str(error)[:300]}"


# Five models ---------------------------------------------------------------------------------------------------------------


def dense() -> Any:
    """Dense layers and batch normalization."""
    inner = [L.Dense(32, "tanh"), L.BatchNormalization(), L.Dense(16, "gelu"), L.LayerNormalization()]
    return tf.keras.Sequential([tf.keras.Input((20,)), *inner, L.Dense(5)]), numbers(31, 20)


def convolution() -> Any:
    """Convolutions and pooling."""
    inner = [L.Conv2D(8, 3, padding="same", activation="relu"), L.MaxPooling2D(), L.DepthwiseConv2D(3), L.AveragePooling2D()]
    return tf.keras.Sequential([tf.keras.Input((12, 12, 3)), *inner, L.Flatten(), L.Dense(5)]), numbers(9, 12, 12, 3)


def attention() -> Any:
    """Attention with a residual connection."""
    x = tf.keras.Input((7, 12))
    y = L.LayerNormalization()(x + L.MultiHeadAttention(3, 4)(x, x))
    return tf.keras.Model(x, L.Dense(5)(L.GlobalAveragePooling1D()(y))), numbers(9, 7, 12)


def embedding() -> Any:
    """Rows that are looked up, many of them several times: their gradients add up."""
    inner = [L.Embedding(11, 8), L.Conv1D(6, 3, activation="tanh"), L.GlobalMaxPooling1D()]
    return tf.keras.Sequential([tf.keras.Input((16,), dtype="int32"), *inner, L.Dense(5)]), draws().integers(0, 11, (33, 16))


def branches() -> Any:
    """Several ways through a graph."""
    x = tf.keras.Input((20,))
    ways = [L.Dense(12, one)(x) for one in ("sigmoid", "softplus", "elu")]
    merged = L.Concatenate()([L.Multiply()(ways[:2]), L.Maximum()(ways[1:])])
    return tf.keras.Model(x, L.Dense(5)(L.Softmax()(merged))), numbers(31, 20)


MODELS = (dense, convolution, attention, embedding, branches)


def draws() -> np.random.Generator:
    """The same numbers at each call."""
    return np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    """Standard normal numbers in float64."""
    return draws().standard_normal(shape)


def labels(rows: int) -> np.ndarray:
    """Five classes."""
    return draws().integers(0, 5, rows)


def cross_entropy() -> Any:
    """The loss of all models here."""
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def derivatives(make: Callable[[], Any], device: str, policy: str, weights: Any = None) -> tuple[Any, list[np.ndarray]]:
    """The weights of a model, and its outputs, loss and gradients for one batch."""
    tf.keras.mixed_precision.set_dtype_policy(policy)
    try:
        with tf.device(device):
            poison(device)
            tf.random.set_seed(3)
            model, x = make()
            if weights is not None:
                model.set_weights([one.astype(old.dtype) for one, old in zip(weights, model.get_weights(), strict=True)])
            kept = model.get_weights()
            x = tf.constant(x, None if x.dtype.kind == "i" else "float64" if policy == "float64" else "float32")
            with tf.GradientTape() as tape:
                logits = tf.cast(model(x, training=True), "float64" if policy == "float64" else "float32")
                loss = cross_entropy()(labels(len(x)), logits)
            gradients = [tf.convert_to_tensor(one).numpy().ravel() for one in tape.gradient(loss, model.trainable_variables)]
            return kept, [logits.numpy(), loss.numpy(), np.concatenate(gradients)]
    finally:
        tf.keras.mixed_precision.set_dtype_policy(None)


def poison(device: str) -> None:
    """Fill memory that will be given out again with NaN, so that what reads before it writes is seen."""
    if device.startswith("GPU"):
        import cupy

        for size in (1 << 9, 1 << 12, 1 << 16, 1 << 20):
            [cupy.full(size // 4, np.nan, "float32") for _ in range(16)]


def models_agree_with_float64_on_the_cpu(device: str) -> Report:
    """Outputs, losses and gradients: the largest relative difference of each model and precision."""
    expected = functools.cache(lambda make: derivatives(make, "CPU:0", "float64"))

    def difference(make: Callable[[], Any], policy: str) -> float:
        weights, arrays = expected(make)
        return max(map(distance, derivatives(make, device, policy, weights)[1], arrays))

    pairs = {f"{make.__name__} {policy}": (make, policy) for make in MODELS for policy in LIMITS}
    found = collected({name: functools.partial(difference, *pair) for name, pair in pairs.items()})
    return found | {"passed": all(is_less(found[name], LIMITS[policy]) for name, (_, policy) in pairs.items())}


def is_less(found: Any, limit: float) -> bool:
    """Whether a number was found, and is less."""
    return isinstance(found, float) and found < limit


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The length of the difference, relative to that of the expected; infinity for NaN."""
    difference = np.linalg.norm(found.astype("float64") - expected) / max(np.linalg.norm(expected), 1e-9)
    return float(difference) if np.isfinite(difference) else float("inf")


# Training ------------------------------------------------------------------------------------------------------------------


def trained_weights(make: Callable[[], Any], device: str, optimizer: Any = "adam", **options: Any) -> list[np.ndarray]:
    """The weights after three epochs."""
    with tf.device(device):
        tf.random.set_seed(3)
        model, x = make()
        model.compile(optimizer, cross_entropy(), metrics=["accuracy"], **options)
        x = x if x.dtype.kind == "i" else x.astype("float32")
        model.fit(x, labels(len(x)), batch_size=8, epochs=3, verbose=0)
        return list(model.get_weights())


def training_repeats_bit_for_bit(device: str) -> Report:
    """The same run twice, for each model."""
    twice = lambda make: _same(*(trained_weights(make, device) for _ in range(2)))
    found = collected({make.__name__: functools.partial(twice, make) for make in MODELS})
    return found | {"passed": all(one is True for one in found.values())}


def compiled_steps_agree_with_eager_ones(device: str) -> Report:
    """Weights after training by SGD: 0 if they have the same bits, else the relative difference of all together.

    Not by Adam, which makes a step of full size of a gradient that is nothing but rounding, as those of biases of keys.
    """

    def difference(make: Callable[[], Any]) -> float:
        ways: tuple[Report, ...] = ({"run_eagerly": True}, {"jit_compile": True})
        eager, compiled = (trained_weights(make, device, "sgd", **options) for options in ways)
        flat = [np.concatenate([one.ravel() for one in weights]) for weights in (compiled, eager)]
        return 0.0 if _same(eager, compiled) else distance(*flat)

    found = collected({make.__name__: functools.partial(difference, make) for make in MODELS})
    return found | {"passed": all(is_less(value, 1e-5) for value in found.values())}


def _same(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def data_are_moved_once(device: str) -> Report:
    """Bytes to the device in `fit`: those of the data, and row numbers."""
    with tf.device(device):
        model, x = dense()
        x, y = x.astype("float32"), labels(len(x))
        model.compile("adam", cross_entropy())
        model.fit(x, y, batch_size=8, epochs=3, verbose=0)  # the first run builds, two are recorded, of the last batch too
        with tf.debugging.count_transfers() as copies:
            model.fit(x, y, batch_size=8, epochs=5, verbose=0)
    there = 0 if device.startswith("CPU") else x.nbytes + y.nbytes + 5 * 8 * len(x)
    found = {"bytes to device": copies.bytes_to_device, "copies to the host": copies.to_host}
    return found | {"passed": copies.bytes_to_device <= there}


# Memory and times ----------------------------------------------------------------------------------------------------------


def network(name: str) -> Any:
    """Dense layers of the sizes of that name."""
    first, *inner, last = SIZES[name]
    return tf.keras.Sequential([tf.keras.Input((first,)), *(L.Dense(n, "relu") for n in inner), L.Dense(last)])


def step_of(name: str, **options: Any) -> tuple[Any, Any, Any]:
    """A training step as a function, and a batch, on the current device."""
    tf.random.set_seed(3)
    sizes, rows, model = SIZES[name], ROWS[name], network(name)
    optimizer, loss_of = tf.keras.optimizers.Adam(1e-3), cross_entropy()
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    x, y = numbers(rows, sizes[0]).astype("float32"), draws().integers(0, sizes[-1], rows)
    return tf.function(step, **options) if options else step, tf.constant(x), tf.constant(y)


def memory_stays_constant(device: str) -> Report:
    """Bytes of CuPy's pool before and after many runs of an eager and of a compiled step."""

    def growth(**options: Any) -> int:
        with tf.device(device):
            step, x, y = step_of("small", **options)
            for _ in range(30):
                step(x, y)
            before = pool_bytes(device)
            for _ in range(RUNS):
                step(x, y)
            return pool_bytes(device) - before

    found = collected({f"{kind}: growth in bytes": functools.partial(growth, **options) for kind, options in KINDS.items()})
    return found | {"passed": not any(found.values())}


def pool_bytes(device: str) -> int:
    """Bytes that CuPy's memory pool, and that of graphs, have taken from the device."""
    if not device.startswith("GPU"):
        return 0
    import cupy

    own = device_of(cupy)
    return int(cupy.get_default_memory_pool().total_bytes()) + (0 if own is None else own.pool_bytes)


def graphs_give_the_bits_of_their_kernels(device: str) -> Report:
    """Losses of twenty steps as graphs, with each kernel launched by itself, and on the CPU; microseconds, eight in a graph."""
    on_gpu = device.startswith("GPU")

    def compared(name: str) -> Report:
        with tf.device(device):
            captured, alone = (_losses(name, warm) for warm in (graphs.WARM, sys.maxsize))
        with tf.device("CPU:0"):
            away = distance(*(np.array(losses) for _, losses in (captured, _losses(name, graphs.WARM))))
        programs = sorted({type(one).__name__ for one in captured[0]._replays})
        return {"same bits": captured[1] == alone[1], "away from the CPU": away, "carried out by": ", ".join(programs)}

    found = collected({name: functools.partial(compared, name) for name in ("small", "medium")})
    alike = all(isinstance(one, dict) and one["same bits"] and one["away from the CPU"] < 1e-3 for one in found.values())
    right = alike and (not on_gpu or all(one["carried out by"] == "GraphExecutable" for one in found.values()))
    if on_gpu:
        found |= collected({f"{name}: us in a row": functools.partial(_in_a_row, name, device) for name in found})
    return found | {"passed": right and not any(isinstance(one, str) for one in found.values())}


def _losses(name: str, warm: int) -> tuple[Any, list[float]]:
    """A compiled step, and its losses if graphs are captured after so many runs."""
    before, graphs.WARM = graphs.WARM, warm
    try:
        step, x, y = step_of(name, jit_compile=True)
        return step, [float(step(x, y)) for _ in range(20)]
    finally:
        graphs.WARM = before


def _in_a_row(name: str, device: str) -> float:
    """Microseconds of a step, of 400 that gather their rows on the device."""
    with tf.device(device):
        step, x, y = step_of(name, jit_compile=True)
        for _ in range(4):
            step(x, y)
        batches = RowBatches(RowTable((x, y)), [np.random.default_rng(n).permutation(len(x)) for n in range(400)])
        loss = step.replay_many(batches, (x, y), lambda: None)
        float(loss[0])
        start = time.perf_counter()
        loss = step.replay_many(batches, (x, y), lambda: None)
        float(loss[0])
        return round(1e6 * (time.perf_counter() - start) / len(batches), 1)


def step_times(device: str) -> Report:
    """Microseconds of a training step, eager, compiled and in `fit`."""
    batches = 200 if device.startswith("GPU") else 5
    found: Report = {}
    for name in SIZES:
        kinds = {kind: functools.partial(step_time, name, device, options) for kind, options in KINDS.items()}
        found[name] = collected(kinds | {"fit": functools.partial(fit_time, name, device, batches)})
    return found | {"passed": all(is_less(one, np.inf) for times in found.values() for one in times.values())}


def step_time(name: str, device: str, options: Report) -> float:
    """Microseconds of a step that is called by itself."""
    with tf.device(device):
        step, x, y = step_of(name, **options)
        return microseconds(lambda: step(x, y), lambda loss: float(loss))


def fit_time(name: str, device: str, batches: int) -> float:
    """Microseconds of a step of `fit`: the median of epochs, after two in which it is compiled."""
    rows = batches * ROWS[name]
    x, y = draws().standard_normal((rows, SIZES[name][0]), "float32"), draws().integers(0, SIZES[name][-1], rows)
    return round(1e6 * float(np.median(np.diff(epochs_of_fit(name, device, x, y)[1:]))) / batches, 2)


def microseconds(run: Callable[[], Any], wait: Callable[[Any], Any], budget: float = 2.0) -> float:
    """The median over rounds of 20 runs each, waited for at the end of a round."""
    for _ in range(12):
        wait(run())
    times, end = [], time.perf_counter() + budget
    while len(times) < 3 or (len(times) < 20 and time.perf_counter() < end):
        start = time.perf_counter()
        for _ in range(20):
            result = run()
        wait(result)
        times.append((time.perf_counter() - start) / 20)
    return round(1e6 * float(np.median(times)), 2)


def fit_times(device: str) -> Report:
    """Microseconds of a step of `fit` in epochs over data of the size of Fashion-MNIST, in float32."""
    epochs = lambda name: per_step(name, lambda x, y: epochs_of_fit(name, device, x, y))
    found = collected({label(name): functools.partial(epochs, name) for name in ("medium", "large")})
    return found | {"passed": all(is_less(one, np.inf) for one in found.values())}


def times_of_peers(device: str) -> Report:
    """The same of PyTorch and JAX, where they see a GPU: single steps, and epochs."""

    def epochs(name: str, peer: Any) -> float:
        return per_step(name, lambda x, y: peer(SIZES[name], ROWS[name], device, x, y, EPOCHS))

    found: Report = {}
    for name in SIZES:
        steps = {key: functools.partial(peer, SIZES[name], ROWS[name], device) for key, peer in gpu_peers.STEPS.items()}
        found[name] = collected({key: lambda made=made: microseconds(*made()) for key, made in steps.items()})
    for name in ("medium", "large"):
        found[label(name)] = collected({key: functools.partial(epochs, name, peer) for key, peer in gpu_peers.EPOCHS.items()})
    return found | {"passed": True}


def label(name: str) -> str:
    """What epochs of a size are called."""
    return f"{name}, {ROWS[name]} rows"


def per_step(name: str, epochs: Callable[[np.ndarray, np.ndarray], list[float]]) -> float:
    """Microseconds of a step: the median of the epochs whose ends are given, after two in which it is compiled."""
    steps = IMAGES // ROWS[name]
    images, classes = draws().integers(0, 256, (IMAGES, 784)).astype("float32") / 255.0, draws().integers(0, 10, IMAGES)
    ends = epochs(images[: steps * ROWS[name]], classes[: steps * ROWS[name]])
    return round(1e6 * float(np.median(np.diff(ends[1:]))) / steps, 2)


def epochs_of_fit(name: str, device: str, x: np.ndarray, y: np.ndarray) -> list[float]:
    """When each epoch ended; in the first two a step is compiled."""
    ends: list[float] = []
    watch = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter()))
    with tf.device(device):
        model = network(name)
        model.compile("adam", cross_entropy())
        model.fit(x, y, batch_size=ROWS[name], epochs=EPOCHS, verbose=0, callbacks=[watch])
    return ends


# The script ----------------------------------------------------------------------------------------------------------------


SANITIZED = """
import gpu_check, minikeras as tf
with tf.device("GPU:0"):
    step, x, y = gpu_check.step_of("small", jit_compile=True)
    print([float(step(x, y)) for _ in range(gpu_check.graphs.WARM + 3)])
"""


def memory_accesses_are_valid(device: str) -> Report:
    """Compiled steps, the last ones as graphs, under compute-sanitizer, if that is on the path."""
    found = shutil.which("compute-sanitizer")
    if found is None or not device.startswith("GPU"):
        return {"passed": True, "skipped": "only on a GPU" if found else "compute-sanitizer is not on the path"}
    command = [found, "--error-exitcode", "9", sys.executable, "-c", SANITIZED]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, timeout=60)
    return {"passed": run.returncode == 0, "last line": (run.stdout + run.stderr).strip().rpartition("\n")[2]}


def marked_tests_pass(device: str) -> Report:
    """`pytest -m gpu` in the time that is left; running none counts as a failure, a library's DeprecationWarning does not."""
    if not device.startswith("GPU"):
        return {"passed": True, "skipped": "only on a GPU"}
    workers = ["-n", str(min(8, os.cpu_count() or 1))] if importlib.util.find_spec("xdist") else []
    options = ["-q", "-m", "gpu", "-o", "addopts=", "-W", "default::DeprecationWarning", "--maxfail=50"]
    command = [sys.executable, "-m", "pytest", *options, *workers, "tests"]
    left = max(1.0, TIME - (time.perf_counter() - START))
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=left)
        output, code = run.stdout, run.returncode
    except subprocess.TimeoutExpired as error:
        output, code = (error.stdout or b"").decode() + f"\nstopped after {left:.0f} s", 1
    return {"passed": code == 0 and executed(output) > 0, **last_words(output)}


def executed(output: str) -> int:
    """How many tests pytest says it has run."""
    return sum(map(int, re.findall(r"(\d+) (?:passed|failed)", output.strip().rpartition("\n")[2])))


def last_words(output: str) -> Report:
    """The last line of what pytest prints, and the first tests that failed."""
    lines = output.strip().splitlines() or ["no output"]
    return {"last line": lines[-1], "failed": [line for line in lines if line.startswith(("FAILED", "ERROR"))][:20]}


CHECKS = (
    models_agree_with_float64_on_the_cpu,
    graphs_give_the_bits_of_their_kernels,
    step_times,
    fit_times,
    data_are_moved_once,
    memory_stays_constant,
    training_repeats_bit_for_bit,
    compiled_steps_agree_with_eager_ones,
    times_of_peers,
    memory_accesses_are_valid,
    marked_tests_pass,
)


def environment(device: str) -> Report:
    """Versions and the device."""
    return {**tf.config.device_report(), "minikeras": tf.__version__, "python": platform.python_version()}


def main() -> int:
    """Run the checks and say how they went."""
    global TIME
    names = [one.__name__ for one in CHECKS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"{', '.join(names)}; default: all")
    parser.add_argument("--device", default="GPU:0")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=TIME, help="that all may take; default: %(default)s")
    options = parser.parse_args()
    if wrong := {*options.checks} - {*names}:
        parser.error(f"{', '.join(sorted(wrong))}: no such check")
    TIME, report = options.seconds, Report()
    chosen = [one for one in CHECKS if not options.checks or one.__name__ in options.checks]
    for check in chosen:
        start = time.perf_counter()
        report |= here(check, options.device) if len(chosen) == 1 else alone(check, options.device)
        report[check.__name__]["seconds"] = round(time.perf_counter() - start, 1)
        if options.out:  # what was found so far, should this process be ended
            options.out.write_text(json.dumps(report, indent=1) + "\n")
        print(table({check.__name__: report[check.__name__]})[0], flush=True)
    print("\n".join(table(report)))
    return 0 if all(report[check.__name__]["passed"] for check in chosen) else 1


def here(check: Callable[[str], Report], device: str) -> Report:
    """What a check finds, and where."""
    return {"environment": outcome(environment, device), check.__name__: outcome(check, device)}


def outcome(check: Callable[[str], Report], device: str) -> Report:
    """What a check finds, or the error that ended it."""
    try:
        return check(device)
    except Exception as error:
        return {"passed": False, "error": described(error), "output": traceback.format_exc().splitlines()[-OUTPUT:]}


def alone(check: Callable[[str], Report], device: str) -> Report:
    """The same in a process of its own, as long as there is time; of one that ends without a report, the last it printed."""
    left = TIME - (time.perf_counter() - START)
    seconds = left if check is CHECKS[-1] else min(left, MOST)
    if seconds <= 0:
        return {check.__name__: {"passed": False, "error": "TimeoutError: no time is left"}}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        command = [sys.executable, __file__, "--device", device, "--seconds", str(seconds - 10), "--out", str(file)]
        try:
            run = subprocess.run([*command, check.__name__], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
            output, end = run.stdout, f"the process ended with {run.returncode}"
        except subprocess.TimeoutExpired as error:
            output, end = error.stdout or b"", f"TimeoutError: stopped after {seconds:.0f} s"
        if file.exists():
            return dict(json.loads(file.read_text()))
    lines = output.decode(errors="replace").splitlines()
    return {check.__name__: {"passed": False, "error": end, "output": lines[-OUTPUT:]}}


def table(report: Report) -> list[str]:
    """The outcome of each check, its findings below it."""
    lines = []
    for name, outcome in report.items():
        verdict = "" if name == "environment" else ("passed" if outcome["passed"] else "FAILED") + f" in {outcome['seconds']} s"
        lines.append(f"{name:42}{verdict}")
        lines += [f"    {key:38}{_short(value)}" for key, value in outcome.items() if key not in ("passed", "seconds")]
    return lines


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
