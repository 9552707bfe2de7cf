"""The primitives of the core, by subject: strict, polymorphic, with their derivatives."""

from . import arithmetic, contractions, indexing, reductions, shaping, transcendental
