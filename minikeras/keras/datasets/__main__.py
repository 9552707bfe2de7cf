"""Command line: `python -m minikeras.keras.datasets {list, fetch NAME, verify [NAME]}`."""

import argparse
import sys
from collections.abc import Sequence

from ...errors import LoadError, MinikerasError
from . import catalogue
from .catalogue import NAMES, forms_of


def main(arguments: list[str] | None = None) -> int:
    """Run one command; exit status 0 for success, 1 if a dataset is damaged or cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m minikeras.keras.datasets", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show every dataset and where it was found")
    fetch_parser = commands.add_parser("fetch", help="make sure that a dataset is on this machine")
    fetch_parser.add_argument("name", choices=NAMES)
    verify_parser = commands.add_parser("verify", help="compare every copy on this machine with its SHA-256")
    verify_parser.add_argument("name", choices=NAMES, nargs="?")
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            for name in NAMES:
                form, place = forms_of(name)[0], catalogue.location(name) or "not on this machine"
                print(f"{name:18}{sum(file.size for file in form.files) / 1e6:8.2f} MB  {form.licence:46}{place}")
        elif options.command == "fetch":
            catalogue.find(forms_of(options.name))
            print(f"{options.name}: intact, in {catalogue.path(options.name)}")
        else:
            return verify([options.name] if options.name else NAMES)
    except MinikerasError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def verify(names: Sequence[str]) -> int:
    """Hash every copy in every place; a copy that exists but differs is an error, a missing one is not."""
    status = 0
    for name in names:
        copies = 0
        for directory, form in catalogue.candidates(forms_of(name)):
            for file in form.files:
                try:
                    stored = catalogue.stored_file(file, directory)
                    copies += 1
                    catalogue.read_file(file, directory)
                    print(f"{name}: {stored}: intact")
                except LoadError as error:
                    print(f"{name}: {stored}: DAMAGED: {error}")
                    status = 1
                except FileNotFoundError:
                    continue
        if not copies:
            print(f"{name}: not on this machine")
    return status


if __name__ == "__main__":
    sys.exit(main())
