"""The pages of differences say what is true, here and there."""

import importlib.util
import os
import subprocess
import sys

import pytest
from in_one_test import in_one_test

import minikeras

from . import PEERS, agrees, outcome, sections
from .pages import DOCS, page, path

ROWS = [row for peer in PEERS for section in sections(peer) for row in section.rows]


@in_one_test(row=ROWS)
def test_the_code_of_a_row_gives_what_its_column_says(row):
    minikeras.keras.utils.clear_session()
    found = outcome(row.code, minikeras)
    assert agrees(found, row.ours), found


def test_a_row_is_a_difference_and_has_a_reason():
    for row in ROWS:
        assert row.ours != row.theirs, row
        assert row.why and not row.why.endswith(".") and not row.why[0].isupper(), row


@pytest.mark.parametrize("peer", PEERS)
def test_the_page_is_written_from_the_rows(peer):
    assert path(peer).read_text() == page(peer), "run python -m tests.differences"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
def test_keras_gives_what_its_column_says():
    """In a process of its own, since Keras warns and holds a backend."""
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.differences", "check", "keras"]
    done = subprocess.run(command, cwd=DOCS.parent, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
