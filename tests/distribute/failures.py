"""Ranks that fail while they train: `python tests/distribute/failures.py --times 10` prints what became of the jobs.

A job has to end within 20 s with a status above 0 and its reason on stderr, and its last checkpoint has to load.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpi_jobs import Outcome, launchers, run

import minikeras as tf

LIMIT = 20.0
"""Seconds within which a job ends."""
STEPS = 12
TRAINING = """
import os, signal, sys, time
import minikeras as tf

failure, failing_rank, failing_step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if failure == "never joins" and int(os.environ["OMPI_COMM_WORLD_RANK"]) == failing_rank:
    time.sleep(1000)
tf.distribute.initialize(timeout=5 if failure in ("hang", "never joins") else 60)  # one may start late on a busy machine
rank = tf.distribute.rank()
model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(256), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
step = tf.Variable(0)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=2) if rank == 0 else None
tf.distribute.broadcast_variables(model.variables)
x = tf.ones([8, 64]) * (rank + 1.0)

def fail():
    match failure:
        case "exception":
            raise ValueError("no such file")
        case "sys.exit(3)":
            sys.exit(3)
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "os._exit(0)":
            os._exit(0)
        case "hang":
            time.sleep(1000)
        case "other operation":
            tf.distribute.barrier()

while step < STEPS:
    with tf.distribute.DistributedGradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x)))
    if rank == failing_rank and step == failing_step:
        fail()
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    step.assign_add(1)
    if rank == 0:
        manager.save()
        model.save("model.keras")
""".replace("STEPS", str(STEPS))


FAILURES = {
    "exception": "ValueError: no such file",
    "sys.exit(3)": "ended before the others",
    "SIGKILL": "signal 9",
    "os._exit(0)": "",
    "hang": "waited 5 s in 'all_reduce sum float32",
    "never joins": "_when_all_ranks_have_started",
    "other operation": "the ranks call different operations: ",
}
"""What a rank does, and what stderr then has to say."""


def outcome(failure: str, launcher: str, number: int, folder: Path) -> Outcome:
    """What became of a training of two ranks, of which one fails: one or the other, sooner or later."""
    program = folder / "train.py"
    program.write_text(TRAINING)
    command = [*launchers(2)[launcher], str(program), failure, str((number + 1) % 2), str(2 + 3 * number % (STEPS - 2))]
    return run(command, folder, limit=LIMIT)


def complaint(failure: str, found: Outcome, folder: Path) -> str:
    """What is wrong with the end of a job; '' if nothing is."""
    if not found.status:
        return "the status is 0"
    if not found.errors.strip() or FAILURES[failure] not in found.errors:
        return f"the reason is missing: {found.errors}"
    if failure == "never joins":
        return ""
    tf.keras.models.load_model(folder / "model.keras")
    step = tf.Variable(0)
    tf.train.Checkpoint(step=step).restore(tf.train.latest_checkpoint(folder / "checkpoints")).expect_partial()
    return "" if 0 < int(step) <= STEPS else f"the checkpoint is of step {int(step)}"


def repeated(failure: str, launcher: str, times: int) -> tuple[list[Outcome], list[str]]:
    """What became of so many jobs, and what is wrong with some of them."""
    found, wrong = [], []
    for number in range(times):
        with tempfile.TemporaryDirectory() as name:
            try:
                found.append(outcome(failure, launcher, number, Path(name)))
                problem = complaint(failure, found[-1], Path(name))
            except AssertionError as error:  # it hangs
                problem = str(error)
        wrong += [problem] if problem else []
    return found, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Each failure, some times, started in each way; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    times, problems = parser.parse_args(arguments).times, []
    print(f"{'failure':<16} {'started by':<26} {'right':>7} {'slowest':>8}  statuses")
    for failure in FAILURES:
        for launcher in launchers(2):
            found, wrong = repeated(failure, launcher, times)
            slowest = max((one.seconds for one in found), default=LIMIT)
            statuses = ", ".join(str(status) for status in sorted({one.status for one in found}))
            print(f"{failure:<16} {launcher:<26} {times - len(wrong):>3}/{times:<3} {slowest:>6.1f} s  {statuses}", flush=True)
            problems += wrong
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
