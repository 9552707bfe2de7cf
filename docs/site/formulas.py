"""Placeholder."""

from __future__ import annotations


def as_latex(formula: str) -> str | None:
    return None
