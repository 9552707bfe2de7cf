"""The folder of a sweep: what is finished stays finished, another sweep is refused, damage is told, a kill costs only time."""

import contextlib
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras.errors import CheckpointBusyError, LoadError, NotFoundError
from minikeras.experiments import Sweep, structure
from minikeras.experiments.journal import Journal
from minikeras.files.durable import writer_lock

keras, L = tf.keras, tf.keras.layers
generator = np.random.default_rng(0)
X = generator.normal(size=(32, 3)).astype("float32")
Y = X[:, :1] * 2.0


def build(rate=0.1, width=2):
    model = keras.Sequential([keras.Input((3,)), L.Dense(width, "tanh"), L.Dropout(0.1), L.Dense(1)])
    model.compile(keras.optimizers.Adam(rate), "mse", metrics=["mae"])
    return model


GRID = {"rate": [0.1, 0.01], "width": [2, 3]}
FIT = {"epochs": 2, "verbose": 0}


def fitted(directory, grid=GRID, made_by=build, seeds=2, data=(X, Y), **arguments):
    return Sweep(made_by, grid, seeds=seeds).fit(*data, directory=directory, **{**FIT, **arguments})


def assert_same(one, other):
    """The same results in every bit, but for the time they took."""
    assert repr(one.table()) == repr(other.table())
    for a, b in zip(one, other, strict=True):
        assert (a.number, a.parameters, a.seed, a.error) == (b.number, b.parameters, b.seed, b.error)
        assert repr(a.history) == repr(b.history) and a.logged_at == b.logged_at
        if a.error is None:
            pairs = zip(a.model(build).get_weights(), b.model(build).get_weights(), strict=True)
            assert all(np.array_equal(left, right) for left, right in pairs)


def forbid(*unused):
    raise AssertionError("this run was finished")


