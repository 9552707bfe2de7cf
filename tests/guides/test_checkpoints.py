"""Checkpoints as TensorFlow's guides use them: T128 to T133 of the list of behaviours."""

import os

import numpy as np
import pytest

import minikeras as tf

pytest.importorskip("safetensors")

KEY = "/.ATTRIBUTES/VARIABLE_VALUE"


class Net(tf.Module):
    """Variables as an attribute, in a list, in a dict and in a module."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.first = tf.Variable([start, start])
        self.several = [tf.Variable(start), {"deep": tf.Variable(start)}]


def values(net):
    return [variable.numpy().tolist() for variable in net.variables]


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "checkpoints")


def test_save_counts_from_one_and_notes_the_newest_in_the_folder(folder):
    """T128."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert checkpoint.save(folder + "/ckpt") == folder + "/ckpt-1"
    assert checkpoint.save(folder + "/ckpt") == folder + "/ckpt-2"
    assert int(checkpoint.save_counter) == 2
    assert os.path.exists(folder + "/checkpoint") and os.path.exists(folder + "/ckpt-2.index")


def test_the_attributes_of_a_root_are_those_of_the_checkpoint(folder):
    """T128."""
    path = tf.train.Checkpoint(Net(3.0)).write(folder + "/here")
    assert ("first" + KEY, [2]) in tf.train.list_variables(path)
    net = Net()
    tf.train.Checkpoint(root=net).read(path).assert_consumed()
    assert values(net) == [[3.0, 3.0], 3.0, 3.0]


def test_write_and_read_do_not_count(folder):
    """T128."""
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    assert checkpoint.write(folder + "/here") == folder + "/here"
    v.assign(5.0)
    checkpoint.read(folder + "/here").assert_consumed()
    assert float(v) == 1.0 and [key for key, _ in tf.train.list_variables(folder + "/here")] == ["v" + KEY]
    assert tf.train.latest_checkpoint(folder) is None


def test_a_complete_match_satisfies_every_question(folder):
    """T129."""
    path = tf.train.Checkpoint(net=Net(1.0)).save(folder + "/ckpt")
    status = tf.train.Checkpoint(net=Net()).restore(path)
    assert status.assert_consumed() is status
    status.assert_existing_objects_matched().assert_nontrivial_match().expect_partial()


def test_saved_values_without_an_object_are_named(folder):
    """T129."""
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(folder + "/ckpt")
    status = tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path)
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"values without an object \(1\):\n    b"):
        status.assert_consumed()


def test_objects_without_a_saved_value_are_named(folder):
    """T129."""
    path = tf.train.Checkpoint(a=tf.Variable(1.0)).save(folder + "/ckpt")
    status = tf.train.Checkpoint(a=tf.Variable(0.0), c=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match=r"objects without a value \(1\):\n    c"):
        status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="objects without a value"):
        status.assert_consumed()


def test_values_that_are_never_used_are_logged_unless_that_is_expected(folder, caplog):
    """T129."""
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(folder + "/ckpt")
    a = tf.Variable(0.0)
    tf.train.Checkpoint(a=a).restore(path).expect_partial()
    assert not caplog.records
    tf.train.Checkpoint(a=a).restore(path)
    assert "1 values" in caplog.text and "never used: b" in caplog.text


def test_restoring_nothing_is_no_error_until_it_is_asked(folder):
    """T129."""
    status = tf.train.Checkpoint(v=tf.Variable(1.0)).restore(tf.train.latest_checkpoint(folder))
    status.expect_partial()
    for question in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            question()


def test_a_missing_file_is_a_not_found_error(folder):
    """T129."""
    with pytest.raises(tf.errors.NotFoundError, match=r"ckpt-7' not found"):
        tf.train.Checkpoint(v=tf.Variable(1.0)).restore(folder + "/ckpt-7")


