"""How fast this project is, beside hand-written NumPy and, where installed, other frameworks.

Run `python -m tests.performance` in the repository's root, with `--help` for options. Each section (`steps`, `chain`,
...) is a module with one function `measure(settings)` that returns rows; read `clock.py` first: it says how times are
taken.
"""
