"""What a recording takes for granted of Python's state, and how it is compared before each replay."""
