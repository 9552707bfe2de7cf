"""What goes wrong with files in practice, done on purpose, many times.

    python -m tests.faults            the full counts; prints the table of docs/reliability.md
    python -m tests.faults --quick    small ones

`kinds.py` says which files there are, each other module does one thing to them, `test_faults.py` runs them with small counts.
"""
