"""What a checkpoint holds, and how it comes back: paths, parts, differences, and nothing changed by a failure."""

import copy
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from audit import audited

import minikeras as tf
from minikeras import bundle
from minikeras.errors import LoadError
from minikeras.state import StateTree

pytest.importorskip("safetensors")
layers = tf.keras.layers


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "checkpoints")


def paths(value):
    return list(StateTree(("", value)).leaves)


def dense_model():
    return tf.keras.Sequential([layers.Dense(3, activation="relu"), layers.Dropout(0.5), layers.Dense(1)])


DATA = np.random.default_rng(0).standard_normal((16, 4)).astype("float32")


def step(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(DATA, training=True) - 1.0))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return float(loss)


# Paths -----------------------------------------------------------------------------------------------------------------


def test_keys_are_paths_of_attributes_and_slots_go_by_the_path_of_their_variable():
    model, optimizer = dense_model(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
    step(model, optimizer)
    assert sorted(paths(tf.train.Checkpoint(model=model, optimizer=optimizer))) == [
        "model/layers/0/bias",
        "model/layers/0/kernel",
        "model/layers/1/seed_generator/state",
        "model/layers/2/bias",
        "model/layers/2/kernel",
        "optimizer/iterations",
        "optimizer/learning_rate",
        "optimizer/slots/model/layers/0/bias/momentum",
        "optimizer/slots/model/layers/0/kernel/momentum",
        "optimizer/slots/model/layers/2/bias/momentum",
        "optimizer/slots/model/layers/2/kernel/momentum",
    ]


def test_the_optimizer_of_a_compiled_model_is_part_of_it():
    model = dense_model()
    model.compile("sgd", "mse")
    assert "optimizer/learning_rate" in paths(model)


def test_everything_is_saved_once_and_known_by_all_its_paths(folder):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(a=v, b=[v], c={"deep": v})
    content = StateTree(("", checkpoint)).values()
    assert list(content.arrays) == ["a"] and content.aliases == {"b/0": "a", "c/deep": "a"}
    path = checkpoint.write(folder + "/here")
    b, c = tf.Variable(0.0), tf.Variable(0.0)
    tf.train.Checkpoint(b=[b], c={"deep": c}).read(path).assert_consumed()
    assert float(b) == float(c) == 1.0


def test_keys_of_dicts_may_hold_any_text_and_two_equal_paths_are_refused():
    assert paths(tf.train.Checkpoint(d={"a/b.c": tf.Variable(1.0)})) == ["d/a.Sb..c"]
    with pytest.raises(ValueError, match="two values have the path 'd/1'"):
        paths(tf.train.Checkpoint(d={1: tf.Variable(1.0), "1": tf.Variable(2.0)}))


def test_objects_that_hold_each_other_are_walked_once():
    first, second = tf.Module(), tf.Module()
    first.other, second.other = second, first
    second.v = tf.Variable(1.0)
    try:
        assert paths(tf.train.Checkpoint(m=first)) == ["m/other/v"]
    finally:
        del second.other


def test_names_that_are_parts_of_a_checkpoint_are_refused():
    with pytest.raises(ValueError, match="cannot be called 'save'"):
        tf.train.Checkpoint(save=tf.Variable(1.0))


# What is tracked ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.float16([1.5]),
        np.int8(3),
        np.array([True, False]),
        np.array([[1 + 2j]]),
        np.complex64(1j),
        np.zeros((0, 3)),
        np.array([np.nan, np.inf, -0.0]),
    ],
    ids=str,
)
def test_every_dtype_and_shape_comes_back(folder, value):
    v = tf.Variable(value)
    path = tf.train.Checkpoint(v=v).write(folder + "/here")
    w = tf.Variable(np.zeros_like(value))
    tf.train.Checkpoint(v=w).read(path).assert_consumed()
    assert w.numpy().tobytes() == v.numpy().tobytes() and w.dtype == v.dtype and w.shape == v.shape


