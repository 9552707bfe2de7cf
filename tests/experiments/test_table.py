"""Tables of results: aligned, no wider than the terminal, whole in HTML and pandas."""

from html.parser import HTMLParser

import numpy as np
import pytest

import minikeras as tf

ROWS = [
    {"optimizer": "Adam", "rate": 1e-3, "loss": 0.0123456, "steps": 200},
    {"optimizer": "SGD & co <fast>", "rate": 0.1, "loss": float("nan"), "error": "ValueError: the steps\nare too long " * 4},
]


def test_numbers_stand_right_and_texts_left():
    lines = str(tf.experiments.Table([{"name": "a", "n": 1}, {"name": "long", "n": 100}], "Two rows")).splitlines()
    assert lines == ["Two rows", "name    n", "────  ───", "a       1", "long  100"]


@pytest.mark.parametrize("width", [20, 50, 70, 100, 1000])
def test_lines_fit_into_the_terminal_and_say_what_is_left_out(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = repr(tf.experiments.Table(ROWS))
    assert max(map(len, text.splitlines())) <= max(width, 50)
    assert ("…" in text) == (width < 1000) and text.startswith("opt")


def test_a_row_that_lacks_a_column_is_empty_there():
    table = tf.experiments.Table(ROWS)
    assert table.columns["steps"] == [200, None] and len(table) == 2
    assert [row["error"] is None for row in table] == [True, False]


def test_digits_are_those_that_a_column_needs():
    values = [np.float32(0.1), 1e-3], [1 / 3, 0.5], [12345.678, 2e-7], [None, np.int64(7)], [True, np.bool_(False)]
    shown = [str(tf.experiments.Table([{"v": v} for v in column])).split()[2:] for column in values]
    assert shown == [["0.1", "0.001"], ["0.3333", "0.5000"], ["1.235e+04", "2e-07".replace("2", "2.000")], ["7"], ["yes", "no"]]


def test_a_long_table_is_cut_in_the_terminal_only():
    table = tf.experiments.Table({"i": i} for i in range(130))
    assert str(table).endswith("\n99\n… and 30 more rows") and table._repr_html_().count("<tr>") == 131


def test_html_holds_every_cell_and_no_text_becomes_markup():
    class Cells(HTMLParser):
        found: list[str] = []

        def handle_data(self, data):
            self.found.append(data)

    parser = Cells()
    parser.feed(tf.experiments.Table(ROWS, "a < b")._repr_html_())
    assert parser.found[:2] == ["a < b", "optimizer"] and "SGD & co <fast>" in parser.found
    assert any(text.endswith("are too long") for text in parser.found)


def test_a_data_frame_has_the_whole_values():
    pandas = pytest.importorskip("pandas")
    frame = tf.experiments.Table(ROWS).to_pandas()
    assert list(frame.columns) == ["optimizer", "rate", "loss", "steps", "error"]
    assert frame.loss[0] == 0.0123456 and pandas.isna(frame.steps[1])
    assert tf.experiments.Table([]).to_pandas().empty


def test_no_rows_are_no_error():
    assert str(tf.experiments.Table([], "empty")) == "empty\n(no rows)"
    assert str(tf.experiments.Table([{}, {}])) == "(no rows)"
