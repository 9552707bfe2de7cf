"""`tf.function`: which calls one recording serves, and what it read of Python's own state."""
