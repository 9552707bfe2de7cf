"""The primitives, by subject: what an operation computes and how it is differentiated.

May import `errors`, `types`, `nest`, `arrays` and `core`. Read `arithmetic.py` first. They are strict and polymorphic;
the converting, documented functions that users call are in `minikeras/functions`.
"""

from . import arithmetic, contractions, convolution, indexing, linalg, nn, reductions, shaping, transcendental

__all__ = ["arithmetic", "contractions", "convolution", "indexing", "linalg", "nn", "reductions", "shaping", "transcendental"]