@pytest.fixture(scope="module")
def expected():
    return Sweep(build, GRID, seeds=2).fit(X, Y, **FIT)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a finished sweep, which stays as it is."""
    directory = tmp_path_factory.mktemp("sweep")
    fitted(directory)
    return directory


@pytest.fixture
def finished(kept, tmp_path):
    """A copy of the folder."""
    shutil.copytree(kept, tmp_path / "sweep")
    return tmp_path / "sweep"


def test_a_folder_makes_no_difference_to_the_results(tmp_path, expected):
    assert_same(fitted(tmp_path / "new" / "sweep"), expected)


def test_each_run_has_a_file_and_its_weights(finished):
    names = sorted(path.name for path in (finished / "runs").iterdir())
    assert names == sorted(f"{run:05d}.{kind}" for run in range(8) for kind in ("json", "weights.h5"))
    model = build(0.1, 2)
    model.load_weights(finished / "runs" / "00000.weights.h5")
    assert len(json.loads((finished / "runs" / "00000.json").read_text())["history"]["loss"]) == 2


def test_weights_need_not_be_kept(tmp_path):
    results = fitted(tmp_path, keep_weights=False)
    assert not list(tmp_path.rglob("*.h5"))
    with pytest.raises(ValueError, match="no weights were kept"):
        results.best.model()


def test_what_is_finished_is_not_trained_again(finished, expected):
    assert_same(fitted(finished, callbacks=forbid), expected)


@pytest.mark.parametrize("gone", [[0], [7], [1, 4, 6], range(8)])
def test_what_is_missing_is_trained_to_the_same_bits(finished, expected, gone):
    for run in gone:
        (finished / "runs" / f"{run:05d}.json").unlink()
    assert_same(fitted(finished), expected)
    assert_same(Sweep.load(finished), expected)


def test_results_load_from_the_folder(finished, expected):
    results = Sweep.load(finished)
    assert_same(results, expected)
    assert results.objective == "loss" and results.mode == "min" and results.table().columns == expected.table().columns
    with pytest.raises(ValueError, match=r"need what made the models: model\(build\)"):
        results.best.model()
    assert Sweep.load(finished, build).best.model().count_params() == expected.best.model().count_params()


def test_results_of_a_sweep_under_way_are_those_of_the_finished_runs(finished):
    for run in (0, 3, 5):
        (finished / "runs" / f"{run:05d}.json").unlink()
    assert [one.number for one in Sweep.load(finished)] == [1, 2, 4, 6, 7]
    for run in (1, 2, 4, 6, 7):
        (finished / "runs" / f"{run:05d}.json").unlink()
    none_yet = Sweep.load(finished)
    assert len(none_yet) == 0 and none_yet.failed == []
    with pytest.raises(ValueError, match="no run has ended yet"):
        _ = none_yet.best


def test_failures_are_kept_with_what_was_logged_before(tmp_path):
    grid = [{"rate": 1e30}, {"rate": 0.1}, {"width": -1}]
    first = fitted(tmp_path, grid, epochs=3)
    assert [one.error is None for one in first] == [False, False, True, True, False, False]
    again = fitted(tmp_path, grid, epochs=3, callbacks=forbid)
    assert_same(again, first)
    assert again[0].traceback == first[0].traceback
    assert_same(Sweep.load(tmp_path), first)


def test_parameters_come_back_as_they_were(tmp_path):
    def made(activation, widths, rate, note):
        return build(rate, widths[0])

    grid = {"activation": [tf.nn.relu], "widths": [(2, 3), (3,)], "rate": [0.1], "note": [None, float("inf")]}
    first = fitted(tmp_path, grid, made_by=made)
    loaded = Sweep.load(tmp_path, made)
    assert loaded[0].parameters == {"activation": "relu", "widths": (2, 3), "rate": 0.1, "note": None}
    assert loaded.table().columns == first.table().columns
    with pytest.raises(ValueError, match="but no objects such as activation=relu"):
        loaded.best.model()


def test_arguments_may_be_said_or_left_to_their_defaults(finished, expected):
    assert_same(fitted(finished, callbacks=forbid, shuffle=True, validation_freq=1, batch_size=None), expected)


def test_a_shape_that_would_take_all_memory_is_refused(tmp_path):
    def unbuilt():
        model = keras.Sequential([L.Dense(3), L.Dense(1)])
        model.compile("sgd", "mse")
        return model

    fitted(tmp_path, [{}], made_by=unbuilt, seeds=1)
    path = tmp_path / "runs" / "00000.json"
    record = json.loads(path.read_text())
    assert Sweep.load(tmp_path, unbuilt)[0].model().count_params() == 16
    record["built_for"] = {"input_shape": [None, 10**12]}
    del record["sha256"]  # it keeps out damage, not enemies
    path.write_text(json.dumps(record))
    with pytest.raises(LoadError, match="bytes; the file has weights for"):
        Sweep.load(tmp_path, unbuilt)[0].model()


def test_another_objective_is_no_other_sweep(finished):
    results = fitted(finished, objective="mae", mode="max", callbacks=forbid)
    assert results.objective == "mae" and results.mode == "max"
    assert Sweep.load(finished).best.number == results.best.number


# Refused -----------------------------------------------------------------------------------------------------------------


def another(width):
    return build(width=width)


OTHERS = {
    "other targets": (lambda to: to(data=(X, Y + 1)), "y differs"),
    "other rows": (lambda to: to(data=(X[:16], Y[:16])), "x differs.*y differs"),
    "other dtypes": (lambda to: to(data=(X.astype("float64"), Y)), "x differs"),
    "validation": (lambda to: to(validation_data=(X, Y)), r"validation_data differs \(not given there"),
    "more epochs": (lambda to: to(epochs=3), r"epochs differs \(2 there, 3 here\)"),
    "another batch size": (lambda to: to(batch_size=8), r"batch_size differs \(not given there, 8 here\)"),
    "more runs": (lambda to: to(seeds=3), r"it has 8 runs, this one 12"),
    "other values": (lambda to: to(grid={"rate": [0.1, 0.02], "width": [2, 3]}), "its run 4 has .*rate=0.01.*seed 0"),
    "other seeds": (lambda to: to(seeds=[1, 2]), "its run 0 has .*seed 0.*this one .*seed 1"),
    "another build": (
        lambda to: to(made_by=lambda rate, width: build(rate, width + 1)),
        "the model of run 0 differs",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_the_folder_of_another_sweep_is_refused_and_left_as_it_is(finished, kind):
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    question, message = OTHERS[kind]
    with pytest.raises(ValueError, match=rf"holds another sweep: .*{message}.*Give another directory, or delete it"):
        question(functools.partial(fitted, finished))
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before


def test_a_folder_without_a_sweep_is_told(tmp_path):
    with pytest.raises(NotFoundError, match=r"holds no sweep: there is no sweep.json in it"):
        Sweep.load(tmp_path / "nothing")


def test_two_processes_do_not_write_to_one_folder(finished):
    with writer_lock(finished), pytest.raises(CheckpointBusyError, match="Give each its own folder"):
        fitted(finished)


def without_digests(path):
    """What a version before digests has written."""
    content = json.loads(path.read_text())
    return json.dumps({name: value for name, value in content.items() if not name.startswith("sha256")}).encode()


def test_a_folder_without_digests_is_read_and_goes_on(finished, expected):
    for path in finished.rglob("*.json"):
        path.write_bytes(without_digests(path))
    (finished / "runs" / "00003.json").unlink()
    assert_same(fitted(finished), expected)
    assert_same(Sweep.load(finished), expected)


@pytest.mark.parametrize("count", mostly_slow([400, 2000], 400))
def test_no_flipped_bit_is_read_in_silence(finished, count):
    journal, bits = Journal(finished), random.Random(0)
    paths = [path for path in finished.rglob("*") if path.suffix in (".json", ".h5")]
    for _ in range(count):
        path = bits.choice(paths)
        content, bit = path.read_bytes(), bits.randrange(8 * path.stat().st_size)
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(LoadError):
            journal.plan() if path.parent == finished else (journal.weights if path.suffix == ".h5" else journal.read)(
                int(path.name[:5])
            )
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["sweep.json", "runs/00003.json"])
def test_of_a_hostile_folder_nothing_but_load_errors_comes(finished, name):
    """Each value, and some that are left out or added, is another one than was written."""
    odd = [None, True, -1, 1e308, 2**63, "", "nan", [], {}, [[]], [None], {"float": "x"}, {"tuple": [1]}, {"a": 1, "b": 2}]
    path, choose = finished / name, random.Random(1)
    written = json.loads(without_digests(path))
    for _ in range(400):
        content = json.loads(json.dumps(written))
        holder, key = choose.choice(list(places(content)))
        if choose.random() < 0.2:
            del holder[key]
        else:
            holder[key] = choose.choice(odd)
        path.write_text(json.dumps(content))
        with contextlib.suppress(LoadError):
            repr(Sweep.load(finished).table())


def places(value):
    """Where values are in a value of JSON."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


