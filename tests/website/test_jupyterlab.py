"""A tutorial in JupyterLab: the bar moves while `fit` runs and is gone afterwards, and each figure is shown once.

Needs `pip install 'minikeras[browser,notebooks]'` and Chromium (`apt install chromium`). Pictures go to `build/screenshots`.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.website.test_browser import CHROMIUM, FLAGS, PATIENCE, SCREENSHOTS

pytestmark = pytest.mark.site
playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'minikeras[browser]'")
pytest.importorskip("jupyterlab", reason="pip install 'minikeras[notebooks]'")

ROOT = pathlib.Path(__file__).parents[2]
FIT = "model.fit(x, y, epochs=20, validation_split=0.1)"
SLOW_FIT = """
import os, time

def pause(batch, logs):
    time.sleep(0.01)
    while batch == 30 and not os.path.exists("seen"):
        time.sleep(0.01)

pause = tf.keras.callbacks.LambdaCallback(on_train_batch_end=pause)
history = model.fit(x, y, epochs=20, validation_split=0.1, callbacks=[pause])
"""
NO_NEWS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> Iterator[str]:
    """The address of a JupyterLab whose folder has the first tutorial, not run yet, whose `fit` waits to be seen."""
    notebook = json.loads((ROOT / "docs" / "tutorials" / "first_steps.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
            source = "".join(cell["source"])
            cell["source"] = source.replace(f"history = {FIT}", SLOW_FIT.strip())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "first_steps.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "overrides.json").write_text(json.dumps(NO_NEWS), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        **{"port": port, "IdentityProvider.token": "", "ServerApp.root_dir": tmp_path / "folder"},
        "LabApp.app_settings_dir": tmp_path / "settings",
    }
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    own |= folders | {"IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, env=own, stdout=log, stderr=log) as server:
        address = f"http://127.0.0.1:{port}/"
        try:
            wait_for(address)
            yield address
        finally:
            server.terminate()
            server.wait(60)


def wait_for(address: str) -> None:
    for _ in range(PATIENCE // 500):
        try:
            urllib.request.urlopen(f"{address}api", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("JupyterLab did not start")


def test_a_notebook_shows_a_bar_while_fit_runs_and_each_figure_once(lab: str, tmp_path: pathlib.Path) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page: Any = browser.new_page(viewport={"width": 1280, "height": 1400})
        page.set_default_timeout(PATIENCE)
        asked = page.locator(".jp-Dialog button[aria-label='Select Kernel']")  # where a kernel is slow to start
        page.add_locator_handler(asked, lambda button: button.click())
        page.goto(f"{lab}lab/tree/first_steps.ipynb")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_selector("text=Python 3 (ipykernel) | Idle")
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells")

        bar = page.locator(".widget-hbox", has=page.locator(".widget-hprogress, .progress, progress"))
        playwright.expect(bar).to_contain_text("loss", timeout=PATIENCE)
        assert "Epoch" in bar.inner_text() and "accuracy" in bar.inner_text()
        bar.scroll_into_view_if_needed()
        page.screenshot(path=SCREENSHOTS / "jupyterlab-training.png")
        (tmp_path / "folder" / "seen").touch()

        last = page.locator(".jp-CodeCell").last
        playwright.expect(last.locator(".jp-OutputArea-output")).to_contain_text("True", timeout=PATIENCE)
        assert bar.count() == 0, "the bar is taken away"
        cells = page.locator(".jp-CodeCell")
        pictures = [cells.nth(i).locator(".jp-OutputArea-output img").count() for i in range(cells.count())]
        lines = page.locator(".jp-OutputArea-output", has_text="Epoch 20/20").inner_text().splitlines()
        page.screenshot(path=SCREENSHOTS / "jupyterlab-done.png")
        assert pictures == [0, 1, 0, 0, 1, 0, 1, 0], "the digits, the history, those that were read wrongly"
        assert len([line for line in lines if line.startswith("Epoch ")]) == 20
        assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        browser.close()
