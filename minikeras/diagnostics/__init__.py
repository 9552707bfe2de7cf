"""Diagnostics: why a gradient is None, where a NaN came from, how much a tape holds. May import `core`."""