DAMAGES = {
    "cut off": (lambda text: text[:-20], "damaged JSON"),
    "empty": (lambda text: b"", "damaged JSON"),
    "no object": (lambda text: b"[]", "is damaged, or no file of a sweep"),
    "another format": (lambda text: text.replace(b"minikeras sweep 1", b"minikeras sweep 9"), "expected 'minikeras sweep 1'"),
    "no numbers": (lambda text: text.replace(b'"loss": [', b'"loss": ["x", '), "history: should have a value for each epoch"),
    "words for numbers": (lambda text: text.replace(b'"seconds": ', b'"seconds": "x", "more": '), "is damaged"),
    "a direction": (lambda text: text.replace(b'"min"', b'"up"'), "directions: should be 'min' or 'max'"),
    "a direction that is a list": (lambda text: text.replace(b'"min"', b'["min"]'), "directions: should be 'min' or 'max'"),
    "no history": (lambda text: text.replace(b'"history": {', b'"history": [], "x": {'), "is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_told_with_its_file(finished, damage):
    change, message = DAMAGES[damage]
    path = finished / "runs" / "00003.json"
    path.write_bytes(change(without_digests(path)))
    for question in (lambda: Sweep.load(finished), lambda: fitted(finished)):
        with pytest.raises(LoadError, match=rf"00003\.json: .*{message}"):
            question()


PLANS = {
    "a run less": (lambda plan: plan["runs"].pop(), "groups: should hold each run once"),
    "a run twice": (lambda plan: plan["groups"][0].append(0), "groups: should hold each run once"),
    "no seed": (lambda plan: plan["runs"][2].pop(), "runs: 2: should be parameters and a seed"),
    "an unknown kind": (lambda plan: plan["runs"][2].__setitem__(0, {"rate": {"code": "x"}}), "runs: 2: expected a parameter"),
    "a number for a name": (lambda plan: plan.update(name=3), "should be texts"),
    "a negative seed": (lambda plan: plan["runs"][2].__setitem__(1, -1), "runs: 2: should be parameters and a seed"),
    "an unknown mode": (lambda plan: plan.update(mode="up"), "mode: should be 'auto', 'min' or 'max'"),
    "groups that are none": (lambda plan: plan.update(groups={}), "expected a list"),
}


@pytest.mark.parametrize("damage", PLANS)
def test_a_damaged_plan_is_told(finished, damage):
    change, message = PLANS[damage]
    plan = json.loads(without_digests(finished / "sweep.json"))
    change(plan)
    (finished / "sweep.json").write_text(json.dumps(plan))
    with pytest.raises(LoadError, match=message):
        Sweep.load(finished)


def test_damaged_weights_are_told_when_they_are_asked_for(finished):
    path = finished / "runs" / "00003.weights.h5"
    path.write_bytes(path.read_bytes()[:-100])
    results = Sweep.load(finished, build)
    with pytest.raises(LoadError, match=r"00003\.weights\.h5"):
        results[3].model()


# Killed ------------------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
sys.path.insert(0, {here!r})
import test_sweep_directory as module
def slow(run):
    return [module.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(0.01))]
module.structure.MOST_MEMBERS = 4
print("ready", flush=True)
module.fitted(sys.argv[1], seeds=6, callbacks=slow, n_jobs=int(sys.argv[2]))
print("done", flush=True)
"""


def started(directory, n_jobs):
    """A process that carries out the sweep, once it has imported everything."""
    here = pathlib.Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here.parents[1]}{os.pathsep}{here.parent}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT.format(here=str(here)), str(directory), str(n_jobs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("kills", "n_jobs"), [(1, 1), pytest.param(20, 1, marks=pytest.mark.slow), pytest.param(5, 2, marks=pytest.mark.slow)]
)
def test_a_sweep_killed_at_random_moments_ends_with_the_same_table_bit_for_bit(tmp_path, monkeypatch, kills, n_jobs):
    monkeypatch.setattr(structure, "MOST", 4)  # six groups of four runs
    expected = Sweep(build, GRID, seeds=6).fit(X, Y, **FIT)
    moments, left = random.Random(kills), kills
    while left:
        process = started(tmp_path, n_jobs)
        time.sleep(moments.uniform(0.0, 0.5))
        died = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        left -= 1
        if not died:  # it was quicker than the kill: some of it is done again
            for path in (tmp_path / "runs").glob("*[05].json"):
                path.unlink()
    assert_same(fitted(tmp_path, seeds=6), expected)
    assert_same(Sweep.load(tmp_path), expected)


def test_a_kill_between_weights_and_run_leaves_the_run_to_be_done(finished, expected, monkeypatch):
    """The order in which they are written: a run that is there has its weights."""
    for run in range(8):
        (finished / "runs" / f"{run:05d}.json").unlink()
    replace, written = os.replace, []

    def dying(source, target):
        if len(written) == 7:
            raise KeyboardInterrupt
        written.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        fitted(finished)
    monkeypatch.undo()
    assert [path.suffix for path in written] == [".h5", ".json"] * 3 + [".h5"]
    assert len(Sweep.load(finished)) == 3
    assert_same(fitted(finished), expected)
