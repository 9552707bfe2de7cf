"""Programs as calls of NumPy functions, or CuPy's, that write where they are told."""
