"""Run everything and print the table."""

import argparse
import logging
import os
import pathlib
import sys
import warnings
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from . import damaging, failing, fuzzing, killing, kinds, restoring, resuming, writing
from .report import HEADER, Row


def rows(quick: bool) -> Iterator[Row]:
    """The lines of the table, one after another."""
    kills, flips, resumes, fuzz = (10, 40, 5, 200) if quick else (200, 500, 50, 20_000)
    for kind in kinds.KINDS[1:]:
        yield killing.killed(kind, kills)
    for writers in (2, 4):
        for same_name in (True, False):
            yield writing.written(writers, 40 if quick else 1_000, same_name)
    for kind in kinds.KINDS:
        yield damaging.flipped(kind, flips)
    yield damaging.foreign(flips)
    for kind in kinds.KINDS:
        yield damaging.cut(kind, 7 if quick else 1)
    for kind in kinds.KINDS:
        yield failing.failing(kind)
    yield resuming.resumed(resumes)
    yield resuming.resumed_loops(resumes)
    for number in range(fuzzing.LOADERS):
        yield fuzzing.fuzzed(number, fuzz)
    yield restoring.timed(20 if quick else 100)


def main() -> int:
    """0 if nothing went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small counts")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(HEADER, flush=True)
    bad = 0
    for row in rows(arguments.quick):
        print(row.markdown(), flush=True)
        bad += row.bad
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
