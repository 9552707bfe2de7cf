"""The table of all layers, which the tests of layers share with these."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "keras" / "layers"))
