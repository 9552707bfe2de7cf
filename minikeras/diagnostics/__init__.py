"""Why a gradient is None, where a NaN came from, how much a tape holds. May import `core`.

Read `trace.py`, what is noted, then `explain.py`, what is made of it.
"""