def test_another_shape_is_refused_with_the_whole_difference_and_nothing_changes(folder):
    """T129."""
    saved = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Variable(1.0), old=tf.Variable(1.0))
    path = saved.save(folder + "/ckpt")
    a, b = tf.Variable([0.0, 0.0, 0.0]), tf.Variable(0.0)
    with pytest.raises(ValueError) as caught:
        tf.train.Checkpoint(a=a, b=b, new=tf.Variable(0.0)).restore(path)
    message = str(caught.value)
    assert "'a': saved with shape (2,), the Variable has (3,)" in message
    assert "not in the checkpoint (1):\n    new" in message and "nowhere to put (1):\n    old" in message
    assert float(b) == 0.0


@pytest.mark.parametrize("wrong", [3, "text", None, np.ones(2), object()], ids=lambda wrong: type(wrong).__name__)
def test_what_cannot_be_tracked_is_refused(wrong):
    """T129."""
    with pytest.raises(ValueError, match="was expected to be a trackable object"):
        tf.train.Checkpoint(v=wrong)


def test_attributes_that_are_set_later_take_their_values(folder):
    """T130."""
    path = tf.train.Checkpoint(net=Net(4.0)).save(folder + "/ckpt")
    net = tf.Module()
    status = tf.train.Checkpoint(net=net).restore(path)
    net.first = tf.Variable([0.0, 0.0])
    assert net.first.numpy().tolist() == [4.0, 4.0]
    net.several = [tf.Variable(0.0), {"deep": tf.Variable(0.0)}]
    assert [float(net.several[0]), float(net.several[1]["deep"])] == [4.0, 4.0]
    status.assert_consumed()


def test_a_checkpoint_takes_attributes_of_its_own_later(folder):
    """T130."""
    path = tf.train.Checkpoint(v=tf.Variable(4.0)).save(folder + "/ckpt")
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.v = tf.Variable(0.0)
    assert float(checkpoint.v) == 4.0
    status.assert_consumed()


def test_values_wait_although_checkpoint_and_status_are_gone(folder):
    """T130."""
    path = tf.train.Checkpoint(net=Net(4.0)).save(folder + "/ckpt")
    net = tf.Module()
    tf.train.Checkpoint(net=net).restore(path).expect_partial()
    net.first = tf.Variable([0.0, 0.0])
    assert net.first.numpy().tolist() == [4.0, 4.0]


def test_another_shape_is_refused_also_when_the_attribute_comes_later(folder):
    """T130."""
    path = tf.train.Checkpoint(net=Net(4.0)).save(folder + "/ckpt")
    net = tf.Module()
    status = tf.train.Checkpoint(net=net).restore(path).expect_partial()
    with pytest.raises(ValueError, match=r"'net/first': saved with shape \(2,\), the Variable has \(5,\)"):
        net.first = tf.Variable(tf.zeros([5]))
    del status


def test_lists_and_dicts_are_walked_by_the_path_of_attributes(folder):
    """T130."""
    path = tf.train.Checkpoint(m=Net(1.0), l=[tf.Variable(1.0), tf.Variable(2.0)]).write(folder + "/here")
    keys = [key for key, _ in tf.train.list_variables(path)]
    assert keys == [name + KEY for name in ("l/0", "l/1", "m/first", "m/several/0", "m/several/1/deep")]


def test_the_losses_after_a_restore_repeat_exactly(folder):
    """T131."""
    data = tf.constant(np.random.default_rng(0).standard_normal((8, 3)), "float32")

    def made():
        tf.random.set_seed(3)
        model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam(0.1)
        return model, optimizer, tf.train.Checkpoint(model=model, optimizer=optimizer)

    def losses(model, optimizer, steps):
        found = []
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(data) - 1.0))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            found.append(float(loss))
        return found

    model, optimizer, checkpoint = made()
    losses(model, optimizer, 3)
    path = checkpoint.save(folder + "/ckpt")
    expected = losses(model, optimizer, 3)

    checkpoint.restore(path).assert_consumed()
    assert losses(model, optimizer, 3) == expected
    # in new objects too, of which neither weights nor slots are made yet
    model, optimizer, checkpoint = made()
    status = checkpoint.restore(path)
    assert losses(model, optimizer, 3) == expected
    status.assert_consumed()


