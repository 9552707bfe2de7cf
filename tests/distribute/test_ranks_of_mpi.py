"""Two processes that MPI starts: collective operations, training, and every way to fail."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("mpi4py")
import failures
import mpi_jobs

from minikeras.distribute.run import mpirun

try:
    mpirun()
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

pytestmark = pytest.mark.slow
BEGIN = """
import os, signal, sys, time
import numpy as np
import minikeras as tf
tf.distribute.initialize(timeout=60)
rank, size = tf.distribute.rank(), tf.distribute.size()
"""


def run(program, tmp_path, ranks=2, options=(), arguments=()):
    """What became of a program that `minikeras.distribute.run` started."""
    path = tmp_path / "train.py"
    path.write_text(BEGIN + program)
    command = [sys.executable, "-m", "minikeras.distribute.run", "-n", str(ranks), *options, str(path), *arguments]
    return mpi_jobs.run(command, tmp_path)


def test_the_known_answers_of_collective_operations(tmp_path):
    program = """
assert size == 2
for dtype in ("float32", "float64", "int32", "float16"):
    assert tf.distribute.all_reduce(tf.constant([rank + 1, 4], dtype)).numpy().tolist() == [3, 8]
assert tf.distribute.all_reduce(tf.constant([rank == 0, True]), "min").numpy().tolist() == [False, True]
assert float(tf.distribute.all_reduce(float(rank), "mean")) == 0.5
v = tf.Variable(tf.fill([1000], float(rank)))
tf.distribute.broadcast_variables([v], root_rank=1)
assert (v.numpy() == 1.0).all() and tf.distribute.local_rank() == rank
large = [tf.distribute.all_reduce(tf.fill([1 << 19], float(place + rank))) for place in range(6)]
assert all((one.numpy() == 2 * place + 1).all() for place, one in enumerate(large))
print("rank", rank, "is done")
"""
    status, output, errors, _ = run(program, tmp_path)
    assert status == 0, errors
    assert "rank 0 is done" in output and "rank 1 is done" in output


TRAINING = """
x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
y = np.random.default_rng(1).integers(0, 3, 64)
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(3)])
optimizer, loss_of = tf.keras.optimizers.Adam(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
tf.distribute.broadcast_variables(model.variables)

@tf.function
def step(x, y):
    with tf.distribute.DistributedGradientTape() as tape:
        loss = loss_of(y, model(x))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

for epoch in range(8):
    for start in range(0, 64, 16):
        rows = [start + row for row in tf.distribute.rows_of(16)]
        step(tf.constant(x[rows]), tf.constant(y[rows]))
weights = np.concatenate([w.ravel() for w in model.get_weights()])
assert (tf.distribute.all_reduce(weights, "max").numpy() == weights).all()
if rank == 0:
    np.save(f"weights-{size}.npy", weights)
"""


def test_two_ranks_train_what_one_would_and_the_same_each_time(tmp_path):
    import numpy as np

    for ranks in (1, 2):
        status, _, errors, _ = run(TRAINING, tmp_path, ranks)
        assert status == 0, errors
    one, two = (np.load(tmp_path / f"weights-{ranks}.npy") for ranks in (1, 2))
    np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)
    run(TRAINING, tmp_path, 2)
    assert (np.load(tmp_path / "weights-2.npy") == two).all()


def test_a_job_starts_where_a_killed_one_with_its_process_number_left_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for number in range(os.getpid(), os.getpid() + 400):
        (left := tmp_path / f"ompi.{number}").mkdir()
        host = os.uname().nodename.partition(".")[0]
        (left / f"pmix.{host}.tool").touch()
    job = [sys.executable, "-m", "minikeras.distribute.run", "-n", "1", "-m", "this"]
    variables = {name: value for name, value in os.environ.items() if "tmpdir_base" not in name}
    assert subprocess.run(job, env=variables, capture_output=True, check=False).returncode == 0


OURS, ALONE = "minikeras.distribute.run", "mpirun python"


@pytest.mark.parametrize(
    ("failure", "launcher"),
    [*((failure, OURS) for failure in failures.FAILURES), ("exception", ALONE), ("sys.exit(3)", ALONE), ("SIGKILL", ALONE)],
)
def test_a_rank_that_fails_ends_the_job_with_its_reason_and_the_checkpoint_loads(failure, launcher, tmp_path):
    found = failures.outcome(failure, launcher, 0, tmp_path)
    assert not failures.complaint(failure, found, tmp_path)


def test_a_rank_that_ends_early_keeps_its_exit_status(tmp_path):
    assert run("if rank == 1:\n    sys.exit(3)\ntf.distribute.barrier()", tmp_path).status == 3


FITTING = """
import hashlib
from pathlib import Path

class Killed(tf.keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        steps = int(self.model.optimizer.iterations.numpy())
        if rank == size - 1 and str(steps) in sys.argv[2:] and not Path(f"{steps}.killed").exists():
            Path(f"{steps}.killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

shards = int(sys.argv[1])
x = np.random.default_rng(0).normal(size=(508, 12)).astype("float32")
y = np.random.default_rng(1).integers(0, 3, 508)
tf.keras.utils.set_random_seed(1)
with tf.keras.distribution.DataParallel(virtual_shards=shards or None).scope():
    model = tf.keras.Sequential([tf.keras.Input((12,)), tf.keras.layers.Dense(16, "relu")])
    if shards:
        model.add(tf.keras.layers.Dropout(0.2))
    model.add(tf.keras.layers.Dense(3))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
backup = tf.keras.callbacks.BackupAndRestore("backup", save_freq=4)
model.fit(x, y, batch_size=32, epochs=4, verbose=0, callbacks=[backup, killed := Killed()])
weights = np.concatenate([w.ravel() for w in model.get_weights()])
if rank == 0:
    assert int(model.optimizer.iterations.numpy()) == 64
    np.save("weights.npy", weights)
    print(killed.steps, "steps to weights", hashlib.sha256(weights.tobytes()).hexdigest())
"""


def weights_of(tmp_path, name, *arguments, **options):
    """The weights of a training in a folder of its own, how many steps its last start took, and the hash of the weights."""
    import numpy as np

    folder = tmp_path / name
    folder.mkdir()
    found = run(FITTING, folder, arguments=arguments, **options)
    assert found.status == 0, found.errors
    steps, digest = found.output.split(" steps to weights ")
    return np.load(folder / "weights.npy"), int(steps), digest, found.errors


def test_with_virtual_shards_1_2_and_4_ranks_and_restarts_with_fewer_have_the_same_bits(tmp_path):
    hashes = [weights_of(tmp_path, f"{ranks}", "4", ranks=ranks)[2] for ranks in (1, 2, 4)]
    assert len(set(hashes)) == 1
    restarts = ["--max-restarts", "2", "--min-ranks", "1"]
    _, steps, restarted, errors = weights_of(tmp_path, "killed", "4", "18", "41", ranks=4, options=restarts)
    assert "start 2 of 3, on 2 ranks" in errors and "start 3 of 3, on 1 ranks" in errors
    assert steps == 64 - 40 and restarted == hashes[0]


def test_without_virtual_shards_ranks_train_what_one_would(tmp_path):
    import numpy as np

    one, two = (weights_of(tmp_path, f"{ranks}", "0", ranks=ranks)[0] for ranks in (1, 2))
    assert np.abs(two - one).max() < 1e-6 * np.abs(one).max()


def test_a_job_is_started_again_after_a_failure(tmp_path):
    program = """
from pathlib import Path
tf.distribute.barrier()
again = Path("begun").exists()
tf.distribute.barrier()
Path("begun").touch()
if rank == 1 and not again:
    os.kill(os.getpid(), signal.SIGKILL)
tf.distribute.barrier()
"""
    status, _, errors, _ = run(program, tmp_path, options=["--max-restarts", "2"])
    assert status == 0 and "start 2 of 3" in errors


def test_a_job_goes_on_where_hosts_still_answer(tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = ["--hosts", "localhost:1,unreachable:1", "--max-restarts", "1", "--min-ranks", "1"]
    found = run("print(size, 'rank')", tmp_path, options=options)
    assert found.status == 0 and "1 rank" in found.output and "start 2 of 2, on 1 ranks" in found.errors


def test_a_launcher_that_is_ended_ends_the_ranks(tmp_path):
    program = """
from pathlib import Path
Path(f"{os.getpid()}.rank").touch()
tf.distribute.barrier()
if rank == 0:
    os.kill(int(os.environ["LAUNCHER"]), signal.SIGTERM)
time.sleep(1000)
"""
    script = tmp_path / "launch.sh"
    script.write_text('LAUNCHER=$$ exec "$@"\n')
    path = tmp_path / "train.py"
    path.write_text(BEGIN + program)
    found = mpi_jobs.run(["sh", str(script), *mpi_jobs.launchers(2)[OURS], "--max-restarts", "2", str(path)], tmp_path)
    assert found.status == 128 + signal.SIGTERM
    ranks = [one.stem for one in tmp_path.glob("*.rank")]
    assert len(ranks) == 2 and not _running(ranks)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere mpirun outlives its launcher")
@pytest.mark.parametrize("killed", ["int(os.environ['LAUNCHER'])", "os.getppid()"])
def test_a_launcher_that_is_killed_leaves_no_rank(tmp_path, killed):
    """Ours, and MPI's own process beside the ranks."""
    program = f"""
from pathlib import Path
Path(f"{{os.getpid()}}.rank").touch()
tf.distribute.barrier()
if rank == 0:
    os.kill({killed}, signal.SIGKILL)
time.sleep(1000)
"""
    script = tmp_path / "launch.sh"
    script.write_text('LAUNCHER=$$ exec "$@"\n')
    path = tmp_path / "train.py"
    path.write_text(BEGIN + program)
    mpi_jobs.run(["sh", str(script), *mpi_jobs.launchers(2)[OURS], str(path)], tmp_path)
    ranks = [one.stem for one in tmp_path.glob("*.rank")]
    until = time.monotonic() + 30
    while (left := _running(ranks)) and time.monotonic() < until:
        time.sleep(0.1)
    assert len(ranks) == 2 and not left


def _running(processes):
    """Those that are there and no zombies."""
    states = subprocess.run(
        ["ps", "-o", "stat=", "-p", ",".join(processes)], capture_output=True, text=True, check=False
    ).stdout
    return [state for state in states.split() if not state.startswith("Z")]


def test_calls_over_very_many_axes_are_told_apart(tmp_path):
    program = """
many = [1] * 60
try:
    tf.distribute.all_reduce(tf.reshape(tf.ones([4]), [*many, 2, 2] if rank else [*many, 4, 1]))
except tf.errors.InvalidArgumentError as error:
    print("told")
"""
    status, output, errors, _ = run(program, tmp_path)
    assert status == 0 and output.count("told") == 2, errors


def test_numbers_of_ranks_that_contradict_mpi_are_refused():
    import minikeras as tf

    with pytest.raises(ValueError, match="num_processes is 3, but MPI says 1"):
        tf.distribute.initialize(num_processes=3)
