"""Compare `CHECKSUMS.tsv` with the catalogue in `minikeras/keras/datasets/catalogue.py`, or write it (`--write`).

    python datasets/make/checksums.py [--write]

`bytes` and `sha256_raw` describe a file after decompression. Exit status 0 if the table is up to date, 1 if not.
"""

import argparse
import sys
from pathlib import Path

DATASETS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DATASETS.parent))

from minikeras.keras.datasets.catalogue import DATASETS as CATALOGUE  # noqa: E402

TABLE = DATASETS / "CHECKSUMS.tsv"


def main() -> int:
    """Write or compare the table."""
    parser = argparse.ArgumentParser(description="Rebuild CHECKSUMS.tsv from the catalogue.")
    parser.add_argument("--write", action="store_true", help="replace the table")
    if parser.parse_args().write:
        TABLE.write_text(table(), encoding="utf-8")
    same = TABLE.is_file() and TABLE.read_text(encoding="utf-8") == table()
    print(f"{TABLE.name}: {'up to date' if same else 'DIFFERENT from the catalogue'}")
    return 0 if same else 1


def table() -> str:
    """The whole file: a header, then one line per file."""
    lines = ["name\tfile\tbytes\tsha256_raw\tlicence\turls"]
    for dataset in CATALOGUE:
        for file in dataset.files:
            fields = (dataset.name, file.name, str(file.size), file.sha256, dataset.licence, " ".join(file.urls))
            lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