def test_random_generators_metrics_and_states_of_ones_own_are_tracked(folder):
    class Counter:
        def __init__(self):
            self.seen = {}

        def get_state(self):
            return self.seen

        def set_state(self, state):
            self.seen = state

    def made():
        return {
            "generator": tf.random.Generator.from_seed(-5),
            "seeds": tf.keras.random.SeedGenerator(3) if hasattr(tf.keras, "random") else tf.Variable(0),
            "mean": tf.keras.metrics.Mean(),
            "counter": Counter(),
        }

    old = made()
    old["generator"].normal([3])
    old["mean"].update_state([1.0, 2.0])
    old["counter"].seen = {"a": (1, float("inf"), None), 3: np.arange(2), "big": 2**70, "text": "ü", "f": np.float32(0.1)}
    path = tf.train.Checkpoint(**old).write(folder + "/here")
    new = made()
    tf.train.Checkpoint(**new).read(path).assert_consumed()
    assert np.array_equal(new["generator"].normal([3]), old["generator"].normal([3]))
    assert float(new["mean"].result()) == 1.5
    seen = new["counter"].seen
    assert seen["a"] == (1, float("inf"), None) and seen["big"] == 2**70 and seen["text"] == "ü"
    assert seen[3].tolist() == [0, 1] and seen["f"] == np.float32(0.1) and type(seen["f"]) is np.float32


def test_a_module_with_a_state_of_its_own_is_saved_by_what_it_holds():
    class Net(tf.Module):
        def get_state(self):
            return 1

        def set_state(self, state): ...

    net = Net()
    net.v = tf.Variable(1.0)
    assert paths(tf.train.Checkpoint(net=net)) == ["net/v"]


def test_a_state_that_is_no_plain_data_is_refused_before_anything_is_written(folder):
    class Wrong:
        def get_state(self):
            return {"a": object()}

        def set_state(self, state): ...

    with pytest.raises(TypeError, match=r"holds an object at \$w/a; numbers, text and arrays"):
        tf.train.Checkpoint(w=Wrong()).write(folder + "/here")
    assert not os.path.exists(folder)


def test_values_come_back_to_the_device_of_the_variable(folder, device):
    v = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(v=v).write(folder + "/here")
    kind = type(v.array)
    v.assign([0.0, 0.0])
    tf.train.Checkpoint(v=v).read(path).assert_consumed()
    assert type(v.array) is kind and v.numpy().tolist() == [1.0, 2.0]


# Parts, and what does not fit ----------------------------------------------------------------------------------------------


def test_a_part_of_a_checkpoint_can_be_restored_by_its_paths(folder):
    saved = {"a": [tf.Variable(1.0), tf.Variable(2.0)], "b": tf.Variable(3.0)}
    path = tf.train.Checkpoint(**saved).write(folder + "/here")
    for only, expected in [("a", [1.0, 2.0, 0.0]), (["a/1", "b"], [0.0, 2.0, 3.0]), ("*/0", [1.0, 0.0, 0.0])]:
        a, b = [tf.Variable(0.0), tf.Variable(0.0)], tf.Variable(0.0)
        tf.train.Checkpoint(a=a, b=b).read(path, only=only)
        assert [float(a[0]), float(a[1]), float(b)] == expected


def test_a_layer_can_be_restored_by_a_checkpoint_that_mirrors_the_path(folder):
    net = tf.Module()
    net.hidden, net.head = layers.Dense(2), layers.Dense(1)
    net.head(net.hidden(DATA))
    path = tf.train.Checkpoint(net=net).write(folder + "/here")
    hidden = layers.Dense(2)
    hidden(DATA)
    tf.train.Checkpoint(net=tf.train.Checkpoint(hidden=hidden)).read(path).assert_existing_objects_matched().expect_partial()
    assert np.array_equal(hidden.kernel, net.hidden.kernel)


def test_mismatches_can_be_left_out_and_are_logged(folder, caplog):
    path = tf.train.Checkpoint(a=tf.Variable([1.0]), b=tf.Variable(2.0)).write(folder + "/here")
    a, b = tf.Variable([0.0, 0.0]), tf.Variable(0.0)
    tf.train.Checkpoint(a=a, b=b).read(path, skip_mismatch=True).expect_partial()
    assert float(b) == 2.0 and a.numpy().tolist() == [0.0, 0.0]
    assert "left out, 'a': saved with shape (1,), the Variable has (2,)" in caplog.text


def test_another_dtype_is_refused_unless_casting_is_asked_for(folder):
    path = tf.train.Checkpoint(a=tf.Variable([0.1])).write(folder + "/here")
    a = tf.Variable(np.zeros(1))
    with pytest.raises(ValueError, match="'a': saved as float32, the Variable is float64"):
        tf.train.Checkpoint(a=a).read(path)
    tf.train.Checkpoint(a=a).read(path, cast=True).assert_consumed()
    assert a.numpy()[0] == np.float64(np.float32(0.1))


