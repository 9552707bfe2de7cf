"""`tf.function`: which calls one recording serves."""
