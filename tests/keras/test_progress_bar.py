"""What fit, evaluate and predict show: nothing, a line an epoch, or a live bar on a terminal."""

import contextlib
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
from minikeras.keras.callbacks.callback import readable

X, Y = np.ones((12, 3), "float32"), np.zeros((12, 1), "float32")
DONE = r"{0}/{0} - \d+s - \d+[mu]?s/step"
LOGS = r" - loss: \d\.\d{4} - mae: \d\.\d{4}"


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


def test_a_terminal_ends_up_with_keras_s_lines_of_each_epoch():
    lines = shown(on_a_terminal())
    assert len(lines) == 6 and (lines[0], lines[2]) == ("Epoch 1/2", "Epoch 2/2")
    for line in lines[1], lines[3]:
        assert re.fullmatch(DONE.format(3) + LOGS + r" - val_loss: \d\.\d{4} - val_mae: \d\.\d{4}", line)
    assert re.fullmatch(DONE.format(1) + LOGS, lines[4]) and re.fullmatch(DONE.format(1), lines[5])


def test_a_terminal_shows_a_bar_with_loss_and_metrics_while_an_epoch_lasts():
    drawn = on_a_terminal().split("\r")
    bars = [part for part in drawn if "|" in part]
    assert any(re.fullmatch(r"Epoch 1/2 0/3 \|            \| \?", bar.rstrip()) for bar in bars)
    live = r"Epoch 1/2 2/3 \|█{8} {4}\| \d\d:\d\d," + LOGS[2:]
    assert any(re.fullmatch(live, bar.rstrip()) for bar in bars), bars


def test_an_epoch_that_is_broken_off_leaves_its_bar_and_the_next_output_its_own_line():
    lines = shown(on_a_terminal("break"))
    assert re.match(r"Epoch 1/2 \d/3 \|", lines[1]) and [lines[0], *lines[2:]] == ["Epoch 1/2", "broken off"]


@pytest.mark.parametrize("verbose", [0, False])
def test_silence_is_silent(verbose, capfd):
    model = made()
    model.fit(X, Y, epochs=2, validation_split=0.5, verbose=verbose)
    model.evaluate(X, Y, verbose=verbose), model.predict(X, verbose=verbose)
    model.train_on_batch(X, Y), model.test_on_batch(X, Y), model.predict_on_batch(X)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", ["auto", 1, 2, True])
def test_without_a_terminal_stdout_has_keras_s_lines_of_an_epoch_and_nothing_moves(verbose, capfd):
    made().fit(X, Y, batch_size=5, epochs=3, verbose=verbose)
    out, err = capfd.readouterr()
    assert err == "" and "\r" not in out and "\x1b" not in out
    lines = out.splitlines()
    assert lines[::2] == ["Epoch 1/3", "Epoch 2/3", "Epoch 3/3"]
    assert len(lines) == 6 and all(re.fullmatch(DONE.format(3) + LOGS, line) for line in lines[1::2]), lines


def test_lines_go_to_where_python_s_stdout_goes_at_that_moment():
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        made().fit(X, Y, epochs=2, callbacks=[tf.keras.callbacks.EarlyStopping("loss", 9.0, verbose=1)])
    lines = written.getvalue().splitlines()
    assert len(re.findall(r" - loss: [\d.]+", written.getvalue())) == 2 and lines[-1] == "Epoch 2: early stopping"


def test_a_bar_on_a_terminal_leaves_a_redirected_stdout_its_lines():
    terminal, inside = pty.openpty()
    termios.tcsetwinsize(inside, (24, 80))  # without a width there is no bar
    done = subprocess.run([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=inside, text=True, check=True)
    assert select.select([terminal], [], [], 60)[0] and b"Epoch 2/2 0/3 |" in os.read(terminal, 65536)
    os.close(inside), os.close(terminal)
    assert done.stdout.count(" - loss: ") == 3 and "|" not in done.stdout and "\r" not in done.stdout


def test_tqdm_is_imported_only_when_a_bar_is_drawn():
    script = SCRIPT.replace("time.sleep(0.11)", "0") + "\nassert 'tqdm' not in sys.modules\nassert 'cupy' not in sys.modules"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr


def test_numbers_are_short_and_in_keras_s_order():
    logs = {"loss": 0.0000123, "accuracy": 0.5, "val_accuracy": 0.0, "val_loss": 12345.678}
    assert readable(logs) == "accuracy: 0.5000 - loss: 1.2300e-05 - val_accuracy: 0.0000 - val_loss: 12345.6780"
    assert readable({"loss": float("nan")}) == "loss: nan" and readable(None) == ""


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
        assert not bars or re.match(r"3/3 - \d+s - ", shown(stream.getvalue())[-1])


def test_a_metric_of_several_numbers_is_shown_as_their_mean(capfd):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, "softmax")])
    model.compile("sgd", "categorical_crossentropy", metrics=[tf.keras.metrics.F1Score()])
    history = model.fit(X, np.eye(2)[np.arange(12) % 2], verbose=1).history
    assert f"f1_score: {history['f1_score'][0].mean():.4f}" in capfd.readouterr().out