def test_an_error_while_states_are_set_takes_everything_back(folder):
    class Picky:
        value = 1

        def get_state(self):
            return self.value

        def set_state(self, state):
            if state == 1:
                raise RuntimeError("not that one")
            self.value = state

    v, picky = tf.Variable(1.0), Picky()
    path = tf.train.Checkpoint(v=v, picky=picky).write(folder + "/here")
    v.assign(5.0)
    picky.value = 7
    with pytest.raises(RuntimeError, match="not that one"):
        tf.train.Checkpoint(v=v, picky=picky).read(path)
    assert float(v) == 5.0 and picky.value == 7


# Later objects ---------------------------------------------------------------------------------------------------------------


def test_layers_that_are_built_later_take_their_values_seeds_included(folder):
    def made():
        model, optimizer = dense_model(), tf.keras.optimizers.Adam(0.1)
        return model, optimizer, tf.train.Checkpoint(model=model, optimizer=optimizer)

    model, optimizer, checkpoint = made()
    for _ in range(3):
        step(model, optimizer)
    path = checkpoint.write(folder + "/here")
    expected = [step(model, optimizer) for _ in range(3)]
    model, optimizer, checkpoint = made()
    status = checkpoint.read(path)
    assert [step(model, optimizer) for _ in range(3)] == expected  # dropout draws the same
    status.assert_consumed()


def test_a_build_that_fails_leaves_the_values_waiting(folder):
    class Fragile(layers.Layer):
        broken = False

        def build(self, input_shape):
            self.w = self.add_weight((2,), name="w")
            if Fragile.broken:
                raise RuntimeError("broken")

        def call(self, x):
            return x * self.w

    layer = Fragile()
    layer.build((None, 2))
    path = tf.train.Checkpoint(layer=layer).write(folder + "/here")
    Fragile.broken, again = True, Fragile()
    status = tf.train.Checkpoint(layer=again).read(path)
    with pytest.raises(RuntimeError, match="broken"):
        again.build((None, 2))
    Fragile.broken = False
    again.build((None, 2))
    assert np.array_equal(again.w, layer.w)
    status.assert_consumed()


def test_a_step_that_fails_and_unbuilds_the_model_leaves_the_values_waiting(folder):
    def made():
        model = tf.keras.Sequential([layers.Dense(2), layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.1), "mse")
        return model, tf.train.Checkpoint(model=model)

    model, checkpoint = made()
    y = DATA[:, :1]
    model.fit(DATA, y, verbose=0, shuffle=False)
    path = checkpoint.write(folder + "/here")
    expected = model.train_on_batch(DATA, y), model.get_weights()
    model, checkpoint = made()
    status = checkpoint.read(path)
    with pytest.raises(ValueError):
        model.train_on_batch(DATA, np.ones((16, 3), "float32"))
    assert not model.built
    assert model.train_on_batch(DATA, y) == expected[0]
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), expected[1], strict=True))
    status.assert_consumed()


def test_restoring_and_saving_again_loses_no_slots(folder):
    model, optimizer = dense_model(), tf.keras.optimizers.Adam(0.1)
    step(model, optimizer)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).write(folder + "/first")
    fresh = tf.keras.optimizers.Adam(0.1)
    tf.train.Checkpoint(model=model, optimizer=fresh).read(path).assert_consumed()
    again = tf.train.Checkpoint(model=model, optimizer=fresh).write(folder + "/second")
    assert tf.train.list_variables(path) == tf.train.list_variables(again)
    assert [v.name for v in fresh.variables] == [v.name for v in optimizer.variables]


