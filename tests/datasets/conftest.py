"""A cache of its own for every test, a local web server that misbehaves on demand, and tiny IDX datasets."""

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from minikeras.keras.datasets import download
from minikeras.keras.datasets.catalogue import DataFile, DatasetForm

Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache home of this test; nothing of the user's own settings reaches it."""
    directory = tmp_path / "home"
    monkeypatch.setenv("MINIKERAS_HOME", str(directory))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("MINIKERAS_DATA_PATH", raising=False)
    monkeypatch.delenv("MINIKERAS_OFFLINE", raising=False)
    return directory


class Server:
    """Answers registered per path; counts the requests for each."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append(self.path)
                answer = server.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                else:
                    answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def serve(self, path: str, body: bytes, announce: int | None = None, status: int = 200) -> str:
        """Answer with `body`; `announce` is a false Content-Length."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            request.send_header("Content-Length", str(len(body) if announce is None else announce))
            request.end_headers()
            request.wfile.write(body)

        self.answers[path] = answer
        return self.url + path

    def redirect(self, path: str, location: str) -> str:
        """Answer with a redirect."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302)
            request.send_header("Location", location)
            request.send_header("Content-Length", "0")
            request.end_headers()

        self.answers[path] = answer
        return self.url + path

    def hang(self, path: str) -> str:
        """Accept the request and say nothing until the test is over."""
        self.answers[path] = lambda request: void(self.released.wait(60))
        return self.url + path


def void(_: object) -> None:
    """Turn any value into None."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A running server, stopped after the test; its plain http is allowed, and another try comes at once."""
    instance = Server()
    monkeypatch.setattr(download, "ALLOWED", ("https://", instance.url))
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    thread = threading.Thread(target=instance.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield instance
    instance.released.set()
    instance.http.shutdown()
    instance.http.server_close()
    thread.join(timeout=60)


@pytest.fixture
def idx() -> bytes:
    """An IDX file of three 2 x 2 images."""
    return bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, *range(12)])


@pytest.fixture
def tiny(idx: bytes) -> Callable[..., DatasetForm]:
    """Make a one-file dataset, `tiny`, that comes from the addresses given."""

    def make(*urls: str, content: bytes = idx) -> DatasetForm:
        file = DataFile("tiny-idx3-ubyte", len(content), hashlib.sha256(content).hexdigest(), urls)
        return DatasetForm("tiny", (file,), "none")

    return make


@pytest.fixture
def gz(idx: bytes) -> bytes:
    """The tiny file as mirrors serve it."""
    return gzip.compress(idx)
