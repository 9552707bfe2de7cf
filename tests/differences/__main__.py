"""Write the pages, or run the code of all rows on the peers."""

import importlib
import os
import sys
import types
from typing import Any

from . import PEERS, agrees, outcome, sections
from .pages import page, path


def peer_library(peer: str) -> Any:
    """TensorFlow, or a stand-in with Keras on JAX as its attribute; None if it is not installed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "jax")
    try:
        found = importlib.import_module(peer)
    except ImportError:
        return None
    return found if peer == "tensorflow" else types.SimpleNamespace(keras=found)


def check(peer: str) -> list[str]:
    """What a peer gives otherwise than its column says."""
    library = peer_library(peer)
    if library is None:
        return []
    complaints = []
    for section in sections(peer):
        for row in section.rows:
            library.keras.utils.clear_session()  # a row may set what holds for the process
            found = outcome(row.code, library)
            if not agrees(found, row.theirs):
                complaints.append(f"{peer}, {section.title}, {row.what}: expected {row.theirs!r}, {peer} gives {found!r}")
    return complaints


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        complaints = [line for peer in sys.argv[2:] or PEERS for line in check(peer)]
        print("\n".join(complaints) or "all columns agree")
        sys.exit(bool(complaints))
    for peer in PEERS:
        path(peer).write_text(page(peer))