def test_an_optimizer_without_its_model_is_matched_by_number(folder):
    model, optimizer = dense_model(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
    step(model, optimizer)
    path = tf.train.Checkpoint(optimizer=optimizer).write(folder + "/alone")
    together = tf.train.Checkpoint(model=model, optimizer=optimizer).write(folder + "/together")
    other = tf.keras.optimizers.SGD(0.5, momentum=0.9)
    other.build(model.trainable_variables)
    for source in (path, together):
        tf.train.Checkpoint(optimizer=other).read(source).assert_existing_objects_matched().expect_partial()
        pairs = zip(other.variables, optimizer.variables, strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_optimizers_within_optimizers_come_back(folder):
    model = dense_model()
    rules = {"dense*": tf.keras.optimizers.Adam(0.1), "*": tf.keras.optimizers.SGD(0.1, momentum=0.9)}
    optimizer = tf.keras.optimizers.PerLayer(rules)
    step(model, optimizer)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).write(folder + "/here")
    expected = [variable.numpy() for variable in optimizer.variables]
    step(model, optimizer)
    tf.train.Checkpoint(model=model, optimizer=optimizer).read(path).assert_consumed()
    assert all(np.array_equal(a, b) for a, b in zip(optimizer.variables, expected, strict=True))


def test_a_copy_of_what_waits_waits_too(folder):
    path = tf.train.Checkpoint(m=Waiting(1.0)).write(folder + "/here")
    m = tf.Module()
    tf.train.Checkpoint(m=m).read(path).expect_partial()
    twin = copy.deepcopy(m)
    m.v = tf.Variable(0.0)
    assert float(m.v) == 1.0 and not hasattr(twin, "v")


class Waiting(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.v = tf.Variable(value)


# Writing in the background ------------------------------------------------------------------------------------------------


def test_an_asynchronous_save_holds_the_values_of_its_moment(folder):
    model, optimizer = dense_model(), tf.keras.optimizers.Adam(0.1)
    step(model, optimizer)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    before = model.get_weights()
    path = checkpoint.save(folder + "/ckpt", options=tf.train.CheckpointOptions(enable_async=True))
    for _ in range(5):
        step(model, optimizer)  # writes into memory without another reference
    checkpoint.sync()
    checkpoint.restore(path).assert_consumed()
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), before, strict=True))


def test_an_error_of_an_asynchronous_save_shows_at_the_next_call(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    options = tf.train.CheckpointOptions(enable_async=True)
    checkpoint.write(tmp_path / "file" / "ckpt", options)
    with pytest.raises(OSError):
        checkpoint.sync()
    checkpoint.sync()
    checkpoint.write(tmp_path / "file" / "ckpt", options)
    with pytest.raises(OSError):
        checkpoint.write(tmp_path / "ckpt")
    checkpoint.write(tmp_path / "ckpt")


# On the disk ---------------------------------------------------------------------------------------------------------------


def test_writing_over_a_checkpoint_leaves_one_file_of_arrays(folder):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    for value in (1.0, 2.0):
        v.assign(value)
        path = checkpoint.write(folder + "/here")
    assert len([name for name in os.listdir(folder) if "data" in name]) == 1
    assert tf.train.load_variable(path, "v") == 2.0


def test_a_failed_save_does_not_count_and_leaves_the_old_ones(folder, monkeypatch):
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, 1)
    manager.save()
    with monkeypatch.context() as patch:
        patch.setattr(bundle.durable.os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            manager.save()
    assert manager.checkpoints == [folder + "/ckpt-1"] and int(manager.checkpoint.save_counter) == 1
    assert sorted(os.listdir(folder)) == sorted(
        [".writer.lock", "checkpoint", "ckpt-1.index", *(n for n in os.listdir(folder) if n.startswith("ckpt-1.data"))]
    )


@pytest.mark.parametrize("what", ["index", "data", "checkpoint"])
@pytest.mark.parametrize("how", ["flip", "cut", "remove", "swap", "folder", "link"])
def test_a_damaged_newest_checkpoint_is_passed_over_and_reported(folder, caplog, what, how):
    v = tf.Variable([1.0, 2.0])
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, 3)
    first = manager.save()
    v.assign([3.0, 4.0])
    second = manager.save()
    names = {"index": "ckpt-2.index", "checkpoint": "checkpoint"}
    name = names.get(what) or next(name for name in os.listdir(folder) if name.startswith("ckpt-2.data"))
    target = os.path.join(folder, name)
    with open(target, "rb") as stream:
        content = stream.read()
    os.unlink(target)
    if how in ("flip", "cut"):
        middle = len(content) // 2
        changed = content[:middle] + (bytes([content[middle] ^ 1]) + content[middle + 1 :] if how == "flip" else b"")
        with open(target, "wb") as stream:
            stream.write(changed)
    elif how == "swap":
        other = target.replace("ckpt-2", "ckpt-1")
        twin = next(n for n in os.listdir(folder) if n.startswith("ckpt-1.data")) if what == "data" else os.path.basename(other)
        if what != "checkpoint":
            os.link(os.path.join(folder, twin), target)
    elif how == "folder":
        os.mkdir(target)
    elif how == "link":
        os.symlink("/dev/zero", target)
    if what == "checkpoint":
        assert tf.train.latest_checkpoint(folder) == second
    elif what == "index" and how == "swap":
        # Another index with the right bytes is another checkpoint under this name; what it holds is complete.
        assert tf.train.load_variable(tf.train.latest_checkpoint(folder), "v").tolist() == [1.0, 2.0]
    else:
        with pytest.raises((LoadError, tf.errors.NotFoundError)):
            tf.train.Checkpoint(v=v).restore(second)
        assert v.numpy().tolist() == [3.0, 4.0]
        assert tf.train.latest_checkpoint(folder) == first
        assert (what == "index" and how == "remove") or "is skipped" in caplog.text


