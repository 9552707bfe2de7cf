"""Threads: our own for long loops and products, and those that BLAS libraries have."""
