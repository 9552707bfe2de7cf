"""What fit, evaluate and predict show: nothing, a line an epoch, or a live bar on a terminal."""

from __future__ import annotations

import fcntl
import importlib.util
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

import minikeras as tf
from minikeras.keras.callbacks.progress_bar import readable

X, Y = np.ones((12, 3), "float32"), np.zeros((12, 1), "float32")
EPOCH = r"Epoch {}/{}: {} steps? in \d+\.\d s, loss \d\.\d{{4}}, mae \d\.\d{{4}}"


def made():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    return model


SCRIPT = """
import sys, time
import numpy as np
import minikeras as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(tf.keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
x, y = np.ones((12, 3), "float32"), np.zeros((12, 1), "float32")

class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.11)  # tqdm draws at most every tenth of a second
        if len(sys.argv) > 1 and batch == 1:
            raise RuntimeError("broken off")

try:
    model.fit(x, y, batch_size=4, epochs=2, validation_split=0.25, callbacks=[Slow()])
    model.evaluate(x, y)
    model.predict(x)
except RuntimeError as error:
    print(error)
"""


def on_a_terminal(*arguments):
    """All that a terminal of 100 columns gets from the script."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-W", "error", "-c", SCRIPT, *arguments]
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside)
    os.close(inside)
    written = b""
    try:
        while select.select([terminal], [], [], 60)[0] and (part := os.read(terminal, 65536)):
            written += part
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(terminal)
    assert process.wait(timeout=60) == 0, written.decode()
    return written.decode()


def shown(text):
    """The lines that are left on the screen: a carriage return starts a line anew, over what is there."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        screen = ""
        for part in line.split("\r"):
            screen = part + screen[len(part) :]
        lines.append(screen.rstrip())
    return lines[:-1]


def test_a_terminal_ends_up_with_one_line_for_each_epoch():
    lines = shown(on_a_terminal())
    assert len(lines) == 4
    for number, line in enumerate(lines[:2], start=1):
        assert re.fullmatch(EPOCH.format(number, 2, 3) + r", val_loss \d\.\d{4}, val_mae \d\.\d{4}", line)
    assert re.fullmatch(r"Evaluate: 1 step in \d+\.\d s, loss \d\.\d{4}, mae \d\.\d{4}", lines[2])
    assert re.fullmatch(r"Predict: 1 step in \d+\.\d s", lines[3])


def test_a_terminal_shows_a_bar_with_loss_and_metrics_while_an_epoch_lasts():
    drawn = on_a_terminal().split("\r")
    bars = [part for part in drawn if "|" in part]
    assert any(re.fullmatch(r"Epoch 1/2 0/3 \|            \| \?", bar.rstrip()) for bar in bars)
    live = r"Epoch 1/2 2/3 \|█{8} {4}\| \d\d:\d\d, loss \d\.\d{4}, mae \d\.\d{4}"
    assert any(re.fullmatch(live, bar.rstrip()) for bar in bars), bars


def test_an_epoch_that_is_broken_off_leaves_its_bar_and_the_next_output_its_own_line():
    lines = shown(on_a_terminal("break"))
    assert len(lines) == 2 and re.match(r"Epoch 1/2 \d/3 \|", lines[0]) and lines[1] == "broken off"


@pytest.mark.parametrize("verbose", [0, False])
def test_silence_is_silent(verbose, capfd):
    model = made()
    model.fit(X, Y, epochs=2, validation_split=0.5, verbose=verbose)
    model.evaluate(X, Y, verbose=verbose), model.predict(X, verbose=verbose)
    model.train_on_batch(X, Y), model.test_on_batch(X, Y), model.predict_on_batch(X)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", ["auto", 1, 2, True])
def test_without_a_terminal_an_epoch_is_a_line_and_nothing_moves(verbose, capfd):
    made().fit(X, Y, batch_size=5, epochs=3, verbose=verbose)
    out, err = capfd.readouterr()
    assert out == "" and "\r" not in err and "\x1b" not in err
    lines = err.splitlines()
    assert len(lines) == 3
    assert all(re.fullmatch(EPOCH.format(number, 3, 3), line) for number, line in enumerate(lines, start=1)), lines


def test_tqdm_is_imported_only_when_a_bar_is_drawn():
    script = SCRIPT.replace("time.sleep(0.11)", "0") + "\nassert 'tqdm' not in sys.modules\nassert 'cupy' not in sys.modules"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr


def test_numbers_are_short_and_the_loss_comes_first():
    logs = {"accuracy": 0.5, "val_accuracy": 1.0, "val_loss": 12345.678, "loss": 0.0000123}
    assert readable(logs) == "loss 1.230e-05, accuracy 0.5000, val_loss 1.235e+04, val_accuracy 1.0000"
    assert readable({"loss": float("nan")}) == "loss nan" and readable(None) == ""


def test_a_notebook_without_widgets_gets_a_live_bar_like_a_terminal_on_stdout(monkeypatch):
    class OutStream(io.StringIO):
        """What a notebook has in the place of stdout."""

    OutStream.__module__ = "ipykernel.iostream"
    notebook, pipe = OutStream(), io.StringIO()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for stream, bars in ((notebook, True), (pipe, False)):
        monkeypatch.setattr(sys, "stdout" if bars else "stderr", stream)
        made().fit(X, Y, batch_size=4)
        monkeypatch.undo()
        assert ("|" in stream.getvalue()) is bars
        assert shown(stream.getvalue())[-1].startswith("Epoch 1/1: 3 steps in ")


def test_a_metric_of_several_numbers_is_shown_as_their_mean(capfd):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, "softmax")])
    model.compile("sgd", "categorical_crossentropy", metrics=[tf.keras.metrics.F1Score()])
    history = model.fit(X, np.eye(2)[np.arange(12) % 2], verbose=1).history
    assert f"f1_score {history['f1_score'][0].mean():.4f}" in capfd.readouterr().err