def test_if_no_checkpoint_is_complete_training_does_not_start_anew_unseen(folder):
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, 3, init_fn=pytest.fail)
    manager.save()
    data = next(name for name in os.listdir(folder) if "data" in name)
    os.truncate(os.path.join(folder, data), 20)
    with pytest.raises(LoadError, match="none of the 1 checkpoints is complete"):
        manager.restore_or_initialize()


def test_a_manager_deletes_only_files_that_checkpoints_made(folder):
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, 1)
    manager.save()
    strangers = ["ckpt-1.data-notes.txt", "ckpt-1.data-0123456789abcdef.safetensors.bak", "ckpt-10.index.txt"]
    for name in strangers:
        open(os.path.join(folder, name), "w").close()
    manager.save()
    assert set(strangers) <= set(os.listdir(folder)) and "ckpt-1.index" not in os.listdir(folder)


def test_no_module_is_imported_and_nothing_opened_but_the_checkpoint(folder):
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).write(folder + "/here")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(0.0))
    checkpoint.read(path)
    with audited() as seen:
        checkpoint.read(path)
    assert [event for event, _ in seen] == ["open", "open"] and all(name.startswith(folder) for _, name in seen)


def test_what_a_killed_save_left_behind_is_removed_by_the_next_one(folder):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    kept = checkpoint.write(folder + "/kept")
    leftovers = [".ckpt-3.index.tmp-4194304-aa", "ckpt-3.data-0123456789abcdef.safetensors"]  # no process has this number
    for name in leftovers:
        open(os.path.join(folder, name), "w").close()
    checkpoint.write(folder + "/other")
    assert not set(leftovers) & set(os.listdir(folder))
    checkpoint.read(kept).assert_consumed()


def test_arrays_that_a_copied_index_names_are_not_removed(folder):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, folder, 1)
    manager.save()
    shutil.copy(folder + "/ckpt-1.index", folder + "/best.index")
    checkpoint.v.assign(2.0)
    manager.save()
    checkpoint.read(folder + "/best")
    assert float(checkpoint.v) == 1.0


# Several writers, and damage ---------------------------------------------------------------------------------------------


def manager_of(folder, value, **options):
    v = tf.Variable(value)
    return v, tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, **{"max_to_keep": 2, **options})


@pytest.mark.parametrize("names", [("ckpt", "ckpt"), ("one", "two")])
def test_two_managers_of_a_folder_neither_replace_nor_delete_what_the_other_saved(folder, names):
    (v, first), (w, second) = (manager_of(folder, float(i), checkpoint_name=name) for i, name in enumerate(names))
    saved = []
    for _ in range(4):
        for variable, manager in ((v, first), (w, second)):
            variable.assign_add(10.0)
            saved.append((manager.save(), float(variable)))
    kept = [pair for pair in saved[-4:]]
    assert len({path for path, _ in saved}) == len(saved)
    assert [float(tf.train.load_variable(path, "v")) for path, _ in kept] == [value for _, value in kept]
    assert sorted(first.checkpoints + second.checkpoints) == sorted(path for path, _ in kept)
    assert len([name for name in os.listdir(folder) if name.endswith(".safetensors")]) == 4
    assert tf.train.latest_checkpoint(folder) == saved[-1][0]


def test_a_manager_keeps_to_its_limit_over_what_a_program_left_that_has_ended(folder):
    for _ in range(3):
        v, manager = manager_of(folder, 1.0)
        manager.restore_or_initialize()
        manager.save()
        del manager
    assert len([name for name in os.listdir(folder) if name.endswith(".index")]) == 2


