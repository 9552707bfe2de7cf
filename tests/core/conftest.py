"""No warning was told before a test, and its toy operations go with it."""

from afresh import operations_afresh, warnings_afresh  # noqa: F401
