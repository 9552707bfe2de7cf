"""The site as it was built, on a server of this machine."""

import contextlib
import functools
import http.server
import pathlib
import threading
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILT = ROOT / "build" / "site"
NO_INDEX = b'{"config":{"lang":["en"],"separator":" ","pipeline":[],"fields":{}},"docs":[]}'


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


class WithoutIndex(Quiet):
    """Its pages have nothing to search: each would read the index again."""

    def do_GET(self) -> None:
        if not self.path.endswith("/search_index.json"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(NO_INDEX)))
        self.end_headers()
        self.wfile.write(NO_INDEX)


class Patient(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """The browser hangs up when a page is closed."""


@pytest.fixture(scope="session")
def site() -> pathlib.Path:
    """The folder of the site."""
    if not (BUILT / "index.html").exists():
        pytest.skip("the site is not built: python -m mkdocs build --strict")
    return BUILT


@contextlib.contextmanager
def served(site: pathlib.Path, handler: type[Quiet]) -> Iterator[str]:
    """The address of the site on a server."""
    with Patient(("127.0.0.1", 0), functools.partial(handler, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def address(site: pathlib.Path) -> Iterator[str]:
    with served(site, Quiet) as found:
        yield found


@pytest.fixture(scope="session")
def address_without_index(site: pathlib.Path) -> Iterator[str]:
    with served(site, WithoutIndex) as found:
        yield found
