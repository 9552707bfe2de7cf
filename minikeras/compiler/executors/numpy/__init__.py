"""Programs as calls of NumPy functions, or CuPy's, that write into given memory."""
