"""The site as it was built, on a server of this machine."""

from __future__ import annotations

import functools
import http.server
import pathlib
import threading
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILT = ROOT / "build" / "site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


class Patient(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """The browser hangs up when a page is closed."""


@pytest.fixture(scope="session")
def site() -> pathlib.Path:
    """The folder of the site."""
    if not (BUILT / "index.html").exists():
        pytest.skip("the site is not built: python -m mkdocs build --strict")
    return BUILT


@pytest.fixture(scope="session")
def address(site: pathlib.Path) -> Iterator[str]:
    server = Patient(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()
