"""Every fault with small counts; `python -m tests.faults` runs the full ones."""

import sys

import pytest
from slow import mostly_slow

pytest.importorskip("safetensors")
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed"),
    pytest.mark.filterwarnings("ignore"),
]

from . import damaging, failing, fuzzing, killing, kinds, restoring, resuming, writing  # noqa: E402


def by_name(tested, plain):
    return pytest.mark.parametrize("kind", mostly_slow(tested, plain), ids=lambda kind: kind.name)


@pytest.fixture(autouse=True)
def fresh_session():
    import minikeras as tf
    from minikeras.nn_ops import streams

    before = streams.states()
    tf.keras.utils.clear_session()
    yield
    streams.set_states(before)


@by_name(kinds.KINDS[1:], kinds.WHOLE)
def test_a_killed_save_leaves_the_last_acknowledged_state(kind):
    assert killing.killed(kind, 4, seed=1).bad == 0


@pytest.mark.parametrize("same_name", [True, False])
@pytest.mark.parametrize("writers", [2, 4])
def test_what_several_writers_of_a_folder_save_stays(writers, same_name):
    row = writing.written(writers, 48, same_name)
    assert row.bad == 0, row


@by_name(kinds.KINDS, kinds.CHECKPOINT)
def test_a_flipped_bit_never_gives_a_wrong_number(kind):
    assert damaging.flipped(kind, 40, seed=2).bad == 0


@by_name(kinds.KINDS, kinds.CHECKPOINT)
def test_a_file_that_is_cut_off_is_refused(kind):
    assert damaging.cut(kind, step=23).bad == 0


@by_name(kinds.KINDS, kinds.WHOLE)
def test_a_save_that_fails_at_any_call_leaves_the_old_state(kind):
    assert failing.failing(kind).bad == 0


def test_training_that_was_broken_off_ends_as_it_would_have():
    row = resuming.resumed(len(resuming.OPTIMIZERS), seed=3)
    assert row.bad == 0, row


def test_a_custom_loop_that_was_broken_off_ends_as_it_would_have():
    assert resuming.resumed_loops(3, seed=4).bad == 0


def test_the_number_of_loaders_is_that_of_the_table(tmp_path):
    assert len(fuzzing.loaders(tmp_path)) == fuzzing.LOADERS


@pytest.mark.parametrize("number", mostly_slow(range(fuzzing.LOADERS), 0, 1))
def test_mutated_files_are_refused_or_good(number):
    row = fuzzing.fuzzed(number, 60, seed=5)
    assert row.bad == 0, row


def test_the_restore_of_a_large_checkpoint_is_timed():
    assert "safetensors alone" in restoring.timed(1, 1).note
