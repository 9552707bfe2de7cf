"""The command line: settle threads, measure the sections asked for, print one table, write JSON and Markdown.

Nothing here asserts a speed; `test_performance_script.py` only looks at the shape of what comes out.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run as a file: run again as a module, so that imports work
    import runpy

    sys.path[0] = str(Path(__file__).resolve().parents[2])
    runpy.run_module("tests.performance", run_name="__main__", alter_sys=True)
    sys.exit()

from . import environments, report, targets
from .report import Row
from .settings import OPTIONAL, PEERS, Settings, limit_threads, machine

SECTIONS = (
    *("steps", "training", "optimizers", "chain", "derivatives", "newton", "curve", "nist", "imports", "memory"),
    *("predict", "models", "busy", "ensembles", "ranks"),
)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line, parsed."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=SECTIONS, help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; the numbers mean little")
    parser.add_argument("--threads", type=int, default=2, help="for every candidate (2)")
    parser.add_argument("--rounds", type=int, default=15, help="blocks for each candidate (15)")
    parser.add_argument(
        "--without", metavar="MODULE", action="append", choices=(*PEERS, *OPTIONAL), default=[], help="leave one out"
    )
    parser.add_argument("--no-peers", action="store_true", help="this project and NumPy by hand alone")
    parser.add_argument(
        "--environments", metavar="FOLDER", type=Path, help="give each framework an environment of its own there"
    )
    parser.add_argument("--model", metavar="NAME", action="append", help="one of the section `models`, instead of all")
    parser.add_argument("--before", type=Path, metavar="FILE", help="what --json wrote earlier, to stand beside the targets")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    return parser.parse_args(given)


def measure(sections: Sequence[str], settings: Settings, before: list[Row] | None = None) -> Iterator[dict[str, Any]]:
    """All rows so far, with machine, versions and settings, after each section: a run of minutes may be interrupted."""
    described = machine(settings.threads)
    rows: list[Row] = []
    for name in sections:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f".{name}", __package__).measure(settings)
        yield {"machine": described, "settings": settings._asdict(), "targets": targets.results(rows, before), "rows": rows}


def main(given: Sequence[str] | None = None) -> None:
    """Run the program."""
    options = arguments(given)
    limit_threads(options.threads)
    without = (*options.without, *(PEERS if options.no_peers else ()))
    if options.environments:
        environments.make(options.environments, tuple([name for name in environments.NEEDS if name not in without]))
    settings = Settings(options.threads, options.rounds, without=without, models=options.model or ())
    if options.quick:
        settings = settings._replace(rounds=2, block=0.002, repeats=1, steps=20, quick=True)
    before = json.loads(options.before.read_text())["targets"] if options.before else None
    for result in measure(options.only or SECTIONS, settings, before):
        if options.json:
            options.json.write_text(json.dumps(result, indent=1) + "\n")
        header, rows = report.header(result["machine"]), result["rows"]
        reached = targets.HEADINGS, targets.cells(result["targets"])
        if options.markdown:
            tables = report.markdown(*reached), report.markdown(report.HEADINGS, report.cells(rows))
            options.markdown.write_text("\n\n".join((header, *tables)) + "\n")
    print(header, report.text(rows), report.aligned(*reached, right={2, 3, 4, 5}), sep="\n\n")


if __name__ == "__main__":
    main()
