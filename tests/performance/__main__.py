"""`python -m tests.performance`."""

from .run import main

main()
