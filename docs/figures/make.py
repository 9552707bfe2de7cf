"""Draws the pictures of the guides: runs their blocks and saves the figure of each block that a picture follows.

    python docs/figures/make.py [FOLDER]

A picture in a guide cannot differ from the code above it, because that code draws it. Without FOLDER they go to where
the guides look for them. Needs matplotlib.
"""

import contextlib
import io
import os
import pathlib
import re
import sys

os.environ.setdefault("MPLBACKEND", "Agg")
import matplotlib.pyplot as plt

import minikeras

HERE = pathlib.Path(__file__).parent
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n.*?^```\n)?(?:\n!\[[^]]*\]\(\.\./figures/(?P<picture>[^)]+)\))?", re.M | re.S
)


def make(guide: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Run a guide; the names of the pictures that were drawn."""
    drawn: list[str] = []
    namespace: dict[str, object] = {}
    if "../figures/" not in guide.read_text():
        return drawn
    minikeras.keras.utils.clear_session()  # automatic names start afresh, as they do for a reader of this guide
    for block in BLOCK.finditer(guide.read_text()):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block["code"], guide.name, "exec"), namespace)
        if block["picture"]:
            plt.gcf().savefig(folder / block["picture"], dpi=110, metadata={"Software": None})
            drawn.append(block["picture"])
        plt.close("all")
    return drawn


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for guide in sorted(HERE.parent.rglob("*.md")):
        for name in make(guide, folder):
            print(folder / name)
