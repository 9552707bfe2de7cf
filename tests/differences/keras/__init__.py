"""Sections of the page about Keras."""
