"""Sections of the page about TensorFlow."""