def test_a_manager_does_not_delete_what_another_saved_under_a_name_that_had_become_free(folder):
    manager_of(folder, 1.0)[1].save()
    (_, first), (_, second), (_, third) = (manager_of(folder, value, max_to_keep=1) for value in (2.0, 3.0, 4.0))
    second.save(), second.save()  # all three know ckpt-1 of a writer that is gone; now the name is free
    path = third.save(checkpoint_number=1)
    first.save()
    assert float(tf.train.load_variable(path, "v")) == 4.0


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return bytes(content)


@pytest.mark.parametrize("ending", [".index", ".safetensors"])
def test_one_wrong_bit_in_the_only_checkpoint_is_no_fresh_start(folder, ending):
    manager_of(folder, 1.0)[1].save()
    (name,) = (one for one in os.listdir(folder) if one.endswith(ending))
    content = damage(Path(folder, name))
    started = []
    v, manager = manager_of(folder, 2.0, init_fn=lambda: started.append(True))
    with pytest.raises(LoadError, match="none of the 1 checkpoints is complete"):
        manager.restore_or_initialize()
    with pytest.raises(LoadError, match="none of the 1 checkpoints is complete"):
        tf.train.latest_checkpoint(folder)
    assert not started
    if ending == ".index":
        path = manager.save()
        assert os.path.basename(path) == "ckpt-2" and Path(folder, name).read_bytes() == content
        assert float(tf.train.load_variable(path, "v")) == 2.0
        assert tf.train.latest_checkpoint(folder) == path


def test_numbered_saves_of_a_checkpoint_pass_over_those_of_another(folder):
    checkpoints = [tf.train.Checkpoint(v=tf.Variable(float(i))) for i in range(2)]
    paths = [one.save(os.path.join(folder, "ckpt")) for one in checkpoints]
    assert [os.path.basename(path) for path in paths] == ["ckpt-1", "ckpt-2"]
    assert [float(tf.train.load_variable(path, "v")) for path in paths] == [0.0, 1.0]


def test_a_number_that_was_asked_for_is_refused_if_another_program_has_it(folder):
    (_, first), (_, second) = manager_of(folder, 1.0), manager_of(folder, 2.0)
    first.save(checkpoint_number=7)
    with pytest.raises(tf.errors.CheckpointBusyError, match="ckpt-7: a checkpoint of this name belongs to another program"):
        second.save(checkpoint_number=7)
    assert float(tf.train.load_variable(os.path.join(folder, "ckpt-7"), "v")) == 1.0


def test_what_a_save_that_failed_has_left_is_replaced_by_the_next_one(folder, monkeypatch):
    made = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = tf.train.CheckpointManager(made, folder, 3)
    first.save()
    monkeypatch.setattr(bundle, "write_list", lambda *arguments: raises(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        first.save()
    monkeypatch.undo()
    second = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(2.0)), folder, 3)
    path = second.save(checkpoint_number=2)
    assert tf.train.load_checkpoint(path).get_tensor("v") == 2.0


def raises(error):
    raise error


def test_a_second_manager_of_a_program_goes_on_where_the_first_one_stands(folder):
    """As in a notebook whose cell is run again while the first manager is still held somewhere."""
    made = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = tf.train.CheckpointManager(made, folder, 2)
    paths = [first.save(), first.save()]
    second = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(2.0)), folder, 2)
    assert second.checkpoints == paths and second.latest_checkpoint == paths[-1]
    assert second.save() == os.path.join(folder, "ckpt-3") and second.checkpoints == [paths[-1], second.latest_checkpoint]


def test_what_is_added_to_a_list_later_is_restored(folder):
    saved = tf.train.Checkpoint(listed=[tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)])
    path = saved.save(folder + "/c")
    later = tf.train.Checkpoint()
    status = later.restore(path)
    later.listed = own = []
    new = [tf.Variable(0.0) for _ in range(3)]
    later.listed.append(new[0])
    assert new[0].numpy() == 1.0 and new[1].numpy() == 0.0
    later.listed += new[1:2]
    assert own == new[:2] and new[1].numpy() == 2.0
    later.listed.extend(new[2:])
    assert new[2].numpy() == 3.0
    status.assert_consumed()
    assert later.listed is own == new


def test_a_copy_of_the_status_is_of_the_same_restoration(folder):
    saved, late = layers.Dense(2), layers.Dense(2)
    saved.build((None, 3))
    path = tf.train.Checkpoint(layer=saved).write(f"{folder}/one")
    status = copy.deepcopy(tf.train.Checkpoint(layer=late).restore(path))
    late.build((None, 3))
    status.assert_consumed()