def test_a_manager_keeps_the_last_ones_oldest_first(folder):
    """T132."""
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    assert [manager.save() for _ in range(3)] == [f"{folder}/ckpt-{number}" for number in (1, 2, 3)]
    assert manager.checkpoints == [folder + "/ckpt-2", folder + "/ckpt-3"]
    assert manager.latest_checkpoint == folder + "/ckpt-3"
    assert sorted(name for name in os.listdir(folder) if name.endswith(".index")) == ["ckpt-2.index", "ckpt-3.index"]


def test_restore_or_initialize_restores_the_last_one_or_calls_the_function(folder):
    """T132."""
    v, calls = tf.Variable(1.0), []
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3, init_fn=lambda: calls.append(1))
    assert manager.restore_or_initialize() is None and calls == [1]
    manager.save()
    v.assign(9.0)
    assert manager.restore_or_initialize() == folder + "/ckpt-1" and float(v) == 1.0 and calls == [1]


def test_a_new_manager_reads_what_the_folder_holds(folder):
    """T132."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    for _ in range(3):
        first.save()
    second = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    assert second.checkpoints == first.checkpoints
    second.restore_or_initialize()
    assert second.save() == folder + "/ckpt-4" and second.checkpoints == [folder + "/ckpt-3", folder + "/ckpt-4"]


def test_none_keeps_all_and_less_than_one_is_refused(folder):
    """T132."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=None)
    for _ in range(7):
        manager.save()
    assert len(manager.checkpoints) == 7
    with pytest.raises(ValueError, match="positive integer or None for `max_to_keep`"):
        tf.train.CheckpointManager(checkpoint, folder, max_to_keep=0)


def test_with_an_interval_saves_in_between_return_none(folder):
    """T132."""
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step), folder, 5, checkpoint_name="model", step_counter=step, checkpoint_interval=3
    )
    saved = []
    for _ in range(7):
        step.assign_add(1)
        saved.append(manager.save())
    assert [path is not None for path in saved] == [True, False, False, True, False, False, True]
    assert manager.save(check_interval=False) is not None
    with pytest.raises(ValueError, match="`step_counter` is needed"):
        tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, 5, checkpoint_interval=3)


def test_a_number_of_ones_own_stands_in_the_name(folder):
    """T132."""
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, 5)
    assert manager.save(checkpoint_number=100) == folder + "/ckpt-100"
    manager.checkpoint_interval = 5  # of a counter that there is not
    assert manager.save(tf.Variable(101)) == folder + "/ckpt-101"


def test_some_are_kept_for_good_every_n_hours(folder, monkeypatch):
    """T132."""
    from minikeras import bundle

    now = 1e9
    monkeypatch.setattr(bundle.time, "time", lambda: now)
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, folder, 1, keep_checkpoint_every_n_hours=2.0)
    for _ in range(6):
        manager.save()
        now += 3600.0
    kept = sorted(name.removesuffix(".index") for name in os.listdir(folder) if name.endswith(".index"))
    assert kept == ["ckpt-1", "ckpt-3", "ckpt-5", "ckpt-6"] and manager.checkpoints == [folder + "/ckpt-6"]
    again = tf.train.CheckpointManager(checkpoint, folder, 1, keep_checkpoint_every_n_hours=2.0)
    assert again.checkpoints == manager.checkpoints


def test_latest_checkpoint_of_a_folder_without_any_is_none(tmp_path):
    """T133."""
    assert tf.train.latest_checkpoint(tmp_path) is None and tf.train.latest_checkpoint(tmp_path / "missing") is None


def test_variables_are_listed_and_loaded_by_key(folder):
    """T133."""
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(folder + "/ckpt")
    assert tf.train.latest_checkpoint(folder) == path
    assert tf.train.list_variables(folder) == [("save_counter" + KEY, []), ("v" + KEY, [2])]
    assert tf.train.load_variable(folder, "v" + KEY).tolist() == [1.0, 2.0]
    reader = tf.train.load_checkpoint(path)
    assert reader.has_tensor("v" + KEY) and reader.get_variable_to_shape_map()["v" + KEY] == [2]
    assert reader.get_variable_to_dtype_map()["v" + KEY] == tf.float32
    with pytest.raises(tf.errors.NotFoundError, match="Key w not found in checkpoint"):
        reader.get_tensor("w")
