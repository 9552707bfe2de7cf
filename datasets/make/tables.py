"""Compare the four tables with scikit-learn's own files, or copy them from there (`--write`).

    python datasets/make/tables.py [--write]

Needs scikit-learn (1.9.1 was the source). Exit status 0 if all files are identical, 1 if not.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

DATASETS = Path(__file__).resolve().parents[1]
FILES = ("digits/digits.csv.gz", "iris/iris.csv", "wine/wine_data.csv", "breast_cancer/breast_cancer.csv")


def main() -> int:
    """Copy or compare each file."""
    parser = argparse.ArgumentParser(description="Rebuild the tables from scikit-learn.")
    parser.add_argument("--write", action="store_true", help="replace the shipped files")
    write = parser.parse_args().write
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        print("scikit-learn is needed as the source: pip install scikit-learn", file=sys.stderr)
        return 1
    source = Path(spec.origin).parent / "datasets" / "data"
    differing = 0
    for file in FILES:
        original, shipped = (source / Path(file).name).read_bytes(), DATASETS / file
        if write:
            shipped.parent.mkdir(exist_ok=True)
            shipped.write_bytes(original)
        same = shipped.is_file() and shipped.read_bytes() == original
        print(f"{file:34}{'identical' if same else 'DIFFERENT'}")
        differing += not same
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
