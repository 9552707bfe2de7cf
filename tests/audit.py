"""What code does to the outside while it runs: files, imports, processes, network."""

import contextlib
import sys
from collections.abc import Iterator

WATCHED = {
    *("import", "exec", "compile", "open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec"),
    *("os.fork", "ctypes.dlopen", "marshal.loads", "pickle.find_class", "shutil.rmtree", "os.remove", "os.rename", "os.mkdir"),
    *("os.link", "os.symlink", "os.chmod", "os.listdir", "os.scandir", "urllib.Request"),
}

_listeners: list[list[tuple[str, str]]] = []
_installed: list[bool] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _listeners and event in WATCHED:
        text = str(arguments[0]) if arguments else ""
        if not (event == "open" and text.isdigit()):  # a file that is open already, by its number
            for listener in _listeners:
                listener.append((event, text))


@contextlib.contextmanager
def audited() -> Iterator[list[tuple[str, str]]]:
    """The list of (event, first argument) of everything watched that happens within the block."""
    if not _installed:
        sys.addaudithook(_hook)  # cannot be removed again
        _installed.append(True)
    found: list[tuple[str, str]] = []
    _listeners.append(found)
    try:
        yield found
    finally:
        _listeners.remove(found)
