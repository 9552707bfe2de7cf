"""What several ranks leave behind: files and lines of the first one, and training that goes on with fewer ranks."""

import numpy as np
import pytest
from trained import X, Y, assert_same, on_ranks, trained

import minikeras as tf

callbacks = tf.keras.callbacks


def test_the_first_rank_writes_and_all_know_what_was_best(tmp_path, capsys):
    def work():
        keep = callbacks.ModelCheckpoint(tmp_path / "best.keras", "loss", save_best_only=True, verbose=1)
        lines = callbacks.CSVLogger(tmp_path / "log.csv")
        model, history = trained({}, callbacks=[keep, lines], verbose=2)
        found = tf.keras.models.load_model(tmp_path / "best.keras").get_weights()
        return keep.best, history, found, model.get_weights()

    results = on_ranks(3, work)
    assert len({best for best, *_ in results}) == 1
    for _, _, found, weights in results:
        assert all((one == other).all() for one, other in zip(found, weights, strict=True))
    assert (tmp_path / "log.csv").read_text().count("\n") == 4
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("saving model to") == 3
    assert (shown.out + shown.err).count("Epoch 1/3") == 1


class Killed(Exception):
    """Stands for the end of a process."""


class KillAt(callbacks.Callback):
    """Raises after so many steps."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        self.step -= 1
        if not self.step:
            raise Killed


def saved(folder):
    return callbacks.BackupAndRestore(folder, save_freq=2)


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 1), (4, 4), (1, 2)])
def test_killed_and_restarted_with_other_ranks_it_has_the_bits_of_the_uninterrupted_run(before, after, tmp_path):
    shards = {"virtual_shards": 4}
    options = {"epochs": 3, "compile": lambda: {"metrics": ["accuracy"]}, "validation_data": (X[:9], Y[:9])}
    whole = on_ranks(1, lambda: trained(shards, callbacks=[saved(tmp_path / "whole")], **options))[0]
    with pytest.raises(Killed):
        on_ranks(before, lambda: trained(shards, callbacks=[KillAt(7), saved(tmp_path / "state")], **options))
    again = lambda: trained(shards, callbacks=[KillAt(100), saved(tmp_path / "state")], **options)
    for found in on_ranks(after, again):
        assert_same(found, whole)
    assert not (tmp_path / "state").exists()


def test_without_virtual_shards_a_restart_with_as_many_ranks_has_the_same_bits(tmp_path):
    whole = on_ranks(2, lambda: trained({}))[0]
    with pytest.raises(Killed):
        on_ranks(2, lambda: trained({}, callbacks=[KillAt(5), saved(tmp_path / "state")]))
    for found in on_ranks(2, lambda: trained({}, callbacks=[KillAt(100), saved(tmp_path / "state")])):
        assert_same(found, whole)


def test_early_stopping_and_schedules_decide_alike_on_all_ranks():
    def work():
        stop = callbacks.EarlyStopping("loss", patience=1, min_delta=10.0, restore_best_weights=True)
        slower = callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10.0)
        model, history = trained({}, callbacks=[stop, slower], epochs=9)
        return model, history, float(model.optimizer.learning_rate)

    found = on_ranks(3, work)
    for model, history, rate in found:
        assert_same((model, history), found[0][:2])
        assert len(history["loss"]) < 9 and rate == found[0][2]


def test_logs_of_batches_are_those_of_all_rows():
    class Logs(callbacks.Callback):
        def __init__(self):
            self.found = []

        def on_train_batch_end(self, batch, logs=None):
            self.found.append(logs["loss"])

    def work(options):
        logs = Logs()
        trained(options, callbacks=[logs], epochs=1)
        return logs.found

    expected = work(None)
    for found in on_ranks(3, lambda: work({})):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
