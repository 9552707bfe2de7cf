"""`tf.function`: recordings, and the calls that each one serves."""
